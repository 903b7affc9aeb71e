//! The sandbox's resolver. An allowed name gets an address of its own, and the listeners that its
//! rules ask for are there before the answer is. Nothing is ever asked of anybody else.

use std::io::Read;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mcp_policy::{HostName, Protocol};
use mio::net::{TcpListener, TcpStream, UdpSocket};

use super::connection::Check;
use super::event_loop::Entry;
use super::slots::SocketSide;
use super::{Broker, socket};
use crate::address_pool::{Assigned, Full};
use crate::allowlist::{Grants, PortSet};
use crate::dns::{DnsAnswer, DnsFrames, DnsRequest, RecordType, Transport, framed};
use crate::endpoint::Target;
use crate::shares::NOBODY;

/// Questions that are answered before others have their turn.
const MOST_AT_ONCE: usize = 64;
/// A name keeps its address for as long as it is used; asking again is cheap.
const TTL: u32 = 60;
/// Connections to the resolver at the same time.
const MOST_STREAMS: usize = 32;
const STREAM_IDLE: Duration = Duration::from_secs(15);
const LARGEST_QUESTION: u16 = 4096;

/// What was made for a name.
#[derive(Debug)]
pub struct Published {
    addresses: Vec<IpAddr>,
}

/// A connection to the resolver.
pub struct ResolverStream {
    socket: TcpStream,
    frames: DnsFrames,
    answers: Vec<u8>,
    pub until: Instant,
}

/// Whether there may be more to do at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Served {
    All,
    Some,
}

impl Broker {
    pub(super) fn resolver(&mut self, slot: usize, socket: UdpSocket) {
        let mut message = [0; LARGEST_QUESTION as usize];
        for _ in 0..MOST_AT_ONCE {
            let Ok((length, from)) = socket.recv_from(&mut message) else {
                return self.slots.put(slot, Entry::Resolver(socket));
            };
            if let Some(answer) = self.answer(&message[..length], Transport::Udp) {
                // Who does not take its answer asks again.
                let _ = socket.send_to(&answer, from);
            }
        }
        self.busy.push(slot);
        self.slots.put(slot, Entry::Resolver(socket));
    }

    pub(super) fn resolver_listener(&mut self, slot: usize, listener: TcpListener) {
        while let Ok((mut socket, _)) = listener.accept() {
            if self.streams >= MOST_STREAMS {
                self.journal.bound("too many connections to the resolver; further ones are closed");
                continue;
            }
            let stream = self.slots.reserve();
            if self.register(&mut socket, stream, SocketSide::Inner).is_err() {
                self.slots.release(stream);
                continue;
            }
            self.streams += 1;
            let until = Instant::now() + STREAM_IDLE;
            self.timers.set(until, stream);
            let frames = DnsFrames::new(LARGEST_QUESTION);
            let entry = ResolverStream { socket, frames, answers: Vec::new(), until };
            self.resolver_stream(stream, Box::new(entry));
        }
        self.slots.put(slot, Entry::ResolverListener(listener));
    }

    pub(super) fn resolver_stream(&mut self, slot: usize, mut stream: Box<ResolverStream>) {
        match self.serve_stream(&mut stream) {
            Some(served) => {
                if served == Served::Some {
                    self.busy.push(slot);
                }
                self.slots.put(slot, Entry::ResolverStream(stream));
            }
            None => self.close_stream(slot, &stream),
        }
    }

    pub(super) fn close_stream(&mut self, slot: usize, stream: &ResolverStream) {
        self.timers.clear(stream.until, slot);
        self.streams -= 1;
        self.slots.release(slot);
    }

    /// Answers what was read at once. `None` when it is to be closed.
    fn serve_stream(&mut self, stream: &mut ResolverStream) -> Option<Served> {
        let mut bytes = [0; LARGEST_QUESTION as usize];
        if !socket::say(&stream.socket, &mut stream.answers).ok()? {
            return Some(Served::All);
        }
        let count = match stream.socket.read(&mut bytes) {
            Ok(0) => return None,
            Ok(count) => count,
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => return Some(Served::All),
            Err(_) => return None,
        };
        for message in stream.frames.feed(&bytes[..count]).ok()? {
            if let Some(answer) = self.answer(&message, Transport::Tcp) {
                stream.answers.extend(framed(&answer)?);
            }
        }
        Some(Served::Some)
    }

    /// `None` for what is no question.
    fn answer(&mut self, message: &[u8], transport: Transport) -> Option<Vec<u8>> {
        let query = match DnsRequest::read(message)? {
            DnsRequest::Query(query) => query,
            DnsRequest::Unsupported(reply) => return Some(reply),
        };
        let Some(name) = query.host() else {
            return Some(query.reply(&DnsAnswer::NoSuchName, transport));
        };
        if is_local(name) {
            let addresses = [IpAddr::from([127, 0, 0, 1]), IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1])];
            return Some(
                query.reply(&DnsAnswer::Addresses { addresses: &addresses, ttl: TTL }, transport),
            );
        }
        let Some(grants) = self.allow.name(name) else {
            self.refuse_name(name);
            return Some(query.reply(&DnsAnswer::NoSuchName, transport));
        };
        if !matches!(query.kind(), RecordType::A | RecordType::Aaaa) {
            return Some(query.reply(&DnsAnswer::Empty, transport));
        }
        Some(match self.publish(name, &grants) {
            Some(addresses) => {
                query.reply(&DnsAnswer::Addresses { addresses: &addresses, ttl: TTL }, transport)
            }
            None => query.reply(&DnsAnswer::Failed, transport),
        })
    }

    fn refuse_name(&mut self, name: &HostName) {
        let text = name.as_str();
        // Asked for by C libraries and runtimes on their own account.
        let is_housekeeping = text.ends_with(".arpa") || text.starts_with('_') || text == "wpad";
        if !is_housekeeping {
            let flag = crate::refusal::flag(text);
            self.journal.refuse(text, "no rule allows this name", Some(flag));
        }
    }

    /// The addresses of an allowed name, with everything behind them ready.
    pub(super) fn publish(&mut self, name: &HostName, grants: &Grants) -> Option<Vec<IpAddr>> {
        let Assigned { fake, displaced } = loop {
            match self.pool.assign(name) {
                Ok(assigned) => break assigned,
                // A connection is kept; datagrams that no program sends or waits for are not.
                Err(Full) if self.end_idle_flow() => {}
                Err(Full) => {
                    let what = "the command uses too many names at once; further ones fail";
                    self.journal.bound(what);
                    return None;
                }
            }
        };
        if let Some(loser) = displaced {
            self.withdraw(&loser);
        }
        if let Some(published) = self.published.get(name) {
            return Some(published.addresses.clone());
        }
        let mut addresses = vec![IpAddr::V4(fake.v4)];
        if self.has_ipv6 {
            addresses.push(IpAddr::V6(fake.v6));
        }
        let more = addresses.len() * (grants.tcp.count() + grants.udp.count());
        let party = self.allow.rule_of_name(name).unwrap_or(NOBODY);
        while !self.listeners.has_room(party, more) && self.displace_one(name) {}
        if !self.may_listen(party, more) {
            return None;
        }
        let listeners = self.listeners_of(name, &addresses, &grants.tcp)?;
        self.ports_of(name, &addresses, &grants.udp);
        // A family that cannot be listened on is not offered.
        if matches!(&grants.tcp, PortSet::Listed(ports) if !ports.is_empty()) {
            addresses.retain(|ip| listeners.iter().any(|at| at.ip() == *ip));
        }
        let published = Published { addresses: addresses.clone() };
        self.published.insert(name.clone(), published);
        self.keep(name);
        Some(addresses)
    }

    /// Closes what was made for the name that was idle longest.
    fn displace_one(&mut self, except: &HostName) -> bool {
        let loser = self.pool.displace(except);
        if let Some(loser) = &loser {
            self.withdraw(loser);
        }
        loser.is_some()
    }

    /// A name that a rule spells out keeps its address for good: names that the command makes up
    /// are not to take it from a program that remembers it.
    fn keep(&mut self, name: &HostName) {
        let may_keep = self.kept_names < self.pool.capacity() / 2;
        if may_keep && self.allow.spells_out(name) && self.pool.pin(name) {
            self.kept_names += 1;
        }
    }

    fn listeners_of(
        &mut self,
        name: &HostName,
        addresses: &[IpAddr],
        ports: &PortSet,
    ) -> Option<Vec<SocketAddr>> {
        let wanted: Vec<SocketAddr> = match ports {
            // Made when they are connected to.
            PortSet::Any => Vec::new(),
            PortSet::Listed(ports) => addresses
                .iter()
                .flat_map(|ip| ports.iter().map(|port| SocketAddr::new(*ip, *port)))
                .collect(),
        };
        if wanted.is_empty() {
            return Some(wanted);
        }
        let made = self.inside.listen(&wanted).ok()?;
        let mut listening = Vec::new();
        for (at, made) in wanted.iter().zip(made) {
            let Ok(listener) = made else {
                continue;
            };
            let target = Target::Name(name.clone());
            let check = Check::of(self.allow.tls(name, at.port()));
            let service = Arc::new(self.service(Protocol::Tcp, target, at.port(), check));
            if self.listen_for(*at, listener, service).is_ok() {
                listening.push(*at);
            }
        }
        (!listening.is_empty()).then_some(listening)
    }

    fn ports_of(&mut self, name: &HostName, addresses: &[IpAddr], ports: &PortSet) {
        let PortSet::Listed(ports) = ports else {
            return;
        };
        for (ip, port) in addresses.iter().flat_map(|ip| ports.iter().map(move |port| (ip, port))) {
            let at = SocketAddr::new(*ip, *port);
            if let Ok(socket) = self.inside.datagrams(at) {
                let target = Target::Name(name.clone());
                let service = self.service(Protocol::Udp, target, *port, Check::Nothing);
                let _ = self.datagrams_for(at, socket, Arc::new(service));
            }
        }
    }

    /// It has given its address up. All that was there for it is closed before anything is made for
    /// another name.
    fn withdraw(&mut self, name: &HostName) {
        let Some(published) = self.published.remove(name) else {
            return;
        };
        let is_its = |at: &&SocketAddr| published.addresses.contains(&at.ip());
        let ports: Vec<_> = self.ports.keys().filter(is_its).copied().collect();
        for at in ports {
            self.close_port(at);
        }
        let listeners: Vec<_> = self.listening.keys().filter(is_its).copied().collect();
        for at in listeners {
            self.close_listener(at);
        }
    }
}

fn is_local(name: &HostName) -> bool {
    name.as_str() == "localhost" || name.as_str().ends_with(".localhost")
}
