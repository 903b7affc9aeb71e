//! The broker between sockets of this machine's loopback, one turn at a time.

mod bounds;
mod by_proxy;
#[cfg(unix)]
mod urgent;

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

use mcp_policy::Protocol;
use mio::{Events, Interest, Registry, Token};

use super::handle::Command;
use super::{
    Broker, Callers, Journal, Keep, NameServers, NoInside, Setup, Wanted, Watched, Watcher,
};
use crate::address::Networks;
use crate::allowlist::Allowlist;
use crate::endpoint::Endpoint;
use crate::proxy::Login;
use crate::upstream::Upstream;

/// After this a test is stuck.
const PATIENCE: Duration = Duration::from_secs(20);

/// A broker that leads from `at` to `server`.
struct Relay {
    broker: Broker,
    at: SocketAddr,
    server: TcpListener,
}

impl Relay {
    fn new() -> Relay {
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let rule = server.local_addr().unwrap().to_string();
        let setup = Setup {
            rules: vec![rule.parse().unwrap()],
            listeners: Vec::new(),
            own: Box::new(|| Ok(Networks::default())),
            name_servers: NameServers::ResolvConf,
            upstream: Upstream::default(),
            journal: Journal::new(Box::new(|_| {})),
            host_listeners: Box::new(Vec::new),
            memory: None,
        };
        let mut broker = Broker::new(setup, Box::new(NoInside), 1024).unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let at = listener.local_addr().unwrap();
        broker.add_listener(server.local_addr().unwrap(), listener).unwrap();
        Relay { broker, at, server }
    }

    /// Both ends of a connection, after a word from one to the other.
    fn joined(&mut self) -> (TcpStream, TcpStream) {
        let mut client = TcpStream::connect(self.at).unwrap();
        client.write_all(b"word").unwrap();
        self.turn_until(|broker| reached(broker) > 0);
        let (mut server, _) = self.server.accept().unwrap();
        let mut word = [0; 4];
        server.set_nonblocking(true).unwrap();
        self.turn_until(|_| server.peek(&mut word).is_ok_and(|count| count == word.len()));
        server.set_nonblocking(false).unwrap();
        server.read_exact(&mut word).unwrap();
        (client, server)
    }

    fn turn_until(&mut self, mut is_so: impl FnMut(&mut Broker) -> bool) {
        let start = Instant::now();
        let mut events = Events::with_capacity(16);
        while !is_so(&mut self.broker) {
            assert!(start.elapsed() < PATIENCE, "stuck");
            let soon = Instant::now() + Duration::from_millis(10);
            self.broker.turn(&mut events, Some(soon)).unwrap();
        }
    }
}

/// Has something to say, and notes whether it was asked.
struct Noted(mio::net::UdpSocket, Arc<AtomicBool>);

impl Noted {
    fn new() -> Noted {
        let socket = mio::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        socket.send_to(b"refused", socket.local_addr().unwrap()).unwrap();
        Noted(socket, Arc::new(AtomicBool::new(false)))
    }
}

impl Watcher for Noted {
    fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        registry.register(&mut self.0, token, Interest::READABLE)
    }

    fn ready(&mut self, _: &mut Watched<'_>) -> Keep {
        self.1.store(true, Ordering::SeqCst);
        Keep::Listening
    }
}

/// A command that ends right after it was refused: the refusal is unread when the broker is told to stop.
#[test]
fn what_came_before_the_stop_is_read() {
    let mut broker = Relay::new().broker;
    // Ends the first turn, so that both commands are taken together.
    broker.add_watcher(Box::new(Noted::new())).unwrap();
    let late = Noted::new();
    let is_asked = late.1.clone();
    let (outbox, inbox) = mpsc::channel();
    outbox.send(Command::Watch(Box::new(late))).unwrap();
    outbox.send(Command::Stop).unwrap();
    broker.run(&inbox);
    assert!(is_asked.load(Ordering::SeqCst));
}

fn reached(broker: &Broker) -> u64 {
    broker.journal.used.reached.values().map(|traffic| traffic.connections).sum()
}

#[test]
fn a_closed_connection_leaves_no_timer() {
    let mut relay = Relay::new();
    let (client, server) = relay.joined();
    client.shutdown(Shutdown::Write).unwrap();
    // The half that is left is watched.
    relay.turn_until(|broker| broker.timers.next().is_some());
    drop(server);
    relay.turn_until(|broker| broker.connections.used() == 0);
    assert_eq!(relay.broker.timers.next(), None);
}

#[cfg(unix)]
#[test]
fn a_reset_connection_leaves_no_timer() {
    let mut relay = Relay::new();
    let (client, server) = relay.joined();
    client.shutdown(Shutdown::Write).unwrap();
    relay.turn_until(|broker| broker.timers.next().is_some());
    rustix::net::sockopt::set_socket_linger(&server, Some(Duration::ZERO)).unwrap();
    drop(server);
    relay.turn_until(|broker| broker.connections.used() == 0);
    assert_eq!(relay.broker.timers.next(), None);
}

/// Pieces of every size, a receiver that is slower than the sender, and the end right behind: all
/// arrives, in order, both where bytes are few and where they are many.
#[test]
fn pieces_arrive_whole_and_in_order() {
    pieces_arrive(&mut Relay::new(), |_| ());
}

/// `look` is called between turns.
fn pieces_arrive(relay: &mut Relay, look: impl Fn(&Broker)) {
    const PIECES: [usize; 9] = [1, 15, 1400, 16_383, 16_384, 16_385, 3, 200_000, 40_000];
    let (mut client, mut server) = relay.joined();
    client.set_nonblocking(true).unwrap();
    server.set_nonblocking(true).unwrap();
    let sizes = PIECES.iter().cycle().take(PIECES.len() * 20);
    let sent: Vec<u8> = (0..sizes.clone().sum::<usize>()).map(|at| (at / 7) as u8).collect();
    let mut ends = sizes.scan(0, |end, size| {
        *end += size;
        Some(*end)
    });
    let (mut at, mut end, mut heard) = (0, 0, Vec::<u8>::new());
    let mut turns = 0;
    relay.turn_until(|broker| {
        look(broker);
        turns += 1;
        if at == end
            && let Some(next) = ends.next()
        {
            end = next;
        }
        if at < end {
            at += client.write(&sent[at..end]).unwrap_or(0);
            if at == sent.len() {
                client.shutdown(Shutdown::Write).unwrap();
            }
        }
        // Every third turn: what is on its way fills all buffers in between.
        let mut bytes = [0; 100_000];
        match if turns % 3 == 0 { server.read(&mut bytes) } else { return false } {
            Ok(0) => return true,
            Ok(count) => heard.extend(&bytes[..count]),
            Err(_) => {}
        }
        false
    });
    assert_eq!(heard.len(), sent.len());
    assert!(heard == sent, "not in order");
    drop((client, server));
    relay.turn_until(|broker| broker.connections.used() == 0);
    let counted: u64 = relay.broker.journal.used.reached.values().map(|it| it.bytes_out).sum();
    assert_eq!(counted, (b"word".len() + sent.len()) as u64);
}

/// A broker that is a proxy, for whom `callers` says, with these rules.
struct ProxyBroker {
    broker: Broker,
    at: SocketAddr,
}

impl ProxyBroker {
    fn new(callers: Callers, rules: &[String]) -> ProxyBroker {
        let rules = rules.iter().map(|rule| rule.parse().unwrap());
        let setup = Setup {
            rules: Allowlist::with_loopback(rules),
            listeners: Vec::new(),
            own: Box::new(|| Ok(Networks::default())),
            name_servers: NameServers::ResolvConf,
            upstream: Upstream::default(),
            journal: Journal::new(Box::new(|_| {})),
            host_listeners: Box::new(Vec::new),
            memory: None,
        };
        let mut broker = Broker::new(setup, Box::new(NoInside), 1024).unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let at = listener.local_addr().unwrap();
        broker.add_frontend(listener, callers).unwrap();
        ProxyBroker { broker, at }
    }

    /// Connects, says something and gives all that is answered.
    fn says(&mut self, words: &str, expected: Option<Wanted>) -> String {
        let mut client = TcpStream::connect(self.at).unwrap();
        if let Some(wanted) = expected {
            Watched(&mut self.broker).expect(client.local_addr().unwrap(), wanted);
        }
        client.write_all(words.as_bytes()).unwrap();
        client.set_nonblocking(true).unwrap();
        let (mut heard, mut bytes) = (Vec::new(), [0; 4096]);
        let start = Instant::now();
        let mut events = Events::with_capacity(16);
        loop {
            assert!(start.elapsed() < PATIENCE, "stuck");
            let soon = Instant::now() + Duration::from_millis(10);
            self.broker.turn(&mut events, Some(soon)).unwrap();
            match client.read(&mut bytes) {
                Ok(0) => break,
                Ok(count) => heard.extend(&bytes[..count]),
                Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(_) => break,
            }
        }
        drop(client);
        while self.broker.connections.used() > 0 {
            assert!(start.elapsed() < PATIENCE, "stuck");
            let soon = Instant::now() + Duration::from_millis(10);
            self.broker.turn(&mut events, Some(soon)).unwrap();
        }
        assert_eq!(self.broker.timers.next(), None);
        String::from_utf8_lossy(&heard).into_owned()
    }
}

/// A server of this machine that says one thing and closes, and its port.
fn server() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let mut head = [0; 4096];
            let count = stream.read(&mut head).unwrap_or(0);
            let _ = stream.write_all(&[b"heard ", &head[..count]].concat());
        }
    });
    port
}

#[test]
fn whoever_was_not_announced_is_turned_away() {
    let port = server();
    let mut proxy = ProxyBroker::new(Callers::Expected, &[format!("127.0.0.1:{port}")]);
    let connect = format!("CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\nword");
    assert_eq!(proxy.says(&connect, None), "");
    let heard = proxy.says(&connect, Some(Wanted::Proxy));
    assert_eq!(heard, "HTTP/1.1 200 Connection established\r\n\r\nheard word");
    let direct = Wanted::Address((Ipv4Addr::LOCALHOST, port).into());
    assert_eq!(proxy.says("word", Some(direct)), "heard word");
    // Each only once.
    assert_eq!(proxy.says(&connect, None), "");
}

#[test]
fn whoever_has_no_login_is_turned_away() {
    let port = server();
    let login = Login::new("mcp", "word").unwrap();
    let mut proxy = ProxyBroker::new(Callers::Holders(login), &[format!("localhost:{port}")]);
    let connect = |login: &str| format!("CONNECT localhost:{port} HTTP/1.1\r\n{login}\r\nhello");
    assert!(proxy.says(&connect(""), None).starts_with("HTTP/1.1 407 "));
    let wrong = "Proxy-Authorization: Basic bWNwOndyb25n\r\n";
    assert!(proxy.says(&connect(wrong), None).starts_with("HTTP/1.1 407 "));
    let right = "Proxy-Authorization: Basic bWNwOndvcmQ=\r\n";
    assert!(proxy.says(&connect(right), None).ends_with("heard hello"));
    let get = format!("GET http://localhost:{port}/x HTTP/1.1\r\n{right}A: b\r\n\r\n");
    let heard = proxy.says(&get, None);
    let sent = format!("GET /x HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\nA: b");
    assert_eq!(heard, format!("heard {sent}\r\n\r\n"));
    assert!(!heard.contains("Basic"), "the login is sent to the proxy alone");
    let other = connect(right).replace("localhost", "127.0.0.2");
    assert!(proxy.says(&other, None).starts_with("HTTP/1.1 403 "));
}

/// A program that sends much after a request that is refused still hears why.
#[test]
fn a_refusal_is_heard_by_who_keeps_sending() {
    let mut proxy = ProxyBroker::new(Callers::Expected, &[]);
    let body = "x".repeat(200_000);
    let post = format!("POST http://a.example/ HTTP/1.1\r\nContent-Length: 200000\r\n\r\n{body}");
    let heard = proxy.says(&post, Some(Wanted::Proxy));
    assert!(heard.starts_with("HTTP/1.1 403 "), "{heard}");
    assert!(heard.contains("add --allow-net a.example:80"), "{heard}");
}

/// Whatever the system tells of a socket that was only looked at.
#[test]
fn a_request_in_pieces_is_heard() {
    let port = server();
    let mut proxy = ProxyBroker::new(Callers::Expected, &[format!("127.0.0.1:{port}")]);
    let mut client = TcpStream::connect(proxy.at).unwrap();
    Watched(&mut proxy.broker).expect(client.local_addr().unwrap(), Wanted::Proxy);
    let mut events = Events::with_capacity(16);
    let mut turns = |proxy: &mut ProxyBroker, time: Duration| {
        let until = Instant::now() + time;
        while Instant::now() < until {
            let soon = Instant::now() + Duration::from_millis(5);
            proxy.broker.turn(&mut events, Some(soon)).unwrap();
        }
    };
    for piece in ["CONN", "ECT 127.0.0.1:", &port.to_string(), " HTTP/1.1\r\n", "\r\nword"] {
        client.write_all(piece.as_bytes()).unwrap();
        turns(&mut proxy, Duration::from_millis(60));
    }
    client.set_nonblocking(true).unwrap();
    let (start, mut heard, mut bytes) = (Instant::now(), Vec::new(), [0; 4096]);
    while !heard.ends_with(b"heard word") {
        assert!(start.elapsed() < PATIENCE, "stuck: {}", String::from_utf8_lossy(&heard));
        turns(&mut proxy, Duration::from_millis(5));
        let count = client.read(&mut bytes).unwrap_or(0);
        heard.extend(&bytes[..count]);
    }
}

#[test]
fn connections_that_rest_cost_nothing() {
    let mut relay = Relay::new();
    let (_client, _server) = relay.joined();
    let mut events = Events::with_capacity(16);
    let (until, mut told) = (Instant::now() + Duration::from_millis(600), 0);
    while Instant::now() < until {
        relay.broker.turn(&mut events, Some(until)).unwrap();
        told += events.iter().count();
    }
    assert!(told < 50, "told {told} times of nothing");
}

/// Interfaces come and go while a command runs, and listing them may fail.
#[test]
fn the_hosts_networks_are_followed() {
    let answers = Arc::new(Mutex::new(Vec::new()));
    let asked = answers.clone();
    let own = move || asked.lock().unwrap().pop().unwrap_or(Err(io::ErrorKind::Other.into()));
    let setup = Setup {
        rules: vec!["8.8.8.0/24:443".parse().unwrap()],
        listeners: Vec::new(),
        own: Box::new(own),
        name_servers: NameServers::ResolvConf,
        upstream: Upstream::default(),
        journal: Journal::new(Box::new(|_| {})),
        host_listeners: Box::new(Vec::new),
        memory: None,
    };
    let mut broker = Broker::new(setup, Box::new(NoInside), 1024).unwrap();
    let to = Endpoint::parse("8.8.8.8:443").unwrap();
    let mut now = Instant::now();
    let mut is_open = |broker: &mut Broker, later: Duration| {
        now += later;
        broker.follow_networks(now);
        broker.allow.check(Protocol::Tcp, &to).is_ok()
    };
    let (none, long) = (Duration::ZERO, Duration::from_secs(2));
    assert!(!is_open(&mut broker, none), "they cannot be listed");
    answers.lock().unwrap().push(Ok(Networks::default()));
    assert!(is_open(&mut broker, none), "and are asked for again at once");
    assert!(is_open(&mut broker, none), "once is enough for a while");
    let mut near = Networks::default();
    near.add("8.8.8.8".parse().unwrap(), 16);
    answers.lock().unwrap().push(Ok(near));
    assert!(!is_open(&mut broker, long), "an interface has come");
    answers.lock().unwrap().push(Ok(Networks::default()));
    assert!(is_open(&mut broker, long), "and gone");
    assert!(!is_open(&mut broker, long), "what was known is not known any more");
}
