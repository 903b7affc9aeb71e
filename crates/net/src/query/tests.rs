use std::net::Ipv4Addr;

use proptest::prelude::*;

use super::*;
use crate::dns::{DnsAnswer, DnsRequest, RecordType};
use crate::resolv::{Server, Start};

fn host(name: &str) -> HostName {
    name.parse().unwrap()
}

fn resolver(servers: usize) -> Resolver {
    let server = Server { ip: Ipv4Addr::LOCALHOST.into(), zone: None };
    let resolv = Resolv { servers: vec![server; servers], ..Resolv::default() };
    let mut id = 0;
    let hosts = Hosts::read("10.0.0.1 db.example");
    Resolver::new(
        resolv,
        hosts,
        Box::new(move || {
            id += 1;
            id
        }),
    )
}

struct Asked {
    exchange: Exchange,
    server: usize,
    transport: Transport,
    message: Vec<u8>,
}

fn asked(acts: &[Act]) -> Vec<Asked> {
    let asks = acts.iter().filter_map(|act| match act {
        Act::Ask { exchange, server, transport, message } => Some(Asked {
            exchange: *exchange,
            server: *server,
            transport: *transport,
            message: message.clone(),
        }),
        _ => None,
    });
    asks.collect()
}

fn answer(acts: &[Act]) -> Option<Outcome> {
    acts.iter().find_map(|act| match act {
        Act::Answer { outcome, .. } => Some(outcome.clone()),
        _ => None,
    })
}

fn reply(asked: &Asked, answer: &DnsAnswer<'_>) -> Vec<u8> {
    match DnsRequest::read(&asked.message) {
        Some(DnsRequest::Query(query)) => query.reply(answer, asked.transport),
        other => panic!("{other:?}"),
    }
}

fn ips(texts: &[&str]) -> Vec<IpAddr> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

fn nothing_left(resolver: &Resolver) {
    assert!(resolver.running.is_empty() && resolver.exchanges.is_empty());
    assert_eq!(resolver.shares.used(), 0);
    assert_eq!(resolver.deadline(), None);
}

/// A name with these addresses, answered at once for `ttl` seconds.
fn answered(
    resolver: &mut Resolver,
    now: Instant,
    name: &str,
    given: &[IpAddr],
    ttl: u32,
) -> Outcome {
    let acts = resolver.resolve(now, &host(name));
    let mut outcome = answer(&acts);
    for one in asked(&acts) {
        let message = reply(&one, &DnsAnswer::Addresses { addresses: given, ttl });
        outcome = answer(&resolver.received(now, one.exchange, &message));
    }
    outcome.unwrap()
}

#[test]
fn both_families_in_turn() {
    let mut resolver = resolver(1);
    let given = ips(&["192.0.2.1", "192.0.2.2", "192.0.2.3", "2001:db8::1"]);
    let outcome = answered(&mut resolver, Instant::now(), "a.example", &given, 9);
    let expected = ips(&["2001:db8::1", "192.0.2.1", "192.0.2.2", "192.0.2.3"]);
    assert_eq!(outcome, Outcome::Addresses(expected));
    nothing_left(&resolver);
}

#[test]
fn hosts_come_first() {
    let mut resolver = resolver(1);
    let acts = resolver.resolve(Instant::now(), &host("db.example"));
    assert_eq!(answer(&acts), Some(Outcome::Addresses(ips(&["10.0.0.1"]))));
    let acts = resolver.resolve(Instant::now(), &host("x.localhost"));
    assert_eq!(answer(&acts), Some(Outcome::Addresses(ips(&["::1", "127.0.0.1"]))));
    nothing_left(&resolver);
}

#[test]
fn answers_are_kept_as_long_as_they_hold() {
    let now = Instant::now();
    for (ttl, kept) in [(0, 1), (7, 7), (100_000, 300)] {
        let mut resolver = resolver(1);
        answered(&mut resolver, now, "a.example", &ips(&["192.0.2.1", "::2"]), ttl);
        let before = now + Duration::from_secs(kept) - Duration::from_millis(1);
        assert!(answer(&resolver.resolve(before, &host("a.example"))).is_some(), "{ttl}");
        let after = now + Duration::from_secs(kept);
        assert_eq!(asked(&resolver.resolve(after, &host("a.example"))).len(), 2, "{ttl}");
    }
}

#[test]
fn one_lookup_serves_all_who_wait() {
    let mut resolver = resolver(1);
    let now = Instant::now();
    assert_eq!(resolver.resolve(now, &host("a.example")).len(), 2);
    assert_eq!(resolver.resolve(now, &host("A.example")), []);
}

#[test]
fn a_silent_server_is_followed_by_the_next() {
    let mut resolver = resolver(2);
    let mut now = Instant::now();
    let first = asked(&resolver.resolve(now, &host("a.example")));
    assert!(first.iter().all(|one| one.server == 0));
    now += FIRST_PATIENCE;
    assert_eq!(resolver.deadline(), Some(now));
    let second = asked(&resolver.tick(now));
    assert_eq!(second.len(), 2);
    assert!(second.iter().all(|one| one.server == 1));
    let given = ips(&["192.0.2.1", "::2"]);
    // The late answer of the first is no longer wanted.
    let late = reply(&first[0], &DnsAnswer::Addresses { addresses: &given, ttl: 1 });
    assert_eq!(resolver.received(now, first[0].exchange, &late), []);
    for one in &second {
        let message = reply(one, &DnsAnswer::Addresses { addresses: &given, ttl: 1 });
        resolver.received(now, one.exchange, &message);
    }
    nothing_left(&resolver);
    let next = asked(&resolver.resolve(now, &host("b.example")));
    assert!(next.iter().all(|one| one.server == 1), "the one that answers is asked first");
}

#[test]
fn nobody_answers() {
    let mut resolver = resolver(2);
    let mut now = Instant::now();
    let mut acts = resolver.resolve(now, &host("a.example"));
    let mut asks = 0;
    while answer(&acts).is_none() {
        asks += asked(&acts).len();
        now = resolver.deadline().unwrap();
        acts = resolver.tick(now);
    }
    assert_eq!(answer(&acts), Some(Outcome::Unanswered));
    assert_eq!(asks, 8, "two families, two servers, two attempts");
    nothing_left(&resolver);
    assert_eq!(asked(&resolver.resolve(now, &host("a.example"))).len(), 2, "not remembered");
}

#[test]
fn what_is_not_there_is_remembered() {
    for (said, outcome) in
        [(DnsAnswer::NoSuchName, Outcome::NoSuchName), (DnsAnswer::Empty, Outcome::NoAddress)]
    {
        let mut resolver = resolver(1);
        let now = Instant::now();
        let mut last = None;
        for one in asked(&resolver.resolve(now, &host("a.example"))) {
            last = answer(&resolver.received(now, one.exchange, &reply(&one, &said)));
        }
        assert_eq!(last, Some(outcome.clone()));
        assert_eq!(answer(&resolver.resolve(now, &host("a.example"))), Some(outcome));
    }
}

#[test]
fn a_cut_answer_is_asked_for_again_over_tcp() {
    let mut resolver = resolver(1);
    let now = Instant::now();
    let first = asked(&resolver.resolve(now, &host("a.example")));
    let many: Vec<IpAddr> = (0..200).map(|n| IpAddr::from([192, 0, 2, n])).collect();
    let said = DnsAnswer::Addresses { addresses: &many, ttl: 1 };
    let acts = resolver.received(now, first[0].exchange, &reply(&first[0], &said));
    let again = asked(&acts);
    assert_eq!((again[0].transport, again[0].server), (Transport::Tcp, 0));
    let acts = resolver.received(now, again[0].exchange, &reply(&again[0], &said));
    assert_eq!(answer(&acts), None, "the other family may still come");
    let acts = resolver.received(now, first[1].exchange, &reply(&first[1], &DnsAnswer::Empty));
    let Some(Outcome::Addresses(addresses)) = answer(&acts) else { panic!("{acts:?}") };
    assert_eq!(addresses.len(), MAX_ADDRESSES);
}

#[test]
fn an_old_server_is_asked_without_edns() {
    let mut resolver = resolver(1);
    let now = Instant::now();
    let first = asked(&resolver.resolve(now, &host("a.example")));
    let mut not_understood = first[0].message[..12].to_vec();
    not_understood[2..12].copy_from_slice(&[0x81, 0x81, 0, 0, 0, 0, 0, 0, 0, 0]);
    let again = asked(&resolver.received(now, first[0].exchange, &not_understood));
    assert_eq!(again[0].message.len(), first[0].message.len() - 11);
}

#[test]
fn the_late_family_is_not_waited_for() {
    let mut resolver = resolver(1);
    let now = Instant::now();
    let first = asked(&resolver.resolve(now, &host("a.example")));
    let given = ips(&["192.0.2.1"]);
    let message = reply(&first[0], &DnsAnswer::Addresses { addresses: &given, ttl: 1 });
    assert_eq!(answer(&resolver.received(now, first[0].exchange, &message)), None);
    assert_eq!(resolver.deadline(), Some(now + SECOND_FAMILY));
    let acts = resolver.tick(now + SECOND_FAMILY);
    assert_eq!(acts[0], Act::Forget(first[1].exchange));
    assert_eq!(answer(&acts), Some(Outcome::Addresses(given)));
    nothing_left(&resolver);
}

/// Where IPv6 is broken, a name without its IPv4 addresses is a name that cannot be reached.
#[test]
fn late_ipv4_is_waited_for_longer_and_asked_for_again_soon() {
    let mut resolver = resolver(1);
    let now = Instant::now();
    let first = asked(&resolver.resolve(now, &host("a.example")));
    let given = ips(&["2606:4700::1"]);
    let message = reply(&first[1], &DnsAnswer::Addresses { addresses: &given, ttl: 300 });
    assert_eq!(answer(&resolver.received(now, first[1].exchange, &message)), None);
    assert_eq!(resolver.deadline(), Some(now + LATE_V4));
    let then = now + LATE_V4;
    assert_eq!(answer(&resolver.tick(then)), Some(Outcome::Addresses(given)));
    nothing_left(&resolver);
    assert!(answer(&resolver.resolve(then, &host("a.example"))).is_some(), "it is kept");
    let later = then + *LIFE.start();
    assert_eq!(asked(&resolver.resolve(later, &host("a.example"))).len(), 2, "and not for long");
}

#[test]
fn tcp_from_the_start_when_the_host_says_so() {
    let resolv = Resolv { start: Start::Tcp, ..Resolv::default() };
    let mut resolver = Resolver::new(resolv, Hosts::default(), Box::new(|| 1));
    let asks = asked(&resolver.resolve(Instant::now(), &host("a.example")));
    assert!(asks.iter().all(|one| one.transport == Transport::Tcp));
}

#[test]
fn there_is_a_limit() {
    let mut resolver = resolver(1);
    let now = Instant::now();
    for number in 0..2 * MAX_RUNNING {
        resolver.resolve(now, &host(&format!("n{number}.example")));
    }
    assert!(resolver.running.len() < MAX_RUNNING);
    let mut resolver = self::resolver(1);
    for number in 0..1500 {
        answered(
            &mut resolver,
            now,
            &format!("n{number}.example"),
            &ips(&["192.0.2.1", "::2"]),
            300,
        );
    }
    assert!(resolver.cache.len() <= 1024);
}

/// More names than are looked up at one time wait for their turn, and all have an answer.
#[test]
fn names_beyond_the_limit_wait() {
    let mut resolver = resolver(1);
    let now = Instant::now();
    let names: Vec<_> = (0..3 * MAX_RUNNING).map(|number| format!("n{number}.example")).collect();
    let mut asks = Vec::new();
    for name in &names {
        let acts = resolver.resolve(now, &host(name));
        assert_eq!(answer(&acts), None);
        asks.extend(asked(&acts));
    }
    // For one that no client waits for any more nothing is asked.
    let gone = host(names.last().unwrap());
    resolver.forget(&gone);
    let addresses = ips(&["192.0.2.1", "::2"]);
    let found = DnsAnswer::Addresses { addresses: &addresses, ttl: 9 };
    let mut answers = 0;
    while let Some(one) = asks.pop() {
        let acts = resolver.received(now, one.exchange, &reply(&one, &found));
        answers += usize::from(answer(&acts).is_some());
        asks.extend(asked(&acts));
    }
    assert_eq!(answers, names.len() - 1);
    nothing_left(&resolver);
}

/// Names of one rule, whose servers never answer, leave room for those of others.
#[test]
fn nobody_takes_all_lookups() {
    let mut resolver = resolver(1);
    let now = Instant::now();
    for number in 0..2 * MAX_RUNNING {
        resolver.resolve_for(now, &host(&format!("n{number}.never.example")), 1);
    }
    assert_eq!(asked(&resolver.resolve_for(now, &host("a.example"), 2)).len(), 2);
    // Who has few lookups comes before who has many, and waits for no other query's end.
    for number in 0..MAX_RUNNING {
        resolver.resolve_for(now, &host(&format!("n{number}.example")), 2);
    }
    assert_eq!(asked(&resolver.resolve_for(now, &host("b.example"), 3)).len(), 2);
}

proptest! {
    /// Whatever the servers and the network do, each lookup ends once, in bounded time, and
    /// leaves nothing behind.
    #[test]
    fn every_lookup_ends_once(events in prop::collection::vec((0u8..6, any::<prop::sample::Index>()), 0..60)) {
        let mut resolver = resolver(2);
        let start = Instant::now();
        let mut now = start;
        let mut open: Vec<Asked> = Vec::new();
        let mut answers = 0;
        let mut acts = resolver.resolve(now, &host("a.example"));
        let mut events = events.into_iter();
        loop {
            for act in acts {
                match act {
                    Act::Ask { exchange, server, transport, message } =>
                        open.push(Asked { exchange, server, transport, message }),
                    Act::Forget(gone) => open.retain(|one| one.exchange != gone),
                    Act::Answer { .. } => answers += 1,
                }
            }
            if answers > 0 {
                break;
            }
            let event = events.next().filter(|_| !open.is_empty());
            acts = match event {
                None => {
                    now = resolver.deadline().unwrap();
                    resolver.tick(now)
                }
                Some((what, which)) => {
                    let one = which.get(&open);
                    let given = ips(&["192.0.2.1", "::1"]);
                    let said = match what {
                        0 => DnsAnswer::Addresses { addresses: &given, ttl: 1 },
                        1 => DnsAnswer::Empty,
                        2 => DnsAnswer::NoSuchName,
                        _ => DnsAnswer::Failed,
                    };
                    match what {
                        5 => resolver.failed(now, one.exchange),
                        4 => resolver.received(now, one.exchange, b"noise"),
                        _ => resolver.received(now, one.exchange, &reply(one, &said)),
                    }
                }
            };
        }
        prop_assert_eq!(answers, 1);
        prop_assert!(open.is_empty());
        prop_assert!(now - start <= Duration::from_secs(30));
        nothing_left(&resolver);
    }
}

#[test]
fn questions_are_for_both_families() {
    let mut resolver = resolver(1);
    let kinds: Vec<RecordType> = asked(&resolver.resolve(Instant::now(), &host("a.example")))
        .iter()
        .map(|one| match DnsRequest::read(&one.message) {
            Some(DnsRequest::Query(query)) => query.kind(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(kinds, [RecordType::A, RecordType::Aaaa]);
}
