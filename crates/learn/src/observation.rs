//! Observations of a confined run: paths, destinations, variables, usage.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// How often something was asked for, and when first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// How often, over all rounds.
    pub times: u64,
    /// The call or the phase that asked first: `read_file`, `tools/list`, `start`.
    pub first: String,
}

impl Evidence {
    /// Adds what was seen later.
    pub fn add(&mut self, later: &Evidence) {
        self.times = self.times.saturating_add(later.times);
        if self.first.is_empty() {
            self.first.clone_from(&later.first);
        }
    }
}

/// What a path was wanted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// To be found: its attributes, or that it is there.
    Look,
    /// To be read, listed or executed.
    Read,
    /// To be written where it is.
    Write,
    /// To have entries made, renamed or removed in it. The path is the directory.
    WriteEntries,
    /// To be connected to.
    Connect,
}

/// What a path is on the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A unix socket.
    Socket,
}

/// A path that was wanted, exists on the host, and was not there inside, or could only be read there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathSeen {
    /// Absolute, as it would be granted.
    pub path: PathBuf,
    /// The same place without links, and by its usual name where it has several (a bind mount, a hard link). `None` where that
    /// is `path`.
    pub same_as: Option<PathBuf>,
    /// What it is on the host.
    pub kind: FileKind,
    /// What it was wanted for.
    pub access: Access,
    /// How often and when.
    pub evidence: Evidence,
}

/// A destination that the network broker refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostSeen {
    /// `[udp://]HOST[:PORT]`, as the report and the audit log name it.
    pub destination: String,
    /// How often and when.
    pub evidence: Evidence,
}

/// Why a variable is not passed by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Concern {
    /// It looks like a credential.
    Credential,
    /// It makes programs run other code than their own.
    Injection,
}

/// A variable that the program's own files name, that is set for the caller and was not passed on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VariableSeen {
    /// Its name.
    pub name: String,
    /// Why it is not passed by itself, going by its name and its value.
    pub concern: Option<Concern>,
    /// How often and when.
    pub evidence: Evidence,
}

/// The most that a run used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peaks {
    /// Bytes of memory of all processes together.
    pub memory: Option<u64>,
    /// Processes and threads at once.
    pub processes: Option<u64>,
    /// Bytes of temporary space.
    pub temporary: Option<u64>,
}

impl Peaks {
    /// The larger of each.
    #[must_use]
    pub fn max(self, other: Peaks) -> Peaks {
        Peaks {
            memory: self.memory.max(other.memory),
            processes: self.processes.max(other.processes),
            temporary: self.temporary.max(other.temporary),
        }
    }
}

/// Everything that was seen.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observations {
    /// Files, directories and unix sockets.
    pub paths: Vec<PathSeen>,
    /// Destinations of the network.
    pub hosts: Vec<HostSeen>,
    /// Variables.
    pub variables: Vec<VariableSeen>,
    /// The most that was used.
    pub peaks: Peaks,
}
