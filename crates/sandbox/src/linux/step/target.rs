//! Steps of the process that becomes the command.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;

use crate::core::request::{Stdio, lossy};
use crate::core::rlimit::Resource;
use crate::linux::landlock::{Ports, Rule};
use mcp_seccomp::{Arch, Connects, Ground, NewProcesses, Sockets, Watching};

/// Each of the three standard descriptors may be opened again, as it was opened.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Landlock {
    pub abi: u32,
    pub rules: Vec<Rule>,
    pub ports: Ports,
}

impl fmt::Display for Landlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rules: Vec<_> = self.rules.iter().map(ToString::to_string).collect();
        let ports = if self.ports == Ports::Closed { ", no ports" } else { "" };
        write!(f, "by Landlock version {}: {}{ports}", self.abi, rules.join(", "))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum Limit {
    #[serde(rename = "limit")]
    To { resource: Resource, value: u64 },
    /// RLIMIT_NPROC where it counts the user's processes outside too: that many more than there are.
    #[serde(rename = "limit_user_processes")]
    UserProcesses { more: u64 },
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limit::To { resource, value } => write!(f, "{resource} {value}"),
            Limit::UserProcesses { more } => {
                write!(f, "{} {more} more than the user has", Resource::Processes)
            }
        }
    }
}

/// What stays of the descriptors; all others are closed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Descriptors {
    pub stdio: [Stdio; 3],
}

impl fmt::Display for Descriptors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds: Vec<_> = self.stdio.iter().map(|kind| kind.name()).collect();
        write!(f, "but 0-2 ({})", kinds.join(", "))
    }
}

/// Refuses system calls from here on, the command's own start excepted.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Filter {
    pub arch: Arch,
    pub processes: NewProcesses,
    pub connects: Connects,
    pub sockets: Sockets,
    pub ground: Ground,
    pub watching: Watching,
}

impl Filter {
    /// Whether some calls wait for an answer of the launcher.
    #[cfg(target_os = "linux")]
    pub fn asks(&self) -> bool {
        self.processes == NewProcesses::Refused
            || self.connects == Connects::Announced
            || self.sockets == Sockets::Proxied
            || self.ground.asks()
            || self.watching == Watching::Paths
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let refused = [
            (self.processes == NewProcesses::Refused, "new processes"),
            (self.sockets == Sockets::Internet, "unix sockets"),
            (self.sockets == Sockets::None, "sockets"),
            (self.sockets == Sockets::Proxied, "sockets but to the proxy"),
            (self.ground != Ground::Namespaces, "what namespaces would keep apart"),
        ];
        let refused: Vec<_> = refused.iter().filter(|(is, _)| *is).map(|(_, what)| *what).collect();
        let mut more = Vec::new();
        if !refused.is_empty() {
            more.push(format!("and refuse {}", refused.join(", ")));
        }
        if self.connects == Connects::Announced {
            more.push("and announce connections".to_owned());
        }
        if self.watching == Watching::Paths {
            more.push("and announce paths, to be noted".to_owned());
        }
        f.write_str(&more.join(" "))
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Execute {
    #[serde(serialize_with = "lossy")]
    pub program: PathBuf,
    #[serde(serialize_with = "lossy")]
    pub cwd: PathBuf,
}

impl fmt::Display for Execute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {}", self.program.display(), self.cwd.display())
    }
}
