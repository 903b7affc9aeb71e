//! From a connection that was taken to one outside: the name resolved, each address judged and
//! tried in order; or the user's own proxy asked for it.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::net::TcpStream;

use super::connection::{Joined, Service};
use super::event_loop::Entry;
use super::slots::{Cause, Side};
use super::talk::{Said, Talk};
use super::{Broker, socket};
use crate::net::endpoint::{Endpoint, Target};
use crate::net::proxy::{Failed, Manner};
use crate::net::query::Outcome;
use crate::net::upstream::{Names, Proxy, Route};

/// How long one address may take while there are others.
const ONE_OF_MANY: Duration = Duration::from_secs(3);
/// How long the last one may take.
const LAST: Duration = Duration::from_secs(30);

pub struct Dialing {
    caller: Caller,
    phase: Phase,
    /// When to go on without an answer.
    until: Instant,
}

/// Who waits, and for what.
struct Caller {
    client: TcpStream,
    service: Arc<Service>,
    /// How it asked, where it did and waits for an answer.
    manner: Option<Manner>,
}

enum Phase {
    /// A name's addresses are being asked for.
    Naming(Naming),
    Connecting {
        stream: TcpStream,
        rest: Rest,
    },
    /// The proxy is being asked.
    Talking {
        stream: TcpStream,
        talk: Talk,
    },
}

/// Whose name it is.
enum Naming {
    Target,
    /// The server's, whose address the proxy is then asked for.
    TargetForProxy(Arc<Proxy>),
    Proxy(Arc<Proxy>, Endpoint),
}

/// What is tried next.
struct Rest {
    addresses: VecDeque<SocketAddr>,
    from: From,
    /// Who is at these addresses, and what to ask for there.
    proxy: Option<(Arc<Proxy>, Endpoint)>,
    /// Why the last one did not work.
    why: Option<io::Error>,
}

/// Whose network a connection is made in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum From {
    Host,
    Sandbox,
}

impl Rest {
    fn new(addresses: VecDeque<SocketAddr>, from: From) -> Rest {
        Rest { addresses, from, proxy: None, why: None }
    }
}

impl Dialing {
    /// A connection in the making tells that it is there by this.
    pub fn waits_to_write(&self) -> bool {
        match &self.phase {
            Phase::Connecting { .. } => true,
            Phase::Talking { talk, .. } => talk.waits_to_write(),
            Phase::Naming(_) => false,
        }
    }

    pub fn is_talking(&self) -> bool {
        matches!(self.phase, Phase::Talking { .. })
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
        let caller = Caller { client, service, manner };
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
                    Proxy::Socks5 { names: Names::ByUs, .. } => {
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
        let caller = Caller { client, service, manner: None };
        self.try_next(slot, caller, Rest::new(addresses, From::Sandbox));
    }

    /// Finds the addresses of whom to connect to.
    fn name(&mut self, slot: usize, caller: Caller, naming: Naming) {
        let target = match &naming {
            Naming::Target | Naming::TargetForProxy(_) => caller.service.target.clone(),
            Naming::Proxy(proxy, _) => proxy.at().target.clone(),
        };
        let known = match &target {
            Target::Ip(ip) => Some(Outcome::Addresses(vec![*ip])),
            Target::Name(name) => self.addresses_of(name, slot),
        };
        match known {
            Some(found) => self.named(slot, caller, naming, &found),
            None => {
                let until = Instant::now() + LAST;
                self.wait(slot, caller, Phase::Naming(naming), until);
            }
        }
    }

    fn wait(&mut self, slot: usize, caller: Caller, phase: Phase, until: Instant) {
        self.timers.set(until, slot);
        self.slots.put(slot, Entry::Dialing(Box::new(Dialing { caller, phase, until })));
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

    fn named(&mut self, slot: usize, caller: Caller, naming: Naming, found: &Outcome) {
        match naming {
            Naming::Target => {
                let addresses = self.judged_for(&caller.service, found);
                self.try_next(slot, caller, Rest::new(addresses, From::Host));
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
                let proxy = Some((proxy, goal));
                self.try_next(slot, caller, Rest { proxy, ..Rest::new(addresses, From::Host) });
            }
        }
    }

    /// An address that a rule names was judged when its listener was made.
    fn judged_for(&mut self, service: &Service, found: &Outcome) -> VecDeque<SocketAddr> {
        match service.target {
            Target::Ip(ip) => VecDeque::from([SocketAddr::new(ip, service.port)]),
            Target::Name(_) => self.judged(service, found),
        }
    }

    fn try_next(&mut self, slot: usize, caller: Caller, mut rest: Rest) {
        while let Some(to) = rest.addresses.pop_front() {
            let connecting = self.connect(rest.from, to).and_then(|mut stream| {
                self.register(&mut stream, slot, Side::Outer)?;
                // Nearby servers are there, or not, at once.
                Ok((connected(&stream)?, stream))
            });
            match connecting {
                Ok((true, stream)) => {
                    self.awake.stay();
                    return self.connected(slot, caller, stream, rest);
                }
                Ok((false, stream)) => {
                    let patience = if rest.addresses.is_empty() { LAST } else { ONE_OF_MANY };
                    let until = Instant::now() + patience;
                    let phase = Phase::Connecting { stream, rest };
                    return self.wait(slot, caller, phase, until);
                }
                Err(e) => rest.why = Some(e),
            }
        }
        if let (Some(why), From::Host) = (rest.why, rest.from) {
            let why = match rest.proxy {
                Some((proxy, _)) => format!("the proxy {}: {why}", proxy.at()),
                None => why.to_string(),
            };
            self.journal.trouble(&caller.service.shown, &why);
        }
        self.fail(slot, caller);
    }

    fn connect(&mut self, from: From, to: SocketAddr) -> io::Result<TcpStream> {
        match from {
            From::Host => {
                let stream = TcpStream::connect(to)?;
                socket::tune_outer(&stream, to.ip());
                Ok(stream)
            }
            From::Sandbox => {
                let stream = TcpStream::from_std(self.inside.connect(to)?);
                socket::tune_inner(&stream);
                Ok(stream)
            }
        }
    }

    pub(super) fn dialing(&mut self, slot: usize, cause: Cause, dialing: Box<Dialing>) {
        // What the client has to say is heard once there is somebody to say it to.
        let (Cause::Event(side) | Cause::Room(side) | Cause::End(side)) = cause else {
            return self.slots.put(slot, Entry::Dialing(dialing));
        };
        if side == Side::Inner {
            return self.slots.put(slot, Entry::Dialing(dialing));
        }
        let Dialing { caller, phase, until } = *dialing;
        self.timers.clear(until, slot);
        match phase {
            Phase::Connecting { stream, rest } => match connected(&stream) {
                Ok(false) => self.wait(slot, caller, Phase::Connecting { stream, rest }, until),
                Ok(true) => self.connected(slot, caller, stream, rest),
                Err(e) => self.give_up_one(slot, caller, stream, rest, e),
            },
            Phase::Talking { stream, talk } => self.talk(slot, caller, stream, talk, until),
            phase @ Phase::Naming(_) => self.wait(slot, caller, phase, until),
        }
    }

    pub(super) fn dialing_too_long(&mut self, slot: usize, dialing: Box<Dialing>, now: Instant) {
        if now < dialing.until {
            return self.slots.put(slot, Entry::Dialing(dialing));
        }
        let Dialing { caller, phase, .. } = *dialing;
        match phase {
            Phase::Connecting { stream, rest } => {
                self.give_up_one(slot, caller, stream, rest, io::ErrorKind::TimedOut.into());
            }
            Phase::Naming(_) | Phase::Talking { .. } => {
                self.journal.trouble(&caller.service.shown, "no answer");
                self.fail(slot, caller);
            }
        }
    }

    fn give_up_one(
        &mut self,
        slot: usize,
        caller: Caller,
        stream: TcpStream,
        mut rest: Rest,
        why: io::Error,
    ) {
        drop(stream);
        rest.why = Some(why);
        self.try_next(slot, caller, rest);
    }

    fn connected(&mut self, slot: usize, caller: Caller, stream: TcpStream, rest: Rest) {
        match rest.proxy {
            None => self.join(slot, caller, stream),
            Some((proxy, goal)) => {
                let until = Instant::now() + LAST;
                self.talk(slot, caller, stream, Talk::new(proxy, goal), until);
            }
        }
    }

    fn talk(
        &mut self,
        slot: usize,
        caller: Caller,
        stream: TcpStream,
        mut talk: Talk,
        until: Instant,
    ) {
        let why = match talk.advance(&stream, &mut self.scratch) {
            Ok(Said::Open) => return self.join(slot, caller, stream),
            Ok(Said::Waits) => {
                return self.wait(slot, caller, Phase::Talking { stream, talk }, until);
            }
            Ok(Said::Refused(why)) => why,
            Err(e) => e.to_string(),
        };
        self.journal.trouble(&caller.service.shown, &why);
        self.fail(slot, caller);
    }

    fn join(&mut self, slot: usize, caller: Caller, stream: TcpStream) {
        let Caller { client, service, manner } = caller;
        self.journal.traffic(&service.shown).connections += 1;
        let mut joined = Joined::new(client, stream, &service);
        if let Some(manner) = manner {
            joined.begin_with(manner);
        }
        self.joined(slot, Cause::Unfinished, Box::new(joined), service);
    }

    /// Whoever connected sees a reset: it is too late for a refusal. Whoever asked is told.
    fn fail(&mut self, slot: usize, caller: Caller) {
        let Caller { client, service, manner } = caller;
        self.journal.traffic(&service.shown).failed += 1;
        let Some(manner) = manner else {
            socket::reset(client);
            return self.left(slot, &service);
        };
        let why = format!("{} could not be reached; the launcher's stderr says why", service.shown);
        self.turn_away(slot, client, manner.failed(Failed::Unreachable(&why)));
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
