//! Datagrams: a port inside that rules allow, and for each of the command's sockets that uses it
//! one outside, for as long as something goes to and fro.
//!
//! A name keeps its address while it has flows. What waits for a name is bounded for each flow and
//! for all together, and dropped when the name leads nowhere.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mcp_policy::Protocol;
use mio::net::UdpSocket;

use super::Broker;
use super::connection::Service;
use super::event_loop::Entry;
use super::slots::SocketSide;
use crate::endpoint::Target;
use crate::query::Outcome;

const MOST_AT_ONCE: usize = 64;
const IDLE: Duration = Duration::from_secs(60);
/// Datagrams of one flow that wait for a name to be resolved.
const MOST_WAITING: usize = 16;
/// What each of them costs beside its bytes.
const OVERHEAD: usize = 64;
const LARGEST: usize = 65_535;

pub struct Port {
    socket: UdpSocket,
    service: Arc<Service>,
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
    /// When something last went to or fro.
    used: Instant,
    until: Instant,
}

impl Flow {
    pub fn bytes(&self) -> (u64, u64) {
        (self.bytes_out, self.bytes_in)
    }

    pub fn shown(&self) -> &str {
        &self.service.shown
    }

    /// Datagrams may get lost, and here they do when the host's buffers are full.
    fn send(&mut self, datagram: &[u8]) {
        if let Some(outer) = &self.outer {
            self.bytes_out += outer.send(datagram).unwrap_or(0) as u64;
        }
    }

    fn waiting_bytes(&self) -> usize {
        self.waiting.iter().map(|datagram| datagram.len() + OVERHEAD).sum()
    }
}

impl Broker {
    /// A port for an address that a rule names.
    pub fn add_datagrams(&mut self, at: SocketAddr, socket: std::net::UdpSocket) -> io::Result<()> {
        let service = self.address(Protocol::Udp, at);
        self.datagrams_for(at, socket, service)
    }

    pub(super) fn datagrams_for(
        &mut self,
        at: SocketAddr,
        socket: std::net::UdpSocket,
        service: Arc<Service>,
    ) -> io::Result<()> {
        let mut socket = UdpSocket::from_std(socket);
        let slot = self.slots.reserve();
        if let Err(e) = self.register(&mut socket, slot, SocketSide::Inner) {
            self.slots.release(slot);
            return Err(e);
        }
        self.listeners.take(service.party, 1);
        self.slots.put(slot, Entry::Port(Port { socket, service }));
        self.ports.insert(at, slot);
        Ok(())
    }

    /// Closes a port, after all that went through it.
    pub(super) fn close_port(&mut self, at: SocketAddr) {
        let Some(port) = self.ports.remove(&at) else {
            return;
        };
        let mut flows = self.flow_slots.iter();
        let flows: Vec<_> =
            flows.by_ref().filter(|((of, _), _)| *of == port).map(|(_, slot)| *slot).collect();
        for slot in flows {
            self.end_flow(slot);
        }
        if let Some(Entry::Port(entry)) = self.slots.take(port) {
            self.listeners.give_back(entry.service.party, 1);
        }
        self.slots.release(port);
    }

    pub(super) fn port(&mut self, slot: usize, port: Port) {
        let mut datagram = std::mem::take(&mut self.scratch);
        let mut is_done = false;
        for _ in 0..MOST_AT_ONCE {
            let Ok((length, client)) = port.socket.recv_from(&mut datagram[..LARGEST]) else {
                is_done = true;
                break;
            };
            if let Some(flow) = self.flow_of(slot, &port.service, client) {
                self.pass(flow, &datagram[..length]);
            }
        }
        self.scratch = datagram;
        if !is_done {
            self.busy.push(slot);
        }
        self.slots.put(slot, Entry::Port(port));
    }

    /// Sends a datagram, or keeps it until it is known where to.
    fn pass(&mut self, slot: usize, datagram: &[u8]) {
        let Some(Entry::Flow(flow)) = self.slots.get_mut(slot) else {
            return;
        };
        flow.used = Instant::now();
        if flow.outer.is_some() {
            return flow.send(datagram);
        }
        let (party, size) = (flow.service.party, datagram.len() + OVERHEAD);
        if flow.waiting.len() < MOST_WAITING && self.budget.datagrams.has_room(party, size) {
            self.budget.datagrams.take(party, size);
            flow.waiting.push_back(datagram.to_vec());
        }
    }

    /// The flow of this sender, a new one if need be and there is room.
    fn flow_of(
        &mut self,
        port: usize,
        service: &Arc<Service>,
        client: SocketAddr,
    ) -> Option<usize> {
        if let Some(flow) = self.flow_slots.get(&(port, client)) {
            return Some(*flow);
        }
        let party = service.party;
        if !self.flows.has_room(party, 1) {
            let most = self.flows.used_by(party);
            self.journal
                .bound(&format!("{most} udp flows are open; further datagrams are dropped"));
            return None;
        }
        let flow = self.slots.reserve();
        let used = Instant::now();
        let entry = Flow {
            client,
            port,
            service: service.clone(),
            outer: None,
            waiting: VecDeque::new(),
            bytes_out: 0,
            bytes_in: 0,
            used,
            until: used + IDLE,
        };
        self.timers.set(entry.until, flow);
        self.flows.take(party, 1);
        self.flow_slots.insert((port, client), flow);
        self.journal.traffic(&service.shown).connections += 1;
        self.slots.put(flow, Entry::Flow(Box::new(entry)));
        match &service.target {
            Target::Ip(ip) => self.flow_to(flow, Some(SocketAddr::new(*ip, service.port))),
            Target::Name(name) => {
                // A name keeps its address while it is used.
                self.pool.pin(name);
                if let Some(found) = self.addresses_of(name, flow, party) {
                    self.flow_is_known(flow, &found);
                }
            }
        }
        Some(flow)
    }

    pub(super) fn flow_is_known(&mut self, slot: usize, found: &Outcome) {
        let Some(Entry::Flow(flow)) = self.slots.get(slot) else {
            return;
        };
        let service = flow.service.clone();
        let to = self.judged(&service, found).pop_front();
        self.flow_to(slot, to);
    }

    /// Connects a flow, or ends it where there is nothing to connect it to: what comes next is a
    /// new one.
    fn flow_to(&mut self, slot: usize, to: Option<SocketAddr>) {
        let outer = to.and_then(|to| connected(to).ok());
        let outer = outer.and_then(|mut outer| {
            self.register(&mut outer, slot, SocketSide::Outer).ok()?;
            Some(outer)
        });
        let Some(outer) = outer else {
            return self.end_flow(slot);
        };
        let Some(Entry::Flow(flow)) = self.slots.get_mut(slot) else {
            return;
        };
        flow.outer = Some(outer);
        self.budget.datagrams.give_back(flow.service.party, flow.waiting_bytes());
        for datagram in std::mem::take(&mut flow.waiting) {
            flow.send(&datagram);
        }
    }

    /// Something came from outside.
    pub(super) fn flow(&mut self, slot: usize, mut flow: Box<Flow>) {
        if let Some(Entry::Port(port)) = self.slots.get(flow.port) {
            for _ in 0..MOST_AT_ONCE {
                let heard = flow.outer.as_ref().map(|outer| outer.recv(&mut self.scratch));
                let Some(Ok(length)) = heard else {
                    break;
                };
                flow.used = Instant::now();
                if port.socket.send_to(&self.scratch[..length], flow.client).is_ok() {
                    flow.bytes_in += length as u64;
                }
            }
        }
        self.slots.put(slot, Entry::Flow(flow));
    }

    pub(super) fn flow_too_long(&mut self, slot: usize, mut flow: Box<Flow>, now: Instant) {
        let is_over = now >= flow.used + IDLE;
        if now >= flow.until && !is_over {
            flow.until = flow.used + IDLE;
            self.timers.set(flow.until, slot);
        }
        self.slots.put(slot, Entry::Flow(flow));
        if is_over {
            self.end_flow(slot);
        }
    }

    fn end_flow(&mut self, slot: usize) {
        let Some(Entry::Flow(flow)) = self.slots.take(slot) else {
            return;
        };
        self.timers.clear(flow.until, slot);
        self.flow_slots.remove(&(flow.port, flow.client));
        let service = &flow.service;
        self.budget.datagrams.give_back(service.party, flow.waiting_bytes());
        if let Target::Name(name) = &service.target {
            if flow.outer.is_none() {
                self.wait_no_longer(name, slot);
            }
            self.pool.unpin(name);
        }
        let traffic = self.journal.traffic(&service.shown);
        traffic.bytes_out += flow.bytes_out;
        traffic.bytes_in += flow.bytes_in;
        self.flows.give_back(service.party, 1);
        self.slots.release(slot);
    }

    /// Ends the flow to a name that rests longest, so that the name can give its address up. False
    /// where there is none.
    pub(super) fn end_idle_flow(&mut self) -> bool {
        let flows = self.slots.iter().filter_map(|(slot, entry)| match entry {
            Entry::Flow(flow) if matches!(flow.service.target, Target::Name(_)) => {
                Some((flow.used, slot))
            }
            _ => None,
        });
        let Some((_, slot)) = flows.min() else {
            return false;
        };
        self.end_flow(slot);
        true
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
