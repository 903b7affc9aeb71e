//! Paths by their text alone.

use std::path::{Component, Path, PathBuf};

/// Without `.` and `..`, as the text says it: no link is looked at.
pub fn lexical(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}
