//! Real addresses of allowed names: asked of the servers in the host's own configuration, which is
//! followed as it changes, and judged anew for every connection.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::time::{Duration, Instant};

use mcp_policy::HostName;
use mio::event::Source;
use mio::net::{TcpStream, UdpSocket};

use super::Broker;
use super::configured::{self, NameServers, Stamp};
use super::connection::Service;
use super::event_loop::Entry;
use super::host_names::HostNames;
use super::slots::SocketSide;
use crate::allowlist::Change;
use crate::dns::{DnsFrames, Transport, framed};
use crate::endpoint::Endpoint;
use crate::query::{Act, Exchange, Outcome, Resolver};
use crate::resolv::Server;
use crate::shares::Party;

const DNS: u16 = 53;

/// How often the host's configuration is looked at again.
const LOOK_AGAIN: Duration = Duration::from_secs(5);
/// How old the list of the host's own networks may be.
const LIST_AGAIN: Duration = Duration::from_secs(1);
/// A thousand addresses; a host's resolver passes on what anybody's servers say.
const LARGEST_ANSWER: u16 = 16 << 10;

pub struct Names {
    servers: NameServers,
    resolver: Resolver,
    /// What it was made from.
    made_from: Stamp,
    pub(super) of_host: HostNames,
    looked: Option<Instant>,
    /// When the host's networks were listed; `None` when they could not be.
    listed: Option<Instant>,
    /// Who waits for which name.
    pub(super) waiting: HashMap<HostName, Waiting>,
    questions: HashMap<Exchange, usize>,
    /// Could not even be sent.
    broken: Vec<Exchange>,
}

/// Who waits for a name. One that leaves is taken out, or the next one with its number would be told.
#[derive(Debug)]
pub struct Waiting {
    /// For whom it was asked first.
    pub party: Party,
    slots: BTreeSet<usize>,
}

/// A question on its way to a server.
pub struct PendingQuery {
    exchange: Exchange,
    socket: Socket,
}

/// One question and its answer.
pub(crate) enum Socket {
    Udp(UdpSocket),
    Tcp { stream: TcpStream, unsent: Vec<u8>, frames: DnsFrames },
}

impl Names {
    pub fn new(servers: NameServers) -> Names {
        Names {
            servers,
            resolver: configured(servers),
            made_from: Stamp::now(servers),
            of_host: HostNames::configured(),
            looked: None,
            listed: None,
            waiting: HashMap::new(),
            questions: HashMap::new(),
            broken: Vec::new(),
        }
    }

    /// The host's configuration and addresses stay as they are for a while.
    #[cfg(test)]
    pub fn look_later(&mut self) {
        self.looked = Some(Instant::now());
    }

    /// The list of the host's networks is as old as it may be.
    #[cfg(test)]
    pub fn list_again(&mut self) {
        self.listed = None;
    }

    pub fn deadline(&self) -> Option<Instant> {
        self.resolver.deadline()
    }

    pub fn is_busy(&self) -> bool {
        !self.broken.is_empty()
    }
}

/// Asks whom the host asks.
pub(crate) fn configured(servers: NameServers) -> Resolver {
    let (random, mut count) = (RandomState::new(), 0u64);
    // Keyed with the system's randomness.
    let random = move || {
        count += 1;
        random.hash_one(count) as u16
    };
    let (resolv, hosts) = configured::read(servers);
    Resolver::new(resolv, hosts, Box::new(random))
}

impl Broker {
    /// What is known of a name. `None`: it is being asked for, and `slot` will be told.
    pub(super) fn addresses_of(
        &mut self,
        name: &HostName,
        slot: usize,
        party: Party,
    ) -> Option<Outcome> {
        let now = Instant::now();
        self.follow_host(now);
        self.follow_networks(now);
        let mut acts = self.names.resolver.resolve_for(now, name, party);
        if let Some(Act::Answer { .. }) = acts.last()
            && let Some(Act::Answer { outcome, .. }) = acts.pop()
        {
            let outcome = self.beyond_dns(name, party, outcome);
            if outcome.is_none() {
                self.wait_for(name, slot, party);
            }
            return outcome;
        }
        self.wait_for(name, slot, party);
        self.perform(acts);
        None
    }

    fn wait_for(&mut self, name: &HostName, slot: usize, party: Party) {
        let new = || Waiting { party, slots: BTreeSet::new() };
        self.names.waiting.entry(name.clone()).or_insert_with(new).slots.insert(slot);
    }

    pub(super) fn wait_no_longer(&mut self, name: &HostName, slot: usize) {
        let Some(waiting) = self.names.waiting.get_mut(name) else {
            return;
        };
        waiting.slots.remove(&slot);
        if waiting.slots.is_empty() {
            self.names.waiting.remove(name);
            self.names.resolver.forget(name);
            self.names.of_host.forget(name);
        }
    }

    /// Where a connection may go, of what its name leads to, in the order to be tried.
    pub(super) fn judged(&mut self, service: &Service, found: &Outcome) -> VecDeque<SocketAddr> {
        let addresses = match found {
            Outcome::Addresses(addresses) => addresses,
            Outcome::NoSuchName => return self.no_address(service, "no such name"),
            Outcome::NoAddress => return self.no_address(service, "the name has no address"),
            Outcome::Unanswered => return self.no_address(service, "no name server answers"),
        };
        let to = Endpoint { target: service.target.clone(), port: service.port };
        let mut good = Vec::new();
        for ip in addresses {
            match self.allow.check_resolved(service.protocol, &to, *ip) {
                Ok(()) => good.push(SocketAddr::new(*ip, service.port)),
                Err(refusal) => self.journal.refused(&refusal),
            }
        }
        self.in_order(good)
    }

    fn no_address(&mut self, service: &Service, why: &str) -> VecDeque<SocketAddr> {
        self.journal.trouble(&service.shown, why);
        VecDeque::new()
    }

    /// Reads the host's configuration again where it has changed.
    fn follow_host(&mut self, now: Instant) {
        let names = &mut self.names;
        if names.looked.is_some_and(|looked| now < looked + LOOK_AGAIN) {
            return;
        }
        names.looked = Some(now);
        let stamp = Stamp::now(names.servers);
        if stamp != names.made_from && names.waiting.is_empty() {
            names.made_from = stamp;
            names.resolver = configured(names.servers);
            names.of_host = HostNames::configured();
        }
    }

    /// Lists the host's own networks again once they may have changed. While they cannot be, no
    /// address is taken for public.
    pub(super) fn follow_networks(&mut self, now: Instant) {
        if self.names.listed.is_some_and(|listed| now < listed + LIST_AGAIN) {
            return;
        }
        let own = (self.own)();
        self.names.listed = own.is_ok().then_some(now);
        self.routes.forget_sources();
        if self.allow.set_own(own.ok()) == Change::Changed {
            self.routes.families.forget();
        }
    }

    /// Does what time asks for, and what could not be done before.
    pub(super) fn names_turn(&mut self) {
        let now = Instant::now();
        for exchange in std::mem::take(&mut self.names.broken) {
            let acts = self.names.resolver.failed(now, exchange);
            self.perform(acts);
        }
        if self.names.deadline().is_some_and(|deadline| deadline <= now) {
            let acts = self.names.resolver.tick(now);
            self.perform(acts);
        }
    }

    fn perform(&mut self, acts: Vec<Act>) {
        for act in acts {
            match act {
                Act::Ask { exchange, server, transport, message } => {
                    let server = self.names.resolver.resolv().servers.get(server).cloned();
                    let asked =
                        server.map(|server| self.ask(exchange, &server, transport, &message));
                    if !matches!(asked, Some(Ok(()))) {
                        self.names.broken.push(exchange);
                    }
                }
                Act::Forget(exchange) => {
                    if let Some(slot) = self.names.questions.remove(&exchange) {
                        // The one that is being worked with is not there, and will not be put back.
                        drop(self.slots.take(slot));
                        self.slots.release(slot);
                    }
                }
                Act::Answer { name, outcome } => {
                    // When no client waits any more, no other server is asked.
                    let party = self.names.waiting.get(&name).map(|waiting| waiting.party);
                    if let Some(party) = party
                        && let Some(outcome) = self.beyond_dns(&name, party, outcome)
                    {
                        self.tell_waiting(&name, &outcome);
                    }
                }
            }
        }
    }

    pub(super) fn tell_waiting(&mut self, name: &HostName, outcome: &Outcome) {
        let waiting = self.names.waiting.remove(name);
        for slot in waiting.into_iter().flat_map(|waiting| waiting.slots) {
            self.name_is_known(slot, outcome);
        }
    }

    fn ask(
        &mut self,
        exchange: Exchange,
        server: &Server,
        transport: Transport,
        message: &[u8],
    ) -> io::Result<()> {
        let mut socket = Socket::open(server, transport, message)?;
        let slot = self.slots.reserve();
        if let Err(e) = self.register(socket.source(), slot, SocketSide::Outer) {
            self.slots.release(slot);
            return Err(e);
        }
        self.names.questions.insert(exchange, slot);
        self.slots.put(slot, Entry::Question(Box::new(PendingQuery { exchange, socket })));
        Ok(())
    }

    pub(super) fn question(&mut self, slot: usize, mut question: Box<PendingQuery>) {
        let now = Instant::now();
        let exchange = question.exchange;
        let acts = match question.socket.hear() {
            Ok(messages) => {
                let mut acts = Vec::new();
                for message in messages {
                    acts.extend(self.names.resolver.received(now, exchange, &message));
                }
                acts
            }
            Err(_) => self.names.resolver.failed(now, exchange),
        };
        if acts.is_empty() {
            return self.slots.put(slot, Entry::Question(question));
        }
        drop(question);
        self.perform(acts);
    }
}

impl PendingQuery {
    pub fn waits_to_write(&self) -> bool {
        matches!(&self.socket, Socket::Tcp { unsent, .. } if !unsent.is_empty())
    }
}

impl Socket {
    /// A socket of its own for each, so that a forged answer must guess its port as well.
    pub(crate) fn open(
        server: &Server,
        transport: Transport,
        message: &[u8],
    ) -> io::Result<Socket> {
        let to = address(server);
        match transport {
            Transport::Udp => {
                let any = match to {
                    SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
                    SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
                };
                let socket = UdpSocket::bind(any)?;
                socket.connect(to)?;
                socket.send(message)?;
                Ok(Socket::Udp(socket))
            }
            Transport::Tcp => {
                let unsent = framed(message).ok_or(io::ErrorKind::InvalidInput)?;
                let stream = TcpStream::connect(to)?;
                Ok(Socket::Tcp { stream, unsent, frames: DnsFrames::new(LARGEST_ANSWER) })
            }
        }
    }

    /// What to wait for.
    pub(crate) fn source(&mut self) -> &mut dyn Source {
        match self {
            Socket::Udp(socket) => socket,
            Socket::Tcp { stream, .. } => stream,
        }
    }

    /// Sends what is still to be sent, and takes what has come.
    pub(crate) fn hear(&mut self) -> io::Result<Vec<Vec<u8>>> {
        match self {
            Socket::Udp(socket) => {
                let mut messages = Vec::new();
                let mut message = [0; 4096];
                loop {
                    match socket.recv(&mut message) {
                        Ok(length) => messages.push(message[..length].to_vec()),
                        Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(messages),
                        Err(e) => return Err(e),
                    }
                }
            }
            Socket::Tcp { stream, unsent, frames } => hear_stream(stream, unsent, frames),
        }
    }
}

fn hear_stream(
    stream: &mut TcpStream,
    unsent: &mut Vec<u8>,
    frames: &mut DnsFrames,
) -> io::Result<Vec<Vec<u8>>> {
    let waits =
        |e: &io::Error| matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::NotConnected);
    while !unsent.is_empty() {
        match stream.write(unsent) {
            Ok(count) => drop(unsent.drain(..count)),
            Err(e) if waits(&e) => return Ok(Vec::new()),
            Err(e) => return Err(e),
        }
    }
    let mut messages = Vec::new();
    let mut bytes = [0; 4096];
    loop {
        match stream.read(&mut bytes) {
            Ok(0) if messages.is_empty() => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(0) => return Ok(messages),
            Ok(count) => {
                let fed = frames.feed(&bytes[..count]);
                messages.extend(fed.map_err(|_| io::ErrorKind::InvalidData)?);
            }
            Err(e) if waits(&e) => return Ok(messages),
            Err(e) => return Err(e),
        }
    }
}

fn address(server: &Server) -> SocketAddr {
    match (server.ip, &server.zone) {
        (IpAddr::V6(ip), Some(zone)) => SocketAddrV6::new(ip, DNS, 0, scope(zone)).into(),
        (ip, _) => SocketAddr::new(ip, DNS),
    }
}

/// The number of an interface; zero leaves the choice to the system.
fn scope(zone: &str) -> u32 {
    let number = zone.parse().ok();
    let named = || {
        let plain = !zone.contains(['/', '.']);
        let text = plain.then(|| std::fs::read_to_string(format!("/sys/class/net/{zone}/ifindex")));
        text?.ok()?.trim().parse().ok()
    };
    number.or_else(named).unwrap_or(0)
}
