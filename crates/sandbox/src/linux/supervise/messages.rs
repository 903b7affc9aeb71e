//! Messages of init and of the command's filter, and how the launcher handles them.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};

use super::{End, Supervisor};
use crate::core::report::{Ending, Evidence};
use crate::core::request::Stdio;
use crate::linux::channel::{CommandEnd, LastWords, Seen, ToLauncher};
use crate::linux::memory_watch::{MemoryWatch, ProcessTree};
use crate::linux::relay::{Relay, set_nonblocking};
use crate::linux::replaced::ReplacementWatch;
use crate::linux::seccomp_notify::{Askers, SeccompNotify};

/// A command that takes this long may take days.
const SETTLED_AFTER: Duration = Duration::from_secs(1);

impl Supervisor<'_> {
    pub(super) fn next_message(&mut self) -> io::Result<Option<(ToLauncher, Vec<OwnedFd>)>> {
        match self.unheard.is_empty() {
            true => self.message(),
            false => Ok(Some(self.unheard.remove(0))),
        }
    }

    pub(super) fn message(&mut self) -> io::Result<Option<(ToLauncher, Vec<OwnedFd>)>> {
        let mut fds = [PollFd::new(&self.init.channel, PollFlags::IN)];
        poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))?;
        if !self.init_speaks || !fds[0].revents().contains(PollFlags::IN) {
            return Ok(None);
        }
        let message = self.init.channel.receive_all()?;
        self.init_speaks = message.is_some();
        Ok(message)
    }

    pub(super) fn hear(
        &mut self,
        (message, mut fds): (ToLauncher, Vec<OwnedFd>),
    ) -> io::Result<Option<End>> {
        if let ToLauncher::Mounts = message {
            self.protected.iter_mut().for_each(|watch| watch.begin(std::mem::take(&mut fds)));
        }
        let fd = fds.into_iter().next();
        match message {
            ToLauncher::Failed(failed) => return Ok(Some(End::Failed(failed))),
            ToLauncher::Done(seen) => {
                self.evidence.extend(seen.into_iter().map(Evidence::from));
                if let Some(listener) = fd {
                    let syscall_proxy = self.init.syscall_proxy.take();
                    if let Some(syscall_proxy) = &syscall_proxy {
                        syscall_proxy.begin(listener.as_fd(), self.init.pid)?;
                    }
                    let mut notify =
                        SeccompNotify::new(listener, syscall_proxy, self.blocked_processes.clone());
                    if let Some(paths) = &self.paths {
                        notify = notify.noting(paths.clone());
                    }
                    self.notify = match &self.network {
                        Some(network) => network.take_over(notify),
                        None => Some(notify),
                    };
                    // A place that is slow to look up (a network file system) must not hold the clock.
                    if self.paths.is_some()
                        && let Some(notify) = self.notify.take()
                    {
                        notify.serve_in_thread()?;
                    }
                }
            }
            ToLauncher::Terminal => self.connect(fd)?,
            // A late answer: the command goes on already.
            ToLauncher::Mounts | ToLauncher::Frozen => {}
            ToLauncher::Missing(places) => {
                self.protected.iter_mut().for_each(|protected| protected.note_missing(&places));
            }
            ToLauncher::Executing(seen) => self.started(seen, fd)?,
            ToLauncher::Stopped => self.stop(),
            ToLauncher::Over(last) => self.over(last),
        }
        Ok(None)
    }

    /// Init's last words: it has waited for every process.
    fn over(&mut self, LastWords { ended, left, used }: LastWords) {
        self.is_over = true;
        (self.left, self.used) = (left, Some(used));
        self.end(match ended {
            CommandEnd::Exited(code) => Ending::Exited(code),
            CommandEnd::Signaled(signal) => Ending::Signaled(signal),
        });
    }

    /// The command is executed now: its time, its watches and its network begin.
    fn started(&mut self, seen: Vec<(usize, Seen)>, proc: Option<OwnedFd>) -> io::Result<()> {
        self.evidence.extend(seen.into_iter().map(Evidence::from));
        let now = Instant::now();
        self.started = Some(now);
        self.termination.start(now);
        self.settle_at = Some(now + SETTLED_AFTER);
        if let Some(limit) = self.memory_limit {
            // Where init has no /proc to send, the tree is in ours.
            let (proc, tree) = match proc {
                Some(proc) => (proc, self.init.tree),
                None => (open_proc()?, ProcessTree::Below(self.init.pid)),
            };
            self.watch = Some(MemoryWatch::new(proc, tree, limit));
        }
        if let Some(network) = &mut self.network {
            network.begin()?;
        }
        self.look_at = self.watch.as_ref().map(|watch| now + watch.first_pause());
        if self.cgroup.as_ref().is_some_and(|cgroup| !cgroup.keeps_peak()) {
            self.look_at = Some(now);
        }
        if let Some(user) = &mut self.user {
            user.engage();
        }
        self.protected.iter_mut().for_each(ReplacementWatch::started);
        Ok(())
    }

    pub(super) fn answer(&mut self) -> io::Result<()> {
        let Some(notify) = &mut self.notify else {
            return Ok(());
        };
        let askers = notify.serve()?;
        if askers == Askers::Gone {
            self.notify = None;
        }
        Ok(())
    }

    /// Joins the user's terminal and the sandbox's.
    fn connect(&mut self, master: Option<OwnedFd>) -> io::Result<()> {
        let (Some(master), Some(user)) = (master, &self.user) else {
            return Ok(());
        };
        set_nonblocking(master.as_fd())?;
        if self.stdio[0] == Stdio::Terminal {
            self.keys = Some(Relay::new(user.fd.try_clone()?, master.try_clone()?));
        }
        self.outputs.push(Relay::new(master.try_clone()?, user.fd.try_clone()?));
        self.master = Some(master);
        Ok(())
    }
}

fn open_proc() -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::open("/proc", flags, Mode::empty())?)
}
