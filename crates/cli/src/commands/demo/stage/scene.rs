//! Stand-ins for what a person has to lose, so that the attempts are harmless without a sandbox.
//!
//! Everything lives in one temporary directory, and every secret is made up.

use std::fs;
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::symlink;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};

use super::stand_in::{Bystander, TemporaryDirectory, unique};
use crate::failure::Failure;

pub use super::stand_in::TOKEN;

/// Above every pid that the sandboxes of the demo give to their own processes.
const LOW_PIDS: u32 = 100;

pub struct Scene {
    // Declared in the order in which things have to go.
    bystanders: [Bystander; 2],
    leak: OwnedFd,
    tcp: TcpListener,
    abstract_name: String,
    _listeners: [UnixListener; 2],
    root: TemporaryDirectory,
    secret: String,
}

impl Scene {
    pub fn set(program: &Path) -> Result<Scene, Failure> {
        let root = TemporaryDirectory::new()?;
        let path = root.path().to_owned();
        Scene::furnish(root, program).map_err(|error| Failure::file(&path, &error))
    }

    fn furnish(root: TemporaryDirectory, program: &Path) -> io::Result<Scene> {
        let unique = unique();
        let secret = format!("made-up-secret-{unique}");
        let put = |name: &str, text: &str| root.put(name, text);
        put("home/.ssh/id_ed25519", &format!("not a key, but {secret}\n"))?;
        put("home/.aws/credentials", &format!("aws_secret_access_key = {secret}\n"))?;
        put("home/.bashrc", "# shell start-up\n")?;
        put("etc/hosts", "127.0.0.1 localhost\n")?;
        put("docs/readme.txt", "may be read, not changed\n")?;
        put("tmp/.keep", "")?;
        put("run/.keep", "")?;
        put("project/main.py", "print('hello')\n")?;
        symlink(root.path().join("home/.ssh/id_ed25519"), root.path().join("project/notes.txt"))?;

        let abstract_name = format!("mcp-demo-{unique}");
        let abstract_address = SocketAddr::from_abstract_name(&abstract_name)?;
        let listeners = [
            UnixListener::bind(root.path().join("run/docker.sock"))?,
            UnixListener::bind_addr(&abstract_address)?,
        ];
        // A copy made this way stays open in every child: the mistake that is imitated.
        let leak = rustix::io::dup(fs::File::open(root.path().join("home/.ssh/id_ed25519"))?)?;
        skip_low_pids();
        Ok(Scene {
            bystanders: [Bystander::new(program, &secret)?, Bystander::new(program, &secret)?],
            leak,
            tcp: TcpListener::bind("127.0.0.1:0")?,
            abstract_name,
            _listeners: listeners,
            root,
            secret,
        })
    }

    /// What only a successful theft can show.
    pub fn secret(&self) -> &str {
        &self.secret
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// The path as a word of an attempt.
    pub fn word(&self, name: &str) -> String {
        self.path(name).to_string_lossy().into_owned()
    }

    pub fn tcp_address(&self) -> io::Result<String> {
        Ok(self.tcp.local_addr()?.to_string())
    }

    pub fn abstract_name(&self) -> &str {
        &self.abstract_name
    }

    pub fn leaked_descriptor(&self) -> i32 {
        self.leak.as_raw_fd()
    }

    /// A process that lives as long as the scene.
    pub fn bystander(&self) -> u32 {
        self.bystanders[0].id()
    }

    /// A process that somebody may end.
    pub fn victim(&self) -> u32 {
        self.bystanders[1].id()
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
