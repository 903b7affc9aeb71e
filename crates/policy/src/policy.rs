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
    /// The value.
    pub value: T,
    /// Where it comes from.
    pub origin: Origin,
}

impl<T> Sourced<T> {
    /// A value and where it comes from.
    pub fn new(value: T, origin: Origin) -> Self {
        Self { value, origin }
    }
}

/// What a run is asked to be. No operating-system words in here.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Policy {
    /// Files.
    pub filesystem: Filesystem,
    /// Whether the usual places that other programs act on stay as they are inside `write`.
    pub protect: Sourced<Protect>,
    /// Network.
    pub network: Network,
    /// Processes.
    pub process: Process,
    /// Limits.
    pub limits: Limits,
    /// Environment variables and secrets.
    pub env: Env,
}

/// Paths beyond the system view. Absolute after merging (`~` and relative paths are
/// resolved against the layer's base directory), not yet canonical and not yet checked
/// to exist: that needs the host.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Filesystem {
    /// What is shown, read-only.
    #[serde(serialize_with = "lossy")]
    pub read: Vec<Sourced<PathBuf>>,
    /// What is shown and may be written.
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

/// What the command may reach, and who may reach it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Network {
    /// An own network, or the host's.
    pub mode: Sourced<NetworkMode>,
    /// Hosts that may be reached.
    pub allow: Vec<Sourced<NetRule>>,
    /// Unix sockets of the host that may be used.
    #[serde(serialize_with = "lossy")]
    pub unix: Vec<Sourced<PathBuf>>,
    /// Ports of the command that the host may reach.
    pub listen: Vec<Sourced<u16>>,
    /// Whether the certificate service of macOS may be used.
    #[serde(rename = "system_trust")]
    pub trust: Sourced<Trust>,
}

/// Whether the command may ask the system which certificates are good, where that is a service and
/// not a file (macOS; Go's TLS needs it). The service fetches what certificates name from hosts of its
/// own choice: a way to the network, so only for who has an allowlist, and asks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// It may not be used.
    Closed,
    /// It may be used.
    System,
}

impl Serialize for Trust {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bool(*self == Trust::System)
    }
}

/// Whose network the command has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NetworkMode {
    /// Only what `allow`, `unix` and `listen` name; nothing named: no network.
    Isolated,
    /// The host's own network, unrestricted.
    Host,
}

/// What the command may start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Process {
    /// Whether the command may start others.
    pub subprocess: Sourced<Subprocess>,
}

/// Whether new processes and programs are allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Subprocess {
    /// They are.
    Allowed,
    /// They are not; threads are.
    Refused,
}

/// `None` is the user's word `"none"`: no limit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Limits {
    /// Memory of all processes together.
    pub memory: Sourced<Option<Bytes>>,
    /// Share of the processor.
    pub cpu: Sourced<Option<Cores>>,
    /// Processor time of each process.
    pub cpu_time: Sourced<Option<Duration>>,
    /// Of each disk, reading and writing apart.
    pub io: Sourced<Option<Rate>>,
    /// Processes and threads.
    pub processes: Sourced<Option<u32>>,
    /// Open files of each process.
    pub open_files: Sourced<Option<u32>>,
    /// Size of each file that is written.
    pub file_size: Sourced<Option<Bytes>>,
    /// Temporary space.
    pub tmp_size: Sourced<Bytes>,
    /// Address space of each process.
    pub address_space: Sourced<Option<Bytes>>,
    /// Time until the command is ended.
    pub timeout: Sourced<Option<Duration>>,
    /// Time between the request to end and the kill.
    pub grace: Sourced<Duration>,
}

/// Environment variables and secrets of the command.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Env {
    /// Names or globs taken from the host environment.
    pub allow: Vec<Sourced<EnvPattern>>,
    /// Variables that are set.
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
