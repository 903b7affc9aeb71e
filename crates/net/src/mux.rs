//! Many connections over one pair of pipes, where no socket can be handed across. Pure.
//!
//! One side opens connections (it has the programs), the other answers (it has the network). Each direction of
//! each connection has a window: a side sends no more than the other said it has room for, so a program that
//! does not read keeps no other connection waiting, and memory is bounded by [`MOST`] × [`WINDOW`]. The side inside, which
//! is the one that opens for programs that connect and the one that answers for servers, may have been taken over by
//! the program it serves: whatever it says that the rules do not foresee is a [`Violation`], and ends everything.

pub mod frame;

use std::collections::{HashMap, VecDeque};

pub use frame::{Frame, FrameReader, Id, Violation};

/// Connections at a time; further ones wait. All their windows together are 8 MiB, and with what the
/// broker holds that is all a launcher may have beside its own.
pub const MOST: usize = 128;
/// Bytes on their way in one direction of one connection.
pub const WINDOW: u32 = 64 << 10;

/// Which side opens connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum MuxRole {
    /// This side opens them.
    Opens,
    /// The other side opens them.
    Answers,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HalfState {
    Flows,
    Ended,
}

#[derive(Debug)]
struct MuxStream {
    /// What may still be sent.
    credit: u32,
    /// What the other side may still send.
    due: u32,
    /// A frame that this side ignores.
    waiting: VecDeque<u8>,
    /// Taken, and the other side not told.
    taken: u32,
    ours: HalfState,
    theirs: HalfState,
}

/// Room for one more message of a few words.
const LITTLE: usize = 4 << 10;

impl MuxStream {
    fn new() -> MuxStream {
        MuxStream {
            credit: WINDOW,
            due: WINDOW,
            waiting: VecDeque::new(),
            taken: 0,
            ours: HalfState::Flows,
            theirs: HalfState::Flows,
        }
    }

    /// In no more memory than a window has, however the bytes come.
    fn keep(&mut self, bytes: &[u8]) {
        let (length, room) = (self.waiting.len(), self.waiting.capacity());
        if room - length < bytes.len() {
            let more = length.max(LITTLE).min((WINDOW as usize).saturating_sub(length));
            self.waiting.reserve_exact(more.max(bytes.len()));
        }
        self.waiting.extend(bytes);
    }
}

/// What a message came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum MuxEvent {
    /// Nothing for the caller to do.
    Nothing,
    /// The other side opened a connection.
    Opened(Id),
    /// Something about this connection has changed: there is more to take, or room to send.
    Changed(Id),
    /// It is gone.
    Reset(Id),
    /// All are to come to an end.
    Bye,
}

/// The books of one side.
#[derive(Debug)]
#[non_exhaustive]
pub struct Mux {
    side: MuxRole,
    streams: HashMap<Id, MuxStream>,
    /// The newest that ever was.
    last: Id,
    /// What is to be sent to the other side.
    pub outbox: Vec<u8>,
}

impl Mux {
    /// The books of a side without connections.
    #[must_use]
    pub fn new(side: MuxRole) -> Mux {
        Mux { side, streams: HashMap::new(), last: 0, outbox: Vec::new() }
    }

    /// Whether no further connection fits.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.streams.len() >= MOST
    }

    /// A new connection; `None` where there are too many.
    pub fn open(&mut self) -> Option<Id> {
        let id =
            self.last.checked_add(1).filter(|_| self.side == MuxRole::Opens && !self.is_full())?;
        self.last = id;
        self.streams.insert(id, MuxStream::new());
        Frame::Open(id).write(&mut self.outbox);
        Some(id)
    }

    /// Takes a message into the books.
    pub fn hear(&mut self, frame: Frame) -> Result<MuxEvent, Violation> {
        match frame {
            Frame::Hello { .. } => Err(Violation("a second greeting")),
            Frame::Bye if self.side == MuxRole::Opens => Ok(MuxEvent::Bye),
            Frame::Bye => Err(Violation("a farewell from the wrong side")),
            Frame::Open(id) => self.opened(id),
            Frame::Data(id, bytes) => {
                let Some(stream) = self.stream(id)? else { return Ok(MuxEvent::Nothing) };
                if stream.theirs == HalfState::Ended {
                    return Err(Violation("bytes behind the end"));
                }
                let left = stream.due.checked_sub(bytes.len() as u32);
                stream.due = left.ok_or(Violation("more bytes than there was room for"))?;
                stream.keep(&bytes);
                Ok(MuxEvent::Changed(id))
            }
            Frame::End(id) => {
                let Some(stream) = self.stream(id)? else { return Ok(MuxEvent::Nothing) };
                match std::mem::replace(&mut stream.theirs, HalfState::Ended) {
                    HalfState::Flows => Ok(MuxEvent::Changed(id)),
                    HalfState::Ended => Err(Violation("a second end")),
                }
            }
            Frame::Reset(id) => match self.stream(id)? {
                Some(_) => {
                    self.streams.remove(&id);
                    Ok(MuxEvent::Reset(id))
                }
                None => Ok(MuxEvent::Nothing),
            },
            Frame::Credit(id, bytes) => {
                let Some(stream) = self.stream(id)? else { return Ok(MuxEvent::Nothing) };
                let sum = stream.credit.checked_add(bytes).filter(|sum| *sum <= WINDOW);
                stream.credit = sum.ok_or(Violation("more room than there is"))?;
                Ok(MuxEvent::Changed(id))
            }
        }
    }

    fn opened(&mut self, id: Id) -> Result<MuxEvent, Violation> {
        if self.side == MuxRole::Opens || id <= self.last {
            return Err(Violation("opened what it may not"));
        }
        self.last = id;
        if self.is_full() {
            Frame::Reset(id).write(&mut self.outbox);
            return Ok(MuxEvent::Nothing);
        }
        self.streams.insert(id, MuxStream::new());
        Ok(MuxEvent::Opened(id))
    }

    /// `None` for one that is gone: its last messages may have crossed ours.
    fn stream(&mut self, id: Id) -> Result<Option<&mut MuxStream>, Violation> {
        match id <= self.last {
            true => Ok(self.streams.get_mut(&id)),
            false => Err(Violation("a connection that never was")),
        }
    }

    /// How many bytes may be sent now.
    #[must_use]
    pub fn room(&self, id: Id) -> usize {
        match self.streams.get(&id) {
            Some(stream) if stream.ours == HalfState::Flows => stream.credit as usize,
            _ => 0,
        }
    }

    /// Sends bytes, of which there may be no more than there is room for; the rest is not sent. How many were.
    pub fn send(&mut self, id: Id, bytes: &[u8]) -> usize {
        let count = bytes.len().min(self.room(id));
        let (Some(bytes), Some(stream)) = (bytes.get(..count), self.streams.get_mut(&id)) else {
            return 0;
        };
        stream.credit -= count as u32;
        frame::data(&mut self.outbox, id, bytes);
        count
    }

    /// Says that nothing more comes.
    pub fn end(&mut self, id: Id) {
        if let Some(stream) = self.streams.get_mut(&id)
            && std::mem::replace(&mut stream.ours, HalfState::Ended) == HalfState::Flows
        {
            Frame::End(id).write(&mut self.outbox);
        }
    }

    /// Breaks a connection off.
    pub fn reset(&mut self, id: Id) {
        if self.streams.remove(&id).is_some() {
            Frame::Reset(id).write(&mut self.outbox);
        }
    }

    /// What was heard and not taken, or its first part.
    #[must_use]
    pub fn waiting(&self, id: Id) -> &[u8] {
        self.streams.get(&id).map_or(&[], |stream| stream.waiting.as_slices().0)
    }

    /// The other side has ended.
    #[must_use]
    pub fn is_ended(&self, id: Id) -> bool {
        self.streams.get(&id).is_some_and(|stream| stream.theirs == HalfState::Ended)
    }

    /// The other side has ended, and all it said is taken.
    #[must_use]
    pub fn is_heard_out(&self, id: Id) -> bool {
        let is =
            |stream: &MuxStream| stream.theirs == HalfState::Ended && stream.waiting.is_empty();
        self.streams.get(&id).is_some_and(is)
    }

    /// Whether anything may still be said on any connection.
    #[must_use]
    pub fn has_more_to_say(&self) -> bool {
        self.streams.values().any(|stream| stream.ours == HalfState::Flows)
    }

    /// Whether anything may still be heard on any connection.
    #[must_use]
    pub fn has_more_to_hear(&self) -> bool {
        self.streams
            .values()
            .any(|stream| stream.theirs == HalfState::Flows || !stream.waiting.is_empty())
    }

    /// This many bytes of [`waiting`](Self::waiting) are passed on: there is room for as many more.
    pub fn take(&mut self, id: Id, count: usize) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let count = count.min(stream.waiting.len());
        stream.waiting.drain(..count);
        if stream.waiting.is_empty() && stream.waiting.capacity() > LITTLE {
            stream.waiting = VecDeque::new();
        }
        stream.taken += count as u32;
        // Not for every byte a message.
        if stream.taken >= WINDOW / 2 && stream.theirs == HalfState::Flows {
            stream.due += stream.taken;
            Frame::Credit(id, std::mem::take(&mut stream.taken)).write(&mut self.outbox);
        }
    }

    /// Forgets a connection that both sides have ended; whether it was one.
    pub fn close(&mut self, id: Id) -> bool {
        let is_over = self.is_heard_out(id)
            && self.streams.get(&id).is_some_and(|stream| stream.ours == HalfState::Ended);
        if is_over {
            self.streams.remove(&id);
        }
        is_over
    }

    /// How much is kept of what was heard.
    #[must_use]
    pub fn held(&self) -> usize {
        self.streams.values().map(|stream| stream.waiting.len()).sum()
    }
}

#[cfg(test)]
mod tests;
