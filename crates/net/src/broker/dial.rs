//! From a connection that was taken to one outside: the name resolved, each address judged and
//! tried ([`super::connecting`]); or the user's own proxy asked for it.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mcp_policy::Protocol;
use mio::net::TcpStream;

use super::budget::Hold;
use super::connecting::{Connecting, From};
use super::connection::{Joined, Service};
use super::event_loop::Entry;
use super::slots::{Cause, SocketSide};
use super::upstream_handshake::{Said, UpstreamHandshake};
use super::{Broker, socket};
use crate::endpoint::{Endpoint, Target};
use crate::proxy::{Failed, Manner};
use crate::query::Outcome;
use crate::shares::Party;
use crate::upstream::{Proxy, ResolvedBy, Route};

/// How long a name server, or a proxy, may take.
const LAST: Duration = Duration::from_secs(30);

pub struct Dialing {
    caller: Waiter,
    phase: Phase,
    /// When to go on without an answer.
    until: Instant,
}

/// Who waits, and for what.
pub(super) struct Waiter {
    client: TcpStream,
    pub(super) service: Arc<Service>,
    /// How it asked, where it did and waits for an answer.
    manner: Option<Manner>,
    presence: Presence,
    /// What is to be sent on of what it asked.
    _hold: Option<Hold>,
}

/// Whether anybody still waits for a connection in the making.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    There,
    /// It has ended its half: it may have closed, and may still listen.
    Ended,
}

pub(super) enum Phase {
    /// A name's addresses are being asked for.
    Naming(Naming),
    Connecting(Box<Connecting>),
    /// The proxy is being asked.
    Talking {
        stream: TcpStream,
        handshake: UpstreamHandshake,
    },
}

/// Whose name it is.
pub(super) enum Naming {
    Target,
    /// The server's, whose address the proxy is then asked for.
    TargetForProxy(Arc<Proxy>),
    Proxy(Arc<Proxy>, Endpoint),
}

impl Naming {
    fn target<'a>(&'a self, service: &'a Service) -> &'a Target {
        match self {
            Naming::Target | Naming::TargetForProxy(_) => &service.target,
            Naming::Proxy(proxy, _) => &proxy.at().target,
        }
    }
}

impl Dialing {
    /// A connection in the making tells that it is there by this.
    pub fn waits_to_write(&self) -> bool {
        match &self.phase {
            Phase::Connecting(_) => true,
            Phase::Talking { handshake, .. } => handshake.waits_to_write(),
            Phase::Naming(_) => false,
        }
    }

    pub fn is_talking(&self) -> bool {
        matches!(self.phase, Phase::Talking { .. })
    }

    /// Whose room it takes, and since when, where perhaps no client waits for it.
    pub fn perhaps_left(&self) -> Option<(Party, Instant)> {
        let has_ended = self.caller.presence == Presence::Ended;
        has_ended.then_some((self.caller.service.party, self.until))
    }

    /// The client's socket has ended or failed; whether it is gone.
    fn is_abandoned(&mut self) -> bool {
        self.caller.presence = Presence::Ended;
        !matches!(self.caller.client.take_error(), Ok(None))
    }
}

impl Broker {
    pub(super) fn dial(
        &mut self,
        slot: usize,
        client: TcpStream,
        service: Arc<Service>,
        manner: Option<Manner>,
    ) {
        self.dial_for(slot, client, service, (manner, Presence::There));
    }

    pub(super) fn dial_for(
        &mut self,
        slot: usize,
        client: TcpStream,
        service: Arc<Service>,
        (manner, presence): (Option<Manner>, Presence),
    ) {
        let held = manner.as_ref().map_or(0, Manner::size);
        let hold = (held > 0).then(|| {
            let mut hold = self.store.held.hold();
            hold.set(held);
            hold
        });
        let caller = Waiter { client, service, manner, presence, _hold: hold };
        if self.upstream.is_direct() {
            return self.name(slot, caller, Naming::Target);
        }
        let Service { target, port, .. } = &*caller.service;
        let to = Endpoint { target: target.clone(), port: *port };
        match self.upstream.route(&to) {
            Route::Direct => self.name(slot, caller, Naming::Target),
            Route::Proxy(proxy) => {
                let proxy = Arc::new(proxy.clone());
                match &*proxy {
                    Proxy::Socks5 { resolved_by: ResolvedBy::Broker, .. } => {
                        self.name(slot, caller, Naming::TargetForProxy(proxy));
                    }
                    // An address may have become one of the host's own networks since its listener was made.
                    _ if matches!(to.target, Target::Ip(_)) => {
                        self.name(slot, caller, Naming::TargetForProxy(proxy));
                    }
                    // The proxy may know private places by name; it is asked for what was judged.
                    _ if self.allow.is_by_public_alone(Protocol::Tcp, &to) => {
                        self.name(slot, caller, Naming::TargetForProxy(proxy));
                    }
                    _ => self.name(slot, caller, Naming::Proxy(proxy, to)),
                }
            }
        }
    }

    pub(super) fn dial_inside(
        &mut self,
        slot: usize,
        client: TcpStream,
        service: Arc<Service>,
        addresses: VecDeque<SocketAddr>,
    ) {
        let presence = Presence::There;
        let caller = Waiter { client, service, manner: None, presence, _hold: None };
        self.connect(slot, caller, Connecting::new(addresses, From::Sandbox));
    }

    /// Finds the addresses of whom to connect to.
    fn name(&mut self, slot: usize, caller: Waiter, naming: Naming) {
        let target = naming.target(&caller.service).clone();
        let known = match &target {
            Target::Ip(ip) => Some(Outcome::Addresses(vec![*ip])),
            Target::Name(name) => self.addresses_of(name, slot, caller.service.party),
        };
        match known {
            Some(found) => self.named(slot, caller, naming, &found),
            None => {
                let until = Instant::now() + LAST;
                self.wait(slot, caller, Phase::Naming(naming), until);
            }
        }
    }

    pub(super) fn wait(&mut self, slot: usize, caller: Waiter, phase: Phase, until: Instant) {
        self.timers.set(until, slot);
        self.slots.put(slot, Entry::Dialing(Box::new(Dialing { caller, phase, until })));
    }

    /// Closes a connection in the making that no client waits for.
    pub(super) fn hang_up(&mut self, slot: usize, dialing: Box<Dialing>) {
        let Dialing { caller, phase, until } = *dialing;
        self.timers.clear(until, slot);
        if let Phase::Naming(naming) = &phase
            && let Target::Name(name) = naming.target(&caller.service)
        {
            self.wait_no_longer(&name.clone(), slot);
        }
        self.left(slot, &caller.service);
    }

    /// A name that this connection, or flow, waits for has an answer.
    pub(super) fn name_is_known(&mut self, slot: usize, found: &Outcome) {
        match self.slots.take(slot) {
            Some(Entry::Dialing(dialing)) => {
                let Dialing { caller, phase, until } = *dialing;
                self.timers.clear(until, slot);
                match phase {
                    Phase::Naming(naming) => self.named(slot, caller, naming, found),
                    phase => self.wait(slot, caller, phase, until),
                }
            }
            Some(Entry::Flow(flow)) => {
                self.slots.put(slot, Entry::Flow(flow));
                self.flow_is_known(slot, found);
            }
            Some(other) => self.slots.put(slot, other),
            None => {}
        }
    }

    fn named(&mut self, slot: usize, caller: Waiter, naming: Naming, found: &Outcome) {
        match naming {
            Naming::Target => {
                let addresses = self.judged_for(&caller.service, found);
                self.connect(slot, caller, Connecting::new(addresses, From::Host));
            }
            Naming::TargetForProxy(proxy) => {
                match self.judged_for(&caller.service, found).front() {
                    Some(to) => {
                        let goal = Endpoint { target: Target::Ip(to.ip()), port: to.port() };
                        self.name(slot, caller, Naming::Proxy(proxy, goal));
                    }
                    None => self.fail(slot, caller),
                }
            }
            Naming::Proxy(proxy, goal) => {
                let port = proxy.at().port;
                let Outcome::Addresses(addresses) = found else {
                    let why = format!("the proxy {} has no address", proxy.at());
                    self.journal.trouble(&caller.service.shown, &why);
                    return self.fail(slot, caller);
                };
                let addresses = addresses.iter().map(|ip| SocketAddr::new(*ip, port)).collect();
                let addresses = self.in_order(addresses);
                let connecting = Connecting::new(addresses, From::Host).by_proxy(proxy, goal);
                self.connect(slot, caller, connecting);
            }
        }
    }

    /// An address that a rule covers was judged when its listener was made; it may be the host's
    /// own since. The loopback always was, and a rule for `localhost` means it.
    fn judged_for(&mut self, service: &Service, found: &Outcome) -> VecDeque<SocketAddr> {
        let Target::Ip(ip) = service.target else {
            return self.judged(service, found);
        };
        let at = SocketAddr::new(ip, service.port);
        if ip.is_loopback() {
            return VecDeque::from([at]);
        }
        self.follow_networks(Instant::now());
        let to = Endpoint { target: Target::Ip(ip.to_canonical()), port: service.port };
        match self.allow.check(service.protocol, &to) {
            Ok(_) => VecDeque::from([at]),
            Err(refusal) => {
                self.journal.refused(&refusal);
                VecDeque::new()
            }
        }
    }

    pub(super) fn dialing(&mut self, slot: usize, cause: Cause, mut dialing: Box<Dialing>) {
        // What the client has to say is read once there is a server to send it to.
        let (Cause::Event(side) | Cause::Room(side) | Cause::End(side)) = cause else {
            return self.slots.put(slot, Entry::Dialing(dialing));
        };
        if side == SocketSide::Inner {
            if matches!(cause, Cause::End(_)) {
                if dialing.is_abandoned() {
                    return self.hang_up(slot, dialing);
                }
                // It may be closed for another now: who waits for room looks again.
                self.resume_paused();
            }
            return self.slots.put(slot, Entry::Dialing(dialing));
        }
        let Dialing { caller, phase, until } = *dialing;
        self.timers.clear(until, slot);
        match phase {
            Phase::Connecting(connecting) => self.connecting(slot, caller, connecting),
            Phase::Talking { stream, handshake } => {
                self.handshake(slot, caller, stream, handshake, until)
            }
            phase @ Phase::Naming(_) => self.wait(slot, caller, phase, until),
        }
    }

    pub(super) fn dialing_too_long(&mut self, slot: usize, dialing: Box<Dialing>, now: Instant) {
        if now < dialing.until {
            return self.slots.put(slot, Entry::Dialing(dialing));
        }
        let Dialing { caller, phase, .. } = *dialing;
        match phase {
            Phase::Connecting(connecting) => self.connecting(slot, caller, connecting),
            phase => {
                if let Phase::Naming(naming) = &phase
                    && let Target::Name(name) = naming.target(&caller.service)
                {
                    self.wait_no_longer(&name.clone(), slot);
                }
                self.journal.trouble(&caller.service.shown, "no answer");
                self.fail(slot, caller);
            }
        }
    }

    /// The server is there, or the proxy that leads to it.
    pub(super) fn connected(
        &mut self,
        slot: usize,
        caller: Waiter,
        stream: TcpStream,
        proxy: Option<(Arc<Proxy>, Endpoint)>,
    ) {
        match proxy {
            None => self.join(slot, caller, stream),
            Some((proxy, goal)) => {
                let until = Instant::now() + LAST;
                self.handshake(slot, caller, stream, UpstreamHandshake::new(proxy, goal), until);
            }
        }
    }

    fn handshake(
        &mut self,
        slot: usize,
        caller: Waiter,
        stream: TcpStream,
        mut handshake: UpstreamHandshake,
        until: Instant,
    ) {
        let why = match handshake.advance(&stream, &mut self.scratch) {
            Ok(Said::Open) => return self.join(slot, caller, stream),
            Ok(Said::Waits) => {
                return self.wait(slot, caller, Phase::Talking { stream, handshake }, until);
            }
            Ok(Said::Refused(why)) => why,
            Err(e) => e.to_string(),
        };
        self.journal.trouble(&caller.service.shown, &why);
        self.fail(slot, caller);
    }

    fn join(&mut self, slot: usize, caller: Waiter, stream: TcpStream) {
        let Waiter { client, service, manner, .. } = caller;
        self.journal.traffic(&service.shown).connections += 1;
        let mut joined = Joined::new(client, stream, service.check, &self.budget.heads);
        if let Some(manner) = manner {
            joined.begin_with(manner);
        }
        self.joined(slot, Cause::Unfinished, Box::new(joined), service);
    }

    /// A client that connected directly sees a reset: it is too late for a refusal. A client of the proxy is told.
    pub(super) fn fail(&mut self, slot: usize, caller: Waiter) {
        let Waiter { client, service, manner, .. } = caller;
        self.journal.traffic(&service.shown).failed += 1;
        let Some(manner) = manner else {
            socket::reset(client);
            return self.left(slot, &service);
        };
        let why = format!("{} could not be reached; the launcher's stderr says why", service.shown);
        let party = service.party;
        self.turn_away(slot, client, party, manner.failed(Failed::Unreachable(&why)));
    }
}
