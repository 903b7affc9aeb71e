//! The operations a macOS plan is made of, in the order in which they run.

use std::fmt;
use std::path::PathBuf;

use mcp_policy::{Bytes, Duration};
use serde::Serialize;

use crate::core::plan::Describe;
use crate::core::request::{Stdio, lossy};
use crate::core::rlimit::Resource;
use crate::macos::profile::Profile;

/// Which process carries a step out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// The launcher itself, outside.
    Launcher,
    /// Our own program again, inside the sandbox, before it becomes the command.
    Helper,
}

/// What the helper tries inside, and must not be able to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(tag = "act", rename_all = "snake_case")]
pub enum Act {
    /// Open a file of the caller's that the launcher has just made and can open.
    Read {
        #[serde(serialize_with = "lossy")]
        path: PathBuf,
    },
    /// Make a file beside it.
    Create {
        #[serde(serialize_with = "lossy")]
        path: PathBuf,
    },
    /// Connect to a port on which the launcher listens.
    Connect,
    /// Send the launcher signal 0.
    Signal,
    /// Ask the system about the launcher.
    Inspect,
    /// Make a process.
    Fork,
    /// Become another program of the system.
    Exec,
    /// Give a file of the command's own the set-uid bit.
    SetUserId {
        #[serde(serialize_with = "lossy")]
        path: PathBuf,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum Step {
    /// Directories of mode 0700 that are removed after the run.
    RunDirectory {
        #[serde(serialize_with = "lossy")]
        at: PathBuf,
    },
    /// A file of the command's own.
    Text {
        #[serde(serialize_with = "lossy")]
        at: PathBuf,
        text: String,
    },
    Timeout {
        after: Duration,
        grace: Duration,
    },
    WatchMemory {
        limit: Bytes,
    },
    WatchProcesses {
        limit: u32,
    },
    /// A process of ours that ends the tree when the launcher is killed.
    Guardian,
    /// Carries what is allowed, for programs that ask for it there.
    Proxy {
        port: u16,
        rules: usize,
    },
    /// What the command runs under, from its helper's first instruction on.
    Seatbelt {
        profile: Profile,
    },
    /// Whether the system tells this run's processes from all others.
    Membership {
        nonce: String,
    },
    NewSession,
    /// Tried before the command starts; if it works, nothing is started.
    Refused {
        #[serde(flatten)]
        act: Act,
    },
    Limit {
        resource: Resource,
        value: u64,
    },
    Descriptors {
        stdio: [Stdio; 3],
    },
    /// What the run's own directories and the machine's toolchains mean for the environment.
    Environment {
        set: Vec<(String, String)>,
    },
    Execute {
        #[serde(serialize_with = "lossy")]
        program: PathBuf,
        #[serde(serialize_with = "lossy")]
        cwd: PathBuf,
    },
}

impl Step {
    pub fn stage(&self) -> Stage {
        match self {
            Step::RunDirectory { .. }
            | Step::Text { .. }
            | Step::Timeout { .. }
            | Step::WatchMemory { .. }
            | Step::WatchProcesses { .. }
            | Step::Guardian
            | Step::Proxy { .. }
            | Step::Seatbelt { .. }
            | Step::Membership { .. } => Stage::Launcher,
            Step::NewSession
            | Step::Refused { .. }
            | Step::Limit { .. }
            | Step::Descriptors { .. }
            | Step::Environment { .. }
            | Step::Execute { .. } => Stage::Helper,
        }
    }

    /// The step as a failure names it: a verb, without its operand.
    pub fn verb(&self) -> &'static str {
        match self {
            Step::RunDirectory { .. } => "make private directories",
            Step::Text { .. } => "write",
            Step::Timeout { .. } => "arm the timeout",
            Step::WatchMemory { .. } => "watch memory",
            Step::WatchProcesses { .. } => "watch processes",
            Step::Guardian => "tie the sandbox to the launcher",
            Step::Proxy { .. } => "carry connections",
            Step::Seatbelt { .. } => "enter the sandbox",
            Step::Membership { .. } => "tell the sandbox's processes from others",
            Step::NewSession => "start a session",
            Step::Refused { .. } => "check from inside that it is refused:",
            Step::Limit { .. } => "set limit",
            Step::Descriptors { .. } => "close file descriptors",
            Step::Environment { .. } => "set variables",
            Step::Execute { .. } => "execute",
        }
    }

    pub fn operand(&self) -> String {
        match self {
            Step::RunDirectory { at } | Step::Text { at, .. } => at.display().to_string(),
            Step::Timeout { after, grace } => format!("{after}, then {grace} of grace"),
            Step::WatchMemory { limit } => format!("of the whole tree, limit {limit}"),
            Step::WatchProcesses { limit } => format!("of the whole tree, at most {limit}"),
            Step::Guardian | Step::NewSession => String::new(),
            Step::Proxy { port, rules } => {
                format!("of {rules} rules, by a proxy on port {port} of the loopback")
            }
            Step::Seatbelt { profile } => {
                format!("/usr/bin/sandbox-exec with {} parameters", profile.parameters.len())
            }
            Step::Membership { nonce } => format!("by the name {nonce}"),
            Step::Refused { act } => act.to_string(),
            Step::Limit { resource, value } => format!("{resource} {value}"),
            Step::Descriptors { .. } => "but 0-2".to_owned(),
            Step::Environment { set } => {
                let set: Vec<_> =
                    set.iter().map(|(name, value)| format!("{name}={value}")).collect();
                set.join(" ")
            }
            Step::Execute { program, cwd } => format!("{} in {}", program.display(), cwd.display()),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operand = self.operand();
        f.write_str(self.verb())?;
        if operand.is_empty() { Ok(()) } else { write!(f, " {operand}") }
    }
}

impl Describe for Step {
    fn stage(&self) -> String {
        format!("{:?}", Step::stage(self)).to_lowercase()
    }

    fn attachment(&self) -> Option<(&'static str, String)> {
        match self {
            Step::Seatbelt { profile } => Some(("Seatbelt profile", profile.to_string())),
            _ => None,
        }
    }
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Act::Read { path } => write!(f, "read {}", path.display()),
            Act::Create { path } => write!(f, "create {}", path.display()),
            Act::Connect => f.write_str("connect to a port of the launcher"),
            Act::Signal => f.write_str("signal the launcher"),
            Act::Inspect => f.write_str("ask about the launcher"),
            Act::Fork => f.write_str("make a process"),
            Act::Exec => f.write_str("execute another program"),
            Act::SetUserId { path } => write!(f, "make {} set-uid", path.display()),
        }
    }
}
