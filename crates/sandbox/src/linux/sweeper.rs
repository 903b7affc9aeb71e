//! Undoes in the launcher's place what a command left in protected places, when the launcher is killed.
//!
//! A copy of the launcher that waits on a pipe: a byte means that the launcher has done it, the end of file that
//! nobody has. It is a session of its own, so that a signal to the launcher's group does not reach it, and it
//! holds nothing of the run's. When both are killed, nobody undoes anything.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, fcntl_dupfd_cloexec, read, retry_on_intr, write};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::linux::sys;
use crate::request::Request;
use crate::unix::protect::undo::undo;

/// The only descriptors it keeps.
const LINE: i32 = 3;
const INIT: i32 = 4;

pub struct Sweeper {
    pid: i32,
    line: OwnedFd,
}

impl Sweeper {
    /// `None` where there is nothing to undo. `init` is the process whose end is that of the whole sandbox. The
    /// calling process must have a single thread.
    pub fn start(request: &Request, init: BorrowedFd<'_>) -> io::Result<Option<Sweeper>> {
        if !request.protects() {
            return Ok(None);
        }
        let (hears, line) = pipe_with(PipeFlags::CLOEXEC)?;
        match sys::clone_process(0)? {
            sys::Cloned::Parent { pid, .. } => Ok(Some(Sweeper { pid, line })),
            sys::Cloned::Child => {
                let waited = wait(&hears, init);
                if waited.is_ok_and(|was_killed| was_killed) {
                    undo(request);
                }
                sys::exit_now(0)
            }
        }
    }

    /// The launcher has done it itself.
    pub fn dismiss(self) {
        // Where it is gone already, there is nobody to tell and nobody to wait for.
        let _ = write(&self.line, b".");
        let _ = sys::wait_for(self.pid);
    }
}

/// Whether the launcher was killed; everything of the run is dead then.
fn wait(hears: &OwnedFd, init: BorrowedFd<'_>) -> io::Result<bool> {
    rustix::process::setsid()?;
    // Out of the way first: either may stand where the other goes.
    let (high_line, high_init) = (fcntl_dupfd_cloexec(hears, 16)?, fcntl_dupfd_cloexec(init, 16)?);
    sys::let_go_below(LINE)?;
    sys::place_descriptor(high_line.as_fd(), LINE)?;
    sys::place_descriptor(high_init.as_fd(), INIT)?;
    let (line, init) = (sys::own(LINE), sys::own(INIT));
    // They are closed below, by their numbers.
    std::mem::forget((high_line, high_init));
    sys::close_from(5)?;
    let mut byte = [0];
    if retry_on_intr(|| read(&line, &mut byte))? > 0 {
        return Ok(false);
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
