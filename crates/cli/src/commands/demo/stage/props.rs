//! Targets of the demo's attacks on Linux besides files: sockets, and a descriptor that a program left open.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::symlink;
use std::os::unix::net::{SocketAddr, UnixListener};

use super::stand_in::{TemporaryDirectory, unique};

pub const SHELL_START_UP: &str = "home/.bashrc";

/// Above every pid that the sandboxes of the demo give to their own processes.
const LOW_PIDS: u32 = 100;

pub struct Props {
    leak: OwnedFd,
    abstract_name: String,
    _listeners: [UnixListener; 2],
}

impl Props {
    pub fn put(root: &TemporaryDirectory) -> io::Result<Props> {
        root.put("etc/hosts", "127.0.0.1 localhost\n")?;
        root.put("tmp/.keep", "")?;
        root.put("run/.keep", "")?;
        let key = root.path().join("home/.ssh/id_ed25519");
        symlink(&key, root.path().join("project/notes.txt"))?;
        let abstract_name = format!("mcp-demo-{}", unique());
        let abstract_address = SocketAddr::from_abstract_name(&abstract_name)?;
        let listeners = [
            UnixListener::bind(root.path().join("run/docker.sock"))?,
            UnixListener::bind_addr(&abstract_address)?,
        ];
        // A copy made this way stays open in every child: the mistake that is imitated.
        let leak = rustix::io::dup(fs::File::open(key)?)?;
        skip_low_pids();
        Ok(Props { leak, abstract_name, _listeners: listeners })
    }

    pub fn abstract_name(&self) -> &str {
        &self.abstract_name
    }

    pub fn leaked_descriptor(&self) -> i32 {
        self.leak.as_raw_fd()
    }
}

/// In a fresh container the bystander's pid could be one that exists inside the sandbox, too, and
/// the attempt on it would hit the wrong process there. Threads use up numbers quickly.
fn skip_low_pids() {
    for _ in std::process::id()..LOW_PIDS {
        if let Ok(thread) = std::thread::Builder::new().spawn(|| {}) {
            let _ = thread.join();
        }
    }
}
