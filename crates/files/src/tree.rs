//! Removes a directory with all that is in it, whatever a program left there: closed directories, any depth.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Removes a directory and all below it. Symlinks are removed, not followed; a path that is one is an error. No program
/// may still write there: beyond the reach of `remove_dir_all` paths are used, not descriptors.
pub fn remove_tree(root: &Path) -> io::Result<()> {
    if !fs::symlink_metadata(root)?.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    // It holds one descriptor for each level, and opens no closed directory.
    match fs::remove_dir_all(root) {
        Ok(()) => Ok(()),
        Err(_) => remove_flat(root),
    }
}

fn remove_flat(root: &Path) -> io::Result<()> {
    let mut flat = Flat { root, last: 0 };
    let mut pending = flat.empty(root)?;
    while let Some(directory) = pending.pop() {
        pending.extend(flat.empty(&directory)?);
        fs::remove_dir(&directory)?;
    }
    fs::remove_dir(root)
}

/// Every directory is moved to the top before it is emptied, so no path becomes long.
struct Flat<'a> {
    root: &'a Path,
    last: u64,
}

impl Flat<'_> {
    /// Removes what is in a directory, but for directories: where those are now.
    fn empty(&mut self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        open(directory);
        let mut directories = Vec::new();
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            let path = entry.path();
            if !entry.file_type()?.is_dir() {
                fs::remove_file(&path)?;
                continue;
            }
            // Its own permissions count too: the name of its parent is in it.
            open(&path);
            directories.push(match directory == self.root {
                true => path,
                false => self.raise(&path)?,
            });
        }
        Ok(directories)
    }

    fn raise(&mut self, path: &Path) -> io::Result<PathBuf> {
        loop {
            self.last += 1;
            let top = self.root.join(format!(".removed-{}", self.last));
            if fs::symlink_metadata(&top).is_err() {
                fs::rename(path, &top)?;
                return Ok(top);
            }
        }
    }
}

/// What fails here fails again, with its reason, where it matters.
fn open(directory: &Path) {
    #[cfg(unix)]
    {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        let _ = fs::set_permissions(directory, mode);
    }
    #[cfg(not(unix))]
    let _ = directory;
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn scratch(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("mcp-tree-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        path
    }

    /// Deeper than a process may have descriptors, and than a path may be long.
    #[test]
    fn any_depth_is_removed() {
        let at = scratch("deep");
        let kept = at.join("kept");
        fs::create_dir_all(kept.join(".removed-1")).unwrap();
        let mut here =
            rustix::fs::open(&kept, rustix::fs::OFlags::DIRECTORY, rustix::fs::Mode::empty())
                .unwrap();
        for _ in 0..3000 {
            rustix::fs::mkdirat(&here, "d", 0o700.into()).unwrap();
            here = rustix::fs::openat(
                &here,
                "d",
                rustix::fs::OFlags::DIRECTORY,
                rustix::fs::Mode::empty(),
            )
            .unwrap();
        }
        // Not by way of `remove_dir_all`, which gets there where a process may have enough descriptors.
        remove_flat(&kept).unwrap();
        fs::remove_dir(&at).unwrap();
    }

    #[test]
    fn closed_directories_are_removed_and_links_are_not_followed() {
        let at = scratch("closed");
        fs::create_dir_all(at.join("kept/work/work/below")).unwrap();
        fs::create_dir_all(at.join("theirs")).unwrap();
        fs::write(at.join("theirs/file"), "").unwrap();
        fs::set_permissions(at.join("theirs"), PermissionsExt::from_mode(0o755)).unwrap();
        symlink(at.join("theirs"), at.join("kept/work/link")).unwrap();
        for closed in ["kept/work/work/below", "kept/work/work", "kept/work"] {
            fs::set_permissions(at.join(closed), PermissionsExt::from_mode(0o000)).unwrap();
        }
        remove_tree(&at.join("kept")).unwrap();
        assert!(!at.join("kept").exists());
        let theirs = fs::metadata(at.join("theirs")).unwrap();
        assert!(at.join("theirs/file").exists() && theirs.permissions().mode() & 0o777 == 0o755);
        symlink(at.join("theirs"), at.join("kept")).unwrap();
        assert!(remove_tree(&at.join("kept")).is_err() && at.join("theirs/file").exists());
        fs::remove_dir_all(at).unwrap();
    }
}
