//! A literal address that the user's own proxy is asked for is judged at every connection, not only when its listener
//! is made: an interface may have come that has this address in its network. And the list of the host's listeners.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use mcp_policy::Protocol;
use mio::Events;

use super::PATIENCE;
use crate::address::Networks;
use crate::broker::{Broker, Journal, NameServers, NoInside, Setup};
use crate::upstream::Upstream;

/// An HTTP proxy that opens everything and answers with what it was asked for.
fn proxy() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let at = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let mut head = [0; 4096];
            let count = stream.read(&mut head).unwrap_or(0);
            let line = head[..count].split(|byte| *byte == b'\r').next().unwrap_or_default();
            let _ = stream.write_all(&[b"HTTP/1.1 200 OK\r\n\r\n", line].concat());
        }
    });
    at
}

fn setup(rule: &str) -> Setup {
    Setup {
        rules: vec![rule.parse().unwrap()],
        listeners: Vec::new(),
        own: Box::new(|| Ok(Networks::default())),
        name_servers: NameServers::ResolvConf,
        upstream: Upstream::default(),
        journal: Journal::new(Box::new(|_| {})),
        host_listeners: Box::new(Vec::new),
        memory: None,
    }
}

/// What comes back on a new connection to the listener.
fn answer(broker: &mut Broker, at: SocketAddr) -> String {
    let mut client = TcpStream::connect(at).unwrap();
    client.set_nonblocking(true).unwrap();
    let (start, mut events) = (Instant::now(), Events::with_capacity(16));
    let (mut heard, mut bytes) = (Vec::new(), [0; 4096]);
    loop {
        assert!(start.elapsed() < PATIENCE, "stuck");
        let soon = Instant::now() + Duration::from_millis(10);
        broker.turn(&mut events, Some(soon)).unwrap();
        match client.read(&mut bytes) {
            Ok(0) => break,
            Ok(count) => heard.extend(&bytes[..count]),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => break,
        }
    }
    String::from_utf8_lossy(&heard).into_owned()
}

#[test]
fn an_address_is_judged_again_before_the_proxy_is_asked_for_it() {
    for scheme in ["http", "socks5h"] {
        let near = Arc::new(Mutex::new(Networks::default()));
        let listed = near.clone();
        let url = format!("{scheme}://{}", proxy());
        let mut setup = setup("8.8.8.0/24:443");
        setup.own = Box::new(move || Ok(listed.lock().unwrap().clone()));
        setup.upstream =
            Upstream::read(|name| (name == "https_proxy").then(|| url.clone())).unwrap();
        let mut broker = Broker::new(setup, Box::new(NoInside), 1024).unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let at = listener.local_addr().unwrap();
        broker.add_listener(SocketAddr::from(([8, 8, 8, 8], 443)), listener).unwrap();
        if scheme == "http" {
            assert_eq!(answer(&mut broker, at), "CONNECT 8.8.8.8:443 HTTP/1.1");
        }
        assert!(broker.journal.used.refused.is_empty());
        near.lock().unwrap().add("8.8.8.8".parse().unwrap(), 16);
        broker.names.list_again();
        assert_eq!(answer(&mut broker, at), "");
        assert!(broker.journal.used.refused.contains_key("8.8.8.8:443"), "{scheme}");
    }
}

/// A command that asks its own loopback in a loop has the host's tables read once, not every time.
#[test]
fn a_loop_over_the_loopback_reads_the_hosts_tables_once() {
    let count = Arc::new(AtomicUsize::new(0));
    let (counted, served) = (count.clone(), SocketAddr::from(([127, 0, 0, 1], 5432)));
    let mut setup = setup("8.8.8.0/24:443");
    setup.host_listeners = Box::new(move || {
        counted.fetch_add(1, Ordering::SeqCst);
        vec![served]
    });
    let mut broker = Broker::new(setup, Box::new(NoInside), 1024).unwrap();
    let start = Instant::now();
    for _ in 0..500 {
        broker.nobody_listens(Protocol::Tcp, SocketAddr::from(([127, 0, 0, 1], 5433)));
        broker.nobody_listens(Protocol::Tcp, served);
    }
    let most = 1 + start.elapsed().as_secs() as usize;
    assert!((1..=most).contains(&count.load(Ordering::SeqCst)));
    let refused = &broker.journal.used.refused;
    assert_eq!((refused.len(), refused["127.0.0.1:5432"].times), (1, 500));
    // What is known needs no table.
    let before = count.load(Ordering::SeqCst);
    std::thread::sleep(Duration::from_millis(1_100));
    broker.nobody_listens(Protocol::Tcp, served);
    assert_eq!(count.load(Ordering::SeqCst), before);
    broker.nobody_listens(Protocol::Tcp, SocketAddr::from(([127, 0, 0, 1], 5433)));
    assert_eq!(count.load(Ordering::SeqCst), before + 1, "the control: the table is old");
}
