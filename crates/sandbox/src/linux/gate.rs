//! The launcher's answers to the calls that `--no-subprocess` leaves to it: yes once, to the
//! command's own start, and no ever after. There is one listener, so what a filter without
//! namespaces asks besides comes here too, and goes to the [`Deputy`].
//!
//! The listener stays open as long as anybody asks: once it is closed, the command could listen
//! for itself.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::linux::deputy::Deputy;
use crate::linux::sys::{self, Verdict};

const MOST_AT_ONCE: usize = 64;

pub struct Gate {
    listener: OwnedFd,
    start: Start,
    deputy: Option<Deputy>,
    pub refused: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    Awaited,
    Passed,
}

/// Whether anybody is left who could ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Askers {
    Alive,
    Gone,
}

impl Gate {
    pub fn new(listener: OwnedFd, deputy: Option<Deputy>) -> Gate {
        Gate { listener, start: Start::Awaited, deputy, refused: 0 }
    }

    /// Answers those who wait, but no more than some: time and memory must be looked at too.
    pub fn serve(&mut self) -> io::Result<Askers> {
        for _ in 0..MOST_AT_ONCE {
            let mut fds = [PollFd::new(&self.listener, PollFlags::IN)];
            match poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })) {
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(e) => return Err(e.into()),
            }
            let events = fds[0].revents();
            if events.contains(PollFlags::IN) {
                self.answer_one()?;
            } else if events.contains(PollFlags::HUP) {
                return Ok(Askers::Gone);
            } else {
                break;
            }
        }
        Ok(Askers::Alive)
    }

    fn answer_one(&mut self) -> io::Result<()> {
        let Some(asked) = sys::next_asked(self.listener.as_fd())? else {
            return Ok(());
        };
        let listener = self.listener.as_fd();
        if let Some(verdict) = self.deputy.as_ref().and_then(|d| d.answer(listener, &asked)) {
            sys::answer(listener, asked, verdict)?;
            return Ok(());
        }
        // Nobody but the process that becomes the command has the filter before it does so, and
        // until then it is our own code, which makes this one call.
        let first = self.start == Start::Awaited && i64::from(asked.number) == libc::SYS_execve;
        let verdict = if first { Verdict::Pass } else { Verdict::Refuse };
        if sys::answer(self.listener.as_fd(), asked, verdict)? {
            match verdict {
                Verdict::Pass => self.start = Start::Passed,
                _ => self.refused += 1,
            }
        }
        Ok(())
    }
}

impl AsFd for Gate {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}
