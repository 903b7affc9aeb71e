//! A process that carries out calls for a command without a root of its own, as the user that the command is.
//!
//! Landlock has no right for modes, owners, times and extended attributes, and before version 6 none for
//! signals. So the filter (`seccomp/plain.rs`) leaves these calls to the launcher. None is let pass after a look at memory,
//! which could change meanwhile: the syscall proxy opens the file itself, makes sure that it lies in a place that was
//! granted, and does what was asked through that handle.
//!
//! Stops: whatever the launcher may do and the command may not. The launcher may be root, so it carries out no call itself: the syscall proxy
//! has become the user for good (ids, groups, no capabilities, no_new_privs) before the command exists, and
//! without it nothing starts. It cannot be traced, its memory and descriptors cannot be opened, and it
//! ends with the launcher. Should it be killed, what it had to answer is refused. A file that it has to wait for (a
//! network file system) keeps the syscall proxy waiting, not the launcher's clock.
//!
//! Leaves open: nothing that it knows of; what it cannot read (a process that is not dumpable) is refused.

mod calls;
mod files;
mod memory;
mod places;
mod process;
mod signals;

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::set_socket_send_buffer_size;
use rustix::process::{Signal, pidfd_send_signal};
use serde::{Deserialize, Serialize};

use crate::core::host::Ids;
use crate::linux::channel::Channel;
use crate::linux::landlock::Rule;
use crate::linux::sys::{self, Notification, Verdict};
use mcp_seccomp::Arch;

pub use memory::{CallerMemory, Use};

/// How much may wait in the syscall proxy's socket: some tens of calls. More wait in the kernel.
const WAITING_BYTES: usize = 16 * 1024;
/// More calls than can wait there.
const REMEMBERED: usize = 256;

/// The user that a syscall proxy becomes, and the places and sizes that it holds calls to.
pub struct ProxySettings {
    pub arch: Arch,
    /// Whom it becomes, where that is not the caller.
    pub user: Option<Ids>,
    /// The places of the plan.
    pub rules: Vec<Rule>,
    /// How long the command may make a file.
    pub largest_file: Option<u64>,
}

#[derive(Serialize, Deserialize)]
enum ToProxy {
    /// The process that all of the tree is below. Carries the listener, which calls are answered on.
    Begin { top: i32 },
    /// A call to carry out and to answer. Carries the memory of its caller, where that is needed.
    Answer(Notification),
}

#[derive(Serialize, Deserialize)]
enum FromProxy {
    /// What it has become, by the kernel's word.
    Ready(String),
    Failed(i32),
}

/// The launcher's side.
pub struct SyscallProxy {
    arch: Arch,
    user: Option<Ids>,
    process: Option<ProxyProcess>,
    channel: Channel,
    /// The last calls that it was handed; should it be gone, they are refused.
    handed: VecDeque<Notification>,
}

struct ProxyProcess {
    pid: i32,
    pidfd: OwnedFd,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyState {
    Ready,
    /// As many calls wait as may.
    Busy,
    Gone,
}

impl SyscallProxy {
    /// Also tells what it has become. The calling process must have a single thread.
    pub fn start(settings: ProxySettings) -> io::Result<(SyscallProxy, String)> {
        let (arch, user) = (settings.arch, settings.user);
        let (channel, theirs) = Channel::pair()?;
        set_socket_send_buffer_size(&channel, WAITING_BYTES)?;
        let process = match sys::clone_process(0)? {
            sys::Cloned::Child => {
                drop(channel);
                process::live(&theirs, settings)
            }
            sys::Cloned::Parent { pid, pidfd } => Some(ProxyProcess { pid, pidfd }),
        };
        drop(theirs);
        let syscall_proxy = SyscallProxy { arch, user, process, channel, handed: VecDeque::new() };
        match syscall_proxy.channel.receive()? {
            Some((FromProxy::Ready(seen), _)) => Ok((syscall_proxy, seen)),
            Some((FromProxy::Failed(number), _)) => Err(errno(number)),
            None => Err(errno(libc::EPIPE)),
        }
    }

    /// In a copy of the launcher: the syscall proxy is not its own.
    pub fn disown(mut self) {
        self.process = None;
    }

    /// From here on it can answer.
    pub fn begin(&self, listener: BorrowedFd<'_>, top: i32) -> io::Result<()> {
        self.channel.send_with(&ToProxy::Begin { top }, &[listener])
    }

    pub fn state(&self) -> ProxyState {
        let mut fds = [PollFd::new(&self.channel, PollFlags::OUT)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        if poll(&mut fds, Some(&now)).is_err() {
            return ProxyState::Busy;
        }
        let events = fds[0].revents();
        if events.intersects(PollFlags::HUP | PollFlags::ERR) {
            ProxyState::Gone
        } else if events.contains(PollFlags::OUT) {
            ProxyState::Ready
        } else {
            ProxyState::Busy
        }
    }

    /// Has it answer a call, while its [`state`](SyscallProxy::state) is ready. Tells whether the call is one of its own.
    pub fn answers(
        &mut self,
        listener: BorrowedFd<'_>,
        notification: Notification,
    ) -> io::Result<bool> {
        let Some(needs) = calls::needs(self.arch, &notification) else {
            return Ok(false);
        };
        // Of the thread that has the number now; the syscall proxy looks whether it is still the one that asked.
        let memory = needs.map(|use_| CallerMemory::of(notification.thread, self.user, use_));
        let memory: Vec<_> =
            memory.iter().filter_map(CallerMemory::descriptor).map(AsFd::as_fd).collect();
        if self.channel.send_with(&ToProxy::Answer(notification), &memory).is_err() {
            sys::answer(listener, notification, Verdict::Refuse)?;
            return Ok(true);
        }
        if self.handed.len() >= REMEMBERED {
            self.handed.pop_front();
        }
        self.handed.push_back(notification);
        Ok(true)
    }

    /// It is gone: each call that still waits for it is refused.
    pub fn refuse_the_rest(&mut self, listener: BorrowedFd<'_>) -> io::Result<()> {
        for notification in self.handed.drain(..) {
            sys::answer(listener, notification, Verdict::Refuse)?;
        }
        Ok(())
    }
}

impl AsFd for SyscallProxy {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.channel.as_fd()
    }
}

impl Drop for SyscallProxy {
    fn drop(&mut self) {
        if let Some(ProxyProcess { pid, pidfd }) = self.process.take() {
            // One that has ended already was waited for with the tree.
            let _ = pidfd_send_signal(&pidfd, Signal::KILL);
            let _ = sys::wait_for(pid);
        }
    }
}

fn errno(number: i32) -> io::Error {
    io::Error::from_raw_os_error(number)
}
