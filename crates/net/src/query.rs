//! Looking up names without doing it: time and messages come in, messages to send and
//! answers go out. Sockets are the caller's.
//!
//! A and AAAA are asked for at once; a server that is silent, fails or cuts its answer short
//! is followed by the next one, or by TCP; answers are kept as long as they say, within
//! [`LIFE`]. The caller uses a fresh socket for each exchange, so that an answer must know the
//! port as well as the id.

mod cache;
mod family_query;
mod queue;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use mcp_policy::HostName;

use self::cache::Cache;
use self::family_query::{FamilyQuery, Finding, QueryStep};
use self::queue::Queue;
use super::dns::{Family, Lookup, Transport};
use super::hosts::Hosts;
use super::resolv::Resolv;
use super::shares::{Party, Shares};

/// How long an answer is kept: a lookup for each connection would be a flood, and a name
/// that moves is to be followed.
pub const LIFE: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(300);
/// How long AAAA is waited for once A has addresses (RFC 8305, Resolution Delay).
const SECOND_FAMILY: Duration = Duration::from_millis(50);
/// How long A is waited for once AAAA has some: where IPv6 is broken there is nothing else to try.
const LATE_V4: Duration = Duration::from_millis(250);
/// The first round over the servers is brisk, so that a dead one costs little.
const FIRST_PATIENCE: Duration = Duration::from_secs(2);
/// Names that are looked up at one time; more wait for their turn.
const MAX_RUNNING: usize = 256;
/// Addresses of one name that are worth trying.
const MAX_ADDRESSES: usize = 16;

/// One question on its way to one server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Exchange(u64);

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// Send this message (not yet framed for TCP) to `servers[server]`, port 53.
    Ask { exchange: Exchange, server: usize, transport: Transport, message: Vec<u8> },
    /// Nothing more is wanted of this exchange: close its socket.
    Forget(Exchange),
    /// The end of a lookup, once for each name that was not already being looked up.
    Answer { name: HostName, outcome: Outcome },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// In the order to be tried, the families in turn; not empty.
    Addresses(Vec<IpAddr>),
    NoSuchName,
    /// The name is there, but has no address.
    NoAddress,
    /// No server gave an answer.
    Unanswered,
}

pub struct Resolver {
    resolv: Resolv,
    hosts: Hosts,
    random: Box<dyn FnMut() -> u16 + Send>,
    cache: Cache,
    running: BTreeMap<HostName, Running>,
    /// How many of these are for whom.
    shares: Shares,
    queue: Queue,
    exchanges: HashMap<Exchange, (HostName, Family)>,
    next_exchange: u64,
    /// The server that answered last, asked first.
    preferred: usize,
}

struct Running {
    party: Party,
    v4: FamilyQuery,
    v6: FamilyQuery,
    /// When what was found so far is enough.
    enough_at: Option<Instant>,
}

impl Running {
    fn family_query(&mut self, family: Family) -> &mut FamilyQuery {
        match family {
            Family::V4 => &mut self.v4,
            Family::V6 => &mut self.v6,
        }
    }
}

impl Resolver {
    /// `random` gives message ids; it must not be predictable.
    pub fn new(resolv: Resolv, hosts: Hosts, random: Box<dyn FnMut() -> u16 + Send>) -> Self {
        Self {
            resolv,
            hosts,
            random,
            cache: Cache::default(),
            running: BTreeMap::new(),
            shares: Shares::new(MAX_RUNNING),
            queue: Queue::default(),
            exchanges: HashMap::new(),
            next_exchange: 0,
            preferred: 0,
        }
    }

    pub fn resolv(&self) -> &Resolv {
        &self.resolv
    }

    /// Begins a lookup. When the name is already being looked up there is nothing to do:
    /// the one answer is for all who wait.
    #[cfg(any(target_os = "linux", test))]
    pub fn resolve(&mut self, now: Instant, name: &HostName) -> Vec<Act> {
        self.resolve_for(now, name, super::shares::NOBODY)
    }

    /// The same for one of several, none of which keeps the others waiting for long.
    pub fn resolve_for(&mut self, now: Instant, name: &HostName, party: Party) -> Vec<Act> {
        let at_once = |outcome| vec![Act::Answer { name: name.clone(), outcome }];
        if let Some(addresses) = self.hosts.addresses(name) {
            return at_once(Outcome::Addresses(in_turn(addresses)));
        }
        if let Some(outcome) = self.cache.get(now, name) {
            return at_once(outcome);
        }
        if self.running.contains_key(name) || self.queue.contains(name) {
            return Vec::new();
        }
        let mut acts = Vec::new();
        match self.shares.has_room(party, 1) {
            true => self.begin(now, name.clone(), party, &mut acts),
            false => self.queue.add(name.clone(), party),
        }
        acts
    }

    /// No client waits for this name any more. What was asked already goes on: a program that comes
    /// and goes is not to make more questions than one that waits.
    pub fn forget(&mut self, name: &HostName) {
        self.queue.remove(name);
    }

    fn begin(&mut self, now: Instant, name: HostName, party: Party, acts: &mut Vec<Act>) {
        self.shares.take(party, 1);
        let Self { random, resolv, preferred, .. } = self;
        let mut family_query = |family| {
            let lookup = Lookup::new(random(), &name, family);
            FamilyQuery::new(lookup, resolv.start, *preferred)
        };
        let (v4, v6) = (family_query(Family::V4), family_query(Family::V6));
        self.running.insert(name.clone(), Running { party, v4, v6, enough_at: None });
        for family in [Family::V4, Family::V6] {
            self.advance(now, &name, family, QueryStep::Ask, acts);
        }
    }

    /// A message came for an exchange. What does not answer its question is ignored.
    pub fn received(&mut self, now: Instant, exchange: Exchange, message: &[u8]) -> Vec<Act> {
        self.event(now, exchange, |family_query| family_query.received(message))
    }

    /// An exchange cannot go on: refused, reset, unreachable, closed.
    pub fn failed(&mut self, now: Instant, exchange: Exchange) -> Vec<Act> {
        self.event(now, exchange, |family_query| Some(family_query.next_server()))
    }

    fn event(
        &mut self,
        now: Instant,
        exchange: Exchange,
        react: impl FnOnce(&mut FamilyQuery) -> Option<QueryStep>,
    ) -> Vec<Act> {
        let mut acts = Vec::new();
        let Some((name, family)) = self.exchanges.get(&exchange).cloned() else {
            return acts;
        };
        let Some(running) = self.running.get_mut(&name) else { return acts };
        if let Some(step) = react(running.family_query(family)) {
            self.advance(now, &name, family, step, &mut acts);
            self.settle(now, &name, &mut acts);
        }
        acts
    }

    /// When [`Resolver::tick`] is due, if ever.
    pub fn deadline(&self) -> Option<Instant> {
        let running = self.running.values();
        running
            .flat_map(|one| [one.v4.deadline(), one.v6.deadline(), one.enough_at])
            .flatten()
            .min()
    }

    /// Does what time asks for.
    pub fn tick(&mut self, now: Instant) -> Vec<Act> {
        let mut acts = Vec::new();
        let names: Vec<HostName> = self.running.keys().cloned().collect();
        for name in names {
            for family in [Family::V4, Family::V6] {
                let Some(running) = self.running.get_mut(&name) else { continue };
                let family_query = running.family_query(family);
                if family_query.deadline().is_some_and(|deadline| deadline <= now) {
                    let step = family_query.next_server();
                    self.advance(now, &name, family, step, &mut acts);
                }
            }
            self.settle(now, &name, &mut acts);
        }
        acts
    }

    /// Ends the current exchange of a family_query, if any, and begins the next or notes the finding.
    fn advance(
        &mut self,
        now: Instant,
        name: &HostName,
        family: Family,
        step: QueryStep,
        acts: &mut Vec<Act>,
    ) {
        let Some(running) = self.running.get_mut(name) else { return };
        let family_query = running.family_query(family);
        if let Some(old) = family_query.exchange() {
            self.exchanges.remove(&old);
            acts.push(Act::Forget(old));
        }
        let servers = self.resolv.servers.len().max(1);
        match step {
            QueryStep::Found(finding) => {
                self.preferred = family_query.server(servers);
                family_query.finish(finding);
            }
            QueryStep::Ask if family_query.tries() >= servers * self.resolv.attempts => {
                family_query.finish(Finding::Unanswered);
            }
            QueryStep::Ask => {
                let patience = if family_query.tries() < servers {
                    self.resolv.timeout.min(FIRST_PATIENCE)
                } else {
                    self.resolv.timeout
                };
                let exchange = Exchange(self.next_exchange);
                self.next_exchange += 1;
                let server = family_query.server(servers);
                let (transport, message) = family_query.ask(exchange, now + patience);
                self.exchanges.insert(exchange, (name.clone(), family));
                acts.push(Act::Ask { exchange, server, transport, message });
            }
        }
    }

    /// Gives the answer once both families are known, or one is and the other is late.
    fn settle(&mut self, now: Instant, name: &HostName, acts: &mut Vec<Act>) {
        let Some(running) = self.running.get_mut(name) else { return };
        let Running { party, v4, v6, enough_at } = running;
        let findings = [v4.finding(), v6.finding()];
        let has_addresses = findings.iter().flatten().any(|finding| finding.has_addresses());
        let is_complete = findings.iter().all(Option::is_some);
        if !is_complete {
            if !has_addresses {
                return;
            }
            let patience = if findings[0].is_some() { SECOND_FAMILY } else { LATE_V4 };
            if now < *enough_at.get_or_insert(now + patience) {
                return;
            }
        }
        let (outcome, mut life) = combine(findings);
        if matches!(findings[0], None | Some(Finding::Unanswered)) {
            // There may be IPv4 addresses that were not told.
            life = *LIFE.start();
        }
        for exchange in [v4.exchange(), v6.exchange()].into_iter().flatten() {
            self.exchanges.remove(&exchange);
            acts.push(Act::Forget(exchange));
        }
        self.shares.give_back(*party, 1);
        self.running.remove(name);
        if outcome != Outcome::Unanswered {
            self.cache.put(now, name.clone(), outcome.clone(), life);
        }
        acts.push(Act::Answer { name: name.clone(), outcome });
        while let Some((name, party)) = self.queue.next(&self.shares) {
            self.begin(now, name, party, acts);
        }
    }
}

/// What both families together mean, and for how long. `None` is a family that is late.
fn combine(findings: [Option<&Finding>; 2]) -> (Outcome, Duration) {
    let mut addresses = Vec::new();
    let mut found_life = u32::MAX;
    let mut none_life = u32::MAX;
    let (mut unanswered, mut no_such_name) = (false, false);
    for finding in findings.into_iter().flatten() {
        match finding {
            Finding::Addresses { addresses: found, ttl } if !found.is_empty() => {
                addresses.extend_from_slice(found);
                found_life = found_life.min(*ttl);
            }
            Finding::Addresses { ttl, .. } => none_life = none_life.min(*ttl),
            Finding::NoSuchName { ttl } => {
                no_such_name = true;
                none_life = none_life.min(*ttl);
            }
            Finding::Unanswered => unanswered = true,
        }
    }
    let life = |ttl: u32| Duration::from_secs(u64::from(ttl)).clamp(*LIFE.start(), *LIFE.end());
    match () {
        () if !addresses.is_empty() => (Outcome::Addresses(in_turn(addresses)), life(found_life)),
        () if unanswered => (Outcome::Unanswered, life(0)),
        () if no_such_name => (Outcome::NoSuchName, life(none_life)),
        () => (Outcome::NoAddress, life(none_life)),
    }
}

/// IPv6 first, then the families in turn (RFC 8305): when one of them is broken here, the
/// second try already works.
fn in_turn(addresses: Vec<IpAddr>) -> Vec<IpAddr> {
    let (mut v4, mut v6): (Vec<_>, Vec<_>) = addresses.into_iter().partition(IpAddr::is_ipv4);
    let mut ordered = Vec::with_capacity(v4.len() + v6.len());
    v4.reverse();
    v6.reverse();
    while ordered.len() < MAX_ADDRESSES {
        let before = ordered.len();
        ordered.extend(v6.pop());
        ordered.extend(v4.pop());
        if ordered.len() == before {
            break;
        }
    }
    ordered.truncate(MAX_ADDRESSES);
    ordered
}

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resolver").field("resolv", &self.resolv).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
