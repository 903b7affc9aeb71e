//! Everything the event loop listens to, by number. A number is used again only in the next
//! turn, so that an event that was on its way to something closed meets nothing else.

use std::time::Instant;

use mio::Token;

/// Which of the sockets of an entry an event is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SocketSide {
    /// The sandbox's, or the only one.
    Inner,
    Outer,
}

/// Why an entry has its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// One of its sockets can be read, or is a new one.
    Event(SocketSide),
    /// One of its sockets can be written, and has nothing to say.
    Room(SocketSide),
    /// One of its sockets has ended or failed, perhaps after some last words.
    End(SocketSide),
    /// It had more to do.
    Unfinished,
}

pub const fn token(slot: usize, side: SocketSide) -> Token {
    Token(slot << 1 | side as usize)
}

pub fn slot(token: Token) -> (usize, SocketSide) {
    (token.0 >> 1, if token.0 & 1 == 0 { SocketSide::Inner } else { SocketSide::Outer })
}

#[derive(Debug)]
pub struct Slots<T> {
    entries: Vec<Option<T>>,
    free: Vec<usize>,
    freed: Vec<usize>,
}

impl<T> Slots<T> {
    pub fn new() -> Slots<T> {
        Slots { entries: Vec::new(), free: Vec::new(), freed: Vec::new() }
    }

    /// A number for an entry that needs to know it.
    pub fn reserve(&mut self) -> usize {
        self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            self.entries.len() - 1
        })
    }

    pub fn put(&mut self, slot: usize, entry: T) {
        if let Some(place) = self.entries.get_mut(slot) {
            *place = Some(entry);
        }
    }

    /// Takes an entry out to work with it; [`Slots::put`] it back or [`Slots::release`] its number.
    pub fn take(&mut self, slot: usize) -> Option<T> {
        self.entries.get_mut(slot)?.take()
    }

    pub fn get(&self, slot: usize) -> Option<&T> {
        self.entries.get(slot)?.as_ref()
    }

    pub fn get_mut(&mut self, slot: usize) -> Option<&mut T> {
        self.entries.get_mut(slot)?.as_mut()
    }

    pub fn iter(&self) -> impl Iterator<Item = (usize, &T)> {
        self.entries.iter().enumerate().filter_map(|(slot, entry)| Some((slot, entry.as_ref()?)))
    }

    pub fn release(&mut self, slot: usize) {
        self.freed.push(slot);
    }

    pub fn next_turn(&mut self) {
        self.free.append(&mut self.freed);
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = (usize, &mut T)> {
        self.entries
            .iter_mut()
            .enumerate()
            .filter_map(|(slot, entry)| Some((slot, entry.as_mut()?)))
    }
}

/// When entries want to be looked at, whatever happens.
#[derive(Debug, Default)]
pub struct Timers(std::collections::BTreeSet<(Instant, usize)>);

impl Timers {
    pub fn set(&mut self, at: Instant, slot: usize) {
        self.0.insert((at, slot));
    }

    pub fn clear(&mut self, at: Instant, slot: usize) {
        self.0.remove(&(at, slot));
    }

    pub fn next(&self) -> Option<Instant> {
        self.0.first().map(|(at, _)| *at)
    }

    /// Those whose time has come. One that goes earlier is to clear its own; an entry that did not
    /// may be among them, or one that has its number now: both look for themselves.
    pub fn due(&mut self, now: Instant) -> Vec<usize> {
        let mut due = Vec::new();
        while let Some((at, slot)) = self.0.first().copied() {
            if at > now {
                break;
            }
            self.0.pop_first();
            due.push(slot);
        }
        due
    }
}
