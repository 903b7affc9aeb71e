//! The loop: waits, and gives each entry that can go on its turn.

use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use mio::Events;
use mio::event::Event;

use super::connection::{Closing, HALF_CLOSED, Joined, JoinedState, Service};
use super::dial::Dialing;
use super::handle::{Command, Inbox};
use super::listeners::Listener;
use super::names::PendingQuery;
use super::proxy_frontend::{Leaving, ProxyClient, ProxyFrontend};
use super::slots::{Cause, SocketSide, slot};
use super::udp_flow::{Flow, Port};
use super::{Broker, Keep, NetworkUse, Watched, Watcher, rearm, stub_resolver};
use crate::endpoint::Target;
use crate::shares::Party;

/// Events that are taken at once.
const EVENTS: usize = 256;

/// How long what the command had sent may take to get out after its end.
const LAST_WORDS: Duration = Duration::from_secs(1);

pub enum Entry {
    Resolver(mio::net::UdpSocket),
    ResolverListener(mio::net::TcpListener),
    ResolverStream(Box<stub_resolver::ResolverStream>),
    Listener(Listener),
    HostPort(mio::net::TcpListener, u16),
    ProxyFrontend(ProxyFrontend),
    Asking(Box<ProxyClient>),
    Leaving(Box<Leaving>),
    Dialing(Box<Dialing>),
    Joined(Box<Joined>, Arc<Service>),
    Question(Box<PendingQuery>),
    Port(Port),
    Flow(Box<Flow>),
    Watcher(Box<dyn Watcher>),
}

impl Broker {
    /// Runs until it is told to stop.
    pub fn run(mut self, inbox: &Inbox) -> NetworkUse {
        let mut events = Events::with_capacity(EVENTS);
        let mut until = None;
        let mut wait_until = None;
        loop {
            if let Err(e) = self.turn(&mut events, wait_until) {
                self.journal.bound(&format!("network stopped: {e}"));
                break;
            }
            if self.is_over(until) {
                break;
            }
            wait_until = until;
            while let Ok(command) = inbox.try_recv() {
                match command {
                    Command::Watch(watcher) => {
                        let _ = self.add_watcher(watcher);
                    }
                    Command::Named(name, found) => self.host_says(name, found),
                    Command::Stop => {
                        let now = Instant::now();
                        until = Some(now + LAST_WORDS);
                        // What came before the stop may still be unread: one more turn takes it, without a wait.
                        wait_until = Some(now);
                    }
                }
            }
        }
        self.count_open();
        self.journal.end();
        self.journal.used
    }

    /// Whether it was told to stop, and all that the command had sent is on its way.
    fn is_over(&mut self, until: Option<Instant>) -> bool {
        let Some(until) = until else {
            return false;
        };
        let unsent = |entry: &Entry| matches!(entry, Entry::Joined(joined, _) if !joined.is_sent());
        Instant::now() >= until || !self.slots.iter_mut().any(|(_, entry)| unsent(entry))
    }

    pub(super) fn turn(&mut self, events: &mut Events, until: Option<Instant>) -> io::Result<()> {
        let next = [self.timers.next(), self.names.deadline(), self.journal.due, until];
        let next = next.into_iter().chain([self.unsure.at]).flatten().min();
        let is_awake = self.busy_poll.is_awake();
        let may_rest = self.busy.is_empty() && !self.names.is_busy() && !is_awake;
        let pause = match (may_rest, next) {
            (false, _) => Some(Duration::ZERO),
            (true, Some(at)) => Some(at.saturating_duration_since(Instant::now())),
            (true, None) => None,
        };
        match self.poll.poll(events, pause) {
            Err(e) if e.kind() != io::ErrorKind::Interrupted => return Err(e),
            _ => {}
        }
        let busy = std::mem::take(&mut self.busy);
        if !events.is_empty() || !busy.is_empty() {
            self.journal.stir();
        } else if is_awake {
            thread::yield_now();
        }
        for event in events.iter() {
            let (slot, side) = slot(event.token());
            let cause = cause(event, side);
            if is_urgent(event)
                && let Some(Entry::Joined(joined, _)) = self.slots.get_mut(slot)
            {
                joined.be_urged(side);
            }
            let can_only_write = rearm::TELLS_ONCE && matches!(cause, Cause::Room(_));
            if can_only_write && !self.waits_to_write(slot, side) {
                continue;
            }
            self.dispatch(slot, cause);
        }
        for slot in busy {
            self.dispatch(slot, Cause::Unfinished);
        }
        if self.unsure.at.is_some_and(|at| at <= Instant::now()) {
            self.look_again();
        }
        if self.timers.next().is_some() {
            let now = Instant::now();
            for slot in self.timers.due(now) {
                self.time_is_up(slot, now);
            }
        }
        if self.names.deadline().is_some() || self.names.is_busy() {
            self.names_turn();
        }
        self.slots.next_turn();
        self.measure();
        Ok(())
    }

    fn measure(&mut self) {
        if self.journal.due.is_some_and(|due| due <= Instant::now()) {
            let open = self.slots.iter_mut().filter_map(|(_, entry)| match entry {
                Entry::Joined(joined, _) => Some(joined.bytes()),
                Entry::Flow(flow) => Some(flow.bytes()),
                _ => None,
            });
            self.journal.measure(Instant::now(), open);
        }
    }

    pub(super) fn dispatch(&mut self, slot: usize, cause: Cause) {
        let Some(entry) = self.slots.take(slot) else {
            return;
        };
        self.give_turn(slot, cause, entry);
        self.look_again_soon(slot);
    }

    fn give_turn(&mut self, slot: usize, cause: Cause, entry: Entry) {
        match entry {
            Entry::Joined(joined, service) => self.joined(slot, cause, joined, service),
            Entry::Dialing(dialing) => self.dialing(slot, cause, dialing),
            Entry::Listener(listener) => self.accept(slot, listener),
            Entry::HostPort(listener, port) => self.accept_from_host(slot, listener, port),
            Entry::ProxyFrontend(frontend) => self.accept_at_frontend(slot, frontend),
            Entry::Asking(asking) => self.asking(slot, cause, asking),
            Entry::Leaving(leaving) => self.leaving(slot, leaving),
            Entry::Resolver(socket) => self.resolver(slot, socket),
            Entry::ResolverListener(listener) => self.resolver_listener(slot, listener),
            Entry::ResolverStream(stream) => self.resolver_stream(slot, stream),
            Entry::Question(question) => self.question(slot, question),
            Entry::Port(port) => self.port(slot, port),
            Entry::Flow(flow) => self.flow(slot, flow),
            Entry::Watcher(mut watcher) => {
                let keep = watcher.ready(&mut Watched(self));
                match keep {
                    Keep::Listening => {}
                    Keep::Busy => self.busy.push(slot),
                    Keep::Closed => return self.slots.release(slot),
                }
                self.slots.put(slot, Entry::Watcher(watcher));
            }
        }
    }

    fn time_is_up(&mut self, slot: usize, now: Instant) {
        let Some(entry) = self.slots.take(slot) else {
            return;
        };
        match entry {
            Entry::Dialing(dialing) => self.dialing_too_long(slot, dialing, now),
            Entry::Asking(asking) => self.asking_too_long(slot, asking, now),
            Entry::Leaving(leaving) => self.leaving_too_long(slot, leaving, now),
            Entry::Flow(flow) => self.flow_too_long(slot, flow, now),
            Entry::Joined(joined, service) => self.silent_too_long(slot, joined, service, now),
            Entry::ResolverStream(stream) if now >= stream.until => {
                self.close_stream(slot, &stream)
            }
            other => {
                // A listener that had to wait.
                self.busy.push(slot);
                self.slots.put(slot, other);
            }
        }
    }

    /// Moves bytes, until there are none or it is another connection's turn.
    pub(super) fn joined(
        &mut self,
        slot: usize,
        cause: Cause,
        mut joined: Box<Joined>,
        service: Arc<Service>,
    ) {
        let allow = &self.allow;
        match joined.advance(cause, &service, allow, &mut self.store, &mut self.scratch) {
            JoinedState::Waits => {}
            JoinedState::GoesOn => self.busy.push(slot),
            JoinedState::Done => return self.leave(slot, *joined, &service, Closing::InOrder),
            JoinedState::Broken => return self.leave(slot, *joined, &service, Closing::Reset),
            JoinedState::Refused(why) => {
                self.journal.refuse_words(&service.shown, &why);
                return self.leave(slot, *joined, &service, Closing::Reset);
            }
        }
        if joined.until.is_none() && joined.is_half_closed() {
            self.listen_for_silence(slot, &mut joined, Instant::now());
        }
        self.slots.put(slot, Entry::Joined(joined, service));
        self.keep_heads_few();
    }

    fn listen_for_silence(&mut self, slot: usize, joined: &mut Joined, now: Instant) {
        let at = now + HALF_CLOSED;
        joined.until = Some(at);
        self.timers.set(at, slot);
    }

    fn silent_too_long(
        &mut self,
        slot: usize,
        mut joined: Box<Joined>,
        service: Arc<Service>,
        now: Instant,
    ) {
        if joined.until.is_some_and(|until| now >= until) {
            if !joined.is_alive() {
                return self.leave(slot, *joined, &service, Closing::InOrder);
            }
            self.listen_for_silence(slot, &mut joined, now);
        }
        self.slots.put(slot, Entry::Joined(joined, service));
    }

    pub(super) fn leave(
        &mut self,
        slot: usize,
        joined: Joined,
        service: &Service,
        closing: Closing,
    ) {
        self.count(&joined, service);
        if let Some(until) = joined.until {
            self.timers.clear(until, slot);
        }
        joined.close(closing);
        self.left(slot, service);
    }

    /// A connection is closed: there is room for another.
    pub(super) fn left(&mut self, slot: usize, service: &Service) {
        if let Target::Name(name) = &service.target {
            self.pool.unpin(name);
        }
        self.make_room(slot, service.party);
    }

    /// Gives back what a connection had.
    pub(super) fn make_room(&mut self, slot: usize, party: Party) {
        self.slots.release(slot);
        self.connections.give_back(party, 1);
        self.resume_paused();
    }

    /// Listeners that waited for room are asked once more.
    pub(super) fn resume_paused(&mut self) {
        self.busy.extend(std::mem::take(&mut self.paused));
    }

    fn count(&mut self, joined: &Joined, service: &Service) {
        let (out, back) = joined.bytes();
        let traffic = self.journal.traffic(&service.shown);
        traffic.bytes_out += out;
        traffic.bytes_in += back;
    }

    fn count_open(&mut self) {
        let open: Vec<_> = self
            .slots
            .iter_mut()
            .filter_map(|(_, entry)| match entry {
                Entry::Joined(joined, service) => Some((joined.bytes(), service.shown.clone())),
                Entry::Flow(flow) => Some((flow.bytes(), flow.shown().to_owned())),
                _ => None,
            })
            .collect();
        for ((out, back), shown) in open {
            let traffic = self.journal.traffic(&shown);
            traffic.bytes_out += out;
            traffic.bytes_in += back;
        }
    }
}

/// Whether something urgent came. Elsewhere all is read to its end, and no socket needs to be told.
#[cfg(target_os = "linux")]
fn is_urgent(event: &Event) -> bool {
    event.is_priority()
}

#[cfg(not(target_os = "linux"))]
fn is_urgent(_: &Event) -> bool {
    false
}

fn cause(event: &Event, side: SocketSide) -> Cause {
    if event.is_read_closed() || event.is_write_closed() || event.is_error() {
        Cause::End(side)
    } else if event.is_readable() {
        Cause::Event(side)
    } else {
        Cause::Room(side)
    }
}
