//! What a caller asks for, before the host was looked at.

use std::ffi::OsString;
use std::path::PathBuf;

use mcp_policy::Policy;

#[derive(Debug, Clone, PartialEq)]
pub struct Wish {
    pub policy: Policy,
    pub command: Vec<OsString>,
    /// Where to start, instead of the current directory.
    pub cwd: Option<PathBuf>,
    /// A directory on the host for HOME, instead of a temporary one.
    pub home: Option<PathBuf>,
}
