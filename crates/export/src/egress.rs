//! Network rules in words that engines know: networks, ports and protocols. Host names are not among them.
//!
//! Stops: a rule that becomes wider on the way without a word. `tcp://h:*` is every port of TCP and not every protocol; a rule
//! for a name becomes "public addresses on these ports" and is told as such, while the gateway inside holds the name.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use mcp_policy::{Host, NetRule, Network, NetworkMode, Ports, Protocol, Wildcard};

/// Where the processes of a gateway may connect to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Egress {
    /// `network = "host"`.
    pub everything: bool,
    /// Addresses and networks.
    pub networks: Vec<Destination<Block>>,
    /// Names.
    pub names: Vec<Destination<Name>>,
    /// Every public address.
    pub public: Vec<Reach>,
    /// Rules about this machine itself, which mean another one elsewhere.
    pub loopback: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination<T> {
    pub to: T,
    pub reach: Reach,
}

/// A network, without the classes of addresses that a rule opens by naming them only: `0.0.0.0/0` is not the loopback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    pub cidr: String,
    pub except: Vec<&'static str>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    pub name: String,
    pub wildcard: Wildcard,
}

/// A protocol and its ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reach {
    pub protocol: Protocol,
    pub ports: Ports,
}

impl Egress {
    pub fn of(network: &Network) -> Egress {
        let mut egress =
            Egress { everything: network.mode.value == NetworkMode::Host, ..Egress::default() };
        for rule in &network.allow {
            egress.add(&rule.value);
        }
        egress
    }

    /// A server of HTTPS that the gateway itself asks, such as an authorization server. What has no host is left out.
    pub fn add_url(&mut self, url: &str) {
        let (secure, rest) = match (url.strip_prefix("https://"), url.strip_prefix("http://")) {
            (Some(rest), _) => (true, rest),
            (None, Some(rest)) => (false, rest),
            (None, None) => return,
        };
        let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
        let authority = authority.rsplit('@').next().unwrap_or(authority);
        let port = if secure { 443 } else { 80 };
        let parsed = authority.parse::<NetRule>().map(|rule| match rule.ports {
            Ports::Default => NetRule { ports: Ports::One(port), ..rule },
            _ => rule,
        });
        if let Ok(rule) = parsed {
            self.add(&rule);
        }
    }

    fn add(&mut self, rule: &NetRule) {
        let reach = Reach { protocol: rule.protocol, ports: rule.ports };
        let network = |ip, prefix| Destination { to: block(ip, prefix), reach };
        match &rule.host {
            Host::Public => self.public.push(reach),
            Host::Name { name, .. } if is_local(name.as_str()) => {
                self.loopback.push(rule.to_string());
            }
            Host::Name { name, wildcard } => {
                let to = Name { name: name.as_str().to_owned(), wildcard: *wildcard };
                self.names.push(Destination { to, reach });
            }
            Host::Address(ip) if ip.to_canonical().is_loopback() => {
                self.loopback.push(rule.to_string());
            }
            Host::Address(ip) => {
                let whole = if ip.to_canonical().is_ipv4() { 32 } else { 128 };
                self.networks.push(network(ip.to_canonical(), whole));
            }
            Host::Network { ip, prefix } if is_loopback(*ip, *prefix) => {
                self.loopback.push(rule.to_string());
            }
            Host::Network { ip, prefix } => self.networks.push(network(*ip, *prefix)),
        }
    }

    /// Whether anything outside is asked for a name.
    pub fn needs_dns(&self) -> bool {
        !self.names.is_empty() || !self.public.is_empty()
    }

    /// Whether nothing outside may be reached.
    pub fn is_empty(&self) -> bool {
        !self.everything && self.networks.is_empty() && !self.needs_dns()
    }
}

fn is_local(name: &str) -> bool {
    name == "localhost" || name.ends_with(".localhost")
}

fn is_loopback(ip: IpAddr, prefix: u8) -> bool {
    match ip {
        IpAddr::V4(ip) => prefix >= 8 && ip.is_loopback(),
        IpAddr::V6(ip) => prefix == 128 && ip.is_loopback(),
    }
}

fn block(ip: IpAddr, prefix: u8) -> Block {
    let classes: &[&str] = if ip.is_ipv4() { &NOT_PUBLIC_V4 } else { &NOT_PUBLIC_V6 };
    let is_inside = |class: &&&str| {
        let (of, length) = class.split_once('/').unwrap_or((class, ""));
        match (of.parse::<IpAddr>(), length.parse::<u8>()) {
            (Ok(of), Ok(length)) => length > prefix && cidr(of, prefix) == cidr(ip, prefix),
            _ => false,
        }
    };
    Block { cidr: cidr(ip, prefix), except: classes.iter().filter(is_inside).copied().collect() }
}

/// A network with nothing set beyond its prefix, which some readers refuse.
fn cidr(ip: IpAddr, prefix: u8) -> String {
    match ip {
        IpAddr::V4(ip) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(prefix.min(32))).unwrap_or(0);
            format!("{}/{prefix}", Ipv4Addr::from(u32::from(ip) & mask))
        }
        IpAddr::V6(ip) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(prefix.min(128))).unwrap_or(0);
            format!("{}/{prefix}", Ipv6Addr::from(u128::from(ip) & mask))
        }
    }
}

/// IPv4 networks that are not public: what a rule for a name or for `public` never means.
pub const NOT_PUBLIC_V4: [&str; 15] = [
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.88.99.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/4",
    "240.0.0.0/4",
];

/// The same of IPv6, with those that hide an address of IPv4 (Teredo, 6to4, NAT64).
pub const NOT_PUBLIC_V6: [&str; 5] =
    ["::/3", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"];

/// Every public address, of both versions.
pub fn public() -> [Block; 2] {
    [block(Ipv4Addr::UNSPECIFIED.into(), 0), public_v6()]
}

/// Public addresses of IPv6 all begin with the same three bits.
fn public_v6() -> Block {
    block(Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0).into(), 3)
}

#[cfg(test)]
mod tests;
