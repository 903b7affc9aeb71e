//! What runs leave on purpose, and its removal (`mcp doctor --clean`).

use std::path::PathBuf;

use serde::Serialize;

/// What was removed. A system whose runs leave nothing has nothing to count.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Removed {
    /// Directories whose entries are gone.
    pub directories: usize,
    /// Directories that a running sandbox uses.
    pub in_use: usize,
    /// Directories whose entries could not be removed, with the reason.
    pub left: Vec<(PathBuf, String)>,
}
