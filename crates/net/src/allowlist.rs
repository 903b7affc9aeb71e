//! The destinations that the rules of the policy allow.
//!
//! Names are matched by label: `*.example.com` is every name below `example.com`, with any
//! number of labels, and not `example.com` itself. The owner of a zone can therefore be
//! told things through the labels of a wildcard's lookups; an exact name tells nothing.
//!
//! A name rule never opens an address that is not public (see [`super::address`]). A rule for
//! that very address and port does, or one for a network that lies inside such a class:
//! `10.1.0.0/16:5432` opens its part of the private range, `0.0.0.0/0` opens none.
//!
//! `public` is every name of the internet and every address that is judged public, and opens nothing else. A connection to a
//! name by it must ask for that very name: what is told of it is then true.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use mcp_policy::{Host, HostName, NetRule, Ports, Protocol, Tls, Wildcard};

use super::address::{Judgement, Networks, judge};
use super::endpoint::{Endpoint, Target};
use super::refusal::{Reason, Refusal};

/// The rules of a run, and the names and addresses that they allow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allowlist {
    rules: Vec<NetRule>,
    /// The host's own networks; `None` where they cannot be listed.
    own: Option<Networks>,
}

/// Whether a list is another one than before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// The list is as it was.
    Same,
    /// The list is another one.
    Changed,
}

/// The ports that some rules allow together.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PortSet {
    /// Every port.
    Any,
    /// These ports.
    Listed(BTreeSet<u16>),
}

impl PortSet {
    /// Whether a port is in the set.
    #[must_use]
    pub fn contains(&self, port: u16) -> bool {
        match self {
            Self::Any => port != 0,
            Self::Listed(ports) => ports.contains(&port),
        }
    }

    /// How many are known by number.
    #[must_use]
    pub fn count(&self) -> usize {
        match self {
            Self::Any => 0,
            Self::Listed(ports) => ports.len(),
        }
    }

    /// Whether no port is in the set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::Listed(ports) if ports.is_empty())
    }

    fn of(all: impl Iterator<Item = Ports>) -> Self {
        let mut listed = BTreeSet::new();
        for ports in all {
            match ports.listed() {
                None => return Self::Any,
                Some(ports) => listed.extend(ports),
            }
        }
        Self::Listed(listed)
    }
}

/// What a name may be used for. Never empty in both.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Grants {
    /// The ports for TCP.
    pub tcp: PortSet,
    /// The ports for UDP.
    pub udp: PortSet,
}

impl Allowlist {
    /// `own` are the networks of the host's interfaces. Where they cannot be listed (`None`), only
    /// a rule for an address opens it.
    pub fn new(rules: impl IntoIterator<Item = NetRule>, own: Option<Networks>) -> Self {
        Self { rules: rules.into_iter().collect(), own }
    }

    /// For programs that share the host's loopback: who allows `localhost` means its addresses.
    pub fn with_loopback(rules: impl IntoIterator<Item = NetRule>) -> Vec<NetRule> {
        let mut all = Vec::new();
        for rule in rules {
            if rule.matches_name("localhost") {
                let loopback = [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()];
                let tls = Tls::Checked;
                all.extend(loopback.map(|ip| NetRule {
                    host: Host::Address(ip),
                    tls,
                    ..rule.clone()
                }));
            }
            all.push(rule);
        }
        all
    }

    /// The host's networks have been listed again.
    pub fn set_own(&mut self, own: Option<Networks>) -> Change {
        if self.own == own {
            return Change::Same;
        }
        self.own = own;
        Change::Changed
    }

    /// The rules, as the policy has them.
    #[must_use]
    pub fn rules(&self) -> &[NetRule] {
        &self.rules
    }

    /// Whether a name exists for the program, and for which ports. `None`: NXDOMAIN.
    #[must_use]
    pub fn name(&self, name: &HostName) -> Option<Grants> {
        let ports = |protocol| {
            let matching = self.rules.iter().filter(|rule| matches_name(rule, protocol, name));
            PortSet::of(matching.map(|rule| rule.ports))
        };
        let grants = Grants { tcp: ports(Protocol::Tcp), udp: ports(Protocol::Udp) };
        (!grants.tcp.is_empty() || !grants.udp.is_empty()).then_some(grants)
    }

    /// Whether a rule spells this name out. There are as many such names as the user wrote; what a
    /// wildcard allows the command makes up.
    #[must_use]
    pub fn spells_out(&self, name: &HostName) -> bool {
        let is_it = |rule: &NetRule| match &rule.host {
            Host::Name { name: known, wildcard } => known == name && *wildcard == Wildcard::Exact,
            Host::Address(_) | Host::Network { .. } | Host::Public => false,
        };
        self.rules.iter().any(is_it)
    }

    /// The rule that allows a connection, before any name is resolved.
    pub fn check(&self, protocol: Protocol, to: &Endpoint) -> Result<&NetRule, Refusal> {
        match &to.target {
            Target::Name(name) => self.check_name(protocol, name, to),
            Target::Ip(ip) => self.check_ip(protocol, *ip, to),
        }
    }

    fn check_name(
        &self,
        protocol: Protocol,
        name: &HostName,
        to: &Endpoint,
    ) -> Result<&NetRule, Refusal> {
        let mut matching = self.rules.iter().filter(|rule| matches_name(rule, protocol, name));
        matching.find(|rule| rule.matches_port(to.port)).ok_or_else(|| Refusal {
            protocol,
            to: to.clone(),
            reason: Reason::NoRule,
        })
    }

    fn check_ip(&self, protocol: Protocol, ip: IpAddr, to: &Endpoint) -> Result<&NetRule, Refusal> {
        let refused = |reason| Refusal { protocol, to: to.clone(), reason };
        let mut covering = self.literal_rules(protocol, ip, to.port).peekable();
        if covering.peek().is_none() {
            return Err(refused(Reason::NoRule));
        }
        match judge(ip, self.own.as_ref()) {
            Judgement::Public => covering.next().ok_or_else(|| refused(Reason::NoRule)),
            Judgement::Refused { kind, prefix } => covering
                .find(|rule| opens(rule, prefix))
                .ok_or_else(|| refused(Reason::TooWide { kind })),
        }
    }

    /// Whether a connection that was allowed by name may go to this address of it.
    pub fn check_resolved(
        &self,
        protocol: Protocol,
        to: &Endpoint,
        ip: IpAddr,
    ) -> Result<(), Refusal> {
        match judge(ip, self.own.as_ref()) {
            Judgement::Public => Ok(()),
            Judgement::Refused { kind, prefix } => {
                let mut covering = self.literal_rules(protocol, ip, to.port);
                if covering.any(|rule| opens(rule, prefix)) {
                    return Ok(());
                }
                let ip = ip.to_canonical();
                Err(Refusal { protocol, to: to.clone(), reason: Reason::Leads { ip, kind } })
            }
        }
    }

    /// Whether a connection that was opened for one name may ask for another: only when a
    /// rule that allows the first allows the second too.
    #[must_use]
    pub fn allows_server_name(&self, opened: &HostName, port: u16, shown: &HostName) -> bool {
        opened == shown
            || self.rules.iter().filter(|rule| rule.host != Host::Public).any(|rule| {
                matches_name(rule, Protocol::Tcp, opened)
                    && rule.matches_port(port)
                    && matches_name(rule, Protocol::Tcp, shown)
            })
    }

    /// Whether what a connection to this name asks for has to be looked at: not where one of the
    /// rules that allow it says so.
    #[must_use]
    pub fn tls(&self, name: &HostName, port: u16) -> Tls {
        let off = |rule: &NetRule| {
            rule.tls == Tls::Off
                && matches_name(rule, Protocol::Tcp, name)
                && rule.matches_port(port)
        };
        if self.rules.iter().any(off) { Tls::Off } else { Tls::Checked }
    }

    /// Whether `public` alone allows this: then it must be known to be public before anybody is asked for it.
    #[must_use]
    pub fn is_by_public_alone(&self, protocol: Protocol, to: &Endpoint) -> bool {
        let Target::Name(name) = &to.target else {
            return false;
        };
        let mut others = self.rules.iter().filter(|rule| rule.host != Host::Public);
        !others.any(|rule| matches_name(rule, protocol, name) && rule.matches_port(to.port))
    }

    /// The rules that mean addresses of these networks, on whatever port: not to be given to
    /// names. A network that is wider means all the rest of the world, and not these.
    pub fn literal_within(&self, v4: u8, v6: u8) -> impl Fn(IpAddr) -> bool + Send + 'static {
        let means = move |rule: &&NetRule| match rule.host {
            Host::Address(_) => true,
            Host::Network { ip: IpAddr::V4(_), prefix } => prefix >= v4,
            Host::Network { ip: IpAddr::V6(_), prefix } => prefix >= v6,
            Host::Name { .. } | Host::Public => false,
        };
        let rules: Vec<NetRule> = self.rules.iter().filter(means).cloned().collect();
        move |ip| rules.iter().any(|rule| rule.matches_ip(ip))
    }

    /// The number of the first rule about a name.
    #[must_use]
    pub fn rule_of_name(&self, name: &HostName) -> Option<usize> {
        self.rules.iter().position(|rule| rule.matches_name(name.as_str()))
    }

    /// The number of the rule that allows a connection.
    #[must_use]
    pub fn rule_of(&self, protocol: Protocol, to: &Endpoint) -> Option<usize> {
        let found = self.check(protocol, to).ok()?;
        self.rules.iter().position(|rule| std::ptr::eq(rule, found))
    }

    /// Rules that may be about an address: all but those for names.
    fn literal_rules(
        &self,
        protocol: Protocol,
        ip: IpAddr,
        port: u16,
    ) -> impl Iterator<Item = &NetRule> {
        self.rules.iter().filter(move |rule| {
            let is_about_it = rule.matches_ip(ip) || rule.host == Host::Public;
            rule.protocol == protocol && is_about_it && rule.matches_port(port)
        })
    }
}

fn matches_name(rule: &NetRule, protocol: Protocol, name: &HostName) -> bool {
    rule.protocol == protocol && rule.matches_name(name.as_str())
}

/// Whether this rule, which covers the address, means its class.
fn opens(rule: &NetRule, class_prefix: u8) -> bool {
    match rule.host {
        Host::Address(_) => true,
        Host::Network { prefix, .. } => prefix >= class_prefix,
        Host::Name { .. } | Host::Public => false,
    }
}

#[cfg(test)]
mod tests;
