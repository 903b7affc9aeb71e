use proptest::prelude::*;

use super::server::SocksRequest;
use super::*;
use crate::endpoint::Endpoint;

fn done<T>(value: T, used: usize) -> Parsed<T> {
    Parsed::Done { value, used }
}

fn request(text: &str) -> Vec<u8> {
    connect_request(&Endpoint::parse(text).unwrap())
}

fn name_request(name: &[u8]) -> Vec<u8> {
    [&[5, 1, 0, 3, name.len() as u8][..], name, &[1, 187]].concat()
}

#[test]
fn greetings() {
    for (bytes, expected) in [
        (&[5, 1, 0][..], done(Greeting::Open, 3)),
        (&[5, 2, 0, 2, 9], done(Greeting::Open, 4)),
        (&[5, 1, 2], done(Greeting::Password, 3)),
        (&[5, 1, 1], done(Greeting::Unacceptable, 3)),
        (&[5, 0], done(Greeting::Unacceptable, 2)),
        (&[4, 1, 0, 80], done(Greeting::V4, 1)),
        (&[5, 2, 0], Parsed::NeedMore),
        (&[5], Parsed::NeedMore),
        (&[], Parsed::NeedMore),
    ] {
        assert_eq!(read_greeting(bytes, Admits::Anybody), expected, "{bytes:?}");
    }
    assert!(matches!(read_greeting(b"GET", Admits::Anybody), Parsed::Broken(_)));
    assert_eq!(choice(Greeting::Open), [5, 0]);
    assert_eq!(choice(Greeting::Unacceptable), [5, 255]);
}

#[test]
fn what_a_client_writes_the_proxy_reads() {
    for text in ["a.example:443", "192.0.2.1:80", "[2001:db8::1]:22"] {
        let bytes = request(text);
        let endpoint = Endpoint::parse(text).unwrap();
        let expected = done(SocksRequest { command: SocksCommand::Connect, endpoint }, bytes.len());
        assert_eq!(read_request(&bytes), expected, "{text}");
        for end in 0..bytes.len() {
            assert_eq!(read_request(&bytes[..end]), Parsed::NeedMore, "{text} cut at {end}");
        }
    }
    let auth = Auth::new(b"me", b"secret").unwrap();
    assert_eq!(read_credentials(&auth.message()), done(Some(auth.clone()), 11));
    assert_eq!(read_auth_status(&auth_status(Welcome::Yes)), done((), 2));
    assert_eq!(read_choice(&choice(Greeting::Password)), done(Choice::Password, 2));
    assert_eq!(read_greeting(&greeting(Some(&auth)), Admits::Anybody), done(Greeting::Open, 4));
    for outcome in [ReplyCode::Connected, ReplyCode::NotAllowed, ReplyCode::ConnectionRefused] {
        assert_eq!(read_reply(&reply(outcome)), done(outcome, 10));
    }
}

#[test]
fn addresses_in_other_clothes_are_seen_through() {
    let mapped = [&[5, 1, 0, 4][..], &[0; 10], &[255, 255, 127, 0, 0, 1, 0, 80]].concat();
    let expected = Endpoint::parse("127.0.0.1:80").unwrap();
    assert_eq!(
        read_request(&mapped),
        done(SocksRequest { command: SocksCommand::Connect, endpoint: expected.clone() }, 22)
    );
    let spelled = name_request(b"127.0.0.1");
    let Parsed::Done { value, .. } = read_request(&spelled) else { panic!("not read") };
    assert_eq!(value.endpoint.target, expected.target);
}

#[test]
fn odd_names_are_broken() {
    for name in [
        &b"evil\0.allowed.example"[..],
        b"a b.example",
        b"a\n.example",
        b"",
        b"127.1",
        b"2130706433",
        b"*.example",
        b"\xff.example",
        b"a.example:80",
        b"[::1]",
    ] {
        assert!(matches!(read_request(&name_request(name)), Parsed::Broken(_)), "{name:?}");
    }
}

#[test]
fn other_commands_are_told_apart() {
    for command in [0, 2, 3, 9] {
        let mut bytes = request("a.example:443");
        bytes[1] = command;
        let Parsed::Done { value, .. } = read_request(&bytes) else { panic!("not read") };
        assert_eq!(value.command, SocksCommand::Other);
    }
    let mut port = request("a.example:1");
    *port.last_mut().unwrap() = 0;
    assert!(matches!(read_request(&port), Parsed::Broken(_)));
    assert!(matches!(read_request(&[5, 1, 0, 9]), Parsed::Broken(_)));
    assert!(matches!(read_request(&[4]), Parsed::Broken(_)));
}

#[test]
fn secrets_are_not_shown() {
    let auth = Auth::new(b"me", b"secret").unwrap();
    assert!(!format!("{auth:?}").contains("secret"));
    assert_eq!(Auth::new(b"", b"x"), None);
    assert_eq!(Auth::new(&[0; 256], b"x"), None);
}

#[test]
fn proxies_that_are_none() {
    assert!(matches!(read_choice(b"HTTP"), Parsed::Broken(_)));
    assert!(matches!(read_auth_status(&[1, 1]), Parsed::Broken(_)));
    assert!(matches!(read_reply(b"HTTP"), Parsed::Broken(_)));
    assert!(matches!(read_reply(&[5, 0, 0, 9]), Parsed::Broken(_)));
    assert_eq!(read_reply(&[5, 0, 0, 3, 0, 0, 0]), done(ReplyCode::Connected, 7));
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let bytes = [&[5][..], &bytes].concat();
        for buffer in [&bytes[..], &bytes[1..]] {
            let _ = (read_greeting(buffer, Admits::Holders), read_credentials(buffer), read_request(buffer));
            let _ = (read_choice(buffer), read_auth_status(buffer), read_reply(buffer));
        }
    }

    #[test]
    fn a_whole_message_is_never_longer_than_it_can_be(bytes in prop::collection::vec(any::<u8>(), 600..700)) {
        let bytes = [&[5][..], &bytes].concat();
        prop_assert_ne!(read_greeting(&bytes, Admits::Anybody), Parsed::NeedMore);
        prop_assert_ne!(read_request(&bytes), Parsed::NeedMore);
        prop_assert_ne!(read_reply(&bytes), Parsed::NeedMore);
    }
}
