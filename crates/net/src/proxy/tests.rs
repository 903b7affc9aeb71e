use proptest::prelude::*;

use super::*;

fn to(text: &str) -> Endpoint {
    Endpoint::parse(text).unwrap()
}

fn login() -> Login {
    Login::new("mcp", "word").unwrap()
}

/// All answers, until it wants something or refuses.
fn converse(login: Option<Login>, said: &[u8]) -> (Vec<u8>, Reaction) {
    let mut reception = Reception::new(login);
    let (mut taken, mut answers) = (0, Vec::new());
    loop {
        match reception.hear(&said[taken..]) {
            Reaction::Answer { used, words } => {
                taken += used;
                answers.extend(words);
            }
            other => return (answers, other),
        }
    }
}

fn socks_to(name: &[u8]) -> Vec<u8> {
    let length = u8::try_from(name.len()).unwrap();
    [&[5, 1, 0, 5, 1, 0, 3, length][..], name, &[1, 187]].concat()
}

#[test]
fn each_language_says_where_it_wants_to_go() {
    let connect = b"CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\nrest";
    let used = connect.len() - 4;
    let wants = Reaction::Wants { used, to: to("a.example:443"), manner: Manner::Tunnel };
    assert_eq!(converse(None, connect), (vec![], wants));

    let said = socks_to(b"a.example");
    let wants = Reaction::Wants { used: 16, to: to("a.example:443"), manner: Manner::Socks };
    assert_eq!(converse(None, &said), (vec![5, 0], wants));

    let get =
        b"GET http://a.example/x HTTP/1.1\r\nHost: a.example\r\nConnection: keep-alive\r\n\r\n";
    let (_, Reaction::Wants { to: there, manner: Manner::Forward { head }, .. }) =
        converse(None, get)
    else {
        panic!("not understood")
    };
    assert_eq!(there, to("a.example:80"));
    let sent = "GET /x HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n";
    assert_eq!(String::from_utf8(head).unwrap(), sent);
}

#[test]
fn names_that_are_none_are_refused() {
    for name in [&b"evil\0.allowed.com"[..], b"evil .allowed.com", b"evil\n.allowed.com", b""] {
        let (_, heard) = converse(None, &socks_to(name));
        let Reaction::Refused { words, .. } = heard else { panic!("{name:?}: {heard:?}") };
        assert_eq!(words[..2], [5, 8]);
    }
    for target in ["evil\0.allowed.com:443", "allowed.com", "127.1:443", "allowed.com:0", "/"] {
        let (_, heard) = converse(None, format!("CONNECT {target} HTTP/1.1\r\n\r\n").as_bytes());
        let Reaction::Refused { words, .. } = heard else { panic!("{target:?}: {heard:?}") };
        assert!(words.starts_with(b"HTTP/1.1 400 "));
    }
}

#[test]
fn other_uses_are_refused() {
    for said in [
        &b"GET / HTTP/1.1\r\n\r\n"[..],
        b"GET https://a.example/ HTTP/1.1\r\n\r\n",
        b"GET ftp://a.example/ HTTP/1.1\r\n\r\n",
        b"GET http://a.example/ HTTP/1.1\r\nHost: b.example\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\n",
        b"\x16\x03\x01\r\n\r\n",
        b"\x04\x01\x01\xbb",
        b"\x05\x01\x01",
        b"\x05\x01\x00\x05\x02\x00\x01\x7f\0\0\x01\x01\xbb",
        b"\x05\x01\x00\x05\x03\x00\x01\x7f\0\0\x01\x01\xbb",
    ] {
        let (_, heard) = converse(None, said);
        assert!(matches!(heard, Reaction::Refused { .. }), "{said:?}: {heard:?}");
    }
}

#[test]
fn strangers_are_sent_away_where_there_is_a_login() {
    let connect = |field: &str| format!("CONNECT a.example:443 HTTP/1.1\r\n{field}\r\n");
    // mcp:word, mcp:wrong.
    let good = connect("Proxy-Authorization: Basic bWNwOndvcmQ=\r\n");
    let bad = connect("Proxy-Authorization: Basic bWNwOndyb25n\r\n");
    assert!(matches!(converse(Some(login()), good.as_bytes()).1, Reaction::Wants { .. }));
    for said in [bad, connect("")] {
        let (_, heard) = converse(Some(login()), said.as_bytes());
        let Reaction::Refused { words, .. } = heard else { panic!("{said}: {heard:?}") };
        assert!(words.starts_with(b"HTTP/1.1 407 "));
    }
    let request = [&[5, 1, 0, 3, 9][..], b"a.example", &[1, 187]].concat();
    let with = |password: &[u8]| {
        let length = u8::try_from(password.len()).unwrap();
        let said = [&[5, 2, 0, 2, 1, 3][..], b"mcp", &[length], password, &request].concat();
        converse(Some(login()), &said)
    };
    assert!(matches!(with(b"word"), (answers, Reaction::Wants { .. }) if answers == [5, 2, 1, 0]));
    assert!(matches!(with(b"wrong").1, Reaction::Refused { words, .. } if words == [1, 1]));
    assert!(matches!(with(b"").1, Reaction::Refused { .. }));
    assert!(matches!(converse(Some(login()), &[5, 1, 0]).1, Reaction::Refused { .. }));
}

#[test]
fn a_login_is_not_printed() {
    assert!(!format!("{:?}", login()).contains("word"));
}

proptest! {
    #[test]
    fn nothing_said_panics_and_nothing_is_taken_twice(said: Vec<u8>, cut in 1..64usize) {
        let mut reception = Reception::new(None);
        let (mut taken, mut end) = (0, 0);
        while end < said.len() {
            end = (end + cut).min(said.len());
            match reception.hear(&said[taken..end]) {
                Reaction::NeedMore => {}
                Reaction::Answer { used, .. } => {
                    prop_assert!(used <= end - taken);
                    taken += used;
                }
                Reaction::Wants { used, .. } => {
                    prop_assert!(used <= end - taken);
                    break;
                }
                Reaction::Refused { .. } => break,
            }
        }
    }
}
