//! The launcher's side of the relays: the broker as a proxy on a port of the loopback, and what leads there from
//! the container's pipes, and the other way round ([`entrance`]). It judges by the same rules as the transparent
//! network of Linux.
//!
//! Other programs of the machine can connect to the broker's port too, so it wants a password that is new in each
//! run and that only the command's environment has. The relay may be in the command's hands: see
//! [`mux`](mcp_net::mux) for what it can do then.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use mcp_policy::Sourced;

use crate::error::Error;
use crate::notices::Notices;
use crate::plan::Plan;
use crate::report::{Answer, Evidence};
use crate::request::Request;
use crate::windows::entrance::{self, Doors, Entrance};
use crate::windows::launch::{Trouble, at_step};
use crate::windows::outlet::MARK;
use crate::windows::relay_process::Relay;
use crate::windows::step::Step;
use crate::windows::sys::{adapters, random};
use crate::windows::walls::Walls;
use mcp_net::allowlist::Allowlist;
use mcp_net::broker::{Broker, Callers, Handle, Journal, Meter, NameServers, NetworkUse, Setup};
use mcp_net::junction::{Door, Over};
use mcp_net::proxy::Login;
use mcp_net::resolv::Server;
use mcp_net::upstream::Upstream;
use mcp_net::variables::variables;

const NAME: &str = "mcp";
const TAKEN_OVER: &str = "the relay said what it never says by itself, as if in the command's hands: it was not heard \
     any more from then on";
/// Windows does not count descriptors; the broker's bounds are made from a number.
const DESCRIPTORS: usize = 16 << 10;

fn name_servers() -> Vec<Server> {
    adapters::name_servers().unwrap_or_default()
}

/// A broker that is ready to run.
pub struct Carrier {
    way_out: Option<WayOut>,
    /// Steps of the plan, and the ports inside that they are for.
    ways_in: Vec<(usize, u16)>,
    setup: Setup,
}

/// What leads out of the container.
struct WayOut {
    /// The number of the plan's step.
    step: usize,
    login: Login,
    password: String,
    direct: bool,
}

impl Carrier {
    /// `None` for a run without a relay.
    pub fn prepare(
        plan: &Plan<Step>,
        request: &Request,
        notices: Notices,
    ) -> Result<Option<Carrier>, Error> {
        let way_out = plan.steps.iter().position(|planned| planned.step == Step::Relay);
        let ways_in: Vec<(usize, u16)> = plan
            .steps
            .iter()
            .enumerate()
            .filter_map(|(step, planned)| match planned.step {
                Step::Entrance { port } => Some((step, port)),
                _ => None,
            })
            .collect();
        if way_out.is_none() && ways_in.is_empty() {
            return Ok(None);
        }
        let upstream = Upstream::read(|name| std::env::var(name).ok()).map_err(|bad| {
            Error::Input { what: bad.variable.to_owned(), why: bad.reason.to_owned() }
        })?;
        let direct = upstream.is_direct();
        let failed = |source| Error::Io { doing: "make the proxy ready".to_owned(), source };
        let way_out = way_out.map(|step| WayOut::new(step, direct)).transpose().map_err(failed)?;
        let listeners = match ways_in.is_empty() {
            true => Vec::new(),
            false => entrance::claim(request)?,
        };
        let mut tell = notices.teller();
        for (_, port) in &ways_in {
            tell(&format!(
                "port {port} of the command is reached at localhost:{port}, which is [::1]:{port} here"
            ));
        }
        let rules = request.policy.network.allow.iter();
        let setup = Setup {
            rules: Allowlist::with_loopback(rules.map(|Sourced { value, .. }| value.clone())),
            listeners,
            own: Box::new(adapters::own_networks),
            name_servers: NameServers::System(name_servers),
            upstream,
            journal: Journal::new(tell),
            memory: request.policy.limits.memory.value.map(|limit| limit.0),
        };
        Ok(Some(Carrier { way_out, ways_in, setup }))
    }

    /// What is carried is told to this as it is counted.
    pub fn metered(self, meter: Option<Meter>) -> Carrier {
        let journal = self.setup.journal.metered(meter);
        Carrier { setup: Setup { journal, ..self.setup }, ..self }
    }

    /// Starts the relays behind the walls, and the broker.
    pub fn start(self, walls: &Walls) -> Result<Carried, Trouble> {
        let Carrier { way_out, ways_in, setup } = self;
        let first = way_out.as_ref().map(|way| way.step).or(ways_in.first().map(|(step, _)| *step));
        let mut entrances = Vec::new();
        for (step, port) in ways_in {
            entrances.push(Entrance::open(step, port, walls).map_err(|e| at_step(step, &e))?);
        }
        let doors = Doors(entrances.iter().map(Entrance::door).collect());
        let step = first.unwrap_or_default();
        let (way_out, broker) =
            try_start(way_out, walls, (setup, doors)).map_err(|e| at_step(step, &e))?;
        Ok(Carried { way_out, entrances, broker: Some(broker) })
    }
}

impl WayOut {
    fn new(step: usize, direct: bool) -> io::Result<WayOut> {
        let password: String = random::bytes()?.iter().map(|byte| format!("{byte:02x}")).collect();
        let login = Login::new(NAME, &password).ok_or(io::ErrorKind::InvalidInput)?;
        Ok(WayOut { step, login, password, direct })
    }
}

fn try_start(
    way_out: Option<WayOut>,
    walls: &Walls,
    (setup, doors): (Setup, Doors),
) -> io::Result<(Option<Outward>, Handle)> {
    let mut broker = Broker::new(setup, Box::new(doors), DESCRIPTORS)?;
    let Some(WayOut { step, login, password, direct }) = way_out else {
        return Ok((None, broker.start()?));
    };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let front = listener.local_addr()?;
    let relay = Relay::start(walls, &[MARK.into()], Door::To(front))?;
    broker.add_front(listener, Callers::Holders(login))?;
    let place = format!("{NAME}:{password}@127.0.0.1:{}", relay.port);
    Ok((Some(Outward { step, relay, place, direct }), broker.start()?))
}

/// A way out at work.
struct Outward {
    step: usize,
    relay: Relay,
    /// As a proxy's URL has it, password included.
    place: String,
    direct: bool,
}

/// Relays and a broker at work. Dropping it ends them.
pub struct Carried {
    way_out: Option<Outward>,
    entrances: Vec<Entrance>,
    broker: Option<Handle>,
}

impl Carried {
    /// Where the relay that leads out listens, inside.
    pub fn port(&self) -> Option<u16> {
        self.way_out.as_ref().map(|way| way.relay.port)
    }

    /// Ports inside, and where they are led to.
    pub fn doors(&self) -> Vec<(u16, SocketAddr)> {
        self.entrances.iter().map(Entrance::door).collect()
    }

    /// For the command's environment, and nobody else's.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        self.way_out.as_ref().map(|way| variables(&way.place)).unwrap_or_default()
    }

    /// Ends it, and tells what it has carried.
    pub fn finish(mut self, evidence: &mut Vec<Evidence>) -> NetworkUse {
        for entrance in &mut self.entrances {
            let answer = match entrance.close() {
                Some(Over::Violated(_)) => Answer::Less(TAKEN_OVER.to_owned()),
                _ => Answer::Confirmed(String::new()),
            };
            evidence.push(Evidence { step: entrance.step, answer });
        }
        if let Some(way) = &mut self.way_out {
            let answer = match (way.relay.stop(), way.direct) {
                (Some(Over::Violated(_)), _) => Answer::Less(TAKEN_OVER.to_owned()),
                (_, false) => Answer::Less(
                    "names go to the user's proxy (HTTPS_PROXY and the like), which resolves them: what they lead \
                     to is not checked"
                        .to_owned(),
                ),
                (_, true) => Answer::Confirmed(format!("on port {} inside", way.relay.port)),
            };
            evidence.push(Evidence { step: way.step, answer });
        }
        // What was passed on has to be read by the broker before its connections are gone.
        self.broker.take().map(Handle::finish).unwrap_or_default()
    }
}
