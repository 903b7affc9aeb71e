//! The caller's request, before anything was looked up on the host.

use std::ffi::OsString;
use std::path::PathBuf;

use mcp_policy::Policy;

/// A run as it is asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct RunSpec {
    /// What it may do.
    pub policy: Policy,
    /// The program and its arguments.
    pub command: Vec<OsString>,
    /// Where to start, instead of the current directory.
    pub cwd: Option<PathBuf>,
    /// A directory on the host for HOME, instead of a temporary one.
    pub home: Option<PathBuf>,
    /// Further programs that the command may start. Those that the user has on PATH are shown.
    pub programs: Vec<OsString>,
    /// In whose name git commits are made inside.
    pub identity: Identity,
}

/// In whose name git commits are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Identity {
    /// In none: git asks for one.
    #[default]
    None,
    /// Name and address of the user's own git settings are told, and nothing else of them.
    User,
}
