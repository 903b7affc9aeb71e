//! What is held is counted, given back, and never more than may be.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use mcp_policy::HostName;
use mio::Events;

use super::{PATIENCE, Relay, pieces_arrive};
use crate::address_pool::Pool;
use crate::broker::{Broker, Inside, Journal, NameServers, Setup};
use crate::upstream::Upstream;

#[test]
fn with_all_held_that_may_be_bytes_still_arrive() {
    const ALL: usize = 1 << 30;
    let mut relay = Relay::new();
    let gauge = relay.broker.budget.relayed.clone();
    let mut hold = gauge.hold();
    hold.set(ALL);
    pieces_arrive(&mut relay, |broker| assert_eq!(broker.budget.relayed.used(), ALL));
}

#[test]
fn with_all_held_that_may_be_nothing_is_held_for_who_does_not_read() {
    const ALL: usize = 1 << 30;
    let mut relay = Relay::new();
    let gauge = relay.broker.budget.relayed.clone();
    let mut hold = gauge.hold();
    hold.set(ALL);
    let (mut client, mut server) = relay.joined();
    client.set_nonblocking(true).unwrap();
    let (mut sent, mut quiet) = (0usize, 0);
    relay.turn_until(|_| {
        quiet += 1;
        let piece: Vec<u8> = (sent..sent + 50_000).map(|at| (at / 7) as u8).collect();
        if let Ok(count) = client.write(&piece) {
            (sent, quiet) = (sent + count, 0);
        }
        assert_eq!(gauge.used(), ALL);
        quiet > 50
    });
    client.shutdown(Shutdown::Write).unwrap();
    server.set_nonblocking(true).unwrap();
    let (mut heard, mut bytes) = (0usize, vec![0; 100_000]);
    relay.turn_until(|_| {
        assert_eq!(gauge.used(), ALL);
        let Ok(count) = server.read(&mut bytes) else { return false };
        let in_order = |(at, byte): (usize, &u8)| *byte == ((heard + at) / 7) as u8;
        assert!(bytes[..count].iter().enumerate().all(in_order), "not in order");
        heard += count;
        count == 0
    });
    assert_eq!(heard, sent);
}

#[test]
fn what_a_connection_holds_is_given_back_with_it() {
    let mut relay = Relay::new();
    let (mut client, server) = relay.joined();
    client.set_nonblocking(true).unwrap();
    let gauge = relay.broker.budget.relayed.clone();
    // The other end does not read.
    relay.turn_until(|_| {
        while client.write(&[7; 65_536]).is_ok() {}
        gauge.used() > 0
    });
    assert!(!gauge.is_over());
    drop((client, server));
    relay.turn_until(|broker| broker.connections.used() == 0);
    assert_eq!(gauge.used(), 0);
}

/// A sandbox's network on this machine's loopback: where each address is by now.
#[derive(Clone, Default)]
struct Loopback(Arc<Mutex<HashMap<SocketAddr, SocketAddr>>>);

impl Inside for Loopback {
    fn listen(&mut self, at: &[SocketAddr]) -> io::Result<Vec<io::Result<TcpListener>>> {
        Ok(at.iter().map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0))).collect())
    }

    fn datagrams(&mut self, at: SocketAddr) -> io::Result<UdpSocket> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        socket.set_nonblocking(true)?;
        self.0.lock().unwrap().insert(at, socket.local_addr()?);
        Ok(socket)
    }

    fn connect(&mut self, _: SocketAddr) -> io::Result<TcpStream> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// A broker with room for two names, which have two addresses between them.
struct Two {
    broker: Broker,
    inside: Loopback,
    server: UdpSocket,
}

impl Two {
    fn new() -> Two {
        let server = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        server.set_read_timeout(Some(PATIENCE)).unwrap();
        let port = server.local_addr().unwrap().port();
        let rules = [format!("udp://*.localhost:{port}"), format!("udp://127.0.0.1:{port}")];
        let setup = Setup {
            rules: rules.iter().map(|rule| rule.parse().unwrap()).collect(),
            listeners: Vec::new(),
            own: Box::new(|| Ok(crate::address::Networks::default())),
            name_servers: NameServers::ResolvConf,
            upstream: Upstream::default(),
            journal: Journal::new(Box::new(|_| {})),
            host_listeners: Box::new(Vec::new),
            memory: None,
        };
        let inside = Loopback::default();
        let mut broker = Broker::new(setup, Box::new(inside.clone()), 1024).unwrap();
        let mut given = Pool::new(2, |_| false);
        let two: Vec<IpAddr> =
            (0..2).map(|number| given.assign(&name(number)).unwrap().fake.v4.into()).collect();
        broker.pool = Pool::new(2, move |ip| ip.is_ipv4() && !two.contains(&ip));
        Two { broker, inside, server }
    }

    fn publish(&mut self, number: u32) -> SocketAddr {
        let grants = self.broker.allow.name(&name(number)).unwrap();
        let addresses = self.broker.publish(&name(number), &grants).unwrap();
        SocketAddr::new(addresses[0], self.server.local_addr().unwrap().port())
    }

    /// Where this address is now, as far as the sandbox is concerned.
    fn place(&self, at: SocketAddr) -> SocketAddr {
        self.inside.0.lock().unwrap()[&at]
    }

    /// Sends a word and takes turns until the server has heard it.
    fn send(&mut self, at: SocketAddr, word: &[u8]) -> UdpSocket {
        let client = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        client.send_to(word, self.place(at)).unwrap();
        self.server.set_nonblocking(true).unwrap();
        let (start, mut events) = (Instant::now(), Events::with_capacity(16));
        let mut heard = [0; 16];
        while self.server.peek(&mut heard).is_err() {
            assert!(start.elapsed() < PATIENCE, "stuck");
            let soon = Instant::now() + Duration::from_millis(10);
            self.broker.turn(&mut events, Some(soon)).unwrap();
        }
        let count = self.server.recv(&mut heard).unwrap();
        assert_eq!(&heard[..count], word);
        client
    }

    fn traffic(&self, number: u32) -> u64 {
        let port = self.server.local_addr().unwrap().port();
        let shown = format!("udp://{}:{port}", name(number).as_str());
        self.broker.journal.used.reached.get(&shown).map_or(0, |traffic| traffic.connections)
    }
}

fn name(number: u32) -> HostName {
    format!("n{number}.localhost").parse().unwrap()
}

#[test]
fn datagrams_to_an_address_that_is_used_again_go_to_its_new_name() {
    let mut two = Two::new();
    let first = two.publish(0);
    let old = two.place(first);
    two.publish(1);
    assert_eq!(two.publish(2), first, "there are two addresses");
    // The old socket was closed before the new one was made.
    assert!(UdpSocket::bind(old).is_ok());
    assert_ne!(two.place(first), old);
    two.send(first, b"word");
    assert_eq!((two.traffic(0), two.traffic(2)), (0, 1));
    assert_eq!(two.broker.ports.len(), 2);
    assert_eq!(two.broker.listeners.used(), 2);
}

#[test]
fn a_name_keeps_its_address_while_datagrams_go_to_it() {
    let mut two = Two::new();
    let first = two.publish(0);
    let _client = two.send(first, b"one");
    let second = two.publish(1);
    // It was idle, although it was asked for later.
    assert_eq!(two.publish(2), second);
    let _other = two.send(second, b"two");
    // With flows to all names, the one that rests longest gives way, and ends first.
    assert_eq!(two.publish(3), first);
    assert_eq!(two.broker.flows.used(), 1);
    assert_eq!(two.broker.flow_slots.len(), 1);
    two.send(first, b"three");
    assert_eq!((two.traffic(0), two.traffic(3)), (1, 1));
}

#[test]
fn a_flow_that_leads_nowhere_holds_nothing() {
    let mut two = Two::new();
    let first = two.publish(0);
    // What the name leads to is refused from now on.
    two.broker.allow = crate::allowlist::Allowlist::new(
        two.broker.allow.rules()[..1].to_vec(),
        Some(crate::address::Networks::default()),
    );
    two.broker.names.look_later();
    let client = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    client.send_to(&[7; 30_000], two.place(first)).unwrap();
    let (start, mut events) = (Instant::now(), Events::with_capacity(16));
    while two.broker.journal.used.refused.is_empty() {
        assert!(start.elapsed() < PATIENCE, "stuck");
        let soon = Instant::now() + Duration::from_millis(10);
        two.broker.turn(&mut events, Some(soon)).unwrap();
    }
    assert_eq!((two.broker.flows.used(), two.broker.budget.datagrams.used()), (0, 0));
    assert_eq!(two.broker.timers.next(), None);
}
