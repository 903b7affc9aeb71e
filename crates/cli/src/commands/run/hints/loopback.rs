//! Services on the host's loopback: `localhost` inside is the sandbox's own, and nobody listens there.
//!
//! A line is told where a word or a variable of the command names such a service, the host has one at that port, and
//! no rule leads to it.

use std::collections::BTreeSet;

use mcp_sandbox::Request;

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

pub fn before(facts: &Facts) -> Vec<Hint> {
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
    facts.services.iter().map(hint).collect()
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
    let listening = listening();
    named.retain(|service| listening.contains(&service.port) && !allowed(service));
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

/// Ports that the host listens at on its loopback, by the kernel's own table. Nothing is connected to.
fn listening() -> BTreeSet<u16> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    tables
        .iter()
        .filter_map(|table| std::fs::read_to_string(table).ok())
        .flat_map(|text| ports(&text))
        .collect()
}

/// `sl local_address rem_address st …`: state 0A listens; the address is the machine's word order in hexadecimal.
pub fn ports(table: &str) -> Vec<u16> {
    let port = |line: &str| {
        let mut fields = line.split_whitespace().skip(1);
        let (local, state) = (fields.next()?, fields.nth(1)?);
        let (address, port) = local.split_once(':')?;
        let is_any = address.bytes().all(|digit| digit == b'0');
        let is_loopback = match address.len() {
            8 => address.ends_with("7F"),
            _ => address == "00000000000000000000000001000000",
        };
        let port = u16::from_str_radix(port, 16).ok()?;
        (state == "0A" && (is_any || is_loopback)).then_some(port)
    };
    table.lines().skip(1).filter_map(port).collect()
}
