//! What goes in comes out: framing, filtering, classification and routing, over made-up and broken traffic.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use mcp_protocol::{
    Delivery, Destination, Exchange, Frame, Framer, Id, Ids, Kind, Message, OutputFilter, Refusal,
    json,
};
use proptest::prelude::*;
use serde_json::Value;

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e30f64..1e30).prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
        "[\\x00-\\x7f]{0,40}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map("\\PC{0,6}", inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn pieces(bytes: &[u8], cuts: &[usize]) -> Vec<Vec<u8>> {
    let mut at = 0;
    let mut out = Vec::new();
    for cut in cuts.iter().cycle().take(bytes.len() + 1) {
        let end = (at + cut.max(&1)).min(bytes.len());
        out.push(bytes[at..end].to_vec());
        at = end;
        if at == bytes.len() {
            break;
        }
    }
    out
}

proptest! {
    #[test]
    fn json_is_judged_as_serde_judges_it(value in any_json(), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let text = serde_json::to_vec(&value).unwrap();
        prop_assert!(json::check(&text).is_ok());
        let mut broken = text;
        let index = at.index(broken.len());
        broken[index] = byte;
        // Numbers beyond a double and lone surrogates are a matter of serde's own types, not of the grammar.
        let serde = str::from_utf8(&broken).is_ok_and(|text| serde_json::from_str::<&serde::Ignored>(text).is_ok());
        prop_assert_eq!(json::check(&broken).is_ok(), serde, "{}", String::from_utf8_lossy(&broken));
    }

    #[test]
    fn any_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = Message::read(&bytes);
        let mut framer = Framer::new(64);
        framer.feed(&bytes, |_| {});
        framer.end(|_| {});
    }

    #[test]
    fn lines_come_out_as_they_went_in(
        lines in prop::collection::vec("[^\\n]{0,40}", 0..12),
        cuts in prop::collection::vec(1usize..30, 1..8),
    ) {
        let input = lines.join("\n").into_bytes();
        let max = 48;
        let mut framer = Framer::new(max);
        let mut got = Vec::new();
        let mut too_long = 0;
        let mut see = |frame: Frame<'_>| match frame {
            Frame::Line(line) | Frame::Unfinished(line) => got.push(line.to_vec()),
            _ => too_long += 1,
        };
        for piece in pieces(&input, &cuts) {
            framer.feed(&piece, &mut see);
            prop_assert!(framer.held() <= max);
        }
        framer.end(&mut see);
        let mut wanted: Vec<_> = lines.iter().map(|line| line.clone().into_bytes()).collect();
        if wanted.last().is_some_and(Vec::is_empty) {
            wanted.pop();
        }
        let long = wanted.iter().filter(|line| line.len() > max).count();
        wanted.retain(|line| line.len() <= max);
        prop_assert_eq!(got, wanted);
        prop_assert_eq!(too_long, long);
    }

    #[test]
    fn the_filter_keeps_every_byte_and_parts_by_line(
        lines in prop::collection::vec(prop_oneof![
            any_json().prop_map(|value| serde_json::json!({ "x": value }).to_string()),
            "[^\\n]{0,20}",
            Just("[INFO] listening".to_owned()),
        ], 0..10),
        cuts in prop::collection::vec(1usize..50, 1..8),
    ) {
        let input: Vec<u8> = lines.iter().flat_map(|line| [line.as_bytes(), b"\n"].concat()).collect();
        let mut filter = OutputFilter::new(1 << 20);
        let (mut client, mut stderr) = (Vec::new(), Vec::new());
        for piece in pieces(&input, &cuts) {
            filter.feed(&piece, |to, bytes| match to {
                Destination::Client => client.extend_from_slice(bytes),
                Destination::Stderr => stderr.extend_from_slice(bytes),
            });
        }
        let is_message = |line: &&String| {
            line.bytes().all(|byte| byte.is_ascii_whitespace())
                || (line.trim_start_matches([' ', '\t', '\r', '\x0c']).starts_with(['{', '['])
                    && serde_json::from_str::<&serde::Ignored>(line).is_ok())
        };
        let joined = |wanted: Vec<&String>| wanted.iter().flat_map(|line| [line.as_bytes(), b"\n"].concat()).collect::<Vec<u8>>();
        let (good, bad): (Vec<&String>, Vec<&String>) = lines.iter().partition(is_message);
        prop_assert_eq!(filter.diverted(), bad.len() as u64);
        prop_assert_eq!(client, joined(good));
        prop_assert_eq!(stderr, joined(bad));
    }

    #[test]
    fn answers_reach_who_asked_whatever_the_ids(
        ids in prop::collection::vec(prop_oneof![
            (0i64..4).prop_map(|n| n.to_string()), Just("\"a\"".to_owned()), Just("1.5".to_owned()),
        ], 1..20),
        order in any::<u64>(),
    ) {
        let mut exchange = Exchange::new(Ids::Assigned, 100);
        let mut sent: Vec<(usize, String)> = Vec::new();
        for (who, id) in ids.iter().enumerate() {
            let text = format!("{{\"jsonrpc\":\"2.0\",\"id\": {id} ,\"method\":\"m\",\"params\":{{\"who\":{who},\"_meta\":{{\"progressToken\":\"t\"}}}}}}");
            let message = Message::read(text.as_bytes()).unwrap();
            let line = exchange.request(&message, who).unwrap().into_owned();
            let value: Value = serde_json::from_slice(&line).unwrap();
            prop_assert_eq!(&value["params"]["who"], &Value::from(who));
            prop_assert_eq!(&value["id"], &value["params"]["_meta"]["progressToken"]);
            sent.push((who, value["id"].to_string()));
        }
        // The server answers in another order, after a word about its progress.
        let mut seed = order;
        while !sent.is_empty() {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let (who, id) = sent.remove(usize::try_from(seed >> 33).unwrap() % sent.len());
            let progress = format!("{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{{\"progressToken\":{id},\"progress\":1}}}}");
            let Delivery::Related(to, text) = exchange.deliver(&Message::read(progress.as_bytes()).unwrap()) else { panic!() };
            prop_assert_eq!(to, who);
            let told: Value = serde_json::from_slice(&text).unwrap();
            prop_assert_eq!(&told["params"]["progressToken"], &Value::from("t"));
            let answer = format!("{{\"result\":{{\"for\":{who}}},\"jsonrpc\":\"2.0\",\"id\":{id}}}");
            let message = Message::read(answer.as_bytes()).unwrap();
            let Delivery::Answer(to, text, None) = exchange.deliver(&message) else { panic!() };
            prop_assert_eq!(to, who);
            let wanted = format!("{{\"result\":{{\"for\":{who}}},\"jsonrpc\":\"2.0\",\"id\":{}}}", ids[who]);
            prop_assert_eq!(String::from_utf8(text.into_owned()).unwrap(), wanted);
            prop_assert!(matches!(exchange.deliver(&message), Delivery::Dropped));
        }
        prop_assert!(exchange.is_empty());
    }
}

/// serde's reader with nothing built, for the grammar alone.
mod serde {
    pub struct Ignored;

    impl<'de> ::serde::Deserialize<'de> for &'de Ignored {
        fn deserialize<D: ::serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            ::serde::de::IgnoredAny::deserialize(from).map(|_| &Ignored)
        }
    }
}

#[test]
fn kept_ids_pass_byte_for_byte_and_once() {
    let mut exchange = Exchange::new(Ids::Kept, 2);
    let text = br#"{ "jsonrpc" : "2.0", "method":"tools/call" ,"id":"\u0061"}"#;
    let message = Message::read(text).unwrap();
    assert_eq!(exchange.request(&message, 1).unwrap().as_ref(), text);
    assert_eq!(exchange.request(&message, 2), Err(Refusal::Duplicate(Id::String("a".into()))));
    let answer = br#"{"result":{},"jsonrpc":"2.0","id":"a"}"#;
    let delivery = exchange.deliver(&Message::read(answer).unwrap());
    assert!(matches!(delivery, Delivery::Answer(1, text, None) if text.as_ref() == answer));
}

#[test]
fn open_requests_are_bounded_and_fail_with_their_own_ids() {
    let mut exchange = Exchange::new(Ids::Assigned, 1);
    let text = br#"{"jsonrpc":"2.0","method":"x","id":"mine"}"#;
    let message = Message::read(text).unwrap();
    exchange.request(&message, 'a').unwrap();
    assert_eq!(exchange.request(&message, 'b'), Err(Refusal::TooMany));
    let failed = exchange.fail("the server ended");
    assert_eq!(failed.len(), 1);
    let told: Value = serde_json::from_slice(&failed[0].1).unwrap();
    assert_eq!((failed[0].0, &told["id"]), ('a', &Value::from("mine")));
}

#[test]
fn whoever_leaves_cancels_by_the_servers_id() {
    let mut exchange = Exchange::new(Ids::Assigned, 9);
    for who in ['a', 'b'] {
        let text = br#"{"jsonrpc":"2.0","method":"x","id":7}"#;
        exchange.request(&Message::read(text).unwrap(), who).unwrap();
    }
    let told = exchange.abandon(&'b', "gone");
    assert_eq!(told.len(), 1);
    let told: Value = serde_json::from_slice(&told[0].to_server).unwrap();
    assert_eq!(told["params"]["requestId"], 2);
    assert_eq!(exchange.len(), 1);
}

#[test]
fn progress_of_a_call_that_is_over_reaches_nobody() {
    for ids in [Ids::Kept, Ids::Assigned] {
        let mut exchange = Exchange::new(ids, 9);
        for (who, id) in [('a', 1), ('b', 2)] {
            let text = format!(
                r#"{{"jsonrpc":"2.0","method":"x","id":{id},"params":{{"_meta":{{"progressToken":{id}}}}}}}"#
            );
            exchange.request(&Message::read(text.as_bytes()).unwrap(), who).unwrap();
        }
        exchange.abandon(&'a', "gone");
        let progress = |token: u64| {
            format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":1}}}}"#
            )
        };
        assert_eq!(
            exchange.deliver(&Message::read(progress(1).as_bytes()).unwrap()),
            Delivery::Dropped
        );
        let other = progress(2);
        assert!(matches!(
            exchange.deliver(&Message::read(other.as_bytes()).unwrap()),
            Delivery::Related('b', _)
        ));
    }
}

#[test]
fn a_key_that_is_there_twice_is_no_message() {
    for text in [
        r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"x"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"x","m\u0065thod":"y"}"#,
    ] {
        assert!(Message::read(text.as_bytes()).is_err(), "{text}");
    }
    let text =
        br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","name":"b"}}"#;
    assert!(Message::read(text).unwrap().param(&["name"]).is_err());
}

#[test]
fn what_is_no_message_is_told_apart() {
    for (text, ok) in [
        (r#"{"jsonrpc":"2.0","id":null,"method":"x"}"#, false),
        (r#"{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":""}}"#, true),
        (r#"{"jsonrpc":"1.0","id":1,"method":"x"}"#, false),
        (r#"{"jsonrpc":"2.0","id":1,"result":1,"error":{}}"#, false),
        (r#"{"jsonrpc":"2.0","id":[1],"method":"x"}"#, false),
        ("[]", false),
        ("3", false),
        (r#"[{"jsonrpc":"2.0","method":"x"}, 3]"#, true),
    ] {
        assert_eq!(Message::read(text.as_bytes()).is_ok(), ok, "{text}");
    }
    let batch = Message::read(br#" [{"a":1} , 2]"#).unwrap();
    let Kind::Batch(spans) = batch.kind() else { panic!() };
    let texts: Vec<_> = spans.iter().map(|span| &batch.text()[span.clone()]).collect();
    assert_eq!(texts, [&br#"{"a":1}"#[..], b"2"]);
}

#[test]
fn a_message_beyond_the_bound_gives_its_id_wherever_it_stands() {
    let long = "x".repeat(500);
    for (text, wanted, is_call) in [
        (
            format!(r#"{{"result":{{"id":9,"t":"{long}\""}},"jsonrpc":"2.0","id":5}}"#),
            Some(Id::number(5)),
            false,
        ),
        (
            format!(r#"{{"id" : "a" , "method":"x","params":"{long}"}}"#),
            Some(Id::String("a".into())),
            true,
        ),
        (long.clone(), None, false),
    ] {
        let mut framer = Framer::new(100);
        let mut seen = None;
        for piece in text.as_bytes().chunks(7).chain([&b"\n{}\n"[..]]) {
            framer.feed(piece, |frame| match frame {
                Frame::TooLong { bytes, id, has_method } => {
                    assert_eq!(bytes, text.len() as u64);
                    seen = Some((id, has_method));
                }
                Frame::Line(line) => assert_eq!(line, b"{}", "what follows is not lost"),
                _ => panic!(),
            });
        }
        assert_eq!(seen, Some((wanted, is_call)), "{text}");
    }
}

#[test]
fn deep_text_is_refused_without_recursion() {
    let deep = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
    assert!(json::check(deep(json::MOST_DEEP).as_bytes()).is_ok());
    assert!(json::check(deep(json::MOST_DEEP + 1).as_bytes()).is_err());
    assert!(json::check("[".repeat(1 << 20).as_bytes()).is_err());
}

#[test]
fn a_line_beyond_the_filters_bound_passes_by_its_beginning() {
    let mut filter = OutputFilter::new(10);
    let mut client = Vec::new();
    let mut stderr = Vec::new();
    let input = b"{\"aaaaaaaaaaaaaaaaaa\":1}\nnoise noise noise\n{}\n";
    for piece in input.chunks(3) {
        filter.feed(piece, |to, bytes| match to {
            Destination::Client => client.extend_from_slice(bytes),
            Destination::Stderr => stderr.extend_from_slice(bytes),
        });
    }
    assert_eq!(client, b"{\"aaaaaaaaaaaaaaaaaa\":1}\n{}\n");
    assert_eq!(stderr, b"noise noise noise\n");
}
