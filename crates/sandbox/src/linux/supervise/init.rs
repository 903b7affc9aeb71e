//! Init as its launcher sees it.

use std::os::fd::OwnedFd;

use rustix::process::{Signal, pidfd_send_signal};

use super::LAST_RESORT_PLAIN;
use crate::core::report::Usage;
use crate::linux::channel::{Channel, ToLauncher};
use crate::linux::memory_watch::ProcessTree;
use crate::linux::syscall_proxy::SyscallProxy;
use crate::linux::{process_tree, sys};

/// Init of a pid namespace after its last words. No other process is left; the kernel takes the namespaces down, which
/// takes longer than it takes to report what happened. So the launcher does that first.
#[must_use = "a process that is not collected stays a zombie"]
pub struct Dying(Init);

/// What of the user's is mounted in the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mounted {
    SystemAlone,
    Something,
}

impl Dying {
    pub fn new(init: Init) -> Dying {
        Dying(init)
    }

    /// Waits until it is gone, and its mounts with it: what was granted is free again when the launcher ends. With
    /// nothing granted there is nothing to wait for, and the machine's own init may collect it.
    pub fn collect(self, mounted: Mounted) {
        // It dies anyway, unless something keeps it from that.
        let _ = pidfd_send_signal(&self.0.pidfd, Signal::KILL);
        if mounted == Mounted::Something || !orphans_are_collected() {
            let _ = sys::wait_for(self.0.pid);
        }
    }
}

/// Whether a process collects those whose parent is gone. The first process of a machine does, or the nearest one
/// that asked for orphans. The first process of a container may be any program, and many of those never do.
fn orphans_are_collected() -> bool {
    /// The kernel gives this number to the first pid namespace, and to no other (`PROC_PID_INIT_INO`).
    const FIRST: &str = "pid:[4026531836]";
    std::fs::read_link("/proc/self/ns/pid").is_ok_and(|namespace| namespace.as_os_str() == FIRST)
}

pub struct Init {
    pub pid: i32,
    pub pidfd: OwnedFd,
    pub channel: Channel,
    pub tree: ProcessTree,
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
        if let ProcessTree::Below(_) = self.tree {
            let _ = process_tree::end_all(Some(LAST_RESORT_PLAIN));
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

impl sys::ProcessUsage {
    pub(super) fn add_to(&self, usage: &mut Usage) {
        usage.cpu_seconds = self.cpu.as_secs_f64();
        usage.max_process_resident_bytes = self.max_resident_bytes;
    }
}
