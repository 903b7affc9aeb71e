//! The host's own configuration of names: its resolvers, and its hosts file.

use std::path::PathBuf;
use std::time::SystemTime;

use crate::hosts::Hosts;
use crate::nss;
use crate::resolv::{Resolv, Server};

/// As many as `resolv.conf` may name (MAXNS).
const MOST_SERVERS: usize = 3;

/// Where the host keeps the list of its name servers.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum NameServers {
    /// In `/etc/resolv.conf`.
    ResolvConf,
    /// The system lists them when it is asked, as Windows does.
    System(fn() -> Vec<Server>),
}

impl NameServers {
    /// Those that the system lists; none where a file names them.
    fn listed(self) -> Vec<Server> {
        let mut servers = match self {
            NameServers::ResolvConf => Vec::new(),
            NameServers::System(list) => list(),
        };
        servers.truncate(MOST_SERVERS);
        servers
    }
}

/// By this a change is noticed.
#[derive(Debug, PartialEq, Eq)]
pub struct Stamp {
    files: Vec<Option<SystemTime>>,
    servers: Vec<Server>,
}

impl Stamp {
    pub fn now(servers: NameServers) -> Stamp {
        let changed = |path: PathBuf| std::fs::metadata(path).and_then(|file| file.modified()).ok();
        Stamp { files: files().into_iter().map(changed).collect(), servers: servers.listed() }
    }
}

fn files() -> Vec<PathBuf> {
    let resolv = system::RESOLV.map(PathBuf::from);
    resolv.into_iter().chain([system::hosts(), nss::SWITCH.into()]).collect()
}

pub fn read(servers: NameServers) -> (Resolv, Hosts) {
    let read = |path: PathBuf| std::fs::read_to_string(path).unwrap_or_default();
    let mut resolv =
        Resolv::read(&system::RESOLV.map(|path| read(path.into())).unwrap_or_default());
    let servers = servers.listed();
    if !servers.is_empty() {
        resolv.servers = servers;
    }
    (resolv, Hosts::read(&read(system::hosts())))
}

#[cfg(not(windows))]
mod system {
    use super::PathBuf;

    pub const RESOLV: Option<&str> = Some("/etc/resolv.conf");

    pub fn hosts() -> PathBuf {
        "/etc/hosts".into()
    }
}

#[cfg(windows)]
mod system {
    use super::PathBuf;

    pub const RESOLV: Option<&str> = None;

    pub fn hosts() -> PathBuf {
        let root = std::env::var_os("SystemRoot").unwrap_or_else(|| r"C:\Windows".into());
        PathBuf::from(root).join(r"System32\drivers\etc\hosts")
    }
}
