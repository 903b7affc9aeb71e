//! Services on the host's loopback: `localhost` inside is the sandbox's own, and no server listens there.
//!
//! Where the launcher hears of a connection that is tried there, it says so by itself. A command that failed without a
//! try that was heard of gets a line where one of its words or variables names such a service, the host has one at that
//! port, and no rule leads to it.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use mcp_net::loopback_listeners::on_this_host;
use mcp_sandbox::{Report, Request};

use super::Hint;
use super::facts::Facts;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Service {
    /// `localhost`, or an address.
    pub host: String,
    pub port: u16,
    /// The variable that names it; none for a word.
    pub variable: Option<String>,
}

pub fn after(facts: &Facts, report: &Report) -> Vec<Hint> {
    let refused = || report.network.iter().flat_map(|network| network.refused.keys());
    let is_told = |service: &&Service| {
        let port = format!(":{}", service.port);
        refused().any(|to| to.ends_with(&port))
    };
    let hint = |service: &Service| {
        let rule = format!("{}:{}", service.host, service.port);
        let by = service
            .variable
            .as_ref()
            .map(|name| format!(", which {name} names,"))
            .unwrap_or_default();
        Hint::new(
            format!("loopback {}", service.port),
            format!(
                "{rule}{by} is a service of this machine's, which the command cannot reach (add -n {rule})"
            ),
        )
    };
    facts.services.iter().filter(|service| !is_told(service)).map(hint).collect()
}

/// Those that are named, are there, and are not allowed.
pub fn services(words: &[String], request: &Request) -> Vec<Service> {
    let mut named: BTreeSet<Service> = BTreeSet::new();
    for word in words {
        named.extend(found(word).map(|(host, port)| Service { host, port, variable: None }));
    }
    for (name, value) in &request.env {
        let name = name.to_string_lossy().into_owned();
        let is_proxy = name.to_ascii_lowercase().ends_with("proxy");
        if let Some((host, port)) = found(&value.to_string_lossy()).filter(|_| !is_proxy) {
            named.insert(Service { host, port, variable: Some(name) });
        }
    }
    if named.is_empty() {
        return Vec::new();
    }
    let allowed = |service: &Service| {
        request.policy.network.allow.iter().any(|rule| {
            let rule = &rule.value;
            let host = rule.matches_name("localhost")
                || service.host.parse().is_ok_and(|address| rule.matches_ip(address))
                || rule.matches_ip(std::net::Ipv4Addr::LOCALHOST.into());
            host && rule.matches_port(service.port)
        })
    };
    let listening = on_this_host();
    let is_there = |service: &Service| {
        let is_of_loopback = |at: &&SocketAddr| at.ip().is_loopback() || at.ip().is_unspecified();
        listening.iter().filter(is_of_loopback).any(|at| at.port() == service.port)
    };
    named.retain(|service| is_there(service) && !allowed(service));
    named.into_iter().collect()
}

const PORTS: &[(&str, u16)] = &[
    ("amqp", 5672),
    ("http", 80),
    ("https", 443),
    ("mongodb", 27017),
    ("mysql", 3306),
    ("postgres", 5432),
    ("postgresql", 5432),
    ("redis", 6379),
];

/// The loopback's host and port in `postgresql://me@localhost/db`, `http://127.0.0.1:3000`, `localhost:6379`.
pub fn found(text: &str) -> Option<(String, u16)> {
    let (scheme, rest) = match text.split_once("://") {
        Some((scheme, rest)) => (Some(scheme), rest),
        None => (None, text),
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let place = authority.rsplit('@').next().unwrap_or_default();
    let (host, port) = match place.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, rest)) => (host, rest.strip_prefix(':')),
        None => match place.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (place, None),
        },
    };
    let is_loopback = host == "localhost"
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    let known = || PORTS.iter().find(|(name, _)| Some(*name) == scheme).map(|(_, port)| *port);
    let port = match port {
        Some(port) => port.parse().ok(),
        None => known(),
    };
    let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    port.filter(|port| is_loopback && *port != 0).map(|port| (host, port))
}
