//! The one name of a file without links, and how many names it has.

use std::io;
use std::path::{Path, PathBuf};

/// Where a path leads, without links on the way or at its end.
#[cfg(unix)]
pub fn real(path: &Path) -> io::Result<PathBuf> {
    match path.is_absolute() {
        true => super::walk::walk(path).map(|walked| walked.real),
        false => path.canonicalize(),
    }
}

/// In the spelling that programs know, where it has one.
#[cfg(windows)]
pub fn real(path: &Path) -> io::Result<PathBuf> {
    path.canonicalize().map(mcp_policy::windows_path::plain)
}

/// How many names (hard links) a file has; of a link its own.
#[cfg(unix)]
pub fn count(path: &Path) -> io::Result<u64> {
    use std::os::unix::fs::MetadataExt;
    std::fs::symlink_metadata(path).map(|file| file.nlink())
}

#[cfg(windows)]
pub fn count(path: &Path) -> io::Result<u64> {
    super::sys::look(path).map(|found| found.names.into())
}
