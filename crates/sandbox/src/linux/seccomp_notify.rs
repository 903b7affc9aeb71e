//! The launcher's answers to the calls that the filter leaves to it. To new programs and
//! processes, where `--no-subprocess` refuses them: yes once, to the command's own start, and no
//! ever after. To connections, where rules need to hear of them: always yes, once a listener is
//! there for what is allowed. The command may change the address after it was looked at; it then
//! finds no listener, or one that is allowed too. Without a network namespace the answer is never yes,
//! and the launcher connects in the command's place ([`ConnectProxy`]). What a filter without namespaces asks besides
//! goes to the [`SyscallProxy`], which answers by itself.
//!
//! The listener stays open as long as anybody asks: once it is closed, the command could listen
//! for itself.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::linux::connect_proxy::{ConnectProxy, destination};
use crate::linux::path_watch::PathWatch;
use crate::linux::sys::{self, Notification, Verdict};
use crate::linux::syscall_proxy::{ProxyState, SyscallProxy};
use mcp_net::broker::{Keep, Watched, Watcher};

const MOST_AT_ONCE: usize = 64;

pub struct SeccompNotify {
    listener: OwnedFd,
    start: FirstExec,
    syscall_proxy: Option<SyscallProxy>,
    /// Makes the command's connections, where it must not make them itself.
    connect_proxy: Option<ConnectProxy>,
    /// Notes the paths of calls, in learning mode.
    paths: Option<PathWatch>,
    /// New programs and processes that were refused.
    refused: Arc<AtomicU64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FirstExec {
    Awaited,
    Passed,
}

/// Whether anybody is left who could ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Askers {
    Alive,
    Gone,
}

impl SeccompNotify {
    pub fn new(
        listener: OwnedFd,
        syscall_proxy: Option<SyscallProxy>,
        refused: Arc<AtomicU64>,
    ) -> SeccompNotify {
        SeccompNotify {
            listener,
            start: FirstExec::Awaited,
            syscall_proxy,
            connect_proxy: None,
            paths: None,
            refused,
        }
    }

    /// Calls that are announced for their paths are noted, and go on.
    pub fn noting(self, paths: PathWatch) -> SeccompNotify {
        SeccompNotify { paths: Some(paths), ..self }
    }

    /// Answers until no process is left that has the filter.
    pub fn serve_in_thread(mut self) -> io::Result<()> {
        // Older kernels wake the caller a little later.
        let _ = sys::answer_on_the_same_processor(self.listener.as_fd());
        let serve = move || {
            loop {
                let mut fds: Vec<_> =
                    self.wants().map(|(fd, flags)| PollFd::from_borrowed_fd(fd, flags)).collect();
                match poll(&mut fds, None) {
                    Ok(_) | Err(rustix::io::Errno::INTR) => {}
                    Err(_) => return,
                }
                drop(fds);
                if !matches!(self.serve(), Ok(Askers::Alive)) {
                    return;
                }
            }
        };
        std::thread::Builder::new().name("paths".to_owned()).spawn(serve).map(drop)
    }

    /// No connection goes on from here on: this makes them instead.
    pub fn connecting_with(self, connect_proxy: ConnectProxy) -> SeccompNotify {
        SeccompNotify { connect_proxy: Some(connect_proxy), ..self }
    }

    /// Answers those who wait, but no more than some: time and memory must be looked at too.
    pub fn serve(&mut self) -> io::Result<Askers> {
        for _ in 0..MOST_AT_ONCE {
            match self.waiting()? {
                Waiting::Call => self.answer_one(None)?,
                Waiting::None => break,
                Waiting::Gone => return Ok(Askers::Gone),
            }
        }
        Ok(Askers::Alive)
    }

    /// What to wait for.
    pub fn wants(&self) -> impl Iterator<Item = (BorrowedFd<'_>, PollFlags)> {
        let state = self.syscall_proxy.as_ref().map(SyscallProxy::state);
        let calls =
            (state != Some(ProxyState::Busy)).then(|| (self.listener.as_fd(), PollFlags::IN));
        let syscall_proxy = match state {
            Some(ProxyState::Busy) => Some(PollFlags::OUT),
            // Its end is always told.
            Some(ProxyState::Ready) => Some(PollFlags::empty()),
            Some(ProxyState::Gone) | None => None,
        };
        let syscall_proxy = self.syscall_proxy.as_ref().map(SyscallProxy::as_fd).zip(syscall_proxy);
        calls.into_iter().chain(syscall_proxy)
    }

    /// While the syscall proxy has as much to do as it may, calls wait in the kernel, and the launcher's clock runs.
    fn waiting(&mut self) -> io::Result<Waiting> {
        if let Some(syscall_proxy) = &mut self.syscall_proxy {
            match syscall_proxy.state() {
                ProxyState::Ready => {}
                ProxyState::Busy => return Ok(Waiting::None),
                ProxyState::Gone => syscall_proxy.refuse_the_rest(self.listener.as_fd())?,
            }
        }
        let mut fds = [PollFd::new(&self.listener, PollFlags::IN)];
        match poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(e.into()),
        }
        let events = fds[0].revents();
        Ok(if events.contains(PollFlags::IN) {
            Waiting::Call
        } else if events.contains(PollFlags::HUP) {
            Waiting::Gone
        } else {
            Waiting::None
        })
    }

    fn answer_one(&mut self, broker: Option<&mut Watched<'_>>) -> io::Result<()> {
        let Some(notification) = sys::next_notification(self.listener.as_fd())? else {
            return Ok(());
        };
        let listener = self.listener.as_fd();
        if let Some(paths) = &self.paths {
            paths.note(listener, &notification);
            // What is watched is never judged by it.
            if paths.is_only_watched(notification.number) {
                sys::answer(listener, notification, Verdict::Pass)?;
                return Ok(());
            }
        }
        if i64::from(notification.number) == libc::SYS_connect {
            let verdict = match (&mut self.connect_proxy, broker) {
                (Some(connect_proxy), Some(broker)) => {
                    connect_proxy.answer(listener, &notification, broker)
                }
                (None, Some(broker)) => {
                    if let Some(to) = announced(&notification) {
                        broker.announce(to);
                    }
                    Verdict::Pass
                }
                // No broker carries connections (any more).
                (_, None) => Verdict::Errno(libc::EACCES),
            };
            sys::answer(listener, notification, verdict)?;
            return Ok(());
        }
        if let Some(syscall_proxy) = &mut self.syscall_proxy
            && syscall_proxy.answers(listener, notification)?
        {
            return Ok(());
        }
        // No process but the process that becomes the command has the filter before it does so, and
        // until then it is our own code, which makes this one call.
        let first =
            self.start == FirstExec::Awaited && i64::from(notification.number) == libc::SYS_execve;
        let verdict = if first { Verdict::Pass } else { Verdict::Refuse };
        if sys::answer(self.listener.as_fd(), notification, verdict)? {
            match verdict {
                Verdict::Pass => self.start = FirstExec::Passed,
                _ => {
                    self.refused.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
        Ok(())
    }
}

enum Waiting {
    Call,
    None,
    Gone,
}

/// Served by the broker where connections are announced, so that the supervisor does not wait for
/// a listener to be made.
impl Watcher for SeccompNotify {
    fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        // Older kernels wake the caller a little later.
        let _ = sys::answer_on_the_same_processor(self.listener.as_fd());
        if let Some(syscall_proxy) = &self.syscall_proxy {
            let mut socket = SourceFd(&syscall_proxy.as_fd().as_raw_fd());
            registry.register(&mut socket, token, Interest::WRITABLE)?;
        }
        registry.register(&mut SourceFd(&self.listener.as_raw_fd()), token, Interest::READABLE)
    }

    fn ready(&mut self, broker: &mut Watched<'_>) -> Keep {
        for _ in 0..MOST_AT_ONCE {
            match self.waiting() {
                Ok(Waiting::Call) => {}
                Ok(Waiting::None) => return Keep::Listening,
                Ok(Waiting::Gone) | Err(_) => return Keep::Closed,
            }
            if self.answer_one(Some(broker)).is_err() {
                return Keep::Closed;
            }
        }
        Keep::Busy
    }
}

/// Where a call to connect leads, if it is to an internet address that can be read.
fn announced(notification: &Notification) -> Option<SocketAddr> {
    let [_, address, length, ..] = notification.arguments;
    let mut bytes = [0; 28];
    let length = usize::try_from(length as u32).ok()?.min(bytes.len());
    let read = sys::read_memory(notification.thread, address, &mut bytes[..length]).ok()?;
    destination(bytes.get(..read)?)
}
