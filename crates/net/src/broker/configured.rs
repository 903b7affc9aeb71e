//! What the host itself knows of names: whom it asks, and what its hosts file says.

use std::path::PathBuf;
use std::time::SystemTime;

use crate::net::hosts::Hosts;
use crate::net::nss;
use crate::net::resolv::{Resolv, Server};

/// By this a change is noticed.
#[derive(Debug, PartialEq, Eq)]
pub struct Stamp {
    files: Vec<Option<SystemTime>>,
    servers: Vec<Server>,
}

impl Stamp {
    pub fn now() -> Stamp {
        let changed = |path: PathBuf| std::fs::metadata(path).and_then(|file| file.modified()).ok();
        Stamp { files: files().into_iter().map(changed).collect(), servers: system::servers() }
    }
}

fn files() -> Vec<PathBuf> {
    let resolv = system::RESOLV.map(PathBuf::from);
    resolv.into_iter().chain([system::hosts(), nss::SWITCH.into()]).collect()
}

pub fn read() -> (Resolv, Hosts) {
    let read = |path: PathBuf| std::fs::read_to_string(path).unwrap_or_default();
    let mut resolv =
        Resolv::read(&system::RESOLV.map(|path| read(path.into())).unwrap_or_default());
    let servers = system::servers();
    if !servers.is_empty() {
        resolv.servers = servers;
    }
    (resolv, Hosts::read(&read(system::hosts())))
}

#[cfg(not(windows))]
mod system {
    use super::{PathBuf, Server};

    pub const RESOLV: Option<&str> = Some("/etc/resolv.conf");

    pub fn hosts() -> PathBuf {
        "/etc/hosts".into()
    }

    /// They are in the file.
    pub fn servers() -> Vec<Server> {
        Vec::new()
    }
}

#[cfg(windows)]
mod system {
    use super::{PathBuf, Server};

    pub const RESOLV: Option<&str> = None;

    pub fn hosts() -> PathBuf {
        let root = std::env::var_os("SystemRoot").unwrap_or_else(|| r"C:\Windows".into());
        PathBuf::from(root).join(r"System32\drivers\etc\hosts")
    }

    /// As many as the others have at most.
    pub fn servers() -> Vec<Server> {
        let mut servers = crate::platform::name_servers();
        servers.truncate(3);
        servers
    }
}
