//! Rules without a network namespace: TCP sockets only, each connected by the launcher to its own
//! proxy, which carries what is allowed.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use mcp_policy::{NetworkMode, Protocol};

use super::filter_arch;
use crate::host::HostFacts;
use crate::linux::seccomp::Sockets;
use crate::linux::step::Step;
use crate::plan::Intent;
use crate::request::Request;

/// What proxy variables name. Nobody listens there: who connects to it is connected to the proxy.
pub const PROXY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, 18, 0, 53)), 3128);

/// What a run that has no network namespace may do with sockets.
pub fn sockets(request: &Request, facts: &HostFacts) -> Sockets {
    if wants_tcp(request) && cannot(facts).is_none() { Sockets::Proxied } else { Sockets::None }
}

pub fn step(request: &Request) -> Step {
    Step::Proxy { at: PROXY, rules: request.policy.network.allow.len() }
}

fn wants_tcp(request: &Request) -> bool {
    let network = &request.policy.network;
    network.mode.value == NetworkMode::Isolated
        && network.allow.iter().any(|rule| rule.value.protocol == Protocol::Tcp)
}

/// Why connections cannot be installed here.
fn cannot(facts: &HostFacts) -> Option<&'static str> {
    if filter_arch(facts).is_err() {
        return Some("there is no system call filter");
    }
    if !facts.listener.usable() {
        return Some("another sandbox around this one answers for its connections");
    }
    if !facts.installing.usable() {
        return Some("Linux before 5.9 cannot hand connections to a program");
    }
    None
}

/// `why` there is no network namespace, as part of a sentence.
pub fn intent(request: &Request, facts: &HostFacts, why: &str) -> Intent {
    let network = &request.policy.network;
    let by = match sockets(request, facts) {
        Sockets::Proxied => format!(
            "{why}, so the launcher connects every socket itself, to its own proxy, which carries \
             what is allowed; programs that know no proxy reach only addresses that rules spell out"
        ),
        _ => format!("{why}, so every socket is refused, those to programs of the host as well"),
    };
    let mut missing = Vec::new();
    if let (true, Some(cannot)) = (wants_tcp(request), cannot(facts)) {
        missing.push(format!("what is allowed cannot be reached, since {cannot}"));
    }
    if network.allow.iter().any(|rule| rule.value.protocol == Protocol::Udp) {
        missing.push("udp cannot be used".to_owned());
    }
    if !network.unix.is_empty() {
        missing.push("unix sockets cannot be used".to_owned());
    }
    if !network.listen.is_empty() {
        missing.push("nothing can be listened on".to_owned());
    }
    if missing.is_empty() {
        return Intent::enforce(by);
    }
    let override_with = "--fallback warn starts without it, --network host with everything";
    Intent::partial(
        by,
        format!("{}: that needs a network namespace ({override_with})", missing.join("; ")),
    )
}
