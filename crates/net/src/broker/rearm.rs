//! Sockets on Windows, which tell once: one that can be read tells again only after it was read until it had no
//! more, and is then asked again for all it was asked for, so that it says at once that it can be written.
//!
//! So what was only looked at (a head or a hello that is not complete yet) is looked at again after a while, and
//! a socket that can be written while there is nothing to write has no turn: it would read, find nothing, and be
//! asked again, for ever. Elsewhere none of this is needed, and none is done.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::Broker;
use super::event_loop::Entry;
use super::slots::{Cause, SocketSide};

/// Whether sockets tell once.
pub const TELLS_ONCE: bool = cfg!(windows);
/// Whether sockets tell each time that there is more, and when something urgent cuts it in two.
pub const TELLS_ALL: bool = cfg!(target_os = "linux");
/// Until what was only looked at is looked at again.
const SOON: Duration = Duration::from_millis(10);

#[derive(Debug, Default)]
pub struct Unsure {
    slots: BTreeSet<usize>,
    /// When they have their turn.
    pub at: Option<Instant>,
}

impl Broker {
    /// Whether there is something to write, or to learn, on a socket that can be written.
    pub(super) fn waits_to_write(&mut self, slot: usize, side: SocketSide) -> bool {
        match (self.slots.get(slot), side) {
            (Some(Entry::Joined(joined, _)), side) => joined.waits_to_write(side),
            (Some(Entry::Asking(asking)), _) => asking.waits_to_write(),
            (Some(Entry::Leaving(leaving)), _) => leaving.waits_to_write(),
            (Some(Entry::Dialing(dialing)), SocketSide::Outer) => dialing.waits_to_write(),
            (Some(Entry::Dialing(_)), SocketSide::Inner) => false,
            (Some(Entry::Question(question)), _) => question.waits_to_write(),
            _ => true,
        }
    }

    /// Notes an entry after its turn, where it may wait for something that it will not be told.
    pub(super) fn look_again_soon(&mut self, slot: usize) {
        if TELLS_ONCE && self.slots.get(slot).is_some_and(only_looks) {
            self.unsure.slots.insert(slot);
            self.unsure.at.get_or_insert_with(|| Instant::now() + SOON);
        }
    }

    pub(super) fn look_again(&mut self) {
        for slot in std::mem::take(&mut self.unsure).slots {
            let cause = match self.slots.get(slot) {
                Some(Entry::Dialing(_)) => Cause::Event(SocketSide::Outer),
                _ => Cause::Unfinished,
            };
            self.dispatch(slot, cause);
        }
    }
}

fn only_looks(entry: &Entry) -> bool {
    match entry {
        Entry::Asking(_) => true,
        Entry::Joined(joined, _) => joined.is_unheard(),
        Entry::Dialing(dialing) => dialing.is_talking(),
        _ => false,
    }
}
