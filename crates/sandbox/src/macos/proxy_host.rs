//! The launcher's proxy on a loopback port: the only address that the profile allows a command with an
//! allowlist to connect to. It applies the same rules as the transparent network of Linux.
//!
//! The port is reserved before the plan is made, because the profile names it. Other programs of the
//! machine can connect to it too, so the proxy requires a password, which is new in each run and stands
//! in the command's environment only.

use std::fs::File;
use std::io::{self, Read};
use std::net::{Ipv4Addr, TcpListener};

use mcp_policy::Sourced;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::core::error::Error;
use crate::core::notices::Notices;
use crate::core::report::Answer;
use crate::core::request::Request;
use crate::macos::facts::MacFacts;
use crate::macos::network::wants_proxy;
use crate::macos::sys;
use mcp_net::allowlist::Allowlist;
use mcp_net::broker::{Broker, Callers, Handle, Journal, Meter, NameServers, NoInside, Setup};
use mcp_net::proxy::Login;
use mcp_net::upstream::Upstream;
use mcp_net::variables::variables;

const NAME: &str = "mcp";
/// The system refuses more than this, whatever it says the limit is.
const MOST_DESCRIPTORS: u64 = 10_240;

/// The listener of a run's proxy.
pub struct ProxyPort(Option<TcpListener>);

/// Reserves the port that a run with an allowlist needs.
pub fn reserve_port(request: &Request, facts: &mut MacFacts) -> ProxyPort {
    let listener = match wants_proxy(request) {
        true => TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).ok(),
        false => None,
    };
    let port = listener.as_ref().and_then(|listener| listener.local_addr().ok());
    facts.proxy = port.map(|at| at.port());
    ProxyPort(listener.filter(|_| facts.proxy.is_some()))
}

/// A proxy that is ready to run.
pub struct ProxyHost {
    listener: TcpListener,
    login: Login,
    /// As a proxy's URL has it, password included.
    place: String,
    setup: Setup,
    direct: bool,
}

impl ProxyHost {
    /// `None` for a run without an allowlist.
    pub fn prepare(
        request: &Request,
        ProxyPort(listener): ProxyPort,
        notices: Notices,
    ) -> Result<Option<ProxyHost>, Error> {
        let Some(listener) = listener else { return Ok(None) };
        let upstream = Upstream::read(|name| std::env::var(name).ok()).map_err(|bad| {
            Error::Input { what: bad.variable.to_owned(), why: bad.reason.to_owned() }
        })?;
        let failed = |source| Error::Io { doing: "make the proxy ready".to_owned(), source };
        let password = password().map_err(failed)?;
        let at = listener.local_addr().map_err(failed)?;
        let login = Login::new(NAME, &password)
            .ok_or_else(|| failed(io::ErrorKind::InvalidInput.into()))?;
        let rules = request.policy.network.allow.iter();
        Ok(Some(ProxyHost {
            listener,
            login,
            place: format!("{NAME}:{password}@{at}"),
            direct: upstream.is_direct(),
            setup: Setup {
                rules: Allowlist::with_loopback(rules.map(|Sourced { value, .. }| value.clone())),
                listeners: Vec::new(),
                own: Box::new(sys::own_networks),
                name_servers: NameServers::ResolvConf,
                upstream,
                journal: Journal::new(notices.teller()),
                host_listeners: Box::new(Vec::new),
                memory: request.policy.limits.memory.value.map(|limit| limit.0),
            },
        }))
    }

    /// For the command's environment only: they contain the password.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        variables(&self.place)
    }

    /// What the report says about the proxy.
    pub fn evidence(&self) -> Answer {
        match self.direct {
            true => Answer::Confirmed(String::new()),
            false => Answer::Less(
                "names go to the user's proxy (HTTPS_PROXY and the like), which resolves them: \
                 what they lead to is not checked"
                    .to_owned(),
            ),
        }
    }

    /// In a thread of its own: nothing may be forked after this.
    pub fn start(self, meter: Option<Meter>) -> io::Result<Handle> {
        let journal = self.setup.journal.metered(meter);
        let setup = Setup { journal, ..self.setup };
        let mut broker = Broker::new(setup, Box::new(NoInside), descriptors())?;
        broker.add_frontend(self.listener, Callers::Holders(self.login))?;
        broker.start()
    }
}

/// The limit on descriptors, raised to its maximum first.
fn descriptors() -> usize {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let most = maximum.unwrap_or(MOST_DESCRIPTORS).min(MOST_DESCRIPTORS);
    if current.is_some_and(|current| current < most) {
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(most), maximum });
    }
    getrlimit(Resource::Nofile).current.unwrap_or(MOST_DESCRIPTORS) as usize
}

fn password() -> io::Result<String> {
    let mut bytes = [0u8; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
