//! The network of a run: what init makes inside for the launcher to answer, and what it amounts to.
//!
//! Without rules nothing leaves, and the resolver is there to say which name was asked for; every address is local to
//! TCP inside, so that a connection is refused at once, and heard of. With rules every address is local; a listener
//! exists for what is allowed, and for nothing else: at the start for addresses, when a name is asked for, and when a
//! connection is made to what has too many addresses or ports for that.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use mcp_policy::{Host, NetRule, NetworkMode, Ports, Protocol, Sourced};

use super::{filter_arch, proxied};
use crate::core::host::Fact;
use crate::core::plan::Intent;
use crate::core::request::Request;
use crate::linux::facts::LinuxFacts;
use crate::linux::sandbox_socket::{Refused, SandboxSocket};
use crate::linux::step::{Routes, SandboxSockets};
use crate::linux::well_known::RESOLVER;
use mcp_net::address_pool::{V4_RANGE, V6_RANGE};
use mcp_seccomp::Connects;

/// What interfaces are seen to have, in each family.
pub const OWN: [IpAddr; 2] = [
    IpAddr::V4(Ipv4Addr::from_bits(V4_RANGE.0.to_bits() | 1)),
    IpAddr::V6(Ipv6Addr::from_bits(V6_RANGE.0.to_bits() | 1)),
];

/// More would take longer to start than anybody waits.
pub const MOST_ADDRESSES: usize = 512;

/// Whether anything at all can be reached.
pub fn is_open(request: &Request) -> bool {
    let network = &request.policy.network;
    network.mode.value == NetworkMode::Isolated
        && !(network.allow.is_empty() && network.listen.is_empty())
}

/// What makes the network inside: routes, where connections are carried, and sockets.
pub fn inside(request: &Request) -> (Option<Routes>, SandboxSockets) {
    let mut sandbox_sockets = vec![SandboxSocket::Datagrams(RESOLVER)];
    if !is_open(request) {
        sandbox_sockets.extend([Refused::Tcp4, Refused::Tcp6].map(SandboxSocket::Refusals));
        return (Some(Routes { own: Vec::new() }), SandboxSockets { sandbox_sockets });
    }
    sandbox_sockets.push(SandboxSocket::Listener(RESOLVER));
    sandbox_sockets.extend(Refused::ALL.map(SandboxSocket::Refusals));
    for (protocol, at) in addresses(&request.policy.network.allow) {
        sandbox_sockets.push(match protocol {
            Protocol::Tcp => SandboxSocket::Listener(at),
            Protocol::Udp => SandboxSocket::Datagrams(at),
        });
    }
    sandbox_sockets.dedup();
    (Some(Routes { own: OWN.to_vec() }), SandboxSockets { sandbox_sockets })
}

/// What rules name by address and port, so that it can be there from the start.
fn addresses(rules: &[Sourced<NetRule>]) -> Vec<(Protocol, SocketAddr)> {
    let mut all = Vec::new();
    for Sourced { value: rule, .. } in rules {
        let Some(ports) = rule.ports.listed() else {
            continue;
        };
        for ip in literal(&rule.host) {
            all.extend(ports.iter().map(|port| (rule.protocol, SocketAddr::new(ip, *port))));
        }
    }
    all.sort();
    all.dedup();
    all
}

/// The addresses that a rule spells out. `localhost` is one of those names that everybody knows
/// the address of, and which no program asks a resolver for.
fn literal(host: &Host) -> Vec<IpAddr> {
    match host {
        Host::Address(ip) => vec![*ip],
        Host::Name { .. } if is_localhost(host) => {
            vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]
        }
        Host::Name { .. } | Host::Network { .. } | Host::Public => Vec::new(),
    }
}

fn is_localhost(host: &Host) -> bool {
    matches!(host, Host::Name { name, .. } if name.as_str() == "localhost")
}

/// Whether the launcher must hear of connections before they are made: a listener for each
/// address of a network, or each port of a host, cannot be there beforehand.
pub fn connects(request: &Request) -> Connects {
    let network = &request.policy.network;
    let open = |rule: &NetRule| {
        rule.protocol == Protocol::Tcp
            && (rule.ports == Ports::Any
                || matches!(rule.host, Host::Network { .. } | Host::Public))
    };
    match network.allow.iter().any(|rule| open(&rule.value)) && is_open(request) {
        true => Connects::Announced,
        false => Connects::Free,
    }
}

pub fn intent(request: &Request, facts: &LinuxFacts) -> Intent {
    let network = &request.policy.network;
    if network.mode.value == NetworkMode::Host {
        return Intent::NotRequested;
    }
    if let Fact::Fails { why } = &facts.network_namespace {
        return without_namespace(request, facts, why);
    }
    if let Some(gap) = not_possible(&network.allow) {
        return gap;
    }
    let mut ways = Vec::new();
    if !network.allow.is_empty() {
        ways.push(format!("the launcher carries {}", request.allowed_in_words()));
    }
    if !network.listen.is_empty() {
        ways.push("and takes connections on the host's loopback".to_owned());
    }
    if !network.unix.is_empty() {
        ways.push("and the unix sockets that were granted are shown".to_owned());
    }
    match ways.is_empty() {
        true => Intent::enforce("empty network namespace"),
        false => Intent::enforce(format!("empty network namespace; {}", ways.join(", "))),
    }
}

/// Where the other namespaces are to be had and this one is not.
fn without_namespace(request: &Request, facts: &LinuxFacts, why: &str) -> Intent {
    if let Err(no_filter) = filter_arch(facts) {
        return Intent::unavailable(
            format!("there is no network namespace here ({why}), and {no_filter}"),
            "allow network namespaces; `mcp doctor` names the setting",
        );
    }
    proxied::intent(request, facts, &format!("there is no network namespace here ({why})"))
}

fn not_possible(rules: &[Sourced<NetRule>]) -> Option<Intent> {
    let vague = rules.iter().map(|rule| &rule.value).find(|rule| {
        let is_vague = rule.ports == Ports::Any || matches!(rule.host, Host::Network { .. });
        rule.protocol == Protocol::Udp && is_vague
    });
    if let Some(rule) = vague {
        return Some(Intent::unavailable(
            format!("{rule} is more than one address and port, which udp cannot have here"),
            "name each address and port, such as udp://1.1.1.1:53",
        ));
    }
    (addresses(rules).len() > MOST_ADDRESSES).then(|| {
        Intent::unavailable(
            format!("more than {MOST_ADDRESSES} addresses and ports are allowed one by one"),
            "name networks instead, such as 10.1.0.0/16:5432",
        )
    })
}
