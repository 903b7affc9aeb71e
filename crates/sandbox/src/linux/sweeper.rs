//! A copy of the launcher that stays beside it while a protected command runs, for what the launcher cannot do.
//!
//! When the launcher is killed, it undoes in its place what the command left in protected places: the end of the
//! socket between them says so, and a last word that the launcher has done it itself. While the launcher lives, it
//! mounts again what was detached (`linux/closer`): that takes a process with a single thread. It is a session of its
//! own, so that a signal to the launcher's group does not reach it, and it holds nothing of the run's. When both are
//! killed, nothing is undone.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use serde::{Deserialize, Serialize};

use crate::core::request::Request;
use crate::linux::channel::Channel;
use crate::linux::closer::{self, Reclosed};
use crate::linux::phases::LinuxPlan;
use crate::linux::sys::{self, Change};
use crate::unix::protect::undo::{ReplacedPlaces, undo};

/// The only descriptors it keeps.
const LINE: i32 = 3;
const INIT: i32 = 4;

/// How long mounting may take; a file system that hangs must not hang the launcher.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Debug, Serialize, Deserialize)]
enum SweepRequest {
    /// Carries the mount namespace.
    Close,
    /// The launcher has undone everything itself.
    Done,
}

pub struct Sweeper {
    pid: i32,
    line: Channel,
}

impl Sweeper {
    /// `None` where there is nothing to undo. `init` is the process whose end is that of the whole sandbox. The
    /// calling process must have a single thread.
    pub fn start(
        plan: &LinuxPlan,
        request: &Request,
        init: BorrowedFd<'_>,
    ) -> io::Result<Option<Sweeper>> {
        if !request.protects() {
            return Ok(None);
        }
        let (line, hears) = Channel::pair()?;
        match sys::clone_process(0)? {
            sys::Cloned::Parent { pid, .. } => Ok(Some(Sweeper { pid, line })),
            sys::Cloned::Child => {
                let waited = wait(plan, &hears, init);
                if waited.is_ok_and(|was_killed| was_killed) {
                    undo(request, &ReplacedPlaces::default());
                }
                sys::exit_now(0)
            }
        }
    }

    /// Mounts again what is protected and is not mounted any more.
    pub fn close_again(&self, mounts: BorrowedFd<'_>) -> io::Result<Reclosed> {
        self.line.send_with(&SweepRequest::Close, &[mounts])?;
        let mut fds = [PollFd::new(&self.line, PollFlags::IN)];
        let patience = Timespec { tv_sec: PATIENCE.as_secs() as i64, tv_nsec: 0 };
        if poll(&mut fds, Some(&patience))? == 0 {
            return Err(io::ErrorKind::TimedOut.into());
        }
        match self.line.receive::<Reclosed>()? {
            Some((closed, _)) => Ok(closed),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// The launcher has done it itself.
    pub fn dismiss(self) {
        // Where it is gone already, there is no process to tell or to wait for.
        let _ = self.line.send(&SweepRequest::Done);
        let _ = sys::wait_for(self.pid);
    }
}

/// Whether the launcher was killed; everything of the run is dead then.
fn wait(plan: &LinuxPlan, hears: &Channel, init: BorrowedFd<'_>) -> io::Result<bool> {
    rustix::process::setsid()?;
    // Out of the way first: either may stand where the other goes.
    let (high_line, high_init) = (fcntl_dupfd_cloexec(hears, 16)?, fcntl_dupfd_cloexec(init, 16)?);
    sys::let_go_below(LINE)?;
    sys::place_descriptor(high_line.as_fd(), LINE)?;
    sys::place_descriptor(high_init.as_fd(), INIT)?;
    let (line, init) = (Channel::from_fd(sys::own(LINE)), sys::own(INIT));
    // They are closed below, by their numbers.
    std::mem::forget((high_line, high_init));
    sys::close_from(5)?;
    loop {
        match line.receive::<SweepRequest>()? {
            Some((SweepRequest::Done, _)) => return Ok(false),
            Some((SweepRequest::Close, mounts)) => close_in_a_copy(plan, &line, mounts.as_ref())?,
            None => break,
        }
    }
    let mut fds = [PollFd::new(&init, PollFlags::IN)];
    loop {
        match poll(&mut fds, None::<&Timespec>) {
            Err(Errno::INTR) => {}
            Ok(_) => break Ok(true),
            Err(e) => break Err(e.into()),
        }
    }
}

/// Who has entered the sandbox cannot get out again, and cannot undo anything on the host.
fn close_in_a_copy(plan: &LinuxPlan, line: &Channel, mounts: Option<&OwnedFd>) -> io::Result<()> {
    let Some(mounts) = mounts else {
        return line.send(&Reclosed::failed(Path::new(""), &Errno::BADF.into()));
    };
    match sys::clone_process(0)? {
        sys::Cloned::Child => {
            let told = line.send(&closer::close(plan, mounts));
            sys::exit_now(i32::from(told.is_err()));
        }
        sys::Cloned::Parent { pid, .. } => {
            let waited = sys::wait_for(pid)?;
            match waited.map(|waited| waited.change) {
                Some(Change::Exited(0)) => Ok(()),
                _ => line.send(&Reclosed::failed(Path::new(""), &Errno::IO.into())),
            }
        }
    }
}
