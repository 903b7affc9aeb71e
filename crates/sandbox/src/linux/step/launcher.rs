//! Steps of the launcher, outside of the sandbox.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use mcp_policy::{Bytes, Duration};
use serde::Serialize;

use crate::core::host::Ids;
use crate::core::request::lossy;
use crate::linux::facts::CgroupMeans;

/// A file of the run's cgroup, and what is written to it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CgroupSetting {
    pub file: &'static str,
    pub value: String,
}

impl fmt::Display for CgroupSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.file, self.value)
    }
}

/// The sandbox is made in that cgroup: none of it is ever outside.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EnterCgroup {
    #[serde(serialize_with = "lossy")]
    pub at: PathBuf,
    pub means: CgroupMeans,
}

impl fmt::Display for EnterCgroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.at.display(), self.means.name())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NetworkNamespace {
    Own,
    Host,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Namespaces {
    pub network: NetworkNamespace,
}

impl fmt::Display for Namespaces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.network {
            NetworkNamespace::Own => "user mount pid net ipc uts cgroup",
            NetworkNamespace::Host => "user mount pid ipc uts cgroup",
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Timeout {
    pub after: Duration,
    pub grace: Duration,
}

impl fmt::Display for Timeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, then {} of grace", self.after, self.grace)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct WatchMemory {
    pub limit: Bytes,
}

impl fmt::Display for WatchMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "of the whole tree, limit {}", self.limit)
    }
}

/// Carries what is allowed between the sandbox and the host's network.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum ConnectionRelay {
    /// From and to sockets in the sandbox's own network.
    Broker { rules: usize, listen: Vec<u16> },
    /// For a command that shares the host's network: its sockets are connected by the launcher, to a proxy that
    /// variables name by this address.
    Proxy { at: SocketAddr, rules: usize },
}

impl fmt::Display for ConnectionRelay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConnectionRelay::Broker { rules, listen } => {
                write!(f, "of {rules} rules")?;
                listen.iter().try_for_each(|port| write!(f, ", from host port {port}"))
            }
            ConnectionRelay::Proxy { at, rules } => {
                write!(f, "of {rules} rules, called {at} inside")
            }
        }
    }
}

/// A process that has become the command's user carries out what the filter leaves to the launcher.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SyscallProxy {
    /// Whom it becomes, where that is not the caller.
    pub user: Option<Ids>,
}

impl fmt::Display for SyscallProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.user {
            Some(Ids { uid, gid }) => write!(f, "as uid {uid}, gid {gid}"),
            None => f.write_str("as the caller"),
        }
    }
}
