//! The broker: everything that goes between a sandbox's network and the host's.
//!
//! One thread, one event loop. It answers the sandbox's name questions, takes connections to what
//! is allowed, finds the real address, judges it, connects from the host, and moves bytes to and
//! fro. It never asks the host's network anything on behalf of a name that no rule allows. The
//! command decides how much there is to do, so everything is bounded, and what meets a bound is
//! said once.
//!
//! Portable: how sockets come to be inside is left to [`Inside`] and [`Watcher`].

mod budget;
mod busy_poll;
mod configured;
mod connecting;
mod connection;
#[cfg(not(target_os = "linux"))]
mod copy;
mod dial;
mod event_loop;
mod half_pipe;
mod handle;
mod host_names;
mod journal;
mod listeners;
mod names;
mod proxy_frontend;
mod rearm;
mod room;
mod slots;
mod socket;
#[cfg(target_os = "linux")]
mod splice;
mod stub_resolver;
#[cfg(test)]
mod tests;
mod udp_flow;
mod upstream_handshake;

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Instant;

use mcp_policy::{HostName, NetRule, Protocol};
use mio::{Interest, Registry, Token};

use self::budget::Budget;
use self::busy_poll::BusyPoll;
pub use self::configured::NameServers;
use self::connecting::Routes;
use self::event_loop::Entry;
use self::half_pipe::{Buffers, Store};
use self::handle::Caller;
pub use self::handle::Handle;
pub use self::journal::{
    Journal, Meter, NetworkTotals, NetworkUse, RefusedDestination, Tell, Traffic,
};
use self::names::Names;
#[cfg(target_os = "linux")]
pub(crate) use self::names::{Socket, configured};
use self::proxy_frontend::Expected;
pub use self::proxy_frontend::{Callers, Wanted};
use self::slots::{Slots, SocketSide, Timers, token};
use crate::address::Networks;
use crate::address_pool::{CAPACITY, Pool, V4_RANGE, V6_RANGE};
use crate::allowlist::Allowlist;
use crate::endpoint::{Endpoint, Target};
use crate::loopback_listeners::{HostListeners, ListListeners};
use crate::shares::Shares;
use crate::upstream::Upstream;

/// How sockets are made in the sandbox's network. Answers come at once.
pub trait Inside: Send {
    /// Opens TCP listeners; each address has its own result.
    fn listen(&mut self, at: &[SocketAddr]) -> io::Result<Vec<io::Result<TcpListener>>>;
    /// Opens a UDP socket.
    fn datagrams(&mut self, at: SocketAddr) -> io::Result<UdpSocket>;
    /// A connection to a server inside that may still be in the making.
    fn connect(&mut self, to: SocketAddr) -> io::Result<TcpStream>;
}

/// Where the sandbox has no network of its own.
pub struct NoInside;

impl Inside for NoInside {
    fn listen(&mut self, _: &[SocketAddr]) -> io::Result<Vec<io::Result<TcpListener>>> {
        Ok(Vec::new())
    }

    fn datagrams(&mut self, _: SocketAddr) -> io::Result<UdpSocket> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn connect(&mut self, _: SocketAddr) -> io::Result<TcpStream> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Something else that has to do with the sandbox's network and is served by the same loop.
pub trait Watcher: Send {
    /// Registers its sources with the event loop.
    fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()>;
    /// Is called when one of them is ready.
    fn ready(&mut self, broker: &mut Watched<'_>) -> Keep;
}

/// What becomes of a watcher after its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// It waits for its next event.
    Listening,
    /// It has more to do, after others had their turn.
    Busy,
    /// It is removed.
    Closed,
}

/// What a watcher can do with the broker.
pub struct Watched<'a>(&'a mut Broker);

impl Watched<'_> {
    /// The command tried to reach this, and no server listens there.
    pub fn nobody_listens(&mut self, protocol: Protocol, to: SocketAddr) {
        self.0.nobody_listens(protocol, to);
    }

    /// The command is about to connect to this.
    pub fn announce(&mut self, to: SocketAddr) {
        self.0.announce(to);
    }

    /// Where connections are taken to be proxied.
    #[must_use]
    pub fn frontend(&self) -> Option<SocketAddr> {
        self.0.frontend
    }

    /// Whether the rules allow a connection to this address. What they do not is told.
    pub fn allows(&mut self, to: SocketAddr) -> bool {
        self.0.follow_networks(Instant::now());
        let to = Endpoint { target: Target::Ip(to.ip().to_canonical()), port: to.port() };
        match self.0.allow.check(Protocol::Tcp, &to) {
            Ok(_) => true,
            Err(refusal) => {
                self.0.journal.refused(&refusal);
                false
            }
        }
    }

    /// A connection that was made for the command, and is on its way from this address.
    pub fn expect(&mut self, from: SocketAddr, wanted: Wanted) {
        self.0.expected.insert(from, wanted);
    }
}

/// What a broker is to do.
pub struct Setup {
    /// The rules of `--allow-net`.
    pub rules: Vec<NetRule>,
    /// Sockets of the host, and the ports inside that they lead to.
    pub listeners: Vec<(u16, TcpListener)>,
    /// The host's own networks, which a name may not lead to.
    pub own: OwnNetworks,
    /// The name servers that are asked.
    pub name_servers: NameServers,
    /// The user's own proxy, if there is one.
    pub upstream: Upstream,
    /// Where counters and lines for the user go.
    pub journal: Journal,
    /// Lists the host's listening sockets: a command that has a loopback of its own may have meant a service of the
    /// host's.
    pub host_listeners: ListListeners,
    /// How much memory the run may have, in bytes. What is held for its connections is a part.
    pub memory: Option<u64>,
}

/// Lists the networks of the host's own interfaces, which change while a command runs.
pub type OwnNetworks = Box<dyn Fn() -> io::Result<Networks> + Send>;

/// How much there may be of everything.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    connections: usize,
    listeners: usize,
    flows: usize,
}

impl Bounds {
    /// A connection has two descriptors, and up to four more while bytes wait in it.
    fn of(descriptors: usize) -> Bounds {
        let free = descriptors.saturating_sub(128);
        Bounds {
            connections: (free / 8).clamp(16, 4096),
            listeners: (free / 8).clamp(16, 4096),
            flows: (free / 8).clamp(16, 1024),
        }
    }
}

/// Connects the sandbox's network with the hosts that the rules allow.
pub struct Broker {
    poll: mio::Poll,
    slots: Slots<Entry>,
    /// Who has more to do without being told.
    busy: Vec<usize>,
    busy_poll: BusyPoll,
    /// Who may wait for something it will not be told (see [`rearm`]).
    unsure: rearm::Unsure,
    timers: Timers,
    allow: Allowlist,
    own: OwnNetworks,
    host_listeners: HostListeners,
    upstream: Upstream,
    pool: Pool,
    names: Names,
    routes: Routes,
    /// How other threads reach this one, once it is one.
    caller: Option<Caller>,
    inside: Box<dyn Inside>,
    /// What is listened for inside.
    listening: HashMap<SocketAddr, usize>,
    /// The same for datagrams.
    ports: HashMap<SocketAddr, usize>,
    /// By port and sender.
    flow_slots: HashMap<(usize, SocketAddr), usize>,
    /// Names that have been given their listeners.
    published: HashMap<HostName, stub_resolver::Published>,
    /// How many of them keep their addresses for good.
    kept_names: usize,
    /// Where connections are taken to be proxied, and whose.
    frontend: Option<SocketAddr>,
    expected: Expected,
    /// Listeners with a client waiting while there is no room.
    paused: BTreeSet<usize>,
    connections: Shares,
    /// Listeners and ports for datagrams.
    listeners: Shares,
    flows: Shares,
    /// Connections to the resolver.
    streams: usize,
    has_ipv6: bool,
    budget: Budget,
    store: Store,
    scratch: Box<[u8]>,
    journal: Journal,
}

impl Broker {
    /// `descriptors`: how many may be open.
    pub fn new(setup: Setup, inside: Box<dyn Inside>, descriptors: usize) -> io::Result<Broker> {
        let Setup {
            rules,
            listeners,
            own,
            name_servers,
            upstream,
            journal,
            host_listeners,
            memory,
        } = setup;
        let budget = Budget::of(memory);
        let store = Store { buffers: Buffers::default(), held: budget.relayed.clone() };
        let bounds = Bounds::of(descriptors);
        let allow = Allowlist::new(rules, own().ok());
        // Each has two ports in two families.
        let names = CAPACITY.min(bounds.listeners / 4);
        let pool = Pool::new(names, allow.literal_within(V4_RANGE.1, V6_RANGE.1));
        let mut broker = Broker {
            poll: mio::Poll::new()?,
            slots: Slots::new(),
            busy: Vec::new(),
            busy_poll: BusyPoll::new(),
            unsure: rearm::Unsure::default(),
            timers: Timers::default(),
            allow,
            own,
            host_listeners: HostListeners::new(host_listeners),
            upstream,
            pool,
            names: Names::new(name_servers),
            routes: Routes::default(),
            caller: None,
            inside,
            listening: HashMap::new(),
            ports: HashMap::new(),
            flow_slots: HashMap::new(),
            published: HashMap::new(),
            kept_names: 0,
            frontend: None,
            expected: Expected::new(),
            paused: BTreeSet::new(),
            connections: Shares::new(bounds.connections),
            listeners: Shares::new(bounds.listeners),
            flows: Shares::new(bounds.flows),
            streams: 0,
            has_ipv6: false,
            budget,
            store,
            scratch: vec![0; connection::LARGEST_OPENING].into(),
            journal,
        };
        // The slot that the waker has.
        broker.slots.reserve();
        for (port, listener) in listeners {
            broker.add_host_port(port, listener)?;
        }
        Ok(broker)
    }

    /// The socket on which the sandbox asks for names.
    pub fn add_resolver(&mut self, socket: UdpSocket) -> io::Result<()> {
        let mut socket = mio::net::UdpSocket::from_std(socket);
        let slot = self.slots.reserve();
        self.register(&mut socket, slot, SocketSide::Inner)?;
        self.slots.put(slot, Entry::Resolver(socket));
        Ok(())
    }

    /// Takes DNS queries over TCP from this listener.
    pub fn add_resolver_listener(&mut self, listener: TcpListener) -> io::Result<()> {
        let mut listener = mio::net::TcpListener::from_std(listener);
        let slot = self.slots.reserve();
        self.register(&mut listener, slot, SocketSide::Inner)?;
        self.slots.put(slot, Entry::ResolverListener(listener));
        Ok(())
    }

    /// A listener for an address that a rule names.
    pub fn add_listener(&mut self, at: SocketAddr, listener: TcpListener) -> io::Result<()> {
        let service = self.address(Protocol::Tcp, at);
        self.listen_for(at, listener, service)
    }

    /// The sandbox has IPv6.
    pub fn offer_ipv6(&mut self) {
        self.has_ipv6 = true;
    }

    /// Serves a watcher in this loop.
    pub fn add_watcher(&mut self, mut watcher: Box<dyn Watcher>) -> io::Result<()> {
        let slot = self.slots.reserve();
        watcher.register(self.poll.registry(), token(slot, SocketSide::Inner))?;
        self.slots.put(slot, Entry::Watcher(watcher));
        // It may have had something to say before anybody listened.
        self.busy.push(slot);
        Ok(())
    }

    fn register(
        &self,
        source: &mut (impl mio::event::Source + ?Sized),
        slot: usize,
        side: SocketSide,
    ) -> io::Result<()> {
        let interest = Interest::READABLE | Interest::WRITABLE;
        #[cfg(target_os = "linux")]
        let interest = interest | Interest::PRIORITY;
        self.poll.registry().register(source, token(slot, side), interest)
    }
}
