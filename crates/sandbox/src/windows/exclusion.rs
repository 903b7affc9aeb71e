//! Paths inside a grant that get less than the grant: denied, read-only, or not to be renamed. Pure.
//!
//! An AppContainer has the access that DACL entries allow it (`dacl`). So a denied path gets no entry, and a
//! protected one gets an entry for reading. Every directory above such a path gets two entries instead of one: for
//! itself, without DELETE and FILE_DELETE_CHILD, and an inherit-only one for new children. Otherwise the command
//! could rename the path away and create another file under its name.

use mcp_policy::WindowsPath;
use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ExclusionKind {
    /// Denied, with everything below.
    NoAccess,
    /// Protected, with everything below.
    ReadOnly,
    /// A directory that the command can write to, but neither remove nor rename.
    NoRename,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Exclusion {
    pub path: WindowsPath,
    pub kind: ExclusionKind,
}
