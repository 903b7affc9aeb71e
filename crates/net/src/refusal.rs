//! Why something was not allowed, and the flag that would allow it.

use std::fmt;
use std::net::IpAddr;

use mcp_policy::Protocol;

use super::address::AddressClass;
use super::endpoint::{Endpoint, Target};

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Refusal {
    pub protocol: Protocol,
    pub to: Endpoint,
    pub reason: Reason,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    NoRule,
    /// A rule covers the address, but is too wide to mean an address of this kind.
    TooWide {
        kind: AddressClass,
    },
    /// The name is allowed, but its address is of a kind that only a literal rule opens.
    Leads {
        ip: IpAddr,
        kind: AddressClass,
    },
}

impl Refusal {
    /// The value for `--allow-net` that would allow it.
    pub fn rule(&self) -> String {
        let to = match &self.reason {
            Reason::Leads { ip, .. } => Endpoint { target: Target::Ip(*ip), port: self.to.port },
            Reason::NoRule | Reason::TooWide { .. } => self.to.clone(),
        };
        match self.protocol {
            Protocol::Tcp => to.to_string(),
            Protocol::Udp => format!("udp://{to}"),
        }
    }
}

/// `api.foo.com:443 (add --allow-net api.foo.com:443)`, for after `blocked `.
impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.protocol == Protocol::Udp {
            f.write_str("udp://")?;
        }
        write!(f, "{}", self.to)?;
        match &self.reason {
            Reason::NoRule => {}
            Reason::TooWide { kind } => write!(f, ", which is {kind}")?,
            Reason::Leads { ip, kind } => write!(f, ", for its address {ip} is {kind}")?,
        }
        write!(f, " (add {})", flag(&self.rule()))
    }
}

/// The flag with this rule, as a shell takes it.
pub fn flag(rule: &str) -> String {
    let quote = rule.contains(['*', '[']);
    if quote { format!("--allow-net '{rule}'") } else { format!("--allow-net {rule}") }
}
