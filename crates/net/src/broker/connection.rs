//! A connection of the command's, and the one outside that it is joined to.

use std::fmt;
use std::io;
use std::time::{Duration, Instant};

use mcp_policy::{HostName, Protocol, Tls};
use mio::net::TcpStream;

use super::budget::{Gauge, Hold};
use super::half_pipe::{End, HalfPipe, Look, Store, Turn};
use super::slots::{Cause, SocketSide};
use super::{rearm, socket};
use crate::allowlist::Allowlist;
use crate::endpoint::{Endpoint, Target};
use crate::first_bytes::{Opening, Verdict, is_tls_port};
use crate::proxy::Manner;
use crate::shares::{NOBODY, Party};

/// How long one end may be silent after the other has closed its half.
pub const HALF_CLOSED: Duration = Duration::from_secs(300);

/// The largest first message that is looked at.
pub const LARGEST_OPENING: usize = 80 << 10;

/// Where a listener leads.
#[derive(Debug)]
pub struct Service {
    pub protocol: Protocol,
    pub target: Target,
    pub port: u16,
    /// As a rule would say it; what it is counted under.
    pub shown: String,
    pub check: Check,
    /// The rule that allows it.
    pub party: Party,
}

impl Service {
    pub fn of(protocol: Protocol, target: Target, port: u16, check: Check) -> Service {
        let place = Endpoint { target: target.clone(), port };
        let shown = match protocol {
            Protocol::Tcp => place.to_string(),
            Protocol::Udp => format!("udp://{place}"),
        };
        Service { protocol, target, port, shown, check, party: NOBODY }
    }
}

/// Whether the first words of a client must name the host that it asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    Names,
    Nothing,
}

impl Check {
    pub fn of(tls: Tls) -> Check {
        match tls {
            Tls::Checked => Check::Names,
            Tls::Off => Check::Nothing,
        }
    }
}

/// Both ends are there, and bytes go to and fro.
#[derive(Debug)]
pub struct Joined {
    pub client: TcpStream,
    pub upstream: TcpStream,
    /// Until the client's first words were judged.
    unheard: Option<Box<Unheard>>,
    /// The client has said something urgent: what it says stops there until it is taken.
    is_urgent: bool,
    out: HalfPipe,
    back: HalfPipe,
    /// When to look whether the end that is left still speaks.
    pub until: Option<Instant>,
    /// What was moved when it was last looked at, to tell silence.
    marked: u64,
}

/// First words that are not judged yet.
#[derive(Debug)]
struct Unheard {
    opening: Opening,
    fed: usize,
    since: Instant,
    hold: Hold,
}

impl Unheard {
    fn new(heads: &Gauge) -> Unheard {
        let opening = Opening::default();
        Unheard { opening, fed: 0, since: Instant::now(), hold: heads.hold() }
    }
}

/// What is copied of a head while it is not complete, at most: its bytes, in a vector that grows by
/// doubling.
pub const fn copied(bytes: usize) -> usize {
    bytes * 2
}

/// How a connection is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closing {
    InOrder,
    /// A program that waits at an end sees an error, as if there were no relay.
    Reset,
}

#[derive(Debug, PartialEq, Eq)]
pub enum JoinedState {
    Waits,
    GoesOn,
    /// Both ends are closed, in order.
    Done,
    /// One end was reset, and so shall the other be.
    Broken,
    /// The client's first words were not what they had to be.
    Refused(Refused),
}

/// Why a client's first words are not passed on.
#[derive(Debug, PartialEq, Eq)]
pub enum Refused {
    /// They ask for another name, which a rule of its own would allow.
    OtherName(String),
    /// No name can be read in them: only a rule with `tls=off` lets them pass.
    NoName(String),
}

impl Joined {
    /// `heads` is where first words are held.
    pub fn new(client: TcpStream, upstream: TcpStream, check: Check, heads: &Gauge) -> Joined {
        socket::take_urgent_inline(&client);
        socket::take_urgent_inline(&upstream);
        Joined {
            client,
            upstream,
            unheard: (check == Check::Names).then(|| Box::new(Unheard::new(heads))),
            is_urgent: false,
            out: HalfPipe::new(),
            back: HalfPipe::new(),
            until: None,
            marked: 0,
        }
    }

    /// The first words of a connection that was asked for: to the client that it is there, to the
    /// server what the client asked for.
    pub fn begin_with(&mut self, manner: Manner) {
        self.back = HalfPipe::after(manner.connected());
        if let Manner::Forward { head } = manner {
            self.out = HalfPipe::after_counted(head);
        }
    }

    pub fn bytes(&self) -> (u64, u64) {
        (self.out.bytes, self.back.bytes)
    }

    /// Whether one of the ends has closed.
    pub fn is_half_closed(&self) -> bool {
        self.out.is_ended() || self.back.is_ended()
    }

    /// Whether anything was moved since this was last asked.
    pub fn is_alive(&mut self) -> bool {
        let bytes = self.out.bytes + self.back.bytes;
        let alive = bytes != self.marked;
        self.marked = bytes;
        alive
    }

    /// Whether the client's first words are still to be judged.
    pub fn is_unheard(&self) -> bool {
        self.unheard.is_some()
    }

    /// Since when some of the client's first words are held.
    pub fn unheard_since(&self) -> Option<Instant> {
        let unheard = self.unheard.as_ref().filter(|unheard| unheard.hold.bytes() > 0);
        unheard.map(|unheard| unheard.since)
    }

    /// Something urgent came from this side.
    pub fn be_urged(&mut self, side: SocketSide) {
        match side {
            SocketSide::Inner => {
                self.is_urgent = true;
                self.out.be_urged();
            }
            SocketSide::Outer => self.back.be_urged(),
        }
    }

    pub fn waits_to_write(&self, side: SocketSide) -> bool {
        match side {
            SocketSide::Inner => self.back.is_held_up(),
            SocketSide::Outer => self.out.is_held_up(),
        }
    }

    /// Whether all that the command had to say is on its way.
    pub fn is_sent(&self) -> bool {
        self.out.is_ended()
    }

    pub fn advance(
        &mut self,
        cause: Cause,
        service: &Service,
        allow: &Allowlist,
        store: &mut Store,
        scratch: &mut [u8],
    ) -> JoinedState {
        // At an end both directions are looked at, to the end.
        let look = match cause {
            Cause::Event(_) | Cause::Room(_) if rearm::TELLS_ALL => Look::ForMore,
            _ => Look::ToTheEnd,
        };
        let back = match has_turn(cause, SocketSide::Outer, &self.back) {
            true => {
                let how = (look, end_after(&self.out));
                self.back.advance(&self.upstream, &self.client, how, store, scratch)
            }
            false => Ok(Turn::Waits),
        };
        let was_unheard = self.unheard.is_some();
        // Who is spoken to first speaks a language in which no name is asked for.
        if self.back.bytes > 0 {
            self.unheard = None;
        }
        if let Some(unheard) = &mut self.unheard {
            if matches!(cause, Cause::Room(_)) {
                return self.state(back, Ok(Turn::Waits));
            }
            let before = unheard.fed;
            match judge(unheard, &self.client, (service, allow), scratch) {
                // Nothing behind an urgent byte can be looked at before that one is taken.
                Ok(Judged::Waits) if self.is_urgent && unheard.fed == before => {
                    let why = "something urgent within its first message";
                    return JoinedState::Refused(Refused::NoName(why.to_owned()));
                }
                Ok(Judged::Waits) => return self.state(back, Ok(Turn::Waits)),
                Ok(Judged::Passes) => self.unheard = None,
                Ok(Judged::Refused(why)) => return JoinedState::Refused(why),
                Err(_) => return JoinedState::Broken,
            }
        }
        let look = if was_unheard { Look::ToTheEnd } else { look };
        let out = match was_unheard || has_turn(cause, SocketSide::Inner, &self.out) {
            true => {
                let how = (look, end_after(&self.back));
                self.out.advance(&self.client, &self.upstream, how, store, scratch)
            }
            false => Ok(Turn::Waits),
        };
        if out.is_err() && back.is_ok() {
            // A server that has said all may refuse to hear the rest: what it said counts.
            let how = (Look::ToTheEnd, End::Half);
            let _ = self.back.advance(&self.upstream, &self.client, how, store, scratch);
        }
        self.state(back, out)
    }

    fn state(&self, back: io::Result<Turn>, out: io::Result<Turn>) -> JoinedState {
        match (back, out) {
            (Err(_), _) | (_, Err(_)) => JoinedState::Broken,
            _ if self.out.is_ended() && self.back.is_ended() => JoinedState::Done,
            (Ok(Turn::GoesOn), _) | (_, Ok(Turn::GoesOn)) => JoinedState::GoesOn,
            _ => JoinedState::Waits,
        }
    }

    pub fn close(self, closing: Closing) {
        if closing == Closing::Reset {
            socket::reset(self.client);
            socket::reset(self.upstream);
        }
    }
}

/// Whether a direction has anything to do. When one socket has something to say, the other
/// direction has not, unless something waits in it until it can be sent.
fn has_turn(cause: Cause, from: SocketSide, pipe: &HalfPipe) -> bool {
    match cause {
        Cause::Event(side) => side == from || pipe.is_held_up(),
        Cause::Room(side) => side != from && pipe.is_held_up(),
        Cause::End(_) | Cause::Unfinished => true,
    }
}

fn end_after(other: &HalfPipe) -> End {
    if other.is_ended() { End::Whole } else { End::Half }
}

enum Judged {
    Waits,
    Passes,
    Refused(Refused),
}

/// Looks at the client's first words without taking them.
fn judge(
    unheard: &mut Unheard,
    client: &TcpStream,
    (service, allow): (&Service, &Allowlist),
    scratch: &mut [u8],
) -> io::Result<Judged> {
    let count = match client.peek(scratch) {
        Ok(count) => count,
        Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(Judged::Waits),
        Err(e) => return Err(e),
    };
    if count == 0 {
        // It has nothing to say, and says so.
        return Ok(Judged::Passes);
    }
    let no_name = |why: &str| Judged::Refused(Refused::NoName(why.to_owned()));
    let other = |what, name: &dyn fmt::Display| {
        Judged::Refused(Refused::OtherName(format!("{what} asked for {name} instead")))
    };
    let verdict = unheard.opening.feed(scratch.get(unheard.fed..count).unwrap_or_default());
    unheard.fed = unheard.fed.max(count);
    unheard.hold.set(copied(unheard.fed));
    Ok(match verdict {
        Verdict::NeedMore if count >= LARGEST_OPENING => {
            no_name("its first message is too long to be looked at")
        }
        Verdict::NeedMore => Judged::Waits,
        Verdict::Broken(why) => no_name(why),
        Verdict::Tls(hello) => match &hello.server_name {
            Some(name) if may_ask(name, service, allow) => Judged::Passes,
            Some(name) => other("TLS", name),
            None => no_name("TLS without a server name"),
        },
        Verdict::Opaque | Verdict::Http(_) if is_tls_port(service.port) => {
            no_name("what it says first is not TLS")
        }
        Verdict::Opaque => Judged::Passes,
        Verdict::Http(head) => match &head.host {
            None => Judged::Passes,
            Some(Target::Name(name)) if may_ask(name, service, allow) => Judged::Passes,
            Some(host) => other("HTTP", host),
        },
    })
}

/// Whether the rule that opened this connection allows this name too.
fn may_ask(name: &HostName, service: &Service, allow: &Allowlist) -> bool {
    match &service.target {
        Target::Name(opened) => allow.allows_server_name(opened, service.port, name),
        Target::Ip(_) => true,
    }
}

#[cfg(test)]
mod tests;
