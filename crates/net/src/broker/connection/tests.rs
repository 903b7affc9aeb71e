use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream as Std};

use super::*;
use crate::address::Networks;
use crate::broker::half_pipe::Buffers;

/// A connection on its way to a server on `port`, and its two far ends.
struct Ends {
    joined: Joined,
    client: Std,
    server: Std,
    service: Service,
    allow: Allowlist,
    store: Store,
    scratch: Vec<u8>,
}

fn pair() -> (Std, TcpStream) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let far = Std::connect(listener.local_addr().unwrap()).unwrap();
    far.set_nodelay(true).unwrap();
    let (near, _) = listener.accept().unwrap();
    near.set_nonblocking(true).unwrap();
    (far, TcpStream::from_std(near))
}

fn wait_until(mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(20), "stuck");
        std::thread::yield_now();
    }
}

impl Ends {
    fn new(port: u16) -> Ends {
        let (client, inner) = pair();
        let (server, outer) = pair();
        server.set_nonblocking(true).unwrap();
        let service = Service {
            protocol: Protocol::Tcp,
            target: Target::Name("a.example".parse().unwrap()),
            port,
            shown: format!("a.example:{port}"),
            check: Check::Names,
            party: NOBODY,
        };
        Ends {
            joined: Joined::new(inner, outer, service.check, &Gauge::new(1 << 20)),
            client,
            server,
            service,
            allow: Allowlist::new(Vec::new(), Some(Networks::default())),
            store: Store { buffers: Buffers::default(), held: Gauge::new(1 << 20) },
            scratch: vec![0; LARGEST_OPENING],
        }
    }

    /// What becomes of these words, sent at once.
    fn says(&mut self, words: &[u8]) -> JoinedState {
        self.client.write_all(words).unwrap();
        self.hears(words.len())
    }

    /// What becomes of what was sent, once this number of bytes can be read.
    fn hears(&mut self, count: usize) -> JoinedState {
        let mut seen = vec![0; count];
        wait_until(|| self.joined.client.peek(&mut seen).is_ok_and(|seen| seen >= count));
        let Ends { service, allow, store, scratch, .. } = self;
        self.joined.advance(Cause::Event(SocketSide::Inner), service, allow, store, scratch)
    }

    fn passed_on(&mut self) -> Vec<u8> {
        let mut bytes = vec![0; LARGEST_OPENING];
        let count = self.server.read(&mut bytes).unwrap_or(0);
        bytes.truncate(count);
        bytes
    }
}

/// Asks for `a.example`; its random is all the same byte, from 11 on.
fn hello() -> Vec<u8> {
    let name = [&[0, 0, 0, 14, 0, 12, 0, 0, 9][..], b"a.example"].concat();
    let body =
        [&[3, 3][..], &[7; 32], &[0, 0, 2, 0x13, 1, 1, 0, 0, name.len() as u8], &name].concat();
    let message = [&[1, 0, 0, body.len() as u8][..], &body].concat();
    [&[22, 3, 1, 0, message.len() as u8][..], &message].concat()
}

#[test]
fn a_hello_is_passed_on_whole_and_counted() {
    let (mut ends, hello) = (Ends::new(443), hello());
    assert_eq!(ends.says(&hello[..30]), JoinedState::Waits);
    assert_eq!(ends.passed_on(), b"");
    ends.client.write_all(&hello[30..]).unwrap();
    assert_eq!(ends.hears(hello.len()), JoinedState::Waits);
    assert_eq!(ends.passed_on(), hello);
    assert_eq!(ends.joined.bytes(), (hello.len() as u64, 0));
    assert_eq!(ends.says(b"more"), JoinedState::Waits);
    assert_eq!(ends.passed_on(), b"more");
}

/// On ports that are TLS's nothing else may come first; on others it may, unread.
#[test]
fn what_is_not_tls_passes_where_tls_is_not_the_rule() {
    let get = b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n";
    let proxied = b"PROXY UNKNOWN HTTP/1.1\n\n\r\n\x16\x03\x01";
    for words in
        [&b"SSH-2.0-OpenSSH\r\n"[..], b"PROXY TCP4 192.0.2.1 192.0.2.2 1 443\r\n", get, proxied]
    {
        for port in [443, 853, 993] {
            let mut ends = Ends::new(port);
            let why = "what it says first is not TLS".to_owned();
            assert_eq!(ends.says(words), JoinedState::Refused(Refused::NoName(why)), "{port}");
            assert_eq!(ends.passed_on(), b"");
        }
        let mut ends = Ends::new(22);
        assert_eq!(ends.says(words), JoinedState::Waits);
        assert_eq!(ends.passed_on(), words);
    }
    // A client to which the server speaks first may answer in the server's language.
    let mut ends = Ends::new(443);
    ends.server.write_all(b"SSH-2.0-server\r\n").unwrap();
    wait_until(|| ends.joined.upstream.peek(&mut [0]).is_ok());
    let Ends { joined, service, allow, store, scratch, .. } = &mut ends;
    let heard = joined.advance(Cause::Event(SocketSide::Outer), service, allow, store, scratch);
    assert_eq!(heard, JoinedState::Waits);
    assert_eq!(ends.says(b"SSH-2.0-client\r\n"), JoinedState::Waits);
    assert_eq!(ends.passed_on(), b"SSH-2.0-client\r\n");
}

/// Urgent bytes stay in their place: what is judged is what is sent, or nothing is.
#[cfg(unix)]
#[test]
fn urgent_bytes_do_not_change_what_was_judged() {
    let urgent = |ends: &Ends, byte| {
        rustix::net::send(&ends.client, byte, rustix::net::SendFlags::OOB).unwrap();
    };
    let (mut ends, hello) = (Ends::new(443), hello());
    assert_eq!(ends.says(&hello[..20]), JoinedState::Waits);
    urgent(&ends, b"Y");
    ends.client.write_all(&hello[20..]).unwrap();
    urgent(&ends, b"X");
    let state = ends.hears(20);
    let passed = ends.passed_on();
    let is_shut = passed.is_empty() && state != JoinedState::Broken;
    assert!(is_shut || passed == hello, "{state:?}: {passed:?}");
}
