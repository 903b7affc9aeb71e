//! One end of a pair of pipes that carries connections, and the sockets that belong to them.
//!
//! ```text
//! program ──▶ listener ─ MuxEndpoint ═══ pipes ═══ MuxEndpoint ─▶ a place, e.g. the broker's proxy
//!                        (opens)                (answers)
//! ```
//!
//! Either end may be the one inside: programs there connect to something outside, or, where they are servers, are
//! connected to. The other end trusts it in neither case.
//!
//! The loop never waits for a pipe: two threads do that. What is on its way to the other side is bounded; where
//! the other side does not read, sockets are not read either, and where it floods, it is not heard. The end of
//! either pipe is the end of all connections.

mod pipes;

use std::collections::{HashMap, HashSet};
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token, Waker};

use self::pipes::{PipeReader, PipeWriter};
use crate::mux::frame::LARGEST;
use crate::mux::{Frame, FrameReader, Id, Mux, MuxEvent, MuxRole, Violation};

const WAKER: Token = Token(0);
const DOOR: Token = Token(1);
const FIRST: usize = 2;
const EVENTS: usize = 256;

/// Above this many bytes on their way, no socket is read and no connection accepted.
const MUCH: usize = 256 << 10;
/// Above this many, the other side's frames are not read: it makes us speak, and does not listen. Between honest sides
/// only answers are above [`MUCH`], and all of them together are less than this.
const TOO_MUCH: usize = 1 << 20;

/// A place on this machine that takes longer has no room, or is gone: of a server that ends right after it was
/// connected to nothing is told.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often that is looked at, while a connection is not made yet.
const LOOK: Duration = Duration::from_millis(250);
/// How long what was said before the end may take to get out.
/// A test asks whether they arrive, and not how busy the machine is.
const LAST_WORDS: Duration = Duration::from_secs(if cfg!(test) { 30 } else { 1 });

/// Where connections come from, or go to.
#[non_exhaustive]
pub enum Door {
    /// Programs connect here.
    From(std::net::TcpListener),
    /// What the other side opens leads here, on this machine's loopback.
    To(SocketAddr),
}

/// Why it is over.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Over {
    /// A pipe was closed.
    Closed,
    /// The other side broke the protocol.
    Violated(Violation),
}

/// What is left in the end: connections that were ended in order, and whose last words may still be unread.
#[non_exhaustive]
pub struct Ended {
    /// Why it ended.
    pub over: Over,
    _sockets: Vec<TcpStream>,
}

/// Ends a mux endpoint from another thread: the other side says what it has to say, and goes.
pub struct Farewell {
    is_said: Arc<AtomicBool>,
    waker: Arc<Waker>,
}

impl Farewell {
    /// Asks the endpoint to end.
    pub fn say(&self) {
        self.is_said.store(true, Ordering::Release);
        let _ = self.waker.wake();
    }
}

/// One end of the multiplexed pipes: sockets on this side, frames on the other.
pub struct MuxEndpoint {
    poll: Poll,
    mux: Mux,
    sockets: HashMap<Id, TcpStream>,
    /// Who is not connected yet, and since when.
    connecting: HashMap<Id, Instant>,
    door: Doorway,
    reader: PipeReader,
    writer: PipeWriter,
    frames: FrameReader,
    /// Who may have something to be told.
    ready: HashSet<Id>,
    /// Who may have something to say. Sockets are read until they have no more: on Windows they do not tell
    /// again before, and who reads without cause is told of causes for ever.
    readable: HashSet<Id>,
    /// Who has something to say while there is too much on its way.
    paused: HashSet<Id>,
    /// A connection may wait to be accepted.
    has_callers: bool,
    farewell: Arc<AtomicBool>,
    /// Since when this side is to come to an end, and whose words it waits for.
    leaving: Option<(Instant, Last)>,
    waker: Arc<Waker>,
    scratch: Box<[u8]>,
}

enum Doorway {
    In(TcpListener),
    Out(SocketAddr),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Last {
    Ours,
    Theirs,
}

impl MuxEndpoint {
    /// An endpoint that takes or makes connections at `door`, and reads and writes frames over two pipes.
    pub fn new(
        door: Door,
        from: impl Read + Send + 'static,
        to: impl Write + Send + 'static,
    ) -> io::Result<MuxEndpoint> {
        let poll = Poll::new()?;
        let (side, door) = match door {
            Door::From(listener) => {
                listener.set_nonblocking(true)?;
                let mut listener = TcpListener::from_std(listener);
                poll.registry().register(&mut listener, DOOR, Interest::READABLE)?;
                (MuxRole::Opens, Doorway::In(listener))
            }
            Door::To(place) => (MuxRole::Answers, Doorway::Out(place)),
        };
        let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
        Ok(MuxEndpoint {
            mux: Mux::new(side),
            sockets: HashMap::new(),
            connecting: HashMap::new(),
            door,
            reader: PipeReader::start(from, waker.clone())?,
            writer: PipeWriter::start(to, waker.clone())?,
            frames: FrameReader::default(),
            ready: HashSet::new(),
            readable: HashSet::new(),
            paused: HashSet::new(),
            has_callers: true,
            farewell: Arc::default(),
            leaving: None,
            waker,
            scratch: vec![0; LARGEST].into(),
            poll,
        })
    }

    /// Ends this endpoint later, from another thread.
    pub fn farewell(&self) -> Farewell {
        Farewell { is_said: self.farewell.clone(), waker: self.waker.clone() }
    }

    /// Until one of the pipes is closed, or a farewell was said and heard.
    pub fn run(mut self) -> io::Result<Ended> {
        let mut events = Events::with_capacity(EVENTS);
        loop {
            self.wait(&mut events)?;
            if self.farewell.swap(false, Ordering::AcqRel) {
                self.take_leave();
            }
            if let Some(over) = self.hear() {
                return Ok(self.finish(over));
            }
            self.let_in();
            self.advance_all();
            if !self.writer.put(&mut self.mux.outbox) || self.has_left() {
                return Ok(self.finish(Over::Closed));
            }
            if self.backlog() < MUCH {
                self.readable.extend(self.paused.drain());
            }
        }
    }

    fn wait(&mut self, events: &mut Events) -> io::Result<()> {
        let is_busy = !self.ready.is_empty() || !self.readable.is_empty();
        let pause = match (is_busy, self.leaving) {
            (true, _) => Some(Duration::ZERO),
            (false, Some((since, _))) => Some(LAST_WORDS.saturating_sub(since.elapsed())),
            (false, None) if self.connecting.is_empty() => None,
            (false, None) => Some(LOOK),
        };
        match self.poll.poll(events, pause) {
            Err(e) if e.kind() != io::ErrorKind::Interrupted => return Err(e),
            _ => {}
        }
        self.ready.extend(self.connecting.keys());
        for event in events.iter() {
            match event.token() {
                WAKER => {}
                DOOR => self.has_callers = true,
                Token(number) => {
                    let id = (number - FIRST) as Id;
                    self.ready.insert(id);
                    if event.is_readable() || event.is_read_closed() || event.is_error() {
                        self.readable.insert(id);
                    }
                }
            }
        }
        Ok(())
    }

    fn backlog(&self) -> usize {
        self.mux.outbox.len() + self.writer.held()
    }

    /// Who opens is asked to come to an end; who answers is heard out.
    fn take_leave(&mut self) {
        match self.door {
            Doorway::Out(_) => Frame::Bye.write(&mut self.mux.outbox),
            Doorway::In(_) => self.leaving = Some((Instant::now(), Last::Theirs)),
        }
    }

    /// Whether all that was to be said is said, or has taken too long.
    fn has_left(&self) -> bool {
        self.leaving.is_some_and(|(since, last)| {
            let is_silent = match last {
                Last::Ours => !self.mux.has_more_to_say() && self.backlog() == 0,
                Last::Theirs => !self.mux.has_more_to_hear(),
            };
            is_silent || since.elapsed() >= LAST_WORDS
        })
    }

    fn hear(&mut self) -> Option<Over> {
        while self.backlog() < TOO_MUCH {
            match self.frames.next_frame().map(|frame| frame.map(|frame| self.mux.hear(frame))) {
                Err(violation) | Ok(Some(Err(violation))) => {
                    return Some(Over::Violated(violation));
                }
                Ok(Some(Ok(heard))) => self.note(heard),
                Ok(None) => match self.reader.next() {
                    pipes::PipeRead::Bytes(bytes) => self.frames.feed(&bytes),
                    pipes::PipeRead::Nothing => return None,
                    pipes::PipeRead::Closed => return Some(Over::Closed),
                },
            }
        }
        None
    }

    fn note(&mut self, heard: MuxEvent) {
        match heard {
            MuxEvent::Nothing => {}
            MuxEvent::Opened(id) => self.lead(id),
            MuxEvent::Changed(id) => {
                self.ready.insert(id);
                self.readable.insert(id);
            }
            MuxEvent::Reset(id) => {
                self.sockets.remove(&id);
                self.connecting.remove(&id);
                self.paused.remove(&id);
            }
            MuxEvent::Bye => {
                self.leaving.get_or_insert_with(|| (Instant::now(), Last::Ours));
                // A client that connected before is to be heard.
                self.has_callers = true;
            }
        }
    }

    /// Connects what the other side has opened. No client waits for it: where no server is, Windows takes two
    /// seconds to say so.
    fn lead(&mut self, id: Id) {
        let Doorway::Out(place) = self.door else { return };
        match TcpStream::connect(place) {
            Ok(socket) => {
                self.connecting.insert(id, Instant::now());
                self.add(id, socket);
            }
            Err(_) => self.mux.reset(id),
        }
    }

    /// Takes who stands at the door, as long as there is room.
    fn let_in(&mut self) {
        while self.has_callers && !self.mux.is_full() && self.backlog() < MUCH {
            let Doorway::In(listener) = &self.door else { return };
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
                self.readable.insert(id);
            }
            Err(_) => self.give_up(id),
        }
    }

    fn give_up(&mut self, id: Id) {
        self.connecting.remove(&id);
        self.mux.reset(id);
    }

    fn advance_all(&mut self) {
        let readable = std::mem::take(&mut self.readable);
        for id in std::mem::take(&mut self.ready).union(&readable) {
            let Some(socket) = self.sockets.remove(id) else { continue };
            match self.advance(*id, &socket, &readable) {
                Ok(()) if self.mux.close(*id) => {}
                Ok(()) => drop(self.sockets.insert(*id, socket)),
                Err(_) => self.give_up(*id),
            }
        }
    }

    fn advance(&mut self, id: Id, socket: &TcpStream, readable: &HashSet<Id>) -> io::Result<()> {
        // What it sent when it was connected is not told again.
        let is_new = self.connecting.contains_key(&id);
        if !self.is_connected(id, socket)? {
            return Ok(());
        }
        self.tell(id, socket)?;
        if is_new || readable.contains(&id) { self.read(id, socket) } else { Ok(()) }
    }

    fn is_connected(&mut self, id: Id, socket: &TcpStream) -> io::Result<bool> {
        let Some(since) = self.connecting.get(&id) else { return Ok(true) };
        if let Some(error) = socket.take_error()? {
            return Err(error);
        }
        let is = socket.peer_addr().is_ok();
        if !is && since.elapsed() >= PATIENCE {
            return Err(io::ErrorKind::TimedOut.into());
        }
        if is {
            self.connecting.remove(&id);
        }
        Ok(is)
    }

    /// Passes on what the other side has said.
    fn tell(&mut self, id: Id, mut socket: &TcpStream) -> io::Result<()> {
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
        Ok(())
    }

    /// Takes what a socket has, as far as there is room for it.
    fn read(&mut self, id: Id, mut socket: &TcpStream) -> io::Result<()> {
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

    /// What the other side had ended in order is passed on; the rest is cut off.
    fn finish(mut self, over: Over) -> Ended {
        let mut sockets = Vec::new();
        let (until, none_ready) = (Instant::now() + LAST_WORDS, HashSet::new());
        for (id, socket) in std::mem::take(&mut self.sockets) {
            if over != Over::Closed || !self.mux.is_ended(id) {
                continue;
            }
            while self.advance(id, &socket, &none_ready).is_ok() && !self.mux.is_heard_out(id) {
                if Instant::now() >= until {
                    break;
                }
                std::thread::sleep(Duration::from_millis(2));
            }
            sockets.push(socket);
        }
        Ended { over, _sockets: sockets }
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
