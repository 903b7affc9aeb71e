//! Facts about this machine. The plan is made from these facts and the request alone.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::core::host::{Caller, Fact, Ids};

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

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LinuxFacts {
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
    /// A filter with a listener; refused inside another sandbox that does so itself.
    pub listener: Fact,
    /// Such a filter's listener can hand descriptors to who asks (Linux 5.9).
    pub installing: Fact,
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

/// Limits on the whole tree. Unlike the rest this is never assumed: where a run needs it, the
/// cgroup was made before the plan.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CgroupFacts {
    /// Where version 2 is mounted.
    pub mount: Option<PathBuf>,
    pub held: Option<HeldCgroup>,
    /// Why there is none, where one was wanted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why_not: Option<String>,
    /// The disks of writable grants, where a rate is asked for …
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub disks: Vec<String>,
    /// … and the grants that are on none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unbounded: Vec<PathBuf>,
}

/// A cgroup that is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldCgroup {
    pub at: PathBuf,
    pub means: CgroupMeans,
    /// Those that were wanted and are on.
    pub controllers: Vec<String>,
}

/// How a cgroup of the run's own was had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CgroupMeans {
    /// Below our own, which was delegated to us.
    Below,
    /// Beside our own, in a delegated one.
    Beside,
    /// A scope of the systemd user manager.
    Systemd,
    /// Root's: a directory at the top.
    TopLevel,
}

impl CgroupMeans {
    pub fn name(self) -> &'static str {
        match self {
            CgroupMeans::Below => "below our own cgroup",
            CgroupMeans::Beside => "beside our own cgroup",
            CgroupMeans::Systemd => "a scope of the systemd user manager",
            CgroupMeans::TopLevel => "at the top, as root",
        }
    }
}

impl CgroupFacts {
    /// Whether a limit of this controller can be set.
    pub fn has(&self, controller: &str) -> bool {
        let held = self.held.as_ref();
        held.is_some_and(|held| held.controllers.iter().any(|name| name == controller))
    }

    /// Why a limit of this controller cannot be set.
    pub fn missing(&self, controller: &str) -> String {
        match (&self.held, &self.why_not) {
            (Some(_), _) => format!("the {controller} controller is not delegated to us"),
            (None, Some(why)) => why.clone(),
            (None, None) => "no cgroup was made".to_owned(),
        }
    }
}
