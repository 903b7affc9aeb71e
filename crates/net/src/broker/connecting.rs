//! Connections in the making: to several addresses of one server, a little after one another, until
//! the first is there ([`crate::happy_eyeballs`]). Which order they are tried in depends on where the host
//! has a way to, and on which family did not work lately ([`crate::destination`]).

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Instant;

use mio::net::TcpStream;

use super::dial::{Phase, Waiter};
use super::slots::SocketSide;
use super::{Broker, socket};
use crate::destination::{Candidate, Families, Family};
use crate::endpoint::Endpoint;
use crate::happy_eyeballs::{Failure, Race, RaceStep};
use crate::upstream::Proxy;

/// Addresses whose way is remembered.
const MOST_SOURCES: usize = 256;

/// What the host's network is like, as far as it was seen.
#[derive(Default)]
pub struct Routes {
    pub families: Families,
    /// Which address of its own the host uses to reach another.
    sources: HashMap<IpAddr, Option<IpAddr>>,
}

impl Routes {
    /// Routes may have changed.
    pub fn forget_sources(&mut self) {
        self.sources.clear();
    }

    fn source(&mut self, to: SocketAddr) -> Option<IpAddr> {
        if self.sources.len() >= MOST_SOURCES {
            self.sources.clear();
        }
        *self.sources.entry(to.ip()).or_insert_with(|| source(to).ok())
    }
}

/// Asks the system's routes, without a packet being sent.
fn source(to: SocketAddr) -> io::Result<IpAddr> {
    let any: IpAddr = match to {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(to)?;
    Ok(socket.local_addr()?.ip())
}

/// Whose network a connection is made in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum From {
    Host,
    Sandbox,
}

pub struct Connecting {
    race: Race,
    /// Those that are on their way.
    streams: Vec<(SocketAddr, TcpStream)>,
    from: From,
    /// Who is at these addresses, and what to ask for there.
    proxy: Option<(Arc<Proxy>, Endpoint)>,
    /// Why the last one did not work.
    why: Option<io::Error>,
}

impl Connecting {
    /// In the order to be tried.
    pub fn new(addresses: VecDeque<SocketAddr>, from: From) -> Connecting {
        let race = Race::new(addresses);
        Connecting { race, streams: Vec::new(), from, proxy: None, why: None }
    }

    pub fn by_proxy(self, proxy: Arc<Proxy>, goal: Endpoint) -> Connecting {
        Connecting { proxy: Some((proxy, goal)), ..self }
    }

    fn failed(&mut self, to: SocketAddr, why: io::Error) {
        self.streams.retain(|(other, _)| *other != to);
        self.race.failed(to, failure(&why));
        self.why = Some(why);
    }

    /// One that is there by now. Those that have failed are taken out.
    fn winner(&mut self) -> Option<(SocketAddr, TcpStream)> {
        let mut at = 0;
        while let Some((to, stream)) = self.streams.get(at) {
            match connected(stream) {
                Ok(true) => return Some(self.streams.swap_remove(at)),
                Ok(false) => at += 1,
                Err(why) => self.failed(*to, why),
            }
        }
        None
    }
}

impl Broker {
    /// The order to try these in.
    pub(super) fn in_order(&mut self, addresses: Vec<SocketAddr>) -> VecDeque<SocketAddr> {
        if addresses.len() < 2 {
            return addresses.into();
        }
        let candidate = |to| Candidate { to, source: self.routes.source(to) };
        let candidates = addresses.into_iter().map(candidate).collect();
        self.routes.families.order(candidates, Instant::now())
    }

    pub(super) fn connect(&mut self, slot: usize, caller: Waiter, connecting: Connecting) {
        self.connecting(slot, caller, Box::new(connecting));
    }

    /// One of them may be there, or another one be due.
    pub(super) fn connecting(&mut self, slot: usize, caller: Waiter, mut it: Box<Connecting>) {
        if let Some((to, stream)) = it.winner() {
            return self.won(slot, caller, *it, to, stream);
        }
        loop {
            match it.race.step(Instant::now()) {
                RaceStep::Begin(to) => match self.begin(slot, it.from, to) {
                    Ok((true, stream)) => {
                        self.busy_poll.stay();
                        return self.won(slot, caller, *it, to, stream);
                    }
                    Ok((false, stream)) => it.streams.push((to, stream)),
                    Err(why) => it.failed(to, why),
                },
                RaceStep::GiveUp(to) => {
                    it.streams.retain(|(other, _)| *other != to);
                    it.why = Some(io::ErrorKind::TimedOut.into());
                }
                RaceStep::Wait(until) => {
                    return self.wait(slot, caller, Phase::Connecting(it), until);
                }
                RaceStep::Over => break,
            }
        }
        if let (Some(why), From::Host) = (it.why, it.from) {
            let why = match it.proxy {
                Some((proxy, _)) => format!("the proxy {}: {why}", proxy.at()),
                None => why.to_string(),
            };
            self.journal.trouble(&caller.service.shown, &why);
        }
        self.fail(slot, caller);
    }

    fn won(
        &mut self,
        slot: usize,
        caller: Waiter,
        it: Connecting,
        to: SocketAddr,
        stream: TcpStream,
    ) {
        if it.from == From::Host {
            let families = &mut self.routes.families;
            families.works(Family::of(to.ip()));
            let now = Instant::now();
            if let Some(slow) = it.race.won(to, now) {
                families.did_not_work(slow, now);
            }
        }
        drop(it.streams);
        self.connected(slot, caller, stream, it.proxy);
    }

    /// Whether it is there at once, as nearby servers are.
    fn begin(&mut self, slot: usize, from: From, to: SocketAddr) -> io::Result<(bool, TcpStream)> {
        let mut stream = match from {
            From::Host => {
                let stream = TcpStream::connect(to)?;
                socket::tune_outer(&stream, to.ip());
                stream
            }
            From::Sandbox => {
                let stream = TcpStream::from_std(self.inside.connect(to)?);
                socket::tune_inner(&stream);
                stream
            }
        };
        self.register(&mut stream, slot, SocketSide::Outer)?;
        Ok((connected(&stream)?, stream))
    }
}

/// Whether a connection has come about.
fn connected(stream: &TcpStream) -> io::Result<bool> {
    let Err(not_yet) = stream.peer_addr() else {
        return Ok(true);
    };
    match stream.take_error()? {
        Some(error) => Err(error),
        None if not_yet.kind() == io::ErrorKind::NotConnected => Ok(false),
        None => Err(not_yet),
    }
}

/// An address that refuses or resets was reached.
fn failure(why: &io::Error) -> Failure {
    match why.kind() {
        io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionReset => Failure::Answered,
        _ => Failure::Unreachable,
    }
}
