//! What the launcher tells a running sandbox: signals it got itself, to stop and to go on, that the time or the
//! memory is used up.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::process::{Signal, pidfd_send_signal};

use super::{LAST_RESORT_PLAIN, Supervisor};
use crate::core::report::Ending;
use crate::core::termination::Due;
use crate::linux::channel::ToInit;
use crate::linux::memory_watch::{ProcessTree, TreeMemory};
use crate::linux::sys::{self, Arrived};
use crate::unix::terminal::UserTerminal;

/// How long init may take to kill and collect the tree before it is killed with it.
const LAST_RESORT: Duration = Duration::from_millis(500);

/// How often memory is looked at for a kernel that keeps no peak.
const PEAK_EVERY: Duration = Duration::from_millis(100);

impl Supervisor<'_> {
    pub(super) fn signal(&mut self, arrived: Arrived) {
        let signal = arrived.signal;
        match signal {
            libc::SIGCHLD | libc::SIGTTOU => {}
            libc::SIGWINCH => {
                if let (Some(user), Some(master)) = (&self.user, &self.master) {
                    user.copy_size(master.as_fd());
                } else {
                    self.order(ToInit::SignalGroup(signal));
                }
            }
            libc::SIGCONT => self.resume(),
            libc::SIGTSTP => {
                self.stopping = true;
                self.order(ToInit::SignalGroup(signal));
            }
            _ if means_the_end(arrived) => match self.termination.on_signal(signal, Instant::now())
            {
                Due::Nothing => {}
                Due::Ask => {
                    self.pass_on(arrived);
                    // A stopped process would not see it.
                    self.order(ToInit::SignalAll(libc::SIGCONT));
                }
                Due::Kill => self.kill_asked(),
            },
            _ => self.pass_on(arrived),
        }
    }

    /// Whether a signal has come since that means the end.
    pub(super) fn is_told_to_end(&self) -> bool {
        let mut arrived = std::iter::from_fn(|| self.signals.next().ok().flatten());
        arrived.any(means_the_end)
    }

    /// Typed at a terminal it means the whole job, sent by a process only this one.
    fn pass_on(&self, Arrived { signal, from_kernel, .. }: Arrived) {
        self.order(match from_kernel {
            true => ToInit::SignalGroup(signal),
            false => ToInit::Signal(signal),
        });
    }

    /// The command has stopped. With a user at a terminal (or one who asked for it) the job as a
    /// whole stops: everything inside first, since no process watches it meanwhile. Otherwise a
    /// server that stops itself would stop its own timeout, and one that was asked to end its end.
    pub(super) fn stop(&mut self) {
        let interactive = self.user.as_ref().is_some_and(UserTerminal::is_engaged);
        if self.termination.is_asked() || !interactive && !self.stopping {
            return;
        }
        self.order(ToInit::SignalAll(libc::SIGSTOP));
        if let Some(user) = &mut self.user {
            user.release();
        }
        sys::stop_self();
        self.resume();
    }

    fn resume(&mut self) {
        self.stopping = false;
        if let Some(user) = &mut self.user {
            user.engage();
            if let Some(master) = &self.master {
                user.copy_size(master.as_fd());
            }
        }
        self.order(ToInit::SignalAll(libc::SIGCONT));
    }

    /// Init that is gone is found by its pidfd.
    pub(super) fn order(&self, order: ToInit) {
        let _ = self.init.channel.send(&order);
    }

    pub(super) fn keep_time(&mut self) {
        if self.killed.is_some() {
            return self.kill();
        }
        match self.termination.on_time(Instant::now()) {
            Due::Nothing => {}
            Due::Ask => {
                self.end(Ending::Timeout);
                self.order(ToInit::SignalAll(libc::SIGTERM));
                // A stopped process would not see it.
                self.order(ToInit::SignalAll(libc::SIGCONT));
            }
            Due::Kill => self.kill_asked(),
        }
    }

    fn kill_asked(&mut self) {
        if let Some(ending) = self.termination.ending() {
            self.end(ending);
        }
        self.kill();
    }

    pub(super) fn keep_memory(&mut self) {
        let now = Instant::now();
        if self.look_at.is_none_or(|at| now < at) {
            return;
        }
        if let (Some(cgroup), None) = (&self.cgroup, &self.watch) {
            self.seen_memory = self.seen_memory.max(cgroup.memory_now());
            self.look_at = self.seen_memory.map(|_| now + PEAK_EVERY);
            return;
        }
        let Some(watch) = &mut self.watch else {
            return;
        };
        match watch.look() {
            TreeMemory::Within { look_again } => self.look_at = Some(now + look_again),
            TreeMemory::Over => {
                self.look_at = None;
                self.end(Ending::MemoryLimit);
                self.kill();
            }
        }
    }

    /// Init kills the tree and collects it, so that what it used is counted; an init that does
    /// not is killed itself, and the kernel ends the tree.
    pub(super) fn kill(&mut self) {
        match self.killed {
            None => {
                self.killed = Some(Instant::now());
                self.order(ToInit::SignalAll(libc::SIGKILL));
            }
            Some(since) if since.elapsed() >= self.last_resort() => {
                if let Some(cgroup) = &self.cgroup {
                    cgroup.kill();
                }
                let _ = pidfd_send_signal(&self.init.pidfd, Signal::KILL);
            }
            Some(_) => {}
        }
    }

    pub(super) fn last_resort(&self) -> Duration {
        match self.init.tree {
            ProcessTree::OfNamespace => LAST_RESORT,
            ProcessTree::Below(_) => LAST_RESORT_PLAIN,
        }
    }
}

/// Whether a signal tells the launcher to end the run. SIGQUIT does not: a Java program answers it with its
/// threads, and goes on.
fn means_the_end(Arrived { signal, from_kernel, was_ignored }: Arrived) -> bool {
    match signal {
        libc::SIGTERM => true,
        // A script's command in the background ignores what is typed at the terminal; `kill` means it.
        libc::SIGINT => !(was_ignored && from_kernel),
        // `nohup` asks to go on, whichever process sends it.
        libc::SIGHUP => !was_ignored,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_ignored_at_the_start_stays_so() {
        let means = |signal, from_kernel, was_ignored| {
            means_the_end(Arrived { signal, from_kernel, was_ignored })
        };
        for from_kernel in [true, false] {
            for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
                assert!(means(signal, from_kernel, false), "{signal}");
            }
            assert!(!means(libc::SIGHUP, from_kernel, true));
            assert!(!means(libc::SIGQUIT, from_kernel, false));
            assert!(!means(libc::SIGUSR1, from_kernel, false));
        }
        assert!(!means(libc::SIGINT, true, true) && means(libc::SIGINT, false, true));
    }
}
