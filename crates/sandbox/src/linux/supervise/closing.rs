//! Closes protected places again that a program outside replaces while the command runs.

use std::io;
use std::time::{Duration, Instant};

use super::Supervisor;
use crate::core::report::Ending;
use crate::linux::channel::{ToInit, ToLauncher};
use crate::linux::replaced::Sighting;

/// How long something protected may be away before it is taken for gone.
const RETURN: Duration = Duration::from_millis(100);

impl Supervisor<'_> {
    /// Has protected places closed again that a program outside replaced.
    pub(super) fn keep_closed(&mut self) {
        if self.started.is_none() || self.killed.is_some() {
            return;
        }
        let Some(protected) = &mut self.protected else {
            return;
        };
        if !protected.has_news() {
            return;
        }
        let mut closed = protected.close_again();
        if closed.is_ok() && protected.look() == Sighting::Missing {
            closed = self.await_return();
        }
        if let Err(e) = closed {
            self.stopped = Some(format!(
                "something protected was replaced while it ran, and could not be closed again: {e}"
            ));
            self.end(Ending::Signaled(libc::SIGKILL));
            self.kill();
        }
    }

    /// Programs that save a file often move the old one out of the way first. The command waits until the new one is
    /// closed, so that it does not write to the user's file. Nothing rests on it: a call that was under way when the
    /// signal came still makes what it makes.
    fn await_return(&mut self) -> io::Result<()> {
        self.order(ToInit::Freeze);
        let is_frozen = self.await_frozen();
        let until = Instant::now() + RETURN;
        while let Some(protected) = &mut self.protected
            && is_frozen
            && protected.look() == Sighting::Missing
            && Instant::now() < until
        {
            std::thread::sleep(Duration::from_millis(5));
        }
        let closed = match &mut self.protected {
            Some(protected) => {
                let closed = protected.close_again();
                protected.give_up_missing();
                closed
            }
            None => Ok(()),
        };
        self.order(ToInit::Thaw);
        closed
    }

    fn await_frozen(&mut self) -> bool {
        let until = Instant::now() + RETURN;
        while Instant::now() < until {
            match self.message() {
                Ok(Some((ToLauncher::Frozen, _))) => return true,
                // Its end is heard of again by the one who asks for it.
                Ok(Some(other)) => self.unheard.push(other),
                Ok(None) => std::thread::sleep(Duration::from_micros(200)),
                Err(_) => return false,
            }
        }
        false
    }
}
