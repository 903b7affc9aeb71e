//! One end of a pair of pipes that carries connections, and the sockets that belong to them.
//!
//! ```text
//! program ──▶ listener ─ Junction ═══ pipes ═══ Junction ─▶ a place, e.g. the broker's proxy
//!                        (opens)                (answers)
//! ```
//!
//! The loop never waits for a pipe: two threads do that. What is on its way to the other side is bounded; where
//! the other side does not read, sockets are not read either, and where it floods, it is not heard. The end of
//! either pipe is the end of all connections.

mod pipes;

use std::collections::{HashMap, HashSet};
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::time::Duration;

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token, Waker};

use self::pipes::{Inlet, Outlet};
use crate::net::mux::frame::LARGEST;
use crate::net::mux::{Frames, Heard, Id, Mux, Side, Violation};

const WAKER: Token = Token(0);
const DOOR: Token = Token(1);
const FIRST: usize = 2;
const EVENTS: usize = 256;

/// With so much on its way, no socket is read and no program let in.
const MUCH: usize = 256 << 10;
/// With so much, the other side is not heard: it makes us speak, and does not listen. Between honest sides
/// only answers are above [`MUCH`], and all of them together are less than this.
const TOO_MUCH: usize = 1 << 20;

/// A place on this machine that takes longer has no room.
const PATIENCE: Duration = Duration::from_secs(2);

/// Where connections come from, or go to.
pub enum Door {
    /// Programs connect here.
    From(std::net::TcpListener),
    /// What the other side opens leads here, on this machine's loopback.
    To(SocketAddr),
}

/// Why it is over.
#[derive(Debug, PartialEq, Eq)]
pub enum Over {
    /// A pipe was closed.
    Closed,
    Violated(Violation),
}

pub struct Junction {
    poll: Poll,
    mux: Mux,
    sockets: HashMap<Id, TcpStream>,
    door: Way,
    inlet: Inlet,
    outlet: Outlet,
    frames: Frames,
    /// Whose socket, or room, may have changed.
    ready: HashSet<Id>,
    /// Who has something to say while there is too much on its way.
    paused: HashSet<Id>,
    /// Somebody may be at the door.
    has_callers: bool,
    scratch: Box<[u8]>,
}

enum Way {
    In(TcpListener),
    Out(SocketAddr),
}

impl Junction {
    pub fn new(
        door: Door,
        from: impl Read + Send + 'static,
        to: impl Write + Send + 'static,
    ) -> io::Result<Junction> {
        let poll = Poll::new()?;
        let (side, door) = match door {
            Door::From(listener) => {
                listener.set_nonblocking(true)?;
                let mut listener = TcpListener::from_std(listener);
                poll.registry().register(&mut listener, DOOR, Interest::READABLE)?;
                (Side::Opens, Way::In(listener))
            }
            Door::To(place) => (Side::Answers, Way::Out(place)),
        };
        let waker = std::sync::Arc::new(Waker::new(poll.registry(), WAKER)?);
        Ok(Junction {
            mux: Mux::new(side),
            sockets: HashMap::new(),
            door,
            inlet: Inlet::start(from, waker.clone())?,
            outlet: Outlet::start(to, waker)?,
            frames: Frames::default(),
            ready: HashSet::new(),
            paused: HashSet::new(),
            has_callers: true,
            scratch: vec![0; LARGEST].into(),
            poll,
        })
    }

    /// Until one of the pipes is closed.
    pub fn run(mut self) -> io::Result<Over> {
        let mut events = Events::with_capacity(EVENTS);
        loop {
            let pause = (!self.ready.is_empty()).then_some(Duration::ZERO);
            match self.poll.poll(&mut events, pause) {
                Err(e) if e.kind() != io::ErrorKind::Interrupted => return Err(e),
                _ => {}
            }
            for event in &events {
                match event.token() {
                    WAKER => {}
                    DOOR => self.has_callers = true,
                    Token(number) => drop(self.ready.insert((number - FIRST) as Id)),
                }
            }
            if let Some(over) = self.hear() {
                return Ok(over);
            }
            self.let_in();
            for id in std::mem::take(&mut self.ready) {
                self.advance(id);
            }
            if !self.outlet.put(&mut self.mux.outbox) {
                return Ok(Over::Closed);
            }
            if self.backlog() < MUCH {
                self.ready.extend(self.paused.drain());
            }
        }
    }

    fn backlog(&self) -> usize {
        self.mux.outbox.len() + self.outlet.held()
    }

    fn hear(&mut self) -> Option<Over> {
        while self.backlog() < TOO_MUCH {
            match self.frames.next_frame().map(|frame| frame.map(|frame| self.mux.hear(frame))) {
                Err(violation) | Ok(Some(Err(violation))) => {
                    return Some(Over::Violated(violation));
                }
                Ok(Some(Ok(Heard::Nothing))) => {}
                Ok(Some(Ok(Heard::Opened(id)))) => self.lead(id),
                Ok(Some(Ok(Heard::Changed(id)))) => drop(self.ready.insert(id)),
                Ok(Some(Ok(Heard::Reset(id)))) => self.drop_socket(id),
                Ok(None) => match self.inlet.next() {
                    pipes::Next::Bytes(bytes) => self.frames.feed(&bytes),
                    pipes::Next::Nothing => return None,
                    pipes::Next::Closed => return Some(Over::Closed),
                },
            }
        }
        None
    }

    fn drop_socket(&mut self, id: Id) {
        self.sockets.remove(&id);
        self.ready.remove(&id);
        self.paused.remove(&id);
    }

    /// Connects what the other side has opened. On this machine that takes no time.
    fn lead(&mut self, id: Id) {
        let Way::Out(place) = self.door else { return };
        let socket = std::net::TcpStream::connect_timeout(&place, PATIENCE).and_then(|socket| {
            socket.set_nonblocking(true)?;
            Ok(TcpStream::from_std(socket))
        });
        match socket {
            Ok(socket) => self.add(id, socket),
            Err(_) => self.mux.reset(id),
        }
    }

    /// Takes who stands at the door, as long as there is room.
    fn let_in(&mut self) {
        while self.has_callers && !self.mux.is_full() && self.backlog() < MUCH {
            let Way::In(listener) = &self.door else { return };
            match listener.accept() {
                Ok((socket, _)) => {
                    if let Some(id) = self.mux.open() {
                        self.add(id, socket);
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => self.has_callers = false,
                // One that is gone again; the next may be there.
                Err(e) if e.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(_) => return,
            }
        }
    }

    fn add(&mut self, id: Id, mut socket: TcpStream) {
        let _ = socket.set_nodelay(true);
        let token = Token(id as usize + FIRST);
        let interest = Interest::READABLE | Interest::WRITABLE;
        match self.poll.registry().register(&mut socket, token, interest) {
            Ok(()) => {
                self.sockets.insert(id, socket);
                self.ready.insert(id);
            }
            Err(_) => self.mux.reset(id),
        }
    }

    /// Moves what can be moved now, in both directions.
    fn advance(&mut self, id: Id) {
        let Some(socket) = self.sockets.remove(&id) else { return };
        match self.move_bytes(id, &socket) {
            Ok(()) if self.mux.close(id) => {}
            Ok(()) => drop(self.sockets.insert(id, socket)),
            Err(_) => self.mux.reset(id),
        }
    }

    fn move_bytes(&mut self, id: Id, mut socket: &TcpStream) -> io::Result<()> {
        while !self.mux.waiting(id).is_empty() {
            match would_block(socket.write(self.mux.waiting(id)))? {
                Some(count) => self.mux.take(id, count),
                None => break,
            }
        }
        if self.mux.is_heard_out(id) {
            // A program that is gone has no use for it; told twice, it is the same.
            let _ = socket.shutdown(Shutdown::Write);
        }
        loop {
            let room = self.mux.room(id).min(self.scratch.len());
            if room == 0 {
                return Ok(());
            }
            if self.backlog() >= MUCH {
                self.paused.insert(id);
                return Ok(());
            }
            match would_block(socket.read(&mut self.scratch[..room]))? {
                None => return Ok(()),
                Some(0) => {
                    self.mux.end(id);
                    return Ok(());
                }
                Some(count) => drop(self.mux.send(id, &self.scratch[..count])),
            }
        }
    }
}

/// `None` where the socket is not ready.
fn would_block(moved: io::Result<usize>) -> io::Result<Option<usize>> {
    match moved {
        Ok(count) => Ok(Some(count)),
        Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
            Ok(None)
        }
        Err(e) => Err(e),
    }
}

#[cfg(test)]
mod tests;
