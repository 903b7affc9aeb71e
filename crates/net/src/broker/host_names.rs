//! Names that DNS does not know, asked of the host's other sources where it has some ([`nss`]).
//!
//! A thread of its own waits for each. The command decides how many names it makes up, so few are
//! asked at one time, the rest wait, and an answer, or that there is none, is remembered for a while.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::time::{Duration, Instant};

use mcp_policy::HostName;

use super::Broker;
use super::handle::{Caller, Command};
use crate::nss::{self, Domains};
use crate::query::Outcome;
use crate::shares::{Party, Shares};

const MOST_AT_ONCE: usize = 4;
const MOST_KNOWN: usize = 256;
const LIFE: Duration = Duration::from_secs(30);

pub struct HostNames {
    /// Whether the host has other sources at all.
    has_more: bool,
    /// What DNS says of those that are being asked for, and for whom they are.
    asked: HashMap<HostName, (Outcome, Party)>,
    shares: Shares,
    /// The same of those that wait for their turn.
    queue: VecDeque<(HostName, Outcome, Party)>,
    known: HashMap<HostName, (Outcome, Instant)>,
}

impl HostNames {
    pub fn configured() -> HostNames {
        let switch = std::fs::read_to_string(nss::SWITCH).unwrap_or_default();
        HostNames::new(nss::has_more(&switch))
    }

    fn new(has_more: bool) -> HostNames {
        HostNames {
            has_more,
            asked: HashMap::new(),
            shares: Shares::new(MOST_AT_ONCE),
            queue: VecDeque::new(),
            known: HashMap::new(),
        }
    }

    /// No client waits for this name any more.
    pub fn forget(&mut self, name: &HostName) {
        self.queue.retain(|(waiting, ..)| waiting != name);
    }

    /// Whose turn it is: the first of those whose rule has room.
    fn next(&mut self) -> Option<(HostName, Outcome, Party)> {
        let has_room = |(_, _, party): &(_, _, Party)| self.shares.has_room(*party, 1);
        let first = self.queue.iter().position(has_room)?;
        self.queue.remove(first)
    }

    fn remember(&mut self, name: HostName, outcome: Outcome, now: Instant) {
        self.known.retain(|_, (_, until)| *until > now);
        if self.known.len() < MOST_KNOWN {
            self.known.insert(name, (outcome, now + LIFE));
        }
    }
}

impl Broker {
    /// The last word on a name, after what DNS says of it. `None`: the host is being asked.
    pub(super) fn beyond_dns(
        &mut self,
        name: &HostName,
        party: Party,
        outcome: Outcome,
    ) -> Option<Outcome> {
        let names = &mut self.names.of_host;
        let is_open = match outcome {
            Outcome::NoSuchName | Outcome::NoAddress | Outcome::Unanswered => names.has_more,
            Outcome::Addresses(_) => false,
        };
        let Some(caller) = self.caller.as_ref().filter(|_| is_open) else {
            return Some(outcome);
        };
        let now = Instant::now();
        if let Some((known, _)) = names.known.get(name).filter(|(_, until)| *until > now) {
            return Some(known.clone());
        }
        if names.asked.contains_key(name) || names.queue.iter().any(|(queued, ..)| queued == name) {
            return None;
        }
        if !names.shares.has_room(party, 1) {
            names.queue.push_back((name.clone(), outcome, party));
            return None;
        }
        if ask(name.clone(), caller.clone()).is_err() {
            return Some(outcome);
        }
        names.shares.take(party, 1);
        names.asked.insert(name.clone(), (outcome, party));
        None
    }

    /// The host has answered.
    pub(super) fn host_says(&mut self, name: HostName, found: Vec<IpAddr>) {
        let Some((dns, party)) = self.names.of_host.asked.remove(&name) else {
            return;
        };
        self.names.of_host.shares.give_back(party, 1);
        let outcome = if found.is_empty() { dns } else { Outcome::Addresses(found) };
        self.names.of_host.remember(name.clone(), outcome.clone(), Instant::now());
        self.tell_waiting(&name, &outcome);
        while let Some((name, dns, party)) = self.names.of_host.next() {
            if let Some(outcome) = self.beyond_dns(&name, party, dns) {
                self.tell_waiting(&name, &outcome);
            }
        }
    }
}

fn ask(name: HostName, caller: Caller) -> std::io::Result<()> {
    let asking = move || {
        let found = nss::ask(&name, Domains::Ignored);
        caller.send(Command::Named(name, found));
    };
    std::thread::Builder::new().name("mcp-names".to_owned()).spawn(asking).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn made_up_names_fill_nothing() {
        let mut names = HostNames::new(true);
        let now = Instant::now();
        for number in 0..1000 {
            let name = format!("{number}.local").parse().unwrap();
            names.remember(name, Outcome::NoSuchName, now);
        }
        assert_eq!(names.known.len(), MOST_KNOWN);
        let later = now + LIFE;
        names.remember("one.local".parse().unwrap(), Outcome::NoSuchName, later);
        assert_eq!(names.known.len(), 1);
    }
}
