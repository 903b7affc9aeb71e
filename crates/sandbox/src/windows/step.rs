//! The operations a Windows plan is made of, in the order in which they run.

use std::ffi::OsString;
use std::fmt;

use mcp_policy::{Duration, WindowsPath};
use serde::Serialize;

use crate::core::plan::Describe;
use crate::core::request::{Stdio, lossy};
use crate::windows::access::Grant;
use crate::windows::exclusion::{Exclusion, ExclusionKind};
use crate::windows::job::{CpuRate, JobLimits};

/// Which process carries a step out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// The launcher itself, outside.
    Launcher,
    /// Our own program again, started as the command will be, and gone before it.
    Helper,
}

/// What the helper tries inside, and must not be able to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "act", rename_all = "snake_case")]
pub enum Act {
    /// Open a file of the caller's that the launcher has just made and can open.
    Read { path: WindowsPath },
    /// Make a file beside it.
    Create { path: WindowsPath },
    /// Connect to a port on which the launcher listens.
    Connect,
    /// Open the launcher's process, to end it or to read its memory.
    OpenLauncher,
    /// Use a handle that the launcher holds open for inheriting, and did not list.
    Inherit,
    /// Start a process outside of the job.
    BreakAway,
    /// Start a process.
    Spawn,
    /// Open a denied path, for anything.
    Reach { path: WindowsPath },
    /// Open a protected path, for anything that changes it.
    Change { path: WindowsPath },
    /// Open a directory above a protected path, to remove or to rename it.
    Move { path: WindowsPath },
}

/// The integrity level of the restricted token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Integrity {
    /// The level of every AppContainer.
    Low,
    /// Without a container, a process at low integrity could not write to granted paths.
    Unchanged,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum Step {
    /// Directories that are removed after the run.
    RunDirectory {
        at: WindowsPath,
    },
    /// A file of the command's own.
    Text {
        at: WindowsPath,
        text: String,
    },
    /// Change and filled before anything runs in it; read back.
    Job {
        limits: JobLimits,
    },
    CpuRate {
        rate: CpuRate,
    },
    /// Restrictions on windows, clipboard and desktop.
    Ui,
    /// A desktop of the run's own. Where programs with windows do not start on it, the user's is used, and said.
    Desktop,
    Timeout {
        after: Duration,
        grace: Duration,
    },
    Token {
        integrity: Integrity,
    },
    /// A profile of this run alone; `network` gives it the host's.
    Container {
        profile: String,
        network: ContainerNetwork,
    },
    /// Grants leave this path out: the container's SID gets no entry, or a smaller one, in its DACL.
    Exclusion {
        #[serde(flatten)]
        exclusion: Exclusion,
    },
    Grant {
        #[serde(flatten)]
        grant: Grant,
    },
    /// The entries of a directory of a program or package stay; they are for a capability of the directory's own, which
    /// the run's processes get.
    LastingGrant {
        path: WindowsPath,
    },
    /// Our own program in the same container, in a job of its own, on a port of the loopback: carries connections
    /// over two pipes to the launcher, which decides. Variables send the command there.
    Relay,
    /// The same the other way round: the launcher takes connections on this port, and a relay inside brings them
    /// to the command's.
    ListenRelay {
        port: u16,
    },
    /// The child process policy: the command cannot start processes.
    NoChildren,
    /// Process mitigation policies that no known program breaks on.
    Mitigations,
    Handles {
        stdio: [Stdio; 3],
    },
    /// Tried before the command starts; if the act succeeds, the command does not start.
    Refused {
        #[serde(flatten)]
        act: Act,
    },
    /// A file can be made and removed here.
    Allowed {
        directory: WindowsPath,
    },
    /// A connection from inside to the relay gets an answer of the launcher.
    Reached,
    /// What the launcher sends arrives at a server inside, on this port.
    Served {
        port: u16,
    },
    /// The helper's own token is what was asked for.
    Identity,
    Environment {
        #[serde(serialize_with = "shown")]
        set: Vec<(OsString, OsString)>,
    },
    /// Started suspended, assigned to the job, resumed.
    Execute {
        #[serde(serialize_with = "lossy")]
        program: std::path::PathBuf,
        cwd: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ContainerNetwork {
    Nothing,
    /// The host's, but for its own loopback.
    Host,
}

fn shown<S: serde::Serializer>(set: &[(OsString, OsString)], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(
        set.iter().map(|(name, value)| (name.to_string_lossy(), value.to_string_lossy())),
    )
}

impl Step {
    pub fn stage(&self) -> Stage {
        match self {
            Step::Refused { .. }
            | Step::Allowed { .. }
            | Step::Reached
            | Step::Served { .. }
            | Step::Identity => Stage::Helper,
            _ => Stage::Launcher,
        }
    }

    /// The step as a failure names it: a verb, without its operand.
    pub fn verb(&self) -> &'static str {
        match self {
            Step::RunDirectory { .. } => "make private directories",
            Step::Text { .. } => "write",
            Step::Job { .. } => "make a job object",
            Step::CpuRate { .. } => "cap the processor share",
            Step::Ui => "restrict windows, clipboard and desktop",
            Step::Desktop => "make a desktop of its own",
            Step::Timeout { .. } => "arm the timeout",
            Step::Token { .. } => "restrict the token",
            Step::Container { .. } => "make a container",
            Step::Exclusion { exclusion } => match exclusion.kind {
                ExclusionKind::NoAccess => "give no access to",
                ExclusionKind::ReadOnly => "give only read access to",
                ExclusionKind::NoRename => "refuse removing and renaming of",
            },
            Step::Grant { .. } | Step::LastingGrant { .. } => "let the container",
            Step::Relay | Step::ListenRelay { .. } => "start a relay inside",
            Step::NoChildren => "refuse new processes",
            Step::Mitigations => "set mitigations",
            Step::Handles { .. } => "hand over no handle",
            Step::Refused { .. } => "check from inside that it is refused:",
            Step::Allowed { .. } => "check from inside that files can be made in",
            Step::Reached | Step::Served { .. } => "check from inside that",
            Step::Identity => "check the token from inside",
            Step::Environment { .. } => "set variables",
            Step::Execute { .. } => "execute",
        }
    }

    pub fn operand(&self) -> String {
        match self {
            Step::RunDirectory { at } | Step::Text { at, .. } => at.to_string(),
            Step::Job { limits } => job(*limits),
            Step::CpuRate { rate: CpuRate(rate) } => {
                format!("{}.{:02} % of all processors", rate / 100, rate % 100)
            }
            Step::Timeout { after, grace } => format!("{after}, then {grace} of grace"),
            Step::Token { integrity: Integrity::Low } => {
                "no privileges, administrators' groups deny only, low integrity".to_owned()
            }
            Step::Token { integrity: Integrity::Unchanged } => {
                "no privileges, administrators' groups deny only".to_owned()
            }
            Step::Container { profile, network: ContainerNetwork::Nothing } => {
                format!("{profile} without capabilities")
            }
            Step::Container { profile, network: ContainerNetwork::Host } => {
                format!("{profile} with the network's capabilities")
            }
            Step::Exclusion { exclusion } => exclusion.path.to_string(),
            Step::Grant { grant } => format!("{} {}", grant.access, grant.path),
            Step::LastingGrant { path } => format!("read {path}, by entries that stay"),
            Step::Handles { .. } => "but the standard three".to_owned(),
            Step::Refused { act } => act.to_string(),
            Step::Allowed { directory } => directory.to_string(),
            Step::Environment { set } => {
                let names: Vec<_> = set.iter().map(|(name, _)| name.to_string_lossy()).collect();
                names.join(" ")
            }
            Step::Execute { program, cwd } => format!("{} in {cwd}", program.display()),
            Step::Relay => {
                "for the launcher's proxy, which HTTP_PROXY and its like name".to_owned()
            }
            Step::ListenRelay { port } => {
                format!(
                    "for connections from [::1]:{port} of this machine to 127.0.0.1:{port} inside"
                )
            }
            Step::Reached => "the relay leads to the launcher".to_owned(),
            Step::Served { port } => format!("a server on 127.0.0.1:{port} is reached"),
            Step::Ui | Step::Desktop | Step::NoChildren | Step::Mitigations | Step::Identity => {
                String::new()
            }
        }
    }
}

fn job(limits: JobLimits) -> String {
    let mut parts = vec!["dies with its last handle, nothing breaks away".to_owned()];
    parts.extend(limits.memory.map(|bytes| format!("{bytes} bytes of memory")));
    parts.extend(limits.processes.map(|count| format!("at most {count} processes")));
    parts.extend(limits.user_time.map(|time| format!("{} ms of user time", time / 10_000)));
    parts.join(", ")
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
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Act::Read { path } => write!(f, "read {path}"),
            Act::Create { path } => write!(f, "create {path}"),
            Act::Connect => f.write_str("connect to a port of the launcher"),
            Act::OpenLauncher => f.write_str("open the launcher's process"),
            Act::Inherit => f.write_str("use a handle that was not handed over"),
            Act::BreakAway => f.write_str("start a process outside of the job"),
            Act::Spawn => f.write_str("start a process"),
            Act::Reach { path } => write!(f, "open {path}"),
            Act::Change { path } => write!(f, "change {path}"),
            Act::Move { path } => write!(f, "remove or rename {path}"),
        }
    }
}
