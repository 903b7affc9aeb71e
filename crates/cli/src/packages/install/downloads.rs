//! What npm, pip and uv downloaded, kept for the next installation: also where this one is killed.
//!
//! One directory for each tool and index, below the user's cache. The tools compare what they take from it with the
//! digests that the index names. Stops: a package's own code never has it: scripts and builds get a cache of their
//! own, that is gone with the installation, for they could leave there what the next package gets. Leaves open: a tool
//! that a download itself takes over.

use std::fs::File;
use std::path::{Path, PathBuf};

use mcp_package::Digest;
use mcp_package::install::Index;
use mcp_package::store::make_private;

use crate::{paths, progress};

/// With more than this a cache is begun anew.
const MOST_BYTES: u64 = 2 << 30;

pub struct Downloads {
    pub directory: PathBuf,
    /// Shared by those that use it, exclusive for who empties it.
    _in_use: File,
}

impl Downloads {
    /// `None` where there is no place for it: it saves time, and nothing else.
    pub fn of(tool: &str, index: &Index) -> Option<Downloads> {
        // With credentials: what one account may have is not for another.
        let whose = format!("{}\n{}", index.url, index.token.as_deref().unwrap_or_default());
        let name = format!("{tool}-{}", &Digest::of(whose.as_bytes()).hex()[..16]);
        Downloads::at(&paths::downloads()?.join(name), MOST_BYTES)
    }

    fn at(directory: &Path, most: u64) -> Option<Downloads> {
        make_private(directory).ok()?;
        let in_use = lock(directory)?;
        if progress::size_of(directory) > most && in_use.try_lock().is_ok() {
            let _ = mcp_files::remove_tree(directory);
            make_private(directory).ok()?;
            in_use.unlock().ok()?;
        }
        in_use.lock_shared().ok()?;
        Some(Downloads { directory: paths::real(directory).ok()?, _in_use: in_use })
    }
}

fn lock(directory: &Path) -> Option<File> {
    File::options().create(true).append(true).open(directory.with_extension("lock")).ok()
}

/// Removes what no installation uses now; says how much that was.
pub fn forget() -> u64 {
    let Some(all) = paths::downloads() else { return 0 };
    let mut freed = 0;
    for entry in std::fs::read_dir(all).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_free = || lock(&path).is_some_and(|lock| lock.try_lock().is_ok());
        if path.is_dir() && is_free() {
            freed += progress::size_of(&path);
            let _ = mcp_files::remove_tree(&path);
        }
    }
    freed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_that_is_too_large_is_begun_anew_unless_it_is_in_use() {
        let root = std::env::temp_dir().join(format!("mcp-downloads-{}", std::process::id()));
        let directory = root.join("npm-0");
        let first = Downloads::at(&directory, 10).unwrap();
        std::fs::write(first.directory.join("one"), [0; 100]).unwrap();
        let second = Downloads::at(&directory, 10).unwrap();
        assert!(second.directory.join("one").exists(), "it is in use");
        drop((first, second));
        let third = Downloads::at(&directory, 1000).unwrap();
        assert!(third.directory.join("one").exists(), "it is small enough");
        drop(third);
        assert!(!Downloads::at(&directory, 10).unwrap().directory.join("one").exists());
        std::fs::remove_dir_all(&root).unwrap();
    }
}
