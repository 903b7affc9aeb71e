//! Who is closed where there is no room for others: connections in the making that no client waits for,
//! and first words that are not complete.

use std::time::Instant;

use super::Broker;
use super::connection::Closing;
use super::event_loop::Entry;
use super::socket;
use crate::shares::{ASKING, Party};

impl Broker {
    /// Makes room for a connection of this party. A client that has ended its half while no server
    /// answered may have closed, and may still listen: it is let wait as long as there is room.
    pub(super) fn hang_up_on_one(&mut self, party: Party) -> bool {
        let is_full = self.connections.is_full();
        let left = self.slots.iter().filter_map(|(slot, entry)| match entry {
            Entry::Dialing(dialing) => Some((slot, dialing.perhaps_left()?)),
            _ => None,
        });
        let of_party = left.filter(|(_, (owner, _))| *owner == party || is_full);
        let oldest = of_party.min_by_key(|(_, (_, until))| *until).map(|(slot, _)| slot);
        if let Some(slot) = oldest
            && let Some(Entry::Dialing(dialing)) = self.slots.take(slot)
        {
            self.hang_up(slot, dialing);
        }
        self.connections.has_room(party, 1)
    }

    /// Makes room for one that has something to ask: the longest silent one is closed.
    pub(super) fn stop_listening_to_one(&mut self) -> bool {
        if let Some(slot) = self.oldest(|entry| match entry {
            Entry::Asking(asking) => Some(asking.since()),
            _ => None,
        }) {
            self.journal
                .bound("programs ask the proxy for too much at once; the oldest are closed");
            self.close_unheard(slot);
        }
        self.connections.has_room(ASKING, 1)
    }

    /// Closes the oldest of those whose first words are not complete, until the rest can be held.
    pub(super) fn keep_heads_few(&mut self) {
        while self.budget.heads.is_over() {
            let Some(slot) = self.oldest(|entry| match entry {
                Entry::Joined(joined, _) => joined.unheard_since(),
                Entry::Asking(asking) => asking.unheard_since(),
                _ => None,
            }) else {
                return;
            };
            self.journal.bound("too many first messages are incomplete; the oldest are closed");
            self.close_unheard(slot);
        }
    }

    fn oldest(&self, since: impl Fn(&Entry) -> Option<Instant>) -> Option<usize> {
        let all = self.slots.iter().filter_map(|(slot, entry)| Some((since(entry)?, slot)));
        all.min().map(|(_, slot)| slot)
    }

    fn close_unheard(&mut self, slot: usize) {
        match self.slots.take(slot) {
            Some(Entry::Joined(joined, service)) => {
                self.leave(slot, *joined, &service, Closing::Reset);
            }
            Some(Entry::Asking(asking)) => {
                let client = self.dismiss(slot, asking);
                socket::reset(client);
            }
            Some(other) => self.slots.put(slot, other),
            None => {}
        }
    }
}
