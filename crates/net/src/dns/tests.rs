use std::net::IpAddr;

use mcp_policy::HostName;
use proptest::prelude::*;

use super::*;

fn host(name: &str) -> HostName {
    name.parse().unwrap()
}

/// A query as a program would send it; the reader of the resolver's side checks the reply.
fn asked(name: &str, family: Family, edns: Edns) -> (Lookup, Query) {
    let lookup = Lookup::new(0xbeef, &host(name), family);
    match DnsRequest::read(&lookup.message(edns)) {
        Some(DnsRequest::Query(query)) => (lookup, query),
        other => panic!("{name}: {other:?}"),
    }
}

fn ips(texts: &[&str]) -> Vec<IpAddr> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

/// `a.example A?` by hand, with these flags, counts and type.
fn raw(flags: u16, counts: [u16; 4], kind: u16, class: u16, extra: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x12, 0x34];
    for field in [flags].into_iter().chain(counts) {
        bytes.extend_from_slice(&field.to_be_bytes());
    }
    bytes.extend_from_slice(b"\x01a\x07example\x00");
    bytes.extend_from_slice(&kind.to_be_bytes());
    bytes.extend_from_slice(&class.to_be_bytes());
    bytes.extend_from_slice(extra);
    bytes
}

fn query(message: &[u8]) -> Query {
    match DnsRequest::read(message) {
        Some(DnsRequest::Query(query)) => query,
        other => panic!("{other:?}"),
    }
}

fn rcode_of_refusal(message: &[u8]) -> u16 {
    match DnsRequest::read(message) {
        Some(DnsRequest::Unsupported(reply)) => u16::from(reply[3] & 0xf),
        other => panic!("{other:?}"),
    }
}

const OPT: &[u8] = &[0, 0, 41, 0x10, 0, 0, 0, 0x80, 0, 0, 0];

#[test]
fn a_question_and_its_addresses() {
    let given = ips(&["198.18.0.1", "fd00::1", "198.18.0.2"]);
    let answer = DnsAnswer::Addresses { addresses: &given, ttl: 30 };
    for edns in [Edns::With, Edns::Without] {
        for (family, expected) in
            [(Family::V4, &["198.18.0.1", "198.18.0.2"][..]), (Family::V6, &["fd00::1"])]
        {
            let (lookup, query) = asked("api.example.com", family, edns);
            assert_eq!(query.host(), Some(&host("api.example.com")));
            assert_eq!(
                lookup.read(&query.reply(&answer, Transport::Udp)),
                Some(ServerAnswer::Addresses { addresses: ips(expected), ttl: 30 })
            );
        }
    }
}

#[test]
fn nothing_is_said_so_that_it_can_be_remembered() {
    let (lookup, query) = asked("a.example", Family::V4, Edns::With);
    let said = |answer| lookup.read(&query.reply(&answer, Transport::Udp));
    assert_eq!(said(DnsAnswer::Empty), Some(ServerAnswer::Addresses { addresses: vec![], ttl: 5 }));
    assert_eq!(said(DnsAnswer::NoSuchName), Some(ServerAnswer::NoSuchName { ttl: 5 }));
    assert_eq!(said(DnsAnswer::Failed), Some(ServerAnswer::Failed));
    // REFUSED (5), which a name server may say and we do not.
    let mut refused = query.reply(&DnsAnswer::Failed, Transport::Udp);
    refused[3] = refused[3] & 0xf0 | 5;
    assert_eq!(lookup.read(&refused), Some(ServerAnswer::Failed));
    let v6 = ips(&["::1"]);
    let other_family = DnsAnswer::Addresses { addresses: &v6, ttl: 9 };
    assert_eq!(said(other_family), Some(ServerAnswer::Addresses { addresses: vec![], ttl: 5 }));
}

#[test]
fn https_records_are_not_there_but_the_name_is() {
    let query = query(&raw(0x0100, [1, 0, 0, 0], 65, 1, &[]));
    assert_eq!(query.kind(), RecordType::Other(65));
    let reply = query.reply(&DnsAnswer::Empty, Transport::Udp);
    assert_eq!(reply[..12], [0x12, 0x34, 0x81, 0x80, 0, 1, 0, 0, 0, 1, 0, 0]);
}

#[test]
fn the_case_of_the_question_is_kept() {
    let mut message = raw(0x0100, [1, 0, 0, 0], 1, 1, &[]);
    message[13] = b'A';
    message[16] = b'X';
    let query = query(&message);
    assert_eq!(query.host(), Some(&host("a.example")));
    let reply = query.reply(&DnsAnswer::NoSuchName, Transport::Udp);
    assert_eq!(reply[12..message.len()], message[12..]);
}

#[test]
fn what_is_malformed_is_ignored() {
    let good = raw(0x0100, [1, 0, 0, 0], 1, 1, &[]);
    assert!(DnsRequest::read(&good).is_some());
    for end in 0..good.len() {
        assert_eq!(DnsRequest::read(&good[..end]), None, "cut at {end}");
    }
    for (why, message) in [
        ("an answer", raw(0x8180, [1, 0, 0, 0], 1, 1, &[])),
        ("cut short", raw(0x0300, [1, 0, 0, 0], 1, 1, &[])),
        ("no question", raw(0x0100, [0, 0, 0, 0], 1, 1, &[])),
        ("two questions", raw(0x0100, [2, 0, 0, 0], 1, 1, b"\x00\x00\x01\x00\x01")),
        ("with answers", raw(0x0100, [1, 1, 0, 0], 1, 1, OPT)),
        ("two OPT", raw(0x0100, [1, 0, 0, 2], 1, 1, &[OPT, OPT].concat())),
        ("a missing OPT", raw(0x0100, [1, 0, 0, 1], 1, 1, &[])),
        ("an OPT with a name", raw(0x0100, [1, 0, 0, 1], 1, 1, &[b"\x01a", OPT].concat())),
        ("a crowd", raw(0x0100, [1, 0, 0, 9], 1, 1, OPT)),
    ] {
        assert_eq!(DnsRequest::read(&message), None, "{why}");
    }
    let mut pointer = good.clone();
    pointer[12..14].copy_from_slice(&[0xc0, 12]);
    assert_eq!(DnsRequest::read(&pointer), None, "a pointer in the question");
}

#[test]
fn odd_requests_get_the_right_refusal() {
    assert_eq!(rcode_of_refusal(&raw(0x2800, [1, 0, 0, 0], 1, 1, &[])), 4, "UPDATE");
    assert_eq!(rcode_of_refusal(&raw(0x0100, [1, 0, 0, 0], 1, 3, &[])), 5, "CHAOS");
    assert_eq!(rcode_of_refusal(&raw(0x0100, [1, 0, 0, 0], 252, 1, &[])), 5, "AXFR");
    let version = [0, 0, 41, 0x10, 0, 0, 1, 0, 0, 0, 0];
    let Some(DnsRequest::Unsupported(reply)) =
        DnsRequest::read(&raw(0, [1, 0, 0, 1], 1, 1, &version))
    else {
        panic!("EDNS version 1 is not refused");
    };
    assert_eq!(reply[3] & 0xf, 0);
    assert_eq!(reply[reply.len() - 6], 1, "BADVERS is 16: one in the upper part");
}

#[test]
fn no_host_has_such_a_name() {
    for name in [
        &b"\x03a.b\x07example\x00"[..],
        b"\x03a\x00b\x07example\x00",
        b"\x03a b\x00",
        b"\x00",
        b"\x01\xff\x00",
    ] {
        let mut message = raw(0x0100, [1, 0, 0, 0], 1, 1, &[]);
        message.splice(12..message.len() - 4, name.iter().copied());
        assert_eq!(query(&message).host(), None, "{name:?}");
    }
}

#[test]
fn what_does_not_fit_is_cut() {
    let many: Vec<IpAddr> = (0..40).map(|n| IpAddr::from([198, 18, 0, n])).collect();
    let answer = DnsAnswer::Addresses { addresses: &many, ttl: 1 };
    let (lookup, query) = asked("a.example", Family::V4, Edns::Without);
    assert_eq!(lookup.read(&query.reply(&answer, Transport::Udp)), Some(ServerAnswer::Cut));
    let Some(ServerAnswer::Addresses { addresses, .. }) =
        lookup.read(&query.reply(&answer, Transport::Tcp))
    else {
        panic!("TCP takes all");
    };
    assert_eq!(addresses.len(), 32);
    let (lookup, query) = asked("a.example", Family::V4, Edns::With);
    let reply = query.reply(&answer, Transport::Udp);
    assert!(matches!(lookup.read(&reply), Some(ServerAnswer::Addresses { .. })), "{reply:?}");
}

/// A reply to `a.example A` with these answers: owner, type, ttl, data.
fn answers(records: &[(&[u8], u16, u32, &[u8])]) -> (Lookup, Vec<u8>) {
    let lookup = Lookup::new(0x1234, &host("a.example"), Family::V4);
    let mut message = raw(0x8180, [1, records.len() as u16, 0, 0], 1, 1, &[]);
    for (owner, kind, ttl, data) in records {
        message.extend_from_slice(owner);
        message.extend_from_slice(&kind.to_be_bytes());
        message.extend_from_slice(&1u16.to_be_bytes());
        message.extend_from_slice(&ttl.to_be_bytes());
        message.extend_from_slice(&(data.len() as u16).to_be_bytes());
        message.extend_from_slice(data);
    }
    (lookup, message)
}

#[test]
fn aliases_are_followed_in_any_order() {
    let (lookup, message) = answers(&[
        (b"\x01c\x00", 1, 300, &[192, 0, 2, 1]),
        (b"\x01b\x00", 5, 20, b"\x01c\x00"),
        (b"\xc0\x0c", 5, 90, b"\x01b\x00"),
        (b"\x05other\x00", 1, 1, &[192, 0, 2, 9]),
    ]);
    let expected = ServerAnswer::Addresses { addresses: ips(&["192.0.2.1"]), ttl: 20 };
    assert_eq!(lookup.read(&message), Some(expected));
}

#[test]
fn circles_and_strangers_give_nothing() {
    let none = Some(ServerAnswer::Addresses { addresses: vec![], ttl: 0 });
    let (lookup, message) =
        answers(&[(b"\xc0\x0c", 5, 9, b"\x01b\x00"), (b"\x01b\x00", 5, 9, b"\xc0\x0c")]);
    assert_eq!(lookup.read(&message), none, "a circle");
    let (lookup, message) = answers(&[(b"\x05other\x00", 1, 1, &[192, 0, 2, 9])]);
    assert_eq!(lookup.read(&message), none, "another name's address");
    let (lookup, message) = answers(&[(b"\xc0\x0c", 1, 1, &[192, 0, 2])]);
    assert_eq!(lookup.read(&message), Some(ServerAnswer::Failed), "three bytes");
    let (lookup, message) = answers(&[(b"\xc0\x1b", 1, 1, &[192, 0, 2, 1])]);
    assert_eq!(lookup.read(&message), Some(ServerAnswer::Failed), "a pointer to itself");
}

#[test]
fn only_the_answer_to_the_question_counts() {
    let (lookup, message) = answers(&[(b"\xc0\x0c", 1, 1, &[192, 0, 2, 1])]);
    assert!(lookup.read(&message).is_some());
    for (why, at, value) in [
        ("another id", 1, 0x35),
        ("a question", 2, 0x01),
        ("another name", 13, b'b'),
        ("another type", 24, 28),
        ("another class", 26, 3),
    ] {
        let mut forged = message.clone();
        forged[at] = value;
        assert_eq!(lookup.read(&forged), None, "{why}");
    }
}

#[test]
fn frames_come_in_any_pieces() {
    let stream = [framed(b"one").unwrap(), vec![0, 0], framed(b"three").unwrap()].concat();
    for size in 1..=stream.len() {
        let mut frames = DnsFrames::new(512);
        let mut seen = Vec::new();
        for piece in stream.chunks(size) {
            seen.extend(frames.feed(piece).unwrap());
        }
        assert_eq!(seen, [b"one".to_vec(), b"three".to_vec()], "{size}");
        assert!(frames.is_between_messages());
    }
    assert_eq!(DnsFrames::new(512).feed(&[2, 1]), Err(TooLong));
    assert_eq!(framed(&vec![0; 65_536]), None);
}

proptest! {
    #[test]
    fn no_request_panics(message in prop::collection::vec(any::<u8>(), 0..300)) {
        if let Some(DnsRequest::Query(query)) = DnsRequest::read(&message) {
            for answer in [DnsAnswer::Empty, DnsAnswer::NoSuchName] {
                prop_assert!(query.reply(&answer, Transport::Udp).len() <= 512);
            }
        }
    }

    #[test]
    fn no_reply_panics(tail in prop::collection::vec(any::<u8>(), 0..300), counts: [u8; 3]) {
        let lookup = Lookup::new(0x1234, &host("a.example"), Family::V4);
        let counts = [1, u16::from(counts[0]), u16::from(counts[1]), u16::from(counts[2])];
        let found = lookup.read(&raw(0x8180, counts, 1, 1, &tail));
        prop_assert!(found.is_some());
    }

    #[test]
    fn every_name_comes_through(name in "[a-z][a-z0-9]{1,20}(\\.[a-z]{1,20}){0,5}", v6: bool) {
        let family = if v6 { Family::V6 } else { Family::V4 };
        let (_, query) = asked(&name, family, Edns::With);
        prop_assert_eq!(query.host(), Some(&host(&name)));
    }

    #[test]
    fn frames_keep_the_bytes(messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..50), 0..8), size in 1usize..20) {
        let stream: Vec<u8> = messages.iter().flat_map(|message| framed(message).unwrap()).collect();
        let mut frames = DnsFrames::new(50);
        let mut seen = Vec::new();
        for piece in stream.chunks(size) {
            seen.extend(frames.feed(piece).unwrap());
        }
        prop_assert_eq!(seen, messages);
    }
}
