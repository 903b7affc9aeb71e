//! Init as its launcher sees it.

use std::os::fd::OwnedFd;

use rustix::process::{Signal, pidfd_send_signal};

use super::LAST_RESORT_PLAIN;
use crate::linux::channel::{Channel, ToLauncher};
use crate::linux::syscall_proxy::SyscallProxy;
use crate::linux::watch::Tree;
use crate::linux::{sys, tree};

pub struct Init {
    pub pid: i32,
    pub pidfd: OwnedFd,
    pub channel: Channel,
    pub tree: Tree,
    /// Who answers for files and signals, where no namespace keeps them apart.
    pub syscall_proxy: Option<SyscallProxy>,
}

impl Init {
    /// For one that has not started the command.
    pub fn end(self) {
        let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
        let _ = sys::wait_for(self.pid);
    }

    /// Ends it before anybody has listened to it. Whether the command may have been started by then.
    pub fn end_unheard(self) -> bool {
        let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
        let _ = sys::wait_for(self.pid);
        if let Tree::Below(_) = self.tree {
            let _ = tree::end_all(Some(LAST_RESORT_PLAIN));
        }
        let mut executing = false;
        // It is dead, and so is everybody who could write: this ends.
        while let Ok(Some((message, _))) = self.channel.receive() {
            match message {
                ToLauncher::Executing(_) => executing = true,
                ToLauncher::Failed(_) => return false,
                _ => {}
            }
        }
        executing
    }
}
