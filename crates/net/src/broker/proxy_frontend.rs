//! The broker as a proxy, for programs that no network of their own can be given to: they say where
//! they want to go, and what they say is judged as every other connection is.
//!
//! Who may speak: only connections that the launcher made itself and announced ([`Callers::Expected`],
//! known by their address), or, where programs connect by themselves, who shows the name and password
//! of this run ([`Callers::Holders`]). Everybody else on the machine is turned away.

use std::collections::HashMap;
use std::io::{self, Read};
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mcp_policy::Protocol;
use mio::net::{TcpListener, TcpStream};

use super::budget::Hold;
use super::connection::{Check, Service, copied};
use super::dial::Presence;
use super::event_loop::Entry;
use super::slots::{Cause, SocketSide};
use super::{Broker, socket};
use crate::endpoint::{Endpoint, Target};
use crate::proxy::{Failed, Login, Manner, Reaction, Reception};
use crate::shares::{ASKING, Party};

/// How long a program may take to say where it wants to go.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long one that was refused may take to hear it.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Whose connections are taken.
#[derive(Debug)]
#[non_exhaustive]
pub enum Callers {
    /// Those that were announced with [`super::Watched::expect`].
    Expected,
    /// Those that show this name and password.
    Holders(Login),
}

/// What a connection that was announced is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wanted {
    /// The program will say it.
    Proxy,
    /// This very address, which was judged.
    Address(SocketAddr),
}

/// The address of each connection that is on its way to us. No more than there are ports.
pub type Expected = HashMap<SocketAddr, Wanted>;

pub struct ProxyFrontend {
    socket: TcpListener,
    callers: Callers,
}

/// A program that has not said all yet.
pub struct ProxyClient {
    client: TcpStream,
    reception: Reception,
    unsent: Vec<u8>,
    /// What it wants, while there is no room for it.
    wanted: Option<(Arc<Service>, Option<Manner>)>,
    presence: Presence,
    hold: Hold,
    until: Instant,
}

/// A program that is told no, and heard out: what it sent and no process read would take the answer away.
pub struct Leaving {
    client: TcpStream,
    party: Party,
    unsent: Vec<u8>,
    until: Instant,
}

enum ClientRequest {
    Waits,
    Gone,
    Wants(Endpoint, Manner),
    Refused(Vec<u8>, &'static str),
}

impl Broker {
    /// Takes connections to be proxied.
    pub fn add_frontend(
        &mut self,
        listener: std::net::TcpListener,
        callers: Callers,
    ) -> io::Result<()> {
        listener.set_nonblocking(true)?;
        let at = listener.local_addr()?;
        let mut socket = TcpListener::from_std(listener);
        socket::take_urgent_inline(&socket);
        let slot = self.slots.reserve();
        self.register(&mut socket, slot, SocketSide::Inner)?;
        self.slots.put(slot, Entry::ProxyFrontend(ProxyFrontend { socket, callers }));
        self.frontend = Some(at);
        Ok(())
    }

    pub(super) fn accept_at_frontend(&mut self, slot: usize, frontend: ProxyFrontend) {
        for _ in 0..super::listeners::MOST_AT_ONCE {
            let has_room = self.connections.has_room(ASKING, 1) || self.stop_listening_to_one();
            if !has_room && self.is_full(slot, ASKING) {
                return self.slots.put(slot, Entry::ProxyFrontend(frontend));
            }
            match frontend.socket.accept() {
                Ok((client, from)) => self.receive(client, from, &frontend.callers),
                Err(e) => {
                    self.after_accept(slot, &e);
                    return self.slots.put(slot, Entry::ProxyFrontend(frontend));
                }
            }
        }
        self.busy.push(slot);
        self.slots.put(slot, Entry::ProxyFrontend(frontend));
    }

    fn receive(&mut self, client: TcpStream, from: SocketAddr, callers: &Callers) {
        let (login, wanted) = match callers {
            Callers::Holders(login) => (Some(login.clone()), None),
            Callers::Expected => match self.expected.remove(&from) {
                Some(Wanted::Proxy) => (None, None),
                Some(Wanted::Address(to)) => (None, Some(self.address(Protocol::Tcp, to))),
                None => return socket::reset(client),
            },
        };
        self.listen_to(client, Reception::new(login), wanted);
    }

    fn listen_to(
        &mut self,
        mut client: TcpStream,
        reception: Reception,
        wanted: Option<Arc<Service>>,
    ) {
        let slot = self.slots.reserve();
        if self.register(&mut client, slot, SocketSide::Inner).is_err() {
            return self.slots.release(slot);
        }
        self.connections.take(ASKING, 1);
        socket::tune_inner(&client);
        let until = Instant::now() + PATIENCE;
        self.timers.set(until, slot);
        let asking = Box::new(ProxyClient {
            client,
            reception,
            unsent: Vec::new(),
            wanted: None,
            presence: Presence::There,
            hold: self.budget.heads.hold(),
            until,
        });
        match wanted {
            Some(service) => self.admit(slot, asking, service, None),
            None => self.slots.put(slot, Entry::Asking(asking)),
        }
    }

    pub(super) fn asking(&mut self, slot: usize, cause: Cause, mut asking: Box<ProxyClient>) {
        if matches!(cause, Cause::End(_)) {
            asking.presence = Presence::Ended;
        }
        if let Some((service, manner)) = asking.wanted.take() {
            return self.admit(slot, asking, service, manner);
        }
        match asking.advance(&mut self.scratch).unwrap_or(ClientRequest::Gone) {
            ClientRequest::Waits => {
                self.slots.put(slot, Entry::Asking(asking));
                self.keep_heads_few();
            }
            ClientRequest::Gone => drop(self.dismiss(slot, asking)),
            ClientRequest::Wants(to, manner) => self.proxy(slot, asking, to, manner),
            ClientRequest::Refused(words, why) => {
                self.journal.refuse("what the proxy was asked for", why, None);
                self.send_away(slot, asking, words);
            }
        }
    }

    fn send_away(&mut self, slot: usize, asking: Box<ProxyClient>, words: Vec<u8>) {
        self.timers.clear(asking.until, slot);
        self.turn_away(slot, asking.client, ASKING, words);
    }

    /// The judge is the one of every other way out.
    fn proxy(&mut self, slot: usize, asking: Box<ProxyClient>, to: Endpoint, manner: Manner) {
        if let Err(refusal) = self.allow.check(Protocol::Tcp, &to) {
            self.journal.refused(&refusal);
            let words = manner.failed(Failed::Blocked(&format!("blocked {refusal}")));
            return self.send_away(slot, asking, words);
        }
        // The head that is sent on was made for this host, and what follows is no head.
        let check = match (&to.target, &manner) {
            (Target::Ip(_), _) | (_, Manner::Forward { .. }) => Check::Nothing,
            (Target::Name(name), Manner::Tunnel | Manner::Socks) => {
                Check::of(self.allow.tls(name, to.port))
            }
        };
        let service = self.service(Protocol::Tcp, to.target, to.port, check);
        self.admit(slot, asking, Arc::new(service), Some(manner));
    }

    /// It goes on as one of those by its rule, as soon as there is room for it.
    fn admit(
        &mut self,
        slot: usize,
        mut asking: Box<ProxyClient>,
        service: Arc<Service>,
        manner: Option<Manner>,
    ) {
        if self.is_full(slot, service.party) {
            asking.reception = Reception::new(None);
            asking.hold.set(manner.as_ref().map_or(0, Manner::size));
            asking.wanted = Some((service, manner));
            self.slots.put(slot, Entry::Asking(asking));
            return self.keep_heads_few();
        }
        self.connections.give_back(ASKING, 1);
        self.connections.take(service.party, 1);
        let ProxyClient { client, presence, until, .. } = *asking;
        self.timers.clear(until, slot);
        self.dial_for(slot, client, service, (manner, presence));
    }

    /// Closes a program's connection after some last words.
    pub(super) fn turn_away(
        &mut self,
        slot: usize,
        client: TcpStream,
        party: Party,
        words: Vec<u8>,
    ) {
        let until = Instant::now() + LAST_WORDS;
        self.timers.set(until, slot);
        self.leaving(slot, Box::new(Leaving { client, party, unsent: words, until }));
    }

    pub(super) fn leaving(&mut self, slot: usize, mut leaving: Box<Leaving>) {
        match leaving.advance(&mut self.scratch) {
            Ok(Leaves::Later) => self.slots.put(slot, Entry::Leaving(leaving)),
            Ok(Leaves::Now) | Err(_) => {
                self.timers.clear(leaving.until, slot);
                self.make_room(slot, leaving.party);
            }
        }
    }

    pub(super) fn asking_too_long(&mut self, slot: usize, asking: Box<ProxyClient>, now: Instant) {
        if now < asking.until {
            return self.slots.put(slot, Entry::Asking(asking));
        }
        drop(self.dismiss(slot, asking));
    }

    pub(super) fn leaving_too_long(&mut self, slot: usize, leaving: Box<Leaving>, now: Instant) {
        if now < leaving.until {
            return self.slots.put(slot, Entry::Leaving(leaving));
        }
        self.make_room(slot, leaving.party);
    }

    /// One that leads nowhere: there is room for another.
    pub(super) fn dismiss(&mut self, slot: usize, asking: Box<ProxyClient>) -> TcpStream {
        self.timers.clear(asking.until, slot);
        self.make_room(slot, ASKING);
        asking.client
    }
}

impl ProxyClient {
    pub fn since(&self) -> Instant {
        // All are given the same time.
        self.until
    }

    /// Since when something that it said is held.
    pub fn unheard_since(&self) -> Option<Instant> {
        (self.hold.bytes() > 0).then_some(self.until)
    }

    pub fn waits_to_write(&self) -> bool {
        !self.unsent.is_empty()
    }

    /// What is said is looked at before it is taken: what follows is for the server.
    fn advance(&mut self, scratch: &mut [u8]) -> io::Result<ClientRequest> {
        let mut stream = &self.client;
        loop {
            if !socket::say(stream, &mut self.unsent)? {
                return Ok(ClientRequest::Waits);
            }
            let count = match stream.peek(scratch) {
                Ok(0) => return Ok(ClientRequest::Gone),
                Ok(count) => count,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(ClientRequest::Waits),
                Err(e) => return Err(e),
            };
            match self.reception.hear(&scratch[..count]) {
                Reaction::NeedMore => {
                    self.hold.set(copied(count));
                    return Ok(ClientRequest::Waits);
                }
                Reaction::Answer { used, words } => {
                    stream.read_exact(&mut scratch[..used])?;
                    self.unsent = words;
                }
                Reaction::Wants { used, to, manner } => {
                    stream.read_exact(&mut scratch[..used])?;
                    return Ok(ClientRequest::Wants(to, manner));
                }
                Reaction::Refused { words, why } => return Ok(ClientRequest::Refused(words, why)),
            }
        }
    }
}

enum Leaves {
    Later,
    Now,
}

impl Leaving {
    pub fn waits_to_write(&self) -> bool {
        !self.unsent.is_empty()
    }

    fn advance(&mut self, scratch: &mut [u8]) -> io::Result<Leaves> {
        let mut stream = &self.client;
        if !self.unsent.is_empty() {
            if !socket::say(stream, &mut self.unsent)? {
                return Ok(Leaves::Later);
            }
            stream.shutdown(Shutdown::Write)?;
        }
        loop {
            match stream.read(scratch) {
                Ok(0) => return Ok(Leaves::Now),
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(Leaves::Later),
                Err(e) => return Err(e),
            }
        }
    }
}
