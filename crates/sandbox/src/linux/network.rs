//! The launcher's side of the sandbox's network: takes over the sockets that init made, and has
//! the broker answer them in a thread of its own, so that no traffic delays the supervisor.
//!
//! Without rules there is only the resolver to answer, to say what was asked for; the thread is
//! started when the first question comes.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::core::host::Ids;
use crate::error::Error;
use crate::linux::connector::Connector;
use crate::linux::gate::Gate;
use crate::linux::inside::RESOLVER;
use crate::linux::outlet::{Outlet, Refused};
use crate::linux::outlets::Orders;
use crate::linux::plan::network;
use crate::linux::refusals::Refusals;
use crate::linux::step::{Plan, Step};
use crate::linux::{open_files, own_networks};
use crate::notices::Notices;
use crate::report::Answer;
use crate::request::Request;
use mcp_net::allowlist::Allowlist;
use mcp_net::broker::{
    Broker, Callers, Handle, Inside, Journal, Meter, NameServers, NetworkUse, NoInside, Setup, Tell,
};
use mcp_net::upstream::Upstream;
use mcp_seccomp::Connects;

pub struct Network {
    setup: Option<Setup>,
    way: Way,
    open: bool,
    state: State,
}

/// How the command's connections come to the broker.
enum Way {
    /// By sockets that init made in a network of the sandbox's own.
    Outlets { orders: Option<Orders>, outlets: Vec<Outlet>, connects: Connects },
    /// The launcher makes them. Whose rights count where it looks at the command.
    Proxy { user: Option<Ids> },
}

enum State {
    Before,
    /// Nothing was asked yet. What is asked first wakes the broker.
    Asleep(Vec<(Outlet, OwnedFd)>),
    Running(Handle),
    Over,
}

impl Network {
    /// `None` where the command has the host's network.
    pub fn new(
        plan: &Plan,
        request: &Request,
        outside: Outside,
        orders: Orders,
        meter: Option<Meter>,
    ) -> Option<Network> {
        let way = Way::of(plan, request, orders)?;
        let Outside { upstream, listeners, tell } = outside;
        let rules = request.policy.network.allow.iter().map(|rule| rule.value.clone());
        let (rules, listeners) = match way {
            Way::Outlets { .. } => (rules.collect(), listeners),
            // Nobody can listen inside.
            Way::Proxy { .. } => (Allowlist::with_loopback(rules), Vec::new()),
        };
        let setup = Setup {
            rules,
            listeners,
            own: Box::new(own_networks::own_networks),
            name_servers: NameServers::ResolvConf,
            upstream,
            journal: Journal::new(tell).metered(meter),
            memory: request.policy.limits.memory.value.map(|limit| limit.0),
        };
        let open = network::is_open(request);
        Some(Network { setup: Some(setup), way, open, state: State::Before })
    }

    /// The command is about to start: its sockets are there.
    pub fn begin(&mut self) -> io::Result<()> {
        let sockets = match &self.way {
            Way::Outlets { orders: Some(orders), outlets, .. } => orders.collect(outlets)?,
            Way::Outlets { orders: None, .. } => return Ok(()),
            Way::Proxy { .. } => Vec::new(),
        };
        self.state = State::Asleep(sockets);
        if self.open { self.wake() } else { Ok(()) }
    }

    /// Has the broker answer the system call filter, where connections are announced; else gives
    /// it back.
    pub fn take_over(&self, gate: Gate) -> Option<Gate> {
        match (&self.state, &self.way) {
            (State::Running(handle), Way::Outlets { connects: Connects::Announced, .. }) => {
                handle.watch(Box::new(gate));
                None
            }
            (State::Running(handle), Way::Proxy { user }) => {
                handle.watch(Box::new(gate.connecting_with(Connector::new(*user))));
                None
            }
            _ => Some(gate),
        }
    }

    /// What to wait for while nobody else does.
    pub fn wants(&self) -> Option<BorrowedFd<'_>> {
        match &self.state {
            State::Asleep(sockets) => sockets.first().map(|(_, socket)| socket.as_fd()),
            _ => None,
        }
    }

    pub fn advance(&mut self) -> io::Result<()> {
        let Some(socket) = self.wants() else {
            return Ok(());
        };
        let mut fds = [PollFd::new(&socket, PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        match poll(&mut fds, Some(&now)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => Ok(()),
            Ok(_) => self.wake(),
            Err(e) => Err(e.into()),
        }
    }

    fn wake(&mut self) -> io::Result<()> {
        let state = std::mem::replace(&mut self.state, State::Over);
        let (State::Asleep(sockets), Some(setup)) = (state, self.setup.take()) else {
            return Ok(());
        };
        let mut broker = match &mut self.way {
            Way::Outlets { orders, .. } => {
                let Some(orders) = orders.take() else {
                    return Ok(());
                };
                Broker::new(setup, Box::new(Insider(orders)), descriptors())?
            }
            Way::Proxy { .. } => {
                let mut broker = Broker::new(setup, Box::new(NoInside), descriptors())?;
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
                broker.add_front(listener, Callers::Expected)?;
                broker
            }
        };
        for (outlet, socket) in sockets {
            match outlet {
                Outlet::Datagrams(at) if at == RESOLVER => {
                    broker.add_resolver(UdpSocket::from(socket))?;
                }
                Outlet::Listener(at) if at == RESOLVER => {
                    broker.add_resolver_listener(TcpListener::from(socket))?;
                }
                Outlet::Listener(at) => broker.add_listener(at, socket.into())?,
                Outlet::Datagrams(at) => broker.add_datagrams(at, socket.into())?,
                Outlet::Refusals(kind) => {
                    if kind == Refused::Tcp6 {
                        broker.offer_ipv6();
                    }
                    broker.add_watcher(Box::new(Refusals::new(kind, socket)))?;
                }
                Outlet::Connection(_) => {}
            }
        }
        self.state = State::Running(broker.start()?);
        Ok(())
    }

    /// Ends the broker and says what was reached.
    pub fn finish(&mut self) -> NetworkUse {
        match std::mem::replace(&mut self.state, State::Over) {
            State::Running(handle) => handle.finish(),
            _ => NetworkUse::default(),
        }
    }
}

impl Way {
    /// `None` where nothing is carried.
    fn of(plan: &Plan, request: &Request, orders: Orders) -> Option<Way> {
        let steps = || plan.steps.iter().map(|planned| &planned.step);
        let outlets = steps().find_map(|step| match step {
            Step::Outlets { outlets } => Some(outlets.clone()),
            _ => None,
        });
        if let Some(outlets) = outlets {
            let connects = network::connects(request);
            return Some(Way::Outlets { orders: Some(orders), outlets, connects });
        }
        let user = steps().find_map(|step| match step {
            Step::Become { uid, gid } => Some(Ids { uid: *uid, gid: *gid }),
            _ => None,
        });
        let proxied = steps().any(|step| matches!(step, Step::Proxy { .. }));
        proxied.then_some(Way::Proxy { user })
    }
}

/// What of the host's network a run uses, made before anything else is: what cannot be had is
/// said before anything runs.
pub struct Outside {
    /// The user's own way out, where connections take it.
    upstream: Upstream,
    /// Ports of the host's loopback that lead inside.
    listeners: Vec<(u16, TcpListener)>,
    tell: Tell,
}

impl Outside {
    pub fn prepare(request: &Request, notices: Notices) -> Result<Outside, Error> {
        let tell = notices.teller();
        if !network::is_open(request) {
            return Ok(Outside { upstream: Upstream::default(), listeners: Vec::new(), tell });
        }
        let upstream = Upstream::read(|name| std::env::var(name).ok()).map_err(|bad| {
            Error::Input { what: bad.variable.to_owned(), why: bad.reason.to_owned() }
        })?;
        let mut listeners = Vec::new();
        for port in &request.policy.network.listen {
            let refuse = |e: io::Error| Error::Input {
                what: format!("--listen {}", port.value),
                why: format!("127.0.0.1:{} of the host cannot be had: {e}", port.value),
            };
            listeners.push((port.value, listen(port.value).map_err(refuse)?));
        }
        Ok(Outside { upstream, listeners, tell })
    }

    /// What is to be said of connections that are carried.
    pub fn evidence(&self) -> Answer {
        match self.upstream.is_direct() {
            true => Answer::Confirmed(String::new()),
            false => Answer::Less(
                "names go to the user's proxy (HTTPS_PROXY and the like), which resolves them: \
                 what they lead to is not checked"
                    .to_owned(),
            ),
        }
    }
}

fn listen(port: u16) -> io::Result<TcpListener> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// How many descriptors there may be, after asking for all that can be had. Init was cloned
/// before, so the command keeps the limit of the caller.
fn descriptors() -> usize {
    open_files::raise();
    open_files::most()
}

struct Insider(Orders);

impl Inside for Insider {
    fn listen(&mut self, at: &[SocketAddr]) -> io::Result<Vec<io::Result<TcpListener>>> {
        let outlets: Vec<_> = at.iter().map(|at| Outlet::Listener(*at)).collect();
        let made = self.0.order(&outlets)?;
        Ok(made.into_iter().map(|made| made.map(Into::into)).collect())
    }

    fn datagrams(&mut self, at: SocketAddr) -> io::Result<UdpSocket> {
        self.one(Outlet::Datagrams(at)).map(Into::into)
    }

    fn connect(&mut self, to: SocketAddr) -> io::Result<TcpStream> {
        self.one(Outlet::Connection(to)).map(Into::into)
    }
}

impl Insider {
    fn one(&self, outlet: Outlet) -> io::Result<OwnedFd> {
        let gone = || io::Error::from(io::ErrorKind::UnexpectedEof);
        self.0.order(&[outlet])?.into_iter().next().ok_or_else(gone)?
    }
}
