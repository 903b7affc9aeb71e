//! Landlock behind the mounts: what may be done with a file, however it was reached.
//!
//! Mounts decide what exists inside; they say nothing of a file that gets inside as an open
//! descriptor. Landlock does: from inside nothing can be opened that neither lies beneath the
//! new root nor stands on a standard descriptor, and that one only as it was given (a
//! write-only output cannot be read back through /proc/self/fd). It keeps writing to the
//! writable places should a mount flag ever fail, refuses every mount operation whatever the
//! capabilities, and keeps signals, traces and abstract sockets inside.
//!
//! Linux 5.13; used from version 2 (5.19) on, see [`USABLE_FROM`]. Leaves open: whatever has no
//! right of its own (chmod, utimes, extended attributes, stat, chdir), for which the mounts
//! answer; a read-only place beneath a writable one, since rules only ever add.
//!
//! Ports are left alone behind mounts. In the empty network namespace every port is the sandbox's own,
//! and a server and its client must meet there; with the host's network no port was to be closed.
//!
//! Where there are no mounts (`plan/plain.rs`), it is the wall itself: from version 1 on, with a rule
//! for each place that may be seen and none for `/`, and every TCP port closed behind the filter that
//! refuses sockets.

use std::path::PathBuf;

use serde::Serialize;

use crate::core::request::{PlaceKind, lossy};

/// Version 1 has no right to move a file to another directory and refuses it always. Programs
/// do that all the time, and the mounts hold without Landlock.
pub const USABLE_FROM: u32 = 2;

const EXECUTE: u64 = 1 << 0;
const WRITE_FILE: u64 = 1 << 1;
const READ_FILE: u64 = 1 << 2;
const READ_DIR: u64 = 1 << 3;
const MAKE_CHAR: u64 = 1 << 6;
const MAKE_BLOCK: u64 = 1 << 11;
/// All there was in the first version.
const FIRST: u64 = (1 << 13) - 1;
const REFER: u64 = 1 << 13;
const TRUNCATE: u64 = 1 << 14;
const IOCTL_DEV: u64 = 1 << 15;
/// Connecting to a unix socket that was made outside; those made inside are always open.
const RESOLVE_UNIX: u64 = 1 << 16;

/// What can be allowed for something that is no directory.
const OF_A_FILE: u64 = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV | RESOLVE_UNIX;

/// Binding and connecting TCP sockets.
const TCP: u64 = 0b11;

const ABSTRACT_SOCKETS: u64 = 1 << 0;
const SIGNALS: u64 = 1 << 1;

/// Denials of rulesets that the command makes for itself: it could fill the host's log with them.
/// Those of this one are not logged once another program is executed.
const NO_LOG_OF_DESCENDANTS: u32 = 1 << 2;

/// What is refused unless a rule allows it. Versions newer than the newest one known here only
/// add to it, so that they need no change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ruleset {
    pub files: u64,
    /// Used where [`Ports::Closed`] says so.
    pub ports: u64,
    pub scopes: u64,
    pub flags: u32,
}

impl Ruleset {
    /// All that this version of Landlock offers.
    pub fn of(abi: u32) -> Ruleset {
        let since = |version, right| if abi >= version { right } else { 0 };
        Ruleset {
            files: since(1, FIRST)
                | since(2, REFER)
                | since(3, TRUNCATE)
                | since(5, IOCTL_DEV)
                | since(9, RESOLVE_UNIX),
            ports: since(4, TCP),
            scopes: since(6, ABSTRACT_SOCKETS | SIGNALS),
            flags: if abi >= 7 { NO_LOG_OF_DESCENDANTS } else { 0 },
        }
    }

    /// The rights of a rule: none that this version does not know or that its place cannot have.
    pub fn rights(self, allowed: Allowed, kind: PlaceKind) -> u64 {
        let possible = match kind {
            PlaceKind::Directory => self.files,
            PlaceKind::File | PlaceKind::Socket => self.files & OF_A_FILE,
        };
        possible & allowed.rights()
    }
}

/// Whether TCP ports are refused as well, from version 4 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ports {
    Open,
    Closed,
}

/// What a rule allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Allowed {
    /// Reading, listing and executing.
    Read,
    /// Everything but making and driving devices, and sockets of the host.
    Write,
    /// Connecting to a socket of the host.
    Socket,
    /// Reading, writing and driving devices that are there.
    Devices,
    /// Of a standard descriptor: what it was opened for.
    Input,
    Output,
    InputOutput,
}

impl Allowed {
    fn rights(self) -> u64 {
        match self {
            Allowed::Read => READ_FILE | READ_DIR | EXECUTE,
            Allowed::Write => (FIRST | REFER | TRUNCATE) & !(MAKE_CHAR | MAKE_BLOCK),
            Allowed::Socket => RESOLVE_UNIX,
            Allowed::Devices => READ_FILE | WRITE_FILE | IOCTL_DEV,
            Allowed::Input => READ_FILE | IOCTL_DEV,
            // `echo > /dev/stdout` truncates.
            Allowed::Output => WRITE_FILE | TRUNCATE | IOCTL_DEV,
            Allowed::InputOutput => READ_FILE | WRITE_FILE | TRUNCATE | IOCTL_DEV,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Allowed::Read => "read",
            Allowed::Write => "write",
            Allowed::Socket => "connect to",
            Allowed::Devices => "devices",
            Allowed::Input => "input",
            Allowed::Output => "output",
            Allowed::InputOutput => "input and output",
        }
    }
}

/// A place, as a path inside, and what is allowed there and beneath.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rule {
    #[serde(serialize_with = "lossy")]
    pub path: PathBuf,
    pub kind: PlaceKind,
    pub allowed: Allowed,
}

impl Rule {
    pub fn beneath(path: impl Into<PathBuf>, allowed: Allowed) -> Rule {
        Rule { path: path.into(), kind: PlaceKind::Directory, allowed }
    }
}

impl std::fmt::Display for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.allowed.name(), self.path.display())
    }
}

/// The version from which on unix sockets of the host are refused wherever they lie.
#[cfg(target_os = "linux")]
pub const REFUSES_SOCKETS: u32 = 9;

/// Looks for unix sockets in what is granted, where Landlock does not refuse them. `plain` are
/// directories that are known to hold none.
#[cfg(target_os = "linux")]
pub fn find_strays(request: &mut crate::core::request::Request, plain: &[PathBuf]) {
    let isolated = request.policy.network.mode.value == mcp_policy::NetworkMode::Isolated;
    let unknown = |place: &&crate::core::request::Place| !plain.contains(&place.path);
    let read: Vec<_> = request.read.iter().filter(unknown).cloned().collect();
    let granted = read.len() + request.write.len() > 0;
    if isolated && granted && crate::linux::sys::landlock_abi() < REFUSES_SOCKETS {
        request.stray_sockets = crate::unix::sockets::found(&read, &request.write, &request.unix);
    }
}

#[cfg(target_os = "linux")]
pub mod enforce;
#[cfg(test)]
mod tests;
