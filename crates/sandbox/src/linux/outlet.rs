//! The sockets of the sandbox's network that the launcher holds: init makes them inside and hands
//! them out. Pure; `outlets` makes them.

use std::fmt;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outlet {
    /// Takes TCP connections to this address.
    Listener(SocketAddr),
    /// Takes datagrams to this address.
    Datagrams(SocketAddr),
    /// A connection to a server inside.
    Connection(SocketAddr),
    /// Hears when the kernel refuses what nobody listens for, so that it can be told.
    Refusals(Refused),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Refused {
    Tcp4,
    Tcp6,
    Udp4,
    Udp6,
}

impl Refused {
    pub const ALL: [Refused; 4] = [Refused::Tcp4, Refused::Tcp6, Refused::Udp4, Refused::Udp6];
}

impl Outlet {
    /// Hosts may be without IPv6; then nothing can be reached over it inside either.
    pub fn needs_ipv6(self) -> bool {
        match self {
            Outlet::Listener(at) | Outlet::Datagrams(at) | Outlet::Connection(at) => at.is_ipv6(),
            Outlet::Refusals(refused) => matches!(refused, Refused::Tcp6 | Refused::Udp6),
        }
    }
}

impl fmt::Display for Outlet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outlet::Listener(at) => write!(f, "tcp {at}"),
            Outlet::Datagrams(at) => write!(f, "udp {at}"),
            Outlet::Connection(at) => write!(f, "to {at}"),
            Outlet::Refusals(refused) => write!(f, "refused {refused:?}"),
        }
    }
}
