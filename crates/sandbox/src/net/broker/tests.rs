//! The broker between sockets of this machine's loopback, one turn at a time.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use mio::Events;

use super::{Broker, Journal, NoInside, Setup};
use crate::net::upstream::Upstream;

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
        let setup = Setup {
            rules: Vec::new(),
            listeners: Vec::new(),
            own: Box::new(Vec::new),
            upstream: Upstream::default(),
            journal: Journal::new(Box::new(|_| {})),
        };
        let mut broker = Broker::new(setup, Box::new(NoInside), 1024).unwrap();
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
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
    relay.turn_until(|broker| broker.connections == 0);
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
    relay.turn_until(|broker| broker.connections == 0);
    assert_eq!(relay.broker.timers.next(), None);
}
