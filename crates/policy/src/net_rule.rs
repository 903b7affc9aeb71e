//! One network rule: protocol, host, ports. The only grammar for them in the product.
//!
//! ```text
//! rule     = [ "tcp://" | "udp://" ] host [ ":" port ] [ ",tls=off" ]
//! host     = name | "*." name | IPv4 [ "/" prefix ] | "[" IPv6 [ "/" prefix ] "]" | "public"
//! port     = 1..65535 | "*"            without one: 443 and 80 (tcp only); for `public` every port
//! ```
//! `tls=off` is for names: what a connection to one asks for in TLS or HTTP is then its own affair.
//! `public` is every public address and name, over tcp. It names no service, so it has no usual ports either.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::ValueError;
use crate::host::{EVERY_HOST_HINT, Host, HostName};

/// What a program may connect to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NetRule {
    /// TCP or UDP.
    pub protocol: Protocol,
    /// The host.
    pub host: Host,
    /// Its ports.
    pub ports: Ports,
    /// Whether TLS is checked.
    pub tls: Tls,
}

/// Whether a connection to an allowed name may ask for another name in TLS, or in the head of HTTP.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tls {
    /// Only for one that the same rule allows.
    #[default]
    Checked,
    /// It is not looked at.
    Off,
}

/// A transport protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
}

/// Ports of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ports {
    /// None was written: the web's, [`Ports::WEB`].
    Default,
    /// One port.
    One(u16),
    /// All ports.
    Any,
}

impl Ports {
    /// The ports of a rule that names none.
    pub const WEB: [u16; 2] = [443, 80];

    /// Whether a port is among them.
    pub fn contains(self, port: u16) -> bool {
        match self {
            Self::Default => Self::WEB.contains(&port),
            Self::One(one) => one == port,
            Self::Any => port != 0,
        }
    }

    /// The ports by number; `None` for all of them.
    pub fn listed(self) -> Option<Vec<u16>> {
        match self {
            Self::Default => Some(Self::WEB.to_vec()),
            Self::One(port) => Some(vec![port]),
            Self::Any => None,
        }
    }

    fn covers(self, other: Self) -> bool {
        match (self, other) {
            (Self::Any, _) => true,
            (_, Self::Any) => false,
            (mine, Self::One(port)) => mine.contains(port),
            (mine, Self::Default) => mine == Self::Default,
        }
    }
}

impl NetRule {
    /// Whether the name part allows this host name, in any spelling. Ports are apart.
    pub fn matches_name(&self, name: &str) -> bool {
        name.parse::<HostName>().is_ok_and(|name| self.host.matches_name(&name))
    }

    /// Whether the address part allows this address. A name rule says no, and so does `public`: which
    /// addresses are public depends on the host.
    pub fn matches_ip(&self, ip: IpAddr) -> bool {
        self.host.contains(ip)
    }

    /// What the rule means, where one word of it means much: that of `public`.
    pub fn meaning(&self) -> Option<String> {
        let ports = match (&self.host, self.ports) {
            (Host::Public, Ports::One(port)) => format!("on port {port}"),
            (Host::Public, _) => "on every port".to_owned(),
            _ => return None,
        };
        Some(format!(
            "every public address and name, {ports} over tcp; nothing private, link-local or loopback, and nothing in this \
             machine's own networks"
        ))
    }

    /// Whether the rule is about a port.
    pub fn matches_port(&self, port: u16) -> bool {
        self.ports.contains(port)
    }

    /// Whether everything `other` allows is allowed by this rule alone.
    pub fn covers(&self, other: &Self) -> bool {
        self.protocol == other.protocol
            && self.ports.covers(other.ports)
            && self.host.covers(&other.host)
            && (self.tls == Tls::Off || other.tls == Tls::Checked)
    }
}

impl FromStr for NetRule {
    type Err = ValueError;

    fn from_str(value: &str) -> Result<Self, ValueError> {
        if value.is_empty() {
            return Err(ValueError::new(0..0, "empty network rule", RULE_HINT));
        }
        let (protocol, at) = match value.find("://") {
            None => (Protocol::Tcp, 0),
            Some(end) => match &value[..end] {
                "tcp" => (Protocol::Tcp, end + 3),
                "udp" => (Protocol::Udp, end + 3),
                _ => return Err(url_instead_of_rule(value, end)),
            },
        };
        let (rule, tls) = option(&value[at..]).map_err(|error| error.shifted(at))?;
        let named = rule.split(':').next().unwrap_or(rule);
        if let Some(word) = EVERYTHING.iter().find(|word| named.eq_ignore_ascii_case(word)) {
            return Err(ValueError::new(
                at..at + named.len(),
                format!("{word:?} is no host; a rule names the hosts that are meant"),
                EVERY_HOST_HINT,
            ));
        }
        let (host, ports) = host_and_ports(rule).map_err(|error| error.shifted(at))?;
        let ports = match (&host, ports) {
            (Host::Public, Ports::Default) => Ports::Any,
            (_, ports) => ports,
        };
        if protocol == Protocol::Udp && host == Host::Public {
            return Err(ValueError::new(
                at..value.len(),
                "public is for tcp alone",
                "name each host and port that datagrams may go to, such as udp://1.1.1.1:53",
            ));
        }
        if protocol == Protocol::Udp && ports == Ports::Default {
            return Err(ValueError::new(
                at..value.len(),
                "a udp rule needs a port",
                format!("write {value}:53, or {value}:* for every port"),
            ));
        }
        let has_names = matches!(host, Host::Name { .. } | Host::Public);
        if tls == Tls::Off && (protocol == Protocol::Udp || !has_names) {
            return Err(ValueError::new(
                at + rule.len()..value.len(),
                "only rules for names over tcp are checked",
                "leave it out: this rule has no check to turn off",
            ));
        }
        Ok(Self { protocol, host, ports, tls })
    }
}

/// Takes what follows a comma off a rule.
fn option(rule: &str) -> Result<(&str, Tls), ValueError> {
    match rule.split_once(',') {
        None => Ok((rule, Tls::Checked)),
        Some((rule, "tls=off")) => Ok((rule, Tls::Off)),
        Some((before, _)) => Err(ValueError::new(
            before.len()..rule.len(),
            "not something a rule can say",
            "write one rule for each host; after a comma there can only be tls=off",
        )),
    }
}

/// Words for no host in particular: as names they would allow nothing, and look as if they allowed everything.
const EVERYTHING: [&str; 6] = ["all", "any", "everything", "everywhere", "internet", "none"];

const RULE_HINT: &str = "write a host and port such as api.example.com:443";

fn host_and_ports(rule: &str) -> Result<(Host, Ports), ValueError> {
    if let Some(inside) = rule.strip_prefix('[') {
        let Some((address, after)) = inside.split_once(']') else {
            let message = "\"[\" is never closed";
            return Err(ValueError::new(0..1, message, "write [2001:db8::1]:443"));
        };
        let host = Host::parse_ip(address).map_err(|error| error.shifted(1))?;
        if !address.contains(':') {
            return Err(ValueError::new(
                0..address.len() + 2,
                "brackets are for IPv6 addresses",
                format!("write {address}{after}"),
            ));
        }
        let at = rule.len() - after.len();
        return match after.strip_prefix(':') {
            None if after.is_empty() => Ok((host, Ports::Default)),
            None => Err(ValueError::new(
                at..rule.len(),
                "expected \":\" and a port after \"]\"",
                "write [2001:db8::1]:443; a prefix length goes inside the brackets",
            )),
            Some(port) => Ok((host, ports(port).map_err(|error| error.shifted(at + 1))?)),
        };
    }
    match rule.split_once(':') {
        None => Ok((Host::parse(rule)?, Ports::Default)),
        Some((_, rest)) if rest.contains(':') && !rule.contains(['@', ' ']) => {
            Err(ValueError::new(
                0..rule.len(),
                "too many \":\" for a host and port",
                "an IPv6 address goes in brackets, like [2001:db8::1]:443",
            ))
        }
        Some((host, port)) => {
            // Both are checked, the host first: it is what the eye sees first.
            if let Some(at) = rule.find('@') {
                return Err(ValueError::new(
                    0..at + 1,
                    "user names are not part of a network rule",
                    RULE_HINT,
                ));
            }
            let at = host.len() + 1;
            let host = Host::parse(host)?;
            Ok((host, ports(port).map_err(|error| error.shifted(at))?))
        }
    }
}

fn ports(text: &str) -> Result<Ports, ValueError> {
    let refuse = |message: &str, hint: &str| Err(ValueError::new(0..text.len(), message, hint));
    if text == "*" {
        return Ok(Ports::Any);
    }
    if let Some(slash) = text.find('/') {
        return Err(ValueError::new(
            slash..text.len(),
            "paths cannot be restricted, only hosts and ports",
            "end the rule after the port; a network's prefix length goes before it",
        ));
    }
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return refuse("not a port", "write a number from 1 to 65535, or * for every port");
    }
    match text.parse::<u16>() {
        Ok(0) => refuse("port 0 cannot be connected to", "write * for every port"),
        Ok(port) => Ok(Ports::One(port)),
        Err(_) => refuse("this port is too large", "ports go up to 65535"),
    }
}

/// The value is a URL: the error says which rule was probably meant.
fn url_instead_of_rule(value: &str, scheme_end: usize) -> ValueError {
    let scheme = value[..scheme_end].to_ascii_lowercase();
    let rest = &value[scheme_end + 3..];
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    let host = authority.rsplit('@').next().unwrap_or(authority);
    let port = match scheme.as_str() {
        "https" | "wss" => ":443",
        "http" | "ws" => ":80",
        "ssh" | "sftp" => ":22",
        "postgres" | "postgresql" => ":5432",
        _ => "",
    };
    let meant = match host.parse::<NetRule>() {
        Ok(NetRule { ports: Ports::Default, .. }) => format!("{host}{port}"),
        Ok(rule) => rule.to_string(),
        Err(_) => "api.example.com:443".to_owned(),
    };
    ValueError::new(
        0..scheme_end + 3,
        "a network rule is a host and port, not a URL",
        format!("write {meant}"),
    )
}

/// Parsing what is printed gives the same rule back.
impl fmt::Display for NetRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.protocol == Protocol::Udp {
            f.write_str("udp://")?;
        }
        write!(f, "{}", self.host)?;
        match self.ports {
            Ports::Default => {}
            Ports::One(port) => write!(f, ":{port}")?,
            Ports::Any if self.host == Host::Public => {}
            Ports::Any => f.write_str(":*")?,
        }
        match self.tls {
            Tls::Checked => Ok(()),
            Tls::Off => f.write_str(",tls=off"),
        }
    }
}

impl Serialize for NetRule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests;
