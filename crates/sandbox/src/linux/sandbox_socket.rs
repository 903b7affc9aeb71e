//! The sockets of the sandbox's network that the launcher holds: init makes them inside and hands
//! them out. Pure; `sandbox_sockets` makes them.

use std::fmt;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxSocket {
    /// Takes TCP connections to this address.
    Listener(SocketAddr),
    /// Takes datagrams to this address.
    Datagrams(SocketAddr),
    /// A connection to a server inside.
    Connection(SocketAddr),
    /// Hears when the kernel refuses what no server listens for, so that it can be told.
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

impl SandboxSocket {
    /// Whether the command lacks nothing without it.
    #[cfg(target_os = "linux")]
    pub fn only_tells(self) -> bool {
        matches!(self, SandboxSocket::Refusals(_))
    }

    /// Hosts may be without IPv6; then nothing can be reached over it inside either.
    #[cfg(target_os = "linux")]
    pub fn needs_ipv6(self) -> bool {
        match self {
            SandboxSocket::Listener(at)
            | SandboxSocket::Datagrams(at)
            | SandboxSocket::Connection(at) => at.is_ipv6(),
            SandboxSocket::Refusals(refused) => matches!(refused, Refused::Tcp6 | Refused::Udp6),
        }
    }
}

impl fmt::Display for SandboxSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SandboxSocket::Listener(at) => write!(f, "tcp {at}"),
            SandboxSocket::Datagrams(at) => write!(f, "udp {at}"),
            SandboxSocket::Connection(at) => write!(f, "to {at}"),
            SandboxSocket::Refusals(refused) => write!(f, "refused {refused:?}"),
        }
    }
}
