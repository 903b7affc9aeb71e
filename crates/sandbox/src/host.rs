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

/// A user, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Ids {
    pub uid: u32,
    pub gid: u32,
}

/// Who starts the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Caller {
    pub uid: u32,
    pub gid: u32,
    /// Who became root to start it, by sudo's word.
    pub invoker: Option<Ids>,
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
    /// A new root by pivot_root.
    pub private_root: Fact,
    /// A network namespace, where the others work.
    pub network_namespace: Fact,
    /// A /proc of the sandbox's own; refused where the host's is masked, as in containers.
    pub own_proc: Fact,
    /// Trees whose owner ids are mapped, so that root's files stay root's.
    pub mapped_trees: Fact,
    pub seccomp: Fact,
    /// A filter that asks somebody; refused inside another sandbox that does so itself.
    pub listener: Fact,
    /// The newest Landlock version that the kernel offers; 0 for none.
    pub landlock_abi: u32,
    pub cgroup: CgroupFacts,
    /// Where a run without a root of its own has its private directories.
    pub run_directory: PathBuf,
    /// Files of the system that a private root has texts of its own in the place of.
    pub texts: Vec<PathBuf>,
    /// An ordinary user that root can become without a user namespace.
    pub stand_in: Option<Ids>,
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
