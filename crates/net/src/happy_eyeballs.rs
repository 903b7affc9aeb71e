//! When each address of a name is tried (RFC 8305): one after the other, without waiting for the
//! first to fail; who connects first wins. Time comes in, addresses to try go out; sockets are the
//! caller's.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::destination::Family;

/// The Connection Attempt Delay: how long one is alone before the next begins.
pub const STAGGER: Duration = Duration::from_millis(250);
/// How many are tried at one time: each is a socket.
pub const MOST_AT_ONCE: usize = 4;
/// How long one may take while another waits for its place.
pub const ONE_OF_MANY: Duration = Duration::from_secs(3);
/// How long they may take once all were begun.
pub const LAST: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub struct Race {
    waiting: VecDeque<SocketAddr>,
    /// In the order of their beginning.
    running: Vec<Try>,
    /// Those that had their time, or were told that no server is reached.
    lost: Vec<Family>,
    /// When the last one was begun; `None` when the next need not wait.
    begun: Option<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Try {
    to: SocketAddr,
    since: Instant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RaceStep {
    Begin(SocketAddr),
    /// It had its time, and its place is needed.
    GiveUp(SocketAddr),
    /// Nothing to do before this, unless one of them connects or fails.
    Wait(Instant),
    /// None is left.
    Over,
}

/// Why one of them ended without a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// A server refused the connection, so its family works.
    Answered,
    /// There is no way, or no answer.
    Unreachable,
}

impl Race {
    /// In the order to be tried. None is tried twice.
    pub fn new(addresses: impl IntoIterator<Item = SocketAddr>) -> Race {
        let mut waiting = VecDeque::new();
        for address in addresses {
            if !waiting.contains(&address) {
                waiting.push_back(address);
            }
        }
        Race { waiting, running: Vec::new(), lost: Vec::new(), begun: None }
    }

    /// What to do now; to be asked again until it is to wait or is over.
    pub fn step(&mut self, now: Instant) -> RaceStep {
        let Some(&next) = self.waiting.front() else {
            return self.last_step(now);
        };
        let alone_until = self.begun.map(|begun| begun + STAGGER);
        if let Some(at) = alone_until.filter(|at| now < *at) {
            return RaceStep::Wait(at);
        }
        if self.running.len() >= MOST_AT_ONCE
            && let Some(oldest) = self.running.first().copied()
        {
            let at = oldest.since + ONE_OF_MANY;
            return if now < at { RaceStep::Wait(at) } else { self.give_up(oldest) };
        }
        self.waiting.pop_front();
        self.running.push(Try { to: next, since: now });
        self.begun = Some(now);
        RaceStep::Begin(next)
    }

    /// All were begun.
    fn last_step(&mut self, now: Instant) -> RaceStep {
        let Some(last) = self.running.last().map(|last| last.since + LAST) else {
            return RaceStep::Over;
        };
        match self.running.first().copied() {
            Some(oldest) if now >= last => self.give_up(oldest),
            _ => RaceStep::Wait(last),
        }
    }

    fn give_up(&mut self, one: Try) -> RaceStep {
        self.running.retain(|other| *other != one);
        self.lost.push(Family::of(one.to.ip()));
        RaceStep::GiveUp(one.to)
    }

    /// One of them did not come about: the next need not wait.
    pub fn failed(&mut self, to: SocketAddr, failure: Failure) {
        self.running.retain(|one| one.to != to);
        self.begun = None;
        if failure == Failure::Unreachable {
            self.lost.push(Family::of(to.ip()));
        }
    }

    /// This one has connected. The other family, if it had its time before that and did not work.
    pub fn won(&self, to: SocketAddr, now: Instant) -> Option<Family> {
        let winner = Family::of(to.ip());
        let had_time = self.running.iter().filter(|one| now >= one.since + STAGGER);
        let slow = had_time.map(|one| Family::of(one.to.ip()));
        slow.chain(self.lost.iter().copied()).find(|family| *family != winner)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn at(ip: &str) -> SocketAddr {
        SocketAddr::new(ip.parse().unwrap(), 443)
    }

    fn both() -> (Race, SocketAddr, SocketAddr) {
        let (v6, v4) = (at("2606:4700::1"), at("9.9.9.9"));
        (Race::new([v6, v4, v6]), v6, v4)
    }

    #[test]
    fn a_dead_family_costs_one_delay() {
        let (mut race, v6, v4) = both();
        let start = Instant::now();
        assert_eq!(race.step(start), RaceStep::Begin(v6));
        assert_eq!(race.step(start), RaceStep::Wait(start + STAGGER));
        assert_eq!(race.won(v6, start + MS), None);
        let later = start + STAGGER;
        assert_eq!(race.step(later), RaceStep::Begin(v4));
        assert_eq!(race.step(later), RaceStep::Wait(later + LAST));
        assert_eq!(race.won(v4, later + MS), Some(Family::V6), "it had its time");
        assert_eq!(race.won(v6, later + MS), None, "the other one had not");
        assert_eq!(race.step(later + LAST), RaceStep::GiveUp(v6));
        assert_eq!(race.step(later + LAST), RaceStep::GiveUp(v4));
        assert_eq!(race.step(later + LAST), RaceStep::Over);
    }

    #[test]
    fn a_failure_begins_the_next_at_once() {
        let (mut race, v6, v4) = both();
        let start = Instant::now();
        assert_eq!(race.step(start), RaceStep::Begin(v6));
        race.failed(v6, Failure::Unreachable);
        assert_eq!(race.step(start), RaceStep::Begin(v4));
        assert_eq!(race.won(v4, start), Some(Family::V6));
        race.failed(v4, Failure::Answered);
        assert_eq!(race.step(start), RaceStep::Over);
        // A refusal is an answer: its family works.
        let (mut race, v6, v4) = both();
        race.step(start);
        race.failed(v6, Failure::Answered);
        assert_eq!(race.step(start), RaceStep::Begin(v4));
        assert_eq!(race.won(v4, start), None);
    }

    #[test]
    fn few_are_tried_at_one_time_and_all_in_the_end() {
        let all: Vec<_> = (0..10).map(|n| at(&format!("9.9.9.{n}"))).collect();
        let mut race = Race::new(all.clone());
        let (start, mut now) = (Instant::now(), Instant::now());
        let (mut begun, mut open) = (Vec::new(), 0usize);
        loop {
            match race.step(now) {
                RaceStep::Begin(to) => {
                    begun.push(to);
                    open += 1;
                }
                RaceStep::GiveUp(_) => open -= 1,
                RaceStep::Wait(at) => {
                    assert!(at > now);
                    now = at;
                }
                RaceStep::Over => break,
            }
            assert!(open <= MOST_AT_ONCE);
        }
        assert_eq!((begun, open), (all, 0));
        assert!(now < start + 3 * ONE_OF_MANY + LAST);
    }

    proptest! {
        /// Whatever happens when: each is begun once, few at a time, and there is an end.
        #[test]
        fn each_is_tried_once_and_it_ends(
            v4 in 0usize..9, v6 in 0usize..9, events in prop::collection::vec((0u64..4000, 0usize..8, any::<bool>()), 0..60),
        ) {
            let all: Vec<_> = (0..v4).map(|n| at(&format!("9.9.9.{n}")))
                .chain((0..v6).map(|n| at(&format!("2606::{n}")))).collect();
            let mut race = Race::new(all.clone());
            let (mut now, mut events) = (Instant::now(), events.into_iter());
            let (mut begun, mut open) = (Vec::new(), Vec::new());
            for _ in 0..1000 {
                match race.step(now) {
                    RaceStep::Begin(to) => { begun.push(to); open.push(to); }
                    RaceStep::GiveUp(to) => open.retain(|one| *one != to),
                    RaceStep::Over => break,
                    RaceStep::Wait(at) => match events.next() {
                        Some((wait, which, unreachable)) => {
                            now = at.min(now + wait as u32 * MS);
                            if !open.is_empty() {
                                let to = open.swap_remove(which % open.len());
                                race.failed(to, if unreachable { Failure::Unreachable } else { Failure::Answered });
                            }
                        }
                        None => now = at,
                    },
                }
                prop_assert!(open.len() <= MOST_AT_ONCE);
            }
            prop_assert_eq!(race.step(now), RaceStep::Over);
            prop_assert_eq!(begun, all);
        }
    }
}
