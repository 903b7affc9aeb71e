//! Listeners inside, and what comes of a connection to one: also the other way round, from a port
//! of the host to a server inside.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mcp_policy::Protocol;

use super::connection::{Check, Service};
use super::event_loop::Entry;
use super::slots::SocketSide;
use super::{Broker, socket};
use crate::endpoint::{Endpoint, Target};
use crate::shares::{HOST, NOBODY, Party};

/// Connections that one listener takes before others have their turn.
pub const MOST_AT_ONCE: usize = 64;

/// HTTP/3 is offered at the port of HTTPS.
const HTTPS: u16 = 443;

/// When to try again where the host itself has run out of something.
const LATER: Duration = Duration::from_millis(250);

pub struct Listener {
    pub socket: mio::net::TcpListener,
    pub service: Arc<Service>,
}

impl Broker {
    /// Where a listener or a port leads, by the rule that allows it.
    pub(super) fn service(
        &self,
        protocol: Protocol,
        target: Target,
        port: u16,
        check: Check,
    ) -> Service {
        let to = Endpoint { target, port };
        let party = self.allow.rule_of(protocol, &to).unwrap_or(NOBODY);
        Service { party, ..Service::of(protocol, to.target, port, check) }
    }

    pub(super) fn address(&self, protocol: Protocol, at: SocketAddr) -> Arc<Service> {
        let target = Target::Ip(at.ip());
        Arc::new(self.service(protocol, target, at.port(), Check::Nothing))
    }

    pub(super) fn listen_for(
        &mut self,
        at: SocketAddr,
        listener: std::net::TcpListener,
        service: Arc<Service>,
    ) -> io::Result<()> {
        let mut socket = mio::net::TcpListener::from_std(listener);
        socket::take_urgent_inline(&socket);
        let slot = self.slots.reserve();
        if let Err(e) = self.register(&mut socket, slot, SocketSide::Inner) {
            self.slots.release(slot);
            return Err(e);
        }
        self.listeners.take(service.party, 1);
        self.slots.put(slot, Entry::Listener(Listener { socket, service }));
        self.listening.insert(at, slot);
        Ok(())
    }

    /// What waits to be taken is reset.
    pub(super) fn close_listener(&mut self, at: SocketAddr) {
        if let Some(slot) = self.listening.remove(&at)
            && let Some(Entry::Listener(listener)) = self.slots.take(slot)
        {
            self.listeners.give_back(listener.service.party, 1);
            self.slots.release(slot);
        }
    }

    /// Whether there is room for this many more listeners by this rule. What was refused is told.
    pub(super) fn may_listen(&mut self, party: Party, more: usize) -> bool {
        let room = self.listeners.has_room(party, more);
        if !room {
            let most = self.listeners.used_by(party);
            self.journal.bound(&format!(
                "the command uses more than {most} addresses and ports; further ones stay closed"
            ));
        }
        room
    }

    pub(super) fn accept(&mut self, slot: usize, listener: Listener) {
        for _ in 0..MOST_AT_ONCE {
            if self.is_full(slot, listener.service.party) {
                return self.slots.put(slot, Entry::Listener(listener));
            }
            match listener.socket.accept() {
                Ok((client, _)) => self.take_in(client, listener.service.clone()),
                Err(e) => {
                    self.after_accept(slot, &e);
                    return self.slots.put(slot, Entry::Listener(listener));
                }
            }
        }
        self.busy.push(slot);
        self.slots.put(slot, Entry::Listener(listener));
    }

    /// Whether there is no room for a connection by this rule. The listener is then looked at again
    /// when there is some.
    pub(super) fn is_full(&mut self, slot: usize, party: Party) -> bool {
        if self.connections.has_room(party, 1) || self.hang_up_on_one(party) {
            return false;
        }
        let most = self.connections.used_by(party);
        self.journal.bound(&format!("{most} connections are open; further ones wait"));
        self.paused.insert(slot);
        true
    }

    pub(super) fn after_accept(&mut self, slot: usize, error: &io::Error) {
        match error.kind() {
            io::ErrorKind::WouldBlock => {}
            io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted => self.busy.push(slot),
            _ => {
                self.journal.bound(&format!("connections wait: {error}"));
                self.timers.set(Instant::now() + LATER, slot);
            }
        }
    }

    pub(super) fn take_in(&mut self, mut client: mio::net::TcpStream, service: Arc<Service>) {
        let slot = self.slots.reserve();
        if self.register(&mut client, slot, SocketSide::Inner).is_err() {
            return self.slots.release(slot);
        }
        self.connections.take(service.party, 1);
        // A name keeps its address while it is used.
        if let Target::Name(name) = &service.target {
            self.pool.pin(name);
        }
        self.dial(slot, client, service, None);
    }

    /// A port of the host's loopback that leads to the command's.
    pub(super) fn add_host_port(
        &mut self,
        port: u16,
        listener: std::net::TcpListener,
    ) -> io::Result<()> {
        let mut listener = mio::net::TcpListener::from_std(listener);
        socket::take_urgent_inline(&listener);
        let slot = self.slots.reserve();
        self.register(&mut listener, slot, SocketSide::Inner)?;
        self.slots.put(slot, Entry::HostPort(listener, port));
        Ok(())
    }

    pub(super) fn accept_from_host(
        &mut self,
        slot: usize,
        listener: mio::net::TcpListener,
        port: u16,
    ) {
        for _ in 0..MOST_AT_ONCE {
            if self.is_full(slot, HOST) {
                return self.slots.put(slot, Entry::HostPort(listener, port));
            }
            match listener.accept() {
                Ok((client, _)) => self.lead_inside(client, port),
                Err(e) => {
                    self.after_accept(slot, &e);
                    return self.slots.put(slot, Entry::HostPort(listener, port));
                }
            }
        }
        self.busy.push(slot);
        self.slots.put(slot, Entry::HostPort(listener, port));
    }

    fn lead_inside(&mut self, mut client: mio::net::TcpStream, port: u16) {
        let slot = self.slots.reserve();
        if self.register(&mut client, slot, SocketSide::Inner).is_err() {
            return self.slots.release(slot);
        }
        self.connections.take(HOST, 1);
        socket::tune_inner(&client);
        let shown = format!("listen {port}");
        let target = Target::Ip(Ipv4Addr::LOCALHOST.into());
        let service = Service::of(Protocol::Tcp, target, port, Check::Nothing);
        let service = Arc::new(Service { shown, party: HOST, ..service });
        // A server may be there for one family only.
        let servers = [
            SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
            SocketAddr::from((Ipv6Addr::LOCALHOST, port)),
        ];
        self.dial_inside(slot, client, service, servers.into());
    }

    /// The command is about to connect: where a rule allows it and no listener exists yet, one
    /// is made now.
    pub(super) fn announce(&mut self, to: SocketAddr) {
        if self.listening.contains_key(&to) {
            return;
        }
        let (target, check) = match self.pool.name_of(to.ip()) {
            Some(name) => {
                let check = Check::of(self.allow.tls(name, to.port()));
                (Target::Name(name.clone()), check)
            }
            // A name had it. No rule means the place itself, however wide it is.
            None if self.pool.is_for_names(to.ip()) => return,
            None => (Target::Ip(to.ip()), Check::Nothing),
        };
        self.follow_networks(Instant::now());
        let wanted = Endpoint { target: target.clone(), port: to.port() };
        match self.allow.check(Protocol::Tcp, &wanted) {
            Ok(_) => {}
            // Told when it is refused.
            Err(_) => return,
        }
        let service = self.service(Protocol::Tcp, target, to.port(), check);
        if !self.may_listen(service.party, 1) {
            return;
        }
        let made = self.inside.listen(&[to]).ok().and_then(|mut made| made.pop());
        if let Some(Ok(listener)) = made {
            let _ = self.listen_for(to, listener, Arc::new(service));
        }
    }

    /// Tells what the command tried to reach, and how it could be allowed.
    pub(super) fn nobody_listens(&mut self, protocol: Protocol, to: SocketAddr) {
        let ip = to.ip().to_canonical();
        let target = match self.pool.name_of(ip) {
            Some(name) => Target::Name(name.clone()),
            None => Target::Ip(ip),
        };
        if ip.is_loopback() {
            return self.nobody_serves(protocol, SocketAddr::new(ip, to.port()));
        }
        if self.pool.is_for_names(ip) && target == Target::Ip(ip) {
            return;
        }
        let to = Endpoint { target, port: to.port() };
        // Programs that speak HTTP/3 try it first, and go on without.
        let is_http3 = protocol == Protocol::Udp && to.port == HTTPS;
        if is_http3 && self.allow.check(Protocol::Tcp, &to).is_ok() {
            return;
        }
        // Where a rule is and its listener is not, a bound was met, and said.
        if let Err(refusal) = self.allow.check(protocol, &to) {
            self.journal.refused(&refusal);
        }
    }

    /// The loopback inside is the command's own, and nothing is there. Programs also ask there for servers of their own
    /// that have not started; only what the host has is worth a word.
    fn nobody_serves(&mut self, protocol: Protocol, to: SocketAddr) {
        if protocol != Protocol::Tcp || self.listening.contains_key(&to) {
            return;
        }
        let is_known = self.journal.has_refused(&to.to_string());
        if is_known || self.host_listeners.take(to, Instant::now()) {
            self.journal.refused_service(to);
        }
    }
}
