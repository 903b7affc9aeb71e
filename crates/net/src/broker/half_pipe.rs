//! One direction of a relayed connection: from one socket to the other, with the end of the
//! stream passed on and no more held than a pipe's worth, and than all may hold together.

use std::io::{self, Read, Write};
use std::net::Shutdown;

use mio::net::TcpStream;

use super::budget::{Gauge, Hold};
#[cfg(not(target_os = "linux"))]
pub use super::copy::{Buffer, Buffers};
use super::socket;
#[cfg(target_os = "linux")]
pub use super::splice::{Buffer, Buffers};

/// How often a direction is moved before others have their turn.
const ROUNDS: usize = 16;

/// Less than this goes through memory of ours, which takes the fewest steps: no pipe, no pages.
const FEW: usize = 16 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Transfer {
    Flowing,
    /// The sender has ended; what it sent is still on its way.
    Ending,
    /// The end was passed on.
    Ended,
}

/// How the end of a direction is passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The other direction goes on.
    Half,
    /// The other one has ended too: both sockets are closed next, and that says it.
    Whole,
}

/// How much the sender gave when it was last asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pace {
    Few,
    Much,
}

#[derive(Debug)]
pub struct HalfPipe {
    flow: Transfer,
    pace: Pace,
    /// Only while there is something in it: idle connections hold two descriptors, not six.
    buffer: Option<Buffer>,
    /// What goes first: words of our own, or what could not be sent at once.
    ahead: Vec<u8>,
    /// What both of them come to.
    hold: Option<Hold>,
    /// The receiver takes no more, and nothing is held for it.
    waits_for_room: bool,
    /// The sender has said something urgent, up to which it is read, and never spliced beyond.
    is_urged: bool,
    pub bytes: u64,
}

/// What all connections share: where bytes are on their way, and how many may be.
#[derive(Debug)]
pub struct Store {
    pub buffers: Buffers,
    pub held: Gauge,
}

/// What a turn came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// Nothing to do before the sockets say so.
    Waits,
    /// There is more to do at once.
    GoesOn,
}

/// What a sender gave to a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Given {
    Something,
    /// It has ended, or something urgent comes next. Reading tells.
    Nothing,
}

/// How a sender is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// It says so when there is more than it gives now.
    ForMore,
    /// It may have ended right behind what it gives, and will not say so again.
    ToTheEnd,
}

impl HalfPipe {
    pub fn new() -> HalfPipe {
        HalfPipe::after(Vec::new())
    }

    /// These words go first, and are not counted.
    pub fn after(ahead: Vec<u8>) -> HalfPipe {
        HalfPipe {
            flow: Transfer::Flowing,
            pace: Pace::Few,
            buffer: None,
            ahead,
            hold: None,
            waits_for_room: false,
            is_urged: false,
            bytes: 0,
        }
    }

    /// These words of the sender's, which were taken from it already, go first.
    pub fn after_counted(ahead: Vec<u8>) -> HalfPipe {
        HalfPipe { bytes: ahead.len() as u64, ..HalfPipe::after(ahead) }
    }

    pub fn is_ended(&self) -> bool {
        self.flow == Transfer::Ended
    }

    /// Whether something waits until it can be sent.
    pub fn is_held_up(&self) -> bool {
        self.buffer.is_some() || !self.ahead.is_empty() || self.waits_for_room
    }

    pub fn be_urged(&mut self) {
        self.is_urged = true;
    }

    /// Moves what can be moved now.
    pub fn advance(
        &mut self,
        from: &TcpStream,
        to: &TcpStream,
        how: (Look, End),
        store: &mut Store,
        scratch: &mut [u8],
    ) -> io::Result<Turn> {
        if self.flow == Transfer::Ended {
            return Ok(Turn::Waits);
        }
        let turn = self.move_on((from, to), how, store, &mut scratch[..FEW]);
        let held = self.ahead.capacity() + self.buffer.as_ref().map_or(0, Buffer::held);
        match held {
            0 => self.hold = None,
            _ => self.hold.get_or_insert_with(|| store.held.hold()).set(held),
        }
        turn
    }

    fn move_on(
        &mut self,
        (from, to): (&TcpStream, &TcpStream),
        (look, end): (Look, End),
        store: &mut Store,
        scratch: &mut [u8],
    ) -> io::Result<Turn> {
        self.waits_for_room = false;
        if !socket::say(to, &mut self.ahead)? {
            return Ok(Turn::Waits);
        }
        if self.buffer.is_none() && !store.held.has_room(FEW) {
            let turn = self.move_unheld(from, to, scratch)?;
            self.end(to, end);
            return Ok(turn);
        }
        if self.buffer.is_none() && (self.pace == Pace::Few || self.is_urged) {
            let turn = self.move_few(from, to, look, scratch)?;
            if self.pace == Pace::Few || self.is_urged {
                self.end(to, end);
                return Ok(turn);
            }
        }
        let mut buffer = match self.buffer.take() {
            Some(buffer) => buffer,
            None => store.buffers.take()?,
        };
        let moved = self.rounds(from, to, &store.held, &mut buffer);
        if !buffer.is_empty() {
            self.buffer = Some(buffer);
            return moved.map(|(turn, _)| turn);
        }
        store.buffers.put_back(buffer);
        let turn = match moved? {
            (turn, Given::Something) if !self.is_urged => turn,
            _ => self.move_few(from, to, Look::ToTheEnd, scratch)?,
        };
        self.end(to, end);
        Ok(turn)
    }

    /// With all held that may be: only what the receiver takes is taken from the sender.
    fn move_unheld(
        &mut self,
        mut from: &TcpStream,
        mut to: &TcpStream,
        scratch: &mut [u8],
    ) -> io::Result<Turn> {
        for _ in 0..ROUNDS {
            if self.flow != Transfer::Flowing {
                return Ok(Turn::Waits);
            }
            let Some(count) = would_block(from.peek(scratch))? else {
                self.is_urged = false;
                return Ok(Turn::Waits);
            };
            if count == 0 {
                self.flow = Transfer::Ending;
                return Ok(Turn::Waits);
            }
            let sent = would_block(to.write(&scratch[..count]))?.unwrap_or(0);
            from.read_exact(&mut scratch[..sent])?;
            self.bytes += sent as u64;
            // One that took a part is tried again: on Windows only one that takes nothing tells of room.
            if sent == 0 {
                self.waits_for_room = true;
                return Ok(Turn::Waits);
            }
        }
        Ok(Turn::GoesOn)
    }

    /// A message and its answer: until the sender has no more, or turns out to have much.
    fn move_few(
        &mut self,
        mut from: &TcpStream,
        mut to: &TcpStream,
        look: Look,
        scratch: &mut [u8],
    ) -> io::Result<Turn> {
        for _ in 0..ROUNDS {
            if self.flow != Transfer::Flowing {
                return Ok(Turn::Waits);
            }
            let Some(count) = would_block(from.read(scratch))? else {
                self.is_urged = false;
                return Ok(Turn::Waits);
            };
            if count == 0 {
                self.flow = Transfer::Ending;
                return Ok(Turn::Waits);
            }
            self.bytes += count as u64;
            let sent = would_block(to.write(&scratch[..count]))?.unwrap_or(0);
            self.ahead.extend_from_slice(&scratch[sent..count]);
            if !socket::say(to, &mut self.ahead)? {
                // Told of when there is room; then it is looked for more as well.
                return Ok(Turn::Waits);
            }
            if count == scratch.len() {
                self.pace = Pace::Much;
                return Ok(Turn::GoesOn);
            }
            // What is urgent cuts what is read in two.
            if look == Look::ForMore && !self.is_urged {
                return Ok(Turn::Waits);
            }
        }
        Ok(Turn::GoesOn)
    }

    fn rounds(
        &mut self,
        from: &TcpStream,
        to: &TcpStream,
        gauge: &Gauge,
        buffer: &mut Buffer,
    ) -> io::Result<(Turn, Given)> {
        let mut given = Given::Something;
        for _ in 0..ROUNDS {
            let mut moved = false;
            // What is in the buffer is counted when the turn is over.
            let most = gauge.free().saturating_sub(buffer.held());
            let may_fill = buffer.is_empty() || most >= FEW;
            if self.flow == Transfer::Flowing && given == Given::Something && may_fill {
                match would_block(buffer.fill(from, most.max(FEW)))? {
                    Some(0) => given = Given::Nothing,
                    Some(count) => {
                        // No sign of the sender having no more: small pieces fill a pipe too.
                        self.pace = if count < FEW { Pace::Few } else { Pace::Much };
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
            if !moved || (given == Given::Nothing && buffer.is_empty()) {
                return Ok((Turn::Waits, given));
            }
        }
        Ok((Turn::GoesOn, given))
    }

    /// Passes the end on, once it was reached and all before it was sent.
    fn end(&mut self, to: &TcpStream, end: End) {
        if self.flow == Transfer::Ending && self.ahead.is_empty() {
            self.flow = Transfer::Ended;
            if end == End::Half {
                // A receiver that is gone already has no use for it.
                let _ = to.shutdown(Shutdown::Write);
            }
        }
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
