//! One direction of a relayed connection: from one socket to the other, with the end of the
//! stream passed on and no more held than a pipe's worth.

use std::io;
use std::net::Shutdown;

use mio::net::TcpStream;

#[cfg(not(target_os = "linux"))]
pub use super::copy::{Buffer, Buffers};
use super::socket;
#[cfg(target_os = "linux")]
pub use super::splice::{Buffer, Buffers};

/// How often a direction is moved before others have their turn.
const ROUNDS: usize = 16;

/// A socket that gave no more than this had no more.
const FEW: usize = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Flowing,
    /// The sender has ended; what it sent is still on its way.
    Ending,
    /// The end was passed on.
    Ended,
}

#[derive(Debug)]
pub struct Way {
    stage: Stage,
    /// Only while there is something in it: idle connections hold two descriptors, not six.
    buffer: Option<Buffer>,
    /// Words of our own that go first.
    ahead: Vec<u8>,
    pub bytes: u64,
}

/// What a turn came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// Nothing to do before the sockets say so.
    Waits,
    /// There is more to do at once.
    GoesOn,
}

/// How a sender is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// It says so when there is more than it gives now.
    ForMore,
    /// It may have ended right behind what it gives, and will not say so again.
    ToTheEnd,
}

impl Way {
    pub fn new() -> Way {
        Way::after(Vec::new())
    }

    /// These words go first, and are not counted.
    pub fn after(ahead: Vec<u8>) -> Way {
        Way { stage: Stage::Flowing, buffer: None, ahead, bytes: 0 }
    }

    pub fn is_ended(&self) -> bool {
        self.stage == Stage::Ended
    }

    /// Whether something waits until it can be sent.
    pub fn is_held_up(&self) -> bool {
        self.buffer.is_some() || !self.ahead.is_empty()
    }

    /// Moves what can be moved now.
    pub fn advance(
        &mut self,
        from: &TcpStream,
        to: &TcpStream,
        look: Look,
        buffers: &mut Buffers,
    ) -> io::Result<Turn> {
        if self.stage == Stage::Ended {
            return Ok(Turn::Waits);
        }
        if !socket::say(to, &mut self.ahead)? {
            return Ok(Turn::Waits);
        }
        let mut buffer = match self.buffer.take() {
            Some(buffer) => buffer,
            None => buffers.take()?,
        };
        let moved = self.rounds(from, to, look, &mut buffer);
        if buffer.is_empty() {
            buffers.put_back(buffer);
        } else {
            self.buffer = Some(buffer);
        }
        moved
    }

    fn rounds(
        &mut self,
        from: &TcpStream,
        to: &TcpStream,
        look: Look,
        buffer: &mut Buffer,
    ) -> io::Result<Turn> {
        let mut drained = false;
        for _ in 0..ROUNDS {
            let mut moved = false;
            if self.stage == Stage::Flowing && !drained {
                match would_block(buffer.fill(from))? {
                    Some(0) => self.stage = Stage::Ending,
                    Some(count) => {
                        drained = look == Look::ForMore && count < FEW;
                        moved = true;
                    }
                    None => {}
                }
            }
            if !buffer.is_empty()
                && let Some(count) = would_block(buffer.drain(to))?
            {
                self.bytes += count as u64;
                moved = true;
            }
            if self.stage == Stage::Ending && buffer.is_empty() {
                self.stage = Stage::Ended;
                // A receiver that is gone already has no use for it.
                let _ = to.shutdown(Shutdown::Write);
                return Ok(Turn::Waits);
            }
            if !moved || (drained && buffer.is_empty()) {
                return Ok(Turn::Waits);
            }
        }
        Ok(Turn::GoesOn)
    }
}

/// `None` where the socket is not ready.
fn would_block(moved: io::Result<usize>) -> io::Result<Option<usize>> {
    match moved {
        Ok(count) => Ok(Some(count)),
        Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
            Ok(None)
        }
        Err(e) => Err(e),
    }
}
