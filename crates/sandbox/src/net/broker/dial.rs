//! From a connection that was taken to one outside: the name resolved, each address judged and
//! tried in order.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::net::TcpStream;

use super::connection::{Joined, Service};
use super::event_loop::Entry;
use super::slots::Side;
use super::{Broker, socket};
use crate::net::endpoint::Target;
use crate::net::query::Outcome;

/// How long one address may take while there are others.
const ONE_OF_MANY: Duration = Duration::from_secs(3);
/// How long the last one may take.
const LAST: Duration = Duration::from_secs(30);

pub struct Dialing {
    client: TcpStream,
    service: Arc<Service>,
    phase: Phase,
    /// When to go on without an answer.
    until: Instant,
}

enum Phase {
    /// The name's addresses are being asked for.
    Naming,
    Connecting {
        stream: TcpStream,
        rest: Rest,
    },
}

/// What is tried next.
struct Rest {
    addresses: VecDeque<SocketAddr>,
    from: From,
    /// Why the last one did not work.
    why: Option<io::Error>,
}

impl Rest {
    fn new(addresses: VecDeque<SocketAddr>, from: From) -> Rest {
        Rest { addresses, from, why: None }
    }
}

/// Whose network a connection is made in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum From {
    Host,
    Sandbox,
}

impl Broker {
    pub(super) fn dial(&mut self, slot: usize, client: TcpStream, service: Arc<Service>) {
        match &service.target {
            Target::Ip(ip) => {
                let addresses = VecDeque::from([SocketAddr::new(*ip, service.port)]);
                self.try_next(slot, client, service, Rest::new(addresses, From::Host));
            }
            Target::Name(name) => {
                let name = name.clone();
                let until = Instant::now() + LAST;
                match self.addresses_of(&name, slot) {
                    Some(found) => self.resolved(slot, client, service, &found),
                    None => {
                        self.timers.set(until, slot);
                        let phase = Phase::Naming;
                        let dialing = Dialing { client, service, phase, until };
                        self.slots.put(slot, Entry::Dialing(Box::new(dialing)));
                    }
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
        self.try_next(slot, client, service, Rest::new(addresses, From::Sandbox));
    }

    /// A name that this connection, or flow, waits for has an answer.
    pub(super) fn name_is_known(&mut self, slot: usize, found: &Outcome) {
        match self.slots.take(slot) {
            Some(Entry::Dialing(dialing)) if matches!(dialing.phase, Phase::Naming) => {
                let Dialing { client, service, until, .. } = *dialing;
                self.timers.clear(until, slot);
                self.resolved(slot, client, service, found);
            }
            Some(Entry::Flow(flow)) => {
                self.slots.put(slot, Entry::Flow(flow));
                self.flow_is_known(slot, found);
            }
            Some(other) => self.slots.put(slot, other),
            None => {}
        }
    }

    fn resolved(&mut self, slot: usize, client: TcpStream, service: Arc<Service>, found: &Outcome) {
        let addresses = self.judged(&service, found);
        if addresses.is_empty() {
            return self.fail(slot, client, &service);
        }
        self.try_next(slot, client, service, Rest::new(addresses, From::Host));
    }

    fn try_next(&mut self, slot: usize, client: TcpStream, service: Arc<Service>, mut rest: Rest) {
        while let Some(to) = rest.addresses.pop_front() {
            let connecting = self.connect(rest.from, to).and_then(|mut stream| {
                self.register(&mut stream, slot, Side::Outer)?;
                Ok(stream)
            });
            let stream = match connecting {
                Ok(stream) => stream,
                Err(e) => {
                    rest.why = Some(e);
                    continue;
                }
            };
            let patience = if rest.addresses.is_empty() { LAST } else { ONE_OF_MANY };
            let until = Instant::now() + patience;
            self.timers.set(until, slot);
            let phase = Phase::Connecting { stream, rest };
            let dialing = Dialing { client, service, phase, until };
            return self.slots.put(slot, Entry::Dialing(Box::new(dialing)));
        }
        if let (Some(why), From::Host) = (rest.why, rest.from) {
            self.journal.trouble(&service.shown, &why.to_string());
        }
        self.fail(slot, client, &service);
    }

    fn connect(&mut self, from: From, to: SocketAddr) -> io::Result<TcpStream> {
        match from {
            From::Host => {
                let stream = TcpStream::connect(to)?;
                socket::tune_outer(&stream);
                Ok(stream)
            }
            From::Sandbox => {
                let stream = TcpStream::from_std(self.inside.connect(to)?);
                socket::tune_inner(&stream);
                Ok(stream)
            }
        }
    }

    pub(super) fn dialing(&mut self, slot: usize, side: Side, dialing: Box<Dialing>) {
        let (Side::Outer, Phase::Connecting { stream, .. }) = (side, &dialing.phase) else {
            return self.slots.put(slot, Entry::Dialing(dialing));
        };
        match connected(stream) {
            Ok(false) => self.slots.put(slot, Entry::Dialing(dialing)),
            Ok(true) => self.join(slot, *dialing),
            Err(e) => self.give_up_one(slot, *dialing, e),
        }
    }

    pub(super) fn dialing_too_long(&mut self, slot: usize, dialing: Box<Dialing>, now: Instant) {
        if now < dialing.until {
            return self.slots.put(slot, Entry::Dialing(dialing));
        }
        self.give_up_one(slot, *dialing, io::ErrorKind::TimedOut.into());
    }

    fn give_up_one(&mut self, slot: usize, dialing: Dialing, why: io::Error) {
        let Dialing { client, service, phase, until } = dialing;
        self.timers.clear(until, slot);
        match phase {
            Phase::Naming => self.fail(slot, client, &service),
            Phase::Connecting { stream, mut rest } => {
                drop(stream);
                rest.why = Some(why);
                self.try_next(slot, client, service, rest);
            }
        }
    }

    fn join(&mut self, slot: usize, dialing: Dialing) {
        let Dialing { client, service, phase, until } = dialing;
        self.timers.clear(until, slot);
        let Phase::Connecting { stream, .. } = phase else {
            return self.fail(slot, client, &service);
        };
        self.journal.traffic(&service.shown).connections += 1;
        let joined = Joined::new(client, stream, &service);
        self.joined(slot, Box::new(joined), service);
    }

    /// Whoever connected sees a reset: it is too late for a refusal.
    fn fail(&mut self, slot: usize, client: TcpStream, service: &Service) {
        self.journal.traffic(&service.shown).failed += 1;
        socket::reset(client);
        self.left(slot);
    }
}

/// Whether a connection has come about.
fn connected(stream: &TcpStream) -> io::Result<bool> {
    if let Some(error) = stream.take_error()? {
        return Err(error);
    }
    match stream.peer_addr() {
        Ok(_) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::NotConnected => Ok(false),
        Err(e) => Err(e),
    }
}
