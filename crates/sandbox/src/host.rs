//! What this machine can do. The plan is made from these facts and the request alone.

use std::path::PathBuf;

use serde::Serialize;

/// Whether a mechanism worked when it was tried, and the system's answer when it did not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Fact {
    /// Tried on this machine, and it held.
    Works,
    /// Tried on this machine, and it did not.
    Fails { why: String },
    /// Not tried yet: the run itself will find out, and stops if it fails.
    Assumed,
}

impl Fact {
    pub fn usable(&self) -> bool {
        !matches!(self, Fact::Fails { .. })
    }
}

/// A top-level piece of the system that a sandbox may show read-only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SystemEntry {
    pub path: PathBuf,
    pub kind: EntryKind,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    Directory,
    File,
    Symlink(PathBuf),
}

/// Who starts the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Caller {
    pub uid: u32,
    pub gid: u32,
}

impl Caller {
    pub fn is_root(self) -> bool {
        self.uid == 0
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HostFacts {
    pub system: String,
    pub kernel: String,
    pub architecture: String,
    pub caller: Caller,
    /// All namespaces in one clone3, with an id map.
    pub namespaces: Fact,
    /// A new root by pivot_root, with a /proc of its own.
    pub private_root: Fact,
    /// Trees whose owner ids are mapped, so that root's files stay root's.
    pub mapped_trees: Fact,
    pub seccomp: Fact,
    /// The newest Landlock version that the kernel offers; 0 for none.
    pub landlock_abi: u32,
    pub cgroup: CgroupFacts,
    /// Pieces of the system that exist here.
    pub entries: Vec<SystemEntry>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CgroupFacts {
    pub mount: Option<PathBuf>,
    pub controllers: Vec<String>,
    /// A cgroup of our own could be made below the one we are in.
    pub delegated: Fact,
}
