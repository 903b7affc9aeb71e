//! A process outside the sandbox that ends the run when the launcher is killed: it reads from a pipe
//! that only the launcher can write to, and whose end is the launcher's.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::process::exit;

use crate::macos::run_directory;
use crate::macos::sys::{self, Forked, Membership, Signals};
use crate::macos::tree::Tree;
use crate::unix::relay::Pipe;
use crate::unix::supervision::SIGNALS;

/// The run ended in good order.
const DONE: i32 = 0;

pub struct Guardian {
    pid: i32,
    line: OwnedFd,
}

impl Guardian {
    /// The calling process must have a single thread.
    pub fn start(place: &Path, membership: Option<Membership>) -> io::Result<Guardian> {
        let Pipe { read: reader, write: line } = Pipe::new()?;
        match sys::fork()? {
            Forked::Parent(pid) => Ok(Guardian { pid, line }),
            Forked::Child => {
                drop(line);
                Signals::ignore(&SIGNALS);
                // The terminal must not signal it, and readers of our outputs must see their end.
                let _ = rustix::process::setsid();
                crate::macos::helper_link::let_go_of_stdio();
                let _ = sys::close_others(reader.as_fd().as_raw_fd());
                guard(&reader, place, membership);
                exit(0)
            }
        }
    }

    /// From now on this is what dies with the launcher.
    pub fn watch(&self, root: i32) -> io::Result<()> {
        rustix::io::write(&self.line, &root.to_le_bytes())?;
        Ok(())
    }

    /// The tree is dead already.
    pub fn dismiss(self) {
        let _ = rustix::io::write(&self.line, &DONE.to_le_bytes());
        drop(self.line);
        let pid = rustix::process::Pid::from_raw(self.pid);
        let _ = rustix::process::waitpid(pid, rustix::process::WaitOptions::empty());
    }
}

fn guard(reader: &OwnedFd, place: &Path, membership: Option<Membership>) {
    let mut tree = None;
    let mut word = [0u8; 4];
    loop {
        match rustix::io::read(reader, &mut word) {
            Ok(4) => match i32::from_le_bytes(word) {
                DONE => return,
                root => tree = Tree::new(root, membership.clone()),
            },
            Err(rustix::io::Errno::INTR) => {}
            _ => break,
        }
    }
    if let Some(mut tree) = tree {
        tree.kill();
    }
    run_directory::remove(place);
}
