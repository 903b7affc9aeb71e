//! The launcher's side of the sandbox's network: takes over the sockets that init made, and has
//! the broker answer them in a thread of its own, so that no traffic delays the supervisor.
//!
//! Without rules there is only something to tell: which name was asked for, which address was tried. The thread is
//! started when the first of these comes.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::core::error::Error;
use crate::core::host::Ids;
use crate::core::notices::Notices;
use crate::core::report::Answer;
use crate::core::request::Request;
use crate::linux::connect_proxy::ConnectProxy;
use crate::linux::phases::LinuxPlan;
use crate::linux::plan::network;
use crate::linux::refusals::Refusals;
use crate::linux::sandbox_socket::{Refused, SandboxSocket};
use crate::linux::sandbox_sockets::Orders;
use crate::linux::seccomp_notify::SeccompNotify;
use crate::linux::step::ConnectionRelay;
use crate::linux::well_known::RESOLVER;
use crate::linux::{open_files, own_networks};
use mcp_net::allowlist::Allowlist;
use mcp_net::broker::{
    Broker, Callers, Handle, Inside, Journal, Meter, NameServers, NetworkUse, NoInside, Setup, Tell,
};
use mcp_net::loopback_listeners::on_this_host;
use mcp_net::upstream::Upstream;
use mcp_seccomp::Connects;

pub struct Network {
    setup: Option<Setup>,
    path: Path,
    open: bool,
    state: BrokerState,
}

/// How the command's connections come to the broker.
enum Path {
    /// By sockets that init made in a network of the sandbox's own.
    SandboxSockets {
        orders: Option<Orders>,
        sandbox_sockets: Vec<SandboxSocket>,
        connects: Connects,
    },
    /// The launcher makes them. Whose rights count where it looks at the command.
    Proxy { user: Option<Ids> },
}

enum BrokerState {
    Before,
    /// Nothing was asked yet. What is asked first wakes the broker.
    Asleep(Vec<(SandboxSocket, OwnedFd)>),
    Running(Handle),
    Over,
}

impl Network {
    /// `None` where the command has the host's network.
    pub fn new(
        plan: &LinuxPlan,
        request: &Request,
        outside: Outside,
        orders: Orders,
        meter: Option<Meter>,
    ) -> Option<Network> {
        let path = Path::of(plan, request, orders)?;
        let Outside { upstream, listeners, tell } = outside;
        let rules = request.policy.network.allow.iter().map(|rule| rule.value.clone());
        let (rules, listeners) = match path {
            Path::SandboxSockets { .. } => (rules.collect(), listeners),
            // No program can listen inside.
            Path::Proxy { .. } => (Allowlist::with_loopback(rules), Vec::new()),
        };
        let setup = Setup {
            rules,
            listeners,
            own: Box::new(own_networks::own_networks),
            name_servers: NameServers::ResolvConf,
            upstream,
            journal: Journal::new(tell).metered(meter),
            host_listeners: Box::new(on_this_host),
            memory: request.policy.limits.memory.value.map(|limit| limit.0),
        };
        let open = network::is_open(request);
        Some(Network { setup: Some(setup), path, open, state: BrokerState::Before })
    }

    /// The command is about to start: its sockets are there.
    pub fn begin(&mut self) -> io::Result<()> {
        let sockets = match &self.path {
            Path::SandboxSockets { orders: Some(orders), sandbox_sockets, .. } => {
                orders.collect(sandbox_sockets)?
            }
            Path::SandboxSockets { orders: None, .. } => return Ok(()),
            Path::Proxy { .. } => Vec::new(),
        };
        self.state = BrokerState::Asleep(sockets);
        if self.open { self.wake() } else { Ok(()) }
    }

    /// Has the broker answer the system call filter, where connections are announced; else gives
    /// it back.
    pub fn take_over(&self, notify: SeccompNotify) -> Option<SeccompNotify> {
        match (&self.state, &self.path) {
            (
                BrokerState::Running(handle),
                Path::SandboxSockets { connects: Connects::Announced, .. },
            ) => {
                handle.watch(Box::new(notify));
                None
            }
            (BrokerState::Running(handle), Path::Proxy { user }) => {
                handle.watch(Box::new(notify.connecting_with(ConnectProxy::new(*user))));
                None
            }
            _ => Some(notify),
        }
    }

    /// What to wait for while the broker does not.
    pub fn wants(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let sockets = match &self.state {
            BrokerState::Asleep(sockets) => sockets.as_slice(),
            _ => &[],
        };
        sockets.iter().map(|(_, socket)| socket.as_fd())
    }

    pub fn advance(&mut self) -> io::Result<()> {
        let mut fds: Vec<_> =
            self.wants().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        if fds.is_empty() {
            return Ok(());
        }
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        match poll(&mut fds, Some(&now)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => Ok(()),
            Ok(_) => self.wake(),
            Err(e) => Err(e.into()),
        }
    }

    fn wake(&mut self) -> io::Result<()> {
        let state = std::mem::replace(&mut self.state, BrokerState::Over);
        let (BrokerState::Asleep(sockets), Some(setup)) = (state, self.setup.take()) else {
            return Ok(());
        };
        let mut broker = match &mut self.path {
            Path::SandboxSockets { orders, .. } => {
                let Some(orders) = orders.take() else {
                    return Ok(());
                };
                Broker::new(setup, Box::new(Insider(orders)), descriptors())?
            }
            Path::Proxy { .. } => {
                let mut broker = Broker::new(setup, Box::new(NoInside), descriptors())?;
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
                broker.add_frontend(listener, Callers::Expected)?;
                broker
            }
        };
        for (sandbox_socket, socket) in sockets {
            match sandbox_socket {
                SandboxSocket::Datagrams(at) if at == RESOLVER => {
                    broker.add_resolver(UdpSocket::from(socket))?;
                }
                SandboxSocket::Listener(at) if at == RESOLVER => {
                    broker.add_resolver_listener(TcpListener::from(socket))?;
                }
                SandboxSocket::Listener(at) => broker.add_listener(at, socket.into())?,
                SandboxSocket::Datagrams(at) => broker.add_datagrams(at, socket.into())?,
                SandboxSocket::Refusals(kind) => {
                    if kind == Refused::Tcp6 {
                        broker.offer_ipv6();
                    }
                    broker.add_watcher(Box::new(Refusals::new(kind, socket)))?;
                }
                SandboxSocket::Connection(_) => {}
            }
        }
        self.state = BrokerState::Running(broker.start()?);
        Ok(())
    }

    /// Ends the broker and says what was reached.
    pub fn finish(&mut self) -> NetworkUse {
        // What the command tried last may be unheard, and is only there to be told.
        let _ = self.advance();
        match std::mem::replace(&mut self.state, BrokerState::Over) {
            BrokerState::Running(handle) => handle.finish(),
            _ => NetworkUse::default(),
        }
    }
}

impl Path {
    /// `None` where nothing is carried.
    fn of(plan: &LinuxPlan, request: &Request, orders: Orders) -> Option<Path> {
        if let Some(network) = &plan.init.network {
            let sandbox_sockets = network.sockets.step.sandbox_sockets.clone();
            let connects = network::connects(request);
            return Some(Path::SandboxSockets { orders: Some(orders), sandbox_sockets, connects });
        }
        match plan.connection_relay.as_ref()?.step {
            ConnectionRelay::Proxy { .. } => Some(Path::Proxy { user: plan.user() }),
            ConnectionRelay::Broker { .. } => None,
        }
    }
}

/// What of the host's network a run uses, made before anything else is: a port that is taken is
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
                why: format!("port {} of 127.0.0.1 on the host cannot be bound: {e}", port.value),
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
        let sandbox_sockets: Vec<_> = at.iter().map(|at| SandboxSocket::Listener(*at)).collect();
        let made = self.0.order(&sandbox_sockets)?;
        Ok(made.into_iter().map(|made| made.map(Into::into)).collect())
    }

    fn datagrams(&mut self, at: SocketAddr) -> io::Result<UdpSocket> {
        self.one(SandboxSocket::Datagrams(at)).map(Into::into)
    }

    fn connect(&mut self, to: SocketAddr) -> io::Result<TcpStream> {
        self.one(SandboxSocket::Connection(to)).map(Into::into)
    }
}

impl Insider {
    fn one(&self, sandbox_socket: SandboxSocket) -> io::Result<OwnedFd> {
        let gone = || io::Error::from(io::ErrorKind::UnexpectedEof);
        self.0.order(&[sandbox_socket])?.into_iter().next().ok_or_else(gone)?
    }
}
