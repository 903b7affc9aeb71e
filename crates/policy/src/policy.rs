//! The effective policy: every layer merged, every value with the place it came from.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Serialize, Serializer};

use crate::{
    Bytes, Cores, Duration, EnvName, EnvPattern, NetRule, Origin, Protect, Rate, SecretRef,
};

/// A value and the layer that set it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Sourced<T> {
    pub value: T,
    pub origin: Origin,
}

impl<T> Sourced<T> {
    pub fn new(value: T, origin: Origin) -> Self {
        Self { value, origin }
    }
}

/// What a run is asked to be. No operating-system words in here.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Policy {
    pub filesystem: Filesystem,
    /// Whether the usual places that other programs act on stay as they are inside `write`.
    pub protect: Sourced<Protect>,
    pub network: Network,
    pub process: Process,
    pub limits: Limits,
    pub env: Env,
}

/// Paths beyond the system view. Absolute after merging (`~` and relative paths are
/// resolved against the layer's base directory), not yet canonical and not yet checked
/// to exist: that needs the host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Filesystem {
    #[serde(serialize_with = "lossy")]
    pub read: Vec<Sourced<PathBuf>>,
    #[serde(serialize_with = "lossy")]
    pub write: Vec<Sourced<PathBuf>>,
    /// Paths or globs; win over `read` and `write`. A glob that starts with `**/` matches
    /// anywhere; an entry with glob characters also stands for the file of that very name.
    #[serde(serialize_with = "lossy")]
    pub deny: Vec<Sourced<PathBuf>>,
    /// What is not protected inside `write`, with all that is below it.
    #[serde(serialize_with = "lossy")]
    pub allow_write: Vec<Sourced<PathBuf>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Network {
    pub mode: Sourced<NetworkMode>,
    pub allow: Vec<Sourced<NetRule>>,
    #[serde(serialize_with = "lossy")]
    pub unix: Vec<Sourced<PathBuf>>,
    pub listen: Vec<Sourced<u16>>,
    #[serde(rename = "system_trust")]
    pub trust: Sourced<Trust>,
}

/// Whether the command may ask the system which certificates are good, where that is a service and
/// not a file (macOS; Go's TLS needs it). The service fetches what certificates name from hosts of its
/// own choice: a way to the network, so only for who has an allowlist, and asks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    Closed,
    System,
}

impl Serialize for Trust {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bool(*self == Trust::System)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NetworkMode {
    /// Only what `allow`, `unix` and `listen` name; nothing named: no network.
    Isolated,
    /// The host's own network, unrestricted.
    Host,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Process {
    pub subprocess: Sourced<Subprocess>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Subprocess {
    Allowed,
    Refused,
}

/// `None` is the user's word `"none"`: no limit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Limits {
    pub memory: Sourced<Option<Bytes>>,
    pub cpu: Sourced<Option<Cores>>,
    pub cpu_time: Sourced<Option<Duration>>,
    /// Of each disk, reading and writing apart.
    pub io: Sourced<Option<Rate>>,
    pub processes: Sourced<Option<u32>>,
    pub open_files: Sourced<Option<u32>>,
    pub file_size: Sourced<Option<Bytes>>,
    pub tmp_size: Sourced<Bytes>,
    pub address_space: Sourced<Option<Bytes>>,
    pub timeout: Sourced<Option<Duration>>,
    pub grace: Sourced<Duration>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Env {
    /// Names or globs taken from the host environment.
    pub allow: Vec<Sourced<EnvPattern>>,
    pub set: BTreeMap<EnvName, Sourced<String>>,
    /// By reference only: the value is fetched by the launcher and never printed.
    pub secrets: BTreeMap<EnvName, Sourced<SecretRef>>,
}

/// serde refuses paths that are not UTF-8, and a report must not fail on a file's name.
fn lossy<S: Serializer>(paths: &[Sourced<PathBuf>], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(
        paths.iter().map(|path| Sourced {
            value: path.value.to_string_lossy(),
            origin: path.origin.clone(),
        }),
    )
}
