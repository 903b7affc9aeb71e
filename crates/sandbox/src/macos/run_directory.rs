//! The directories of one run: HOME, TMPDIR and the file for the self-check. Other users cannot
//! read them, and they are removed with everything in them.

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::macos::sys;

pub struct RunDirectory(PathBuf);

impl RunDirectory {
    pub fn make(at: &Path) -> io::Result<RunDirectory> {
        let mut private = fs::DirBuilder::new();
        private.mode(0o700);
        // An existing directory is refused: another user may have made it.
        private.create(at)?;
        let scratch = RunDirectory(at.to_owned());
        private.create(at.join("home"))?;
        private.create(at.join("tmp"))?;
        fs::write(at.join("canary"), "not for the command\n")?;
        Ok(scratch)
    }
}

impl Drop for RunDirectory {
    fn drop(&mut self) {
        remove(&self.0);
    }
}

/// Also what the command has made hard to remove.
pub fn remove(directory: &Path) {
    if fs::remove_dir_all(directory).is_ok() {
        return;
    }
    unlock(directory);
    let _ = fs::remove_dir_all(directory);
}

fn unlock(path: &Path) {
    sys::clear_flags(path);
    if fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir()) {
        let _ = fs::set_permissions(path, fs::Permissions::from_mode(0o700));
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            unlock(&entry.path());
        }
    }
}
