//! Listeners inside, and what comes of a connection to one: also the other way round, from a port
//! of the host to a server inside.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mcp_policy::Protocol;

use super::connection::{Check, Service};
use super::event_loop::Entry;
use super::slots::Side;
use super::{Broker, socket};
use crate::net::endpoint::{Endpoint, Target};
use crate::net::pool::{V4_RANGE, V6_RANGE};

/// Connections that one listener takes before others have their turn.
pub const MOST_AT_ONCE: usize = 64;

/// When to try again where the host itself has run out of something.
const LATER: Duration = Duration::from_millis(250);

pub struct Listener {
    pub socket: mio::net::TcpListener,
    pub service: Arc<Service>,
}

impl Service {
    pub fn address(at: SocketAddr) -> Service {
        Service::of(Target::Ip(at.ip()), at.port(), Check::Nothing)
    }

    pub fn of(target: Target, port: u16, check: Check) -> Service {
        let shown = Endpoint { target: target.clone(), port }.to_string();
        Service { protocol: Protocol::Tcp, target, port, shown, check }
    }
}

impl Broker {
    pub(super) fn listen_for(
        &mut self,
        at: SocketAddr,
        listener: std::net::TcpListener,
        service: Arc<Service>,
    ) -> io::Result<()> {
        let mut socket = mio::net::TcpListener::from_std(listener);
        let slot = self.slots.reserve();
        self.register(&mut socket, slot, Side::Inner)?;
        self.slots.put(slot, Entry::Listener(Listener { socket, service }));
        self.listening.insert(at, slot);
        Ok(())
    }

    /// Whether there is room for so many more listeners.
    pub(super) fn may_listen(&mut self, more: usize) -> bool {
        let room = self.listening.len() + more <= self.bounds.listeners;
        if !room {
            let most = self.bounds.listeners;
            self.journal.bound(&format!(
                "the command uses more than {most} addresses and ports; further ones stay closed"
            ));
        }
        room
    }

    pub(super) fn accept(&mut self, slot: usize, listener: Listener) {
        for _ in 0..MOST_AT_ONCE {
            if self.is_full(slot) {
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

    pub(super) fn is_full(&mut self, slot: usize) -> bool {
        let full = self.connections >= self.bounds.connections;
        if full {
            let most = self.bounds.connections;
            self.journal.bound(&format!("{most} connections are open; further ones wait"));
            self.paused.push(slot);
        }
        full
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
        if self.register(&mut client, slot, Side::Inner).is_err() {
            return self.slots.release(slot);
        }
        self.connections += 1;
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
        let slot = self.slots.reserve();
        self.register(&mut listener, slot, Side::Inner)?;
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
            if self.is_full(slot) {
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
        if self.register(&mut client, slot, Side::Inner).is_err() {
            return self.slots.release(slot);
        }
        self.connections += 1;
        socket::tune_inner(&client);
        let shown = format!("listen {port}");
        let target = Target::Ip(Ipv4Addr::LOCALHOST.into());
        let protocol = Protocol::Tcp;
        let service = Arc::new(Service { protocol, target, port, shown, check: Check::Nothing });
        // A server may be there for one family only.
        let servers = [
            SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
            SocketAddr::from((Ipv6Addr::LOCALHOST, port)),
        ];
        self.dial_inside(slot, client, service, servers.into());
    }

    /// The command is about to connect: where a rule allows it and nobody listens yet, somebody
    /// does from now on.
    pub(super) fn announce(&mut self, to: SocketAddr) {
        if self.listening.contains_key(&to) {
            return;
        }
        let (target, check) = match self.pool.name_of(to.ip()) {
            Some(name) => {
                let check = Check::of(self.allow.tls(name, to.port()));
                (Target::Name(name.clone()), check)
            }
            None => (Target::Ip(to.ip()), Check::Nothing),
        };
        let wanted = Endpoint { target: target.clone(), port: to.port() };
        match self.allow.check(Protocol::Tcp, &wanted) {
            Ok(_) => {}
            // Told when it is refused.
            Err(_) => return,
        }
        if !self.may_listen(1) {
            return;
        }
        let made = self.inside.listen(&[to]).ok().and_then(|mut made| made.pop());
        if let Some(Ok(listener)) = made {
            let service = Service::of(target, to.port(), check);
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
        if ip.is_loopback() || (is_fake(ip) && target == Target::Ip(ip)) {
            return;
        }
        let to = Endpoint { target, port: to.port() };
        // Programs that speak HTTP/3 try it first, and go on without.
        if protocol == Protocol::Udp && self.allow.check(Protocol::Tcp, &to).is_ok() {
            return;
        }
        // Where a rule is and its listener is not, a bound was met, and said.
        if let Err(refusal) = self.allow.check(protocol, &to) {
            self.journal.refused(&refusal);
        }
    }
}

/// One of the addresses that names are given, or the sandbox's own.
fn is_fake(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => {
            ip.to_bits() >> (32 - V4_RANGE.1) == V4_RANGE.0.to_bits() >> (32 - V4_RANGE.1)
        }
        IpAddr::V6(ip) => {
            ip.to_bits() >> (128 - V6_RANGE.1) == V6_RANGE.0.to_bits() >> (128 - V6_RANGE.1)
        }
    }
}
