//! Names that DNS does not know, asked of the host's other sources where it has some ([`nss`]).
//!
//! A thread of its own waits for each. The command decides how many names it makes up, so few are
//! asked at one time, and an answer, or that there is none, is remembered for a while.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use mcp_policy::HostName;

use super::Broker;
use super::handle::{Caller, Command};
use crate::net::nss::{self, Domains};
use crate::net::query::Outcome;

const MOST_AT_ONCE: usize = 4;
const MOST_KNOWN: usize = 256;
const LIFE: Duration = Duration::from_secs(30);

#[derive(Default)]
pub struct HostNames {
    /// Whether the host has other sources at all.
    has_more: bool,
    /// What DNS says of those that are being asked for.
    asked: HashMap<HostName, Outcome>,
    known: HashMap<HostName, (Outcome, Instant)>,
}

impl HostNames {
    pub fn configured() -> HostNames {
        let switch = std::fs::read_to_string(nss::SWITCH).unwrap_or_default();
        HostNames { has_more: nss::has_more(&switch), ..HostNames::default() }
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
    pub(super) fn beyond_dns(&mut self, name: &HostName, outcome: Outcome) -> Option<Outcome> {
        let names = &mut self.names.of_host;
        let is_open = match outcome {
            Outcome::NoSuchName | Outcome::NoAddress | Outcome::Unanswered => names.has_more,
            Outcome::Addresses(_) | Outcome::Busy => false,
        };
        let Some(caller) = self.caller.as_ref().filter(|_| is_open) else {
            return Some(outcome);
        };
        let now = Instant::now();
        if let Some((known, _)) = names.known.get(name).filter(|(_, until)| *until > now) {
            return Some(known.clone());
        }
        if names.asked.contains_key(name) {
            return None;
        }
        if names.asked.len() >= MOST_AT_ONCE {
            return Some(Outcome::Busy);
        }
        if ask(name.clone(), caller.clone()).is_err() {
            return Some(outcome);
        }
        names.asked.insert(name.clone(), outcome);
        None
    }

    /// The host has answered.
    pub(super) fn host_says(&mut self, name: HostName, found: Vec<IpAddr>) {
        let Some(dns) = self.names.of_host.asked.remove(&name) else {
            return;
        };
        let outcome = if found.is_empty() { dns } else { Outcome::Addresses(found) };
        self.names.of_host.remember(name.clone(), outcome.clone(), Instant::now());
        self.tell_waiting(&name, &outcome);
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
        let mut names = HostNames::default();
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
