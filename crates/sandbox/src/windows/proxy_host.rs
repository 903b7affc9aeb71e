//! The launcher's side of the network: the broker as a proxy on a loopback port, the relay whose pipes lead there from
//! the container, and the relays of `--listen` ([`listen_relay`]). The proxy applies the same rules as the transparent
//! network of Linux.
//!
//! Other programs of the machine can connect to the broker's port too, so the proxy requires a password, which is new
//! in each run and stands in the command's environment only. The command may take the relay over: see
//! [`mux`](mcp_net::mux) for what it can do then.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use mcp_policy::Sourced;

use crate::core::error::Error;
use crate::core::notices::Notices;
use crate::core::plan::Plan;
use crate::core::report::{Answer, Evidence};
use crate::core::request::Request;
use crate::windows::confinement::Confinement;
use crate::windows::failure::{RunError, at_step};
use crate::windows::listen_relay::{self, ListenRelay, ListenTargets};
use crate::windows::relay_main::MARK;
use crate::windows::relay_process::Relay;
use crate::windows::step::Step;
use crate::windows::sys::{adapters, random};
use mcp_net::allowlist::Allowlist;
use mcp_net::broker::{Broker, Callers, Handle, Journal, Meter, NameServers, NetworkUse, Setup};
use mcp_net::mux_endpoint::{Door, Over};
use mcp_net::proxy::Login;
use mcp_net::resolv::Server;
use mcp_net::upstream::Upstream;
use mcp_net::variables::variables;

const NAME: &str = "mcp";
const TAKEN_OVER: &str = "the relay sent a frame that it never sends by itself, so the command may control it: the launcher \
     stopped reading from it";
/// Windows has no limit on handles; the broker derives its own limits from this number.
const DESCRIPTORS: usize = 16 << 10;

fn name_servers() -> Vec<Server> {
    adapters::name_servers().unwrap_or_default()
}

/// A broker that is ready to run.
pub struct ProxyHost {
    outbound: Option<OutboundRelay>,
    /// Steps of the plan, and the ports inside that they are for.
    listen_ports: Vec<(usize, u16)>,
    setup: Setup,
}

/// The relay for connections out of the container, before its start.
struct OutboundRelay {
    /// The number of the plan's step.
    step: usize,
    login: Login,
    password: String,
    direct: bool,
}

impl ProxyHost {
    /// `None` for a run without a relay.
    pub fn prepare(
        plan: &Plan<Step>,
        request: &Request,
        notices: Notices,
    ) -> Result<Option<ProxyHost>, Error> {
        let outbound = plan.steps.iter().position(|planned| planned.step == Step::Relay);
        let listen_ports: Vec<(usize, u16)> = plan
            .steps
            .iter()
            .enumerate()
            .filter_map(|(step, planned)| match planned.step {
                Step::ListenRelay { port } => Some((step, port)),
                _ => None,
            })
            .collect();
        if outbound.is_none() && listen_ports.is_empty() {
            return Ok(None);
        }
        let upstream = Upstream::read(|name| std::env::var(name).ok()).map_err(|bad| {
            Error::Input { what: bad.variable.to_owned(), why: bad.reason.to_owned() }
        })?;
        let direct = upstream.is_direct();
        let failed = |source| Error::Io { doing: "make the proxy ready".to_owned(), source };
        let outbound =
            outbound.map(|step| OutboundRelay::new(step, direct)).transpose().map_err(failed)?;
        let listeners = match listen_ports.is_empty() {
            true => Vec::new(),
            false => listen_relay::reserve_ports(request)?,
        };
        let mut tell = notices.teller();
        for (_, port) in &listen_ports {
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
            host_listeners: Box::new(Vec::new),
            memory: request.policy.limits.memory.value.map(|limit| limit.0),
        };
        Ok(Some(ProxyHost { outbound, listen_ports, setup }))
    }

    /// This counts the bytes of connections as they pass.
    pub fn metered(self, meter: Option<Meter>) -> ProxyHost {
        let journal = self.setup.journal.metered(meter);
        ProxyHost { setup: Setup { journal, ..self.setup }, ..self }
    }

    /// Starts the relays in the container, and the broker.
    pub fn start(self, confinement: &Confinement) -> Result<RunningProxy, RunError> {
        let ProxyHost { outbound, listen_ports, setup } = self;
        let first =
            outbound.as_ref().map(|way| way.step).or(listen_ports.first().map(|(step, _)| *step));
        let mut listen_relays = Vec::new();
        for (step, port) in listen_ports {
            listen_relays
                .push(ListenRelay::open(step, port, confinement).map_err(|e| at_step(step, &e))?);
        }
        let targets = ListenTargets(listen_relays.iter().map(ListenRelay::door).collect());
        let step = first.unwrap_or_default();
        let (outbound, broker) =
            try_start(outbound, confinement, (setup, targets)).map_err(|e| at_step(step, &e))?;
        Ok(RunningProxy { outbound, listen_relays, broker: Some(broker) })
    }
}

impl OutboundRelay {
    fn new(step: usize, direct: bool) -> io::Result<OutboundRelay> {
        let password: String = random::bytes()?.iter().map(|byte| format!("{byte:02x}")).collect();
        let login = Login::new(NAME, &password).ok_or(io::ErrorKind::InvalidInput)?;
        Ok(OutboundRelay { step, login, password, direct })
    }
}

fn try_start(
    outbound: Option<OutboundRelay>,
    confinement: &Confinement,
    (setup, targets): (Setup, ListenTargets),
) -> io::Result<(Option<RunningOutbound>, Handle)> {
    let mut broker = Broker::new(setup, Box::new(targets), DESCRIPTORS)?;
    let Some(OutboundRelay { step, login, password, direct }) = outbound else {
        return Ok((None, broker.start()?));
    };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let front = listener.local_addr()?;
    let relay = Relay::start(confinement, &[MARK.into()], Door::To(front))?;
    broker.add_frontend(listener, Callers::Holders(login))?;
    let place = format!("{NAME}:{password}@127.0.0.1:{}", relay.port);
    Ok((Some(RunningOutbound { step, relay, place, direct }), broker.start()?))
}

/// A running relay for connections out of the container.
struct RunningOutbound {
    step: usize,
    relay: Relay,
    /// As a proxy's URL has it, password included.
    place: String,
    direct: bool,
}

/// Relays and a broker at work. Dropping it ends them.
pub struct RunningProxy {
    outbound: Option<RunningOutbound>,
    listen_relays: Vec<ListenRelay>,
    broker: Option<Handle>,
}

impl RunningProxy {
    /// The port in the container where the outbound relay listens.
    pub fn port(&self) -> Option<u16> {
        self.outbound.as_ref().map(|way| way.relay.port)
    }

    /// The command's ports, and the address of the relay for each.
    pub fn targets(&self) -> Vec<(u16, SocketAddr)> {
        self.listen_relays.iter().map(ListenRelay::door).collect()
    }

    /// For the command's environment only: they contain the password.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        self.outbound.as_ref().map(|way| variables(&way.place)).unwrap_or_default()
    }

    /// Ends it, and tells what it has carried.
    pub fn finish(mut self, evidence: &mut Vec<Evidence>) -> NetworkUse {
        for listen_relay in &mut self.listen_relays {
            let answer = match listen_relay.close() {
                Some(Over::Violated(_)) => Answer::Less(TAKEN_OVER.to_owned()),
                _ => Answer::Confirmed(String::new()),
            };
            evidence.push(Evidence { step: listen_relay.step, answer });
        }
        if let Some(way) = &mut self.outbound {
            let answer = match (way.relay.stop(), way.direct) {
                (Some(Over::Violated(_)), _) => Answer::Less(TAKEN_OVER.to_owned()),
                (_, false) => Answer::Less(
                    "the user's proxy (HTTPS_PROXY) resolves names: mcp does not see, and does not check, the \
                     addresses"
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
