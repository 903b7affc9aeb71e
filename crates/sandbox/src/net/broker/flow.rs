//! Datagrams: a port inside that rules allow, and for each of the command's sockets that uses it
//! one outside, for as long as something goes to and fro.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mcp_policy::Protocol;
use mio::net::UdpSocket;

use super::Broker;
use super::connection::{Check, Service};
use super::event_loop::Entry;
use super::slots::Side;
use crate::net::endpoint::{Endpoint, Target};
use crate::net::query::Outcome;

const MOST_AT_ONCE: usize = 64;
const IDLE: Duration = Duration::from_secs(60);
/// Datagrams that wait for a name to be resolved.
const MOST_WAITING: usize = 16;
const LARGEST: usize = 65_535;

pub struct Port {
    socket: UdpSocket,
    service: Arc<Service>,
    /// By who sent.
    flows: HashMap<SocketAddr, usize>,
}

pub struct Flow {
    client: SocketAddr,
    port: usize,
    service: Arc<Service>,
    /// `None` until the name is resolved.
    outer: Option<UdpSocket>,
    waiting: VecDeque<Vec<u8>>,
    bytes_out: u64,
    bytes_in: u64,
    until: Instant,
}

impl Flow {
    pub fn bytes(&self) -> (u64, u64) {
        (self.bytes_out, self.bytes_in)
    }

    pub fn shown(&self) -> &str {
        &self.service.shown
    }

    fn send(&mut self, datagram: &[u8]) {
        match &self.outer {
            // Datagrams may get lost, and here they do when the host's buffers are full.
            Some(outer) => self.bytes_out += outer.send(datagram).unwrap_or(0) as u64,
            None if self.waiting.len() < MOST_WAITING => {
                self.waiting.push_back(datagram.to_vec());
            }
            None => {}
        }
    }
}

impl Service {
    pub fn datagrams(target: Target, port: u16) -> Service {
        let shown = format!("udp://{}", Endpoint { target: target.clone(), port });
        Service { protocol: Protocol::Udp, target, port, shown, check: Check::Nothing }
    }
}

impl Broker {
    /// A port for an address that a rule names.
    pub fn add_datagrams(&mut self, at: SocketAddr, socket: std::net::UdpSocket) -> io::Result<()> {
        self.datagrams_for(at, socket, Service::datagrams(Target::Ip(at.ip()), at.port()))
    }

    pub(super) fn datagrams_for(
        &mut self,
        _at: SocketAddr,
        socket: std::net::UdpSocket,
        service: Service,
    ) -> io::Result<()> {
        let mut socket = UdpSocket::from_std(socket);
        let slot = self.slots.reserve();
        self.register(&mut socket, slot, Side::Inner)?;
        let flows = HashMap::new();
        self.slots.put(slot, Entry::Port(Port { socket, service: Arc::new(service), flows }));
        Ok(())
    }

    pub(super) fn port(&mut self, slot: usize, mut port: Port) {
        let mut datagram = vec![0; LARGEST];
        for _ in 0..MOST_AT_ONCE {
            let Ok((length, client)) = port.socket.recv_from(&mut datagram) else {
                return self.slots.put(slot, Entry::Port(port));
            };
            let Some(flow) = self.flow_of(slot, &mut port, client) else {
                continue;
            };
            if let Some(Entry::Flow(mut entry)) = self.slots.take(flow) {
                entry.send(&datagram[..length]);
                self.slots.put(flow, Entry::Flow(entry));
            }
        }
        self.busy.push(slot);
        self.slots.put(slot, Entry::Port(port));
    }

    /// The flow of this sender, a new one if need be and there is room.
    fn flow_of(&mut self, slot: usize, port: &mut Port, client: SocketAddr) -> Option<usize> {
        if let Some(flow) = port.flows.get(&client) {
            return Some(*flow);
        }
        if self.flows >= self.bounds.flows {
            let most = self.bounds.flows;
            self.journal
                .bound(&format!("{most} udp flows are open; further datagrams are dropped"));
            return None;
        }
        let service = port.service.clone();
        let flow = self.slots.reserve();
        let until = Instant::now() + IDLE;
        self.timers.set(until, flow);
        let waiting = VecDeque::new();
        let entry = Flow {
            client,
            port: slot,
            service: service.clone(),
            outer: None,
            waiting,
            bytes_out: 0,
            bytes_in: 0,
            until,
        };
        self.flows += 1;
        self.journal.traffic(&service.shown).connections += 1;
        port.flows.insert(client, flow);
        self.slots.put(flow, Entry::Flow(Box::new(entry)));
        match &service.target {
            Target::Ip(ip) => self.flow_to(flow, Some(SocketAddr::new(*ip, service.port))),
            Target::Name(name) => {
                if let Some(found) = self.addresses_of(&name.clone(), flow) {
                    self.flow_is_known(flow, &found);
                }
            }
        }
        Some(flow)
    }

    pub(super) fn flow_is_known(&mut self, slot: usize, found: &Outcome) {
        let Some(Entry::Flow(flow)) = self.slots.take(slot) else {
            return;
        };
        let service = flow.service.clone();
        self.slots.put(slot, Entry::Flow(flow));
        let to = self.judged(&service, found).pop_front();
        self.flow_to(slot, to);
    }

    fn flow_to(&mut self, slot: usize, to: Option<SocketAddr>) {
        let Some(Entry::Flow(mut flow)) = self.slots.take(slot) else {
            return;
        };
        if let Some(to) = to
            && let Ok(mut outer) = connected(to)
            && self.register(&mut outer, slot, Side::Outer).is_ok()
        {
            flow.outer = Some(outer);
            for datagram in std::mem::take(&mut flow.waiting) {
                flow.send(&datagram);
            }
        }
        self.slots.put(slot, Entry::Flow(flow));
    }

    /// Something came from outside.
    pub(super) fn flow(&mut self, slot: usize, mut flow: Box<Flow>) {
        let Some(Entry::Port(port)) = self.slots.take(flow.port) else {
            return self.slots.put(slot, Entry::Flow(flow));
        };
        let mut datagram = vec![0; LARGEST];
        for _ in 0..MOST_AT_ONCE {
            let Some(Ok(length)) = flow.outer.as_ref().map(|outer| outer.recv(&mut datagram))
            else {
                break;
            };
            if port.socket.send_to(&datagram[..length], flow.client).is_ok() {
                flow.bytes_in += length as u64;
            }
        }
        let now = Instant::now();
        self.timers.clear(flow.until, slot);
        flow.until = now + IDLE;
        self.timers.set(flow.until, slot);
        self.slots.put(flow.port, Entry::Port(port));
        self.slots.put(slot, Entry::Flow(flow));
    }

    pub(super) fn flow_too_long(&mut self, slot: usize, flow: Box<Flow>, now: Instant) {
        if now < flow.until {
            return self.slots.put(slot, Entry::Flow(flow));
        }
        if let Some(Entry::Port(mut port)) = self.slots.take(flow.port) {
            port.flows.remove(&flow.client);
            self.slots.put(flow.port, Entry::Port(port));
        }
        let traffic = self.journal.traffic(&flow.service.shown);
        traffic.bytes_out += flow.bytes_out;
        traffic.bytes_in += flow.bytes_in;
        self.flows -= 1;
        self.slots.release(slot);
    }
}

fn connected(to: SocketAddr) -> io::Result<UdpSocket> {
    let any: IpAddr = match to {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind(SocketAddr::new(any, 0))?;
    socket.connect(to)?;
    Ok(socket)
}
