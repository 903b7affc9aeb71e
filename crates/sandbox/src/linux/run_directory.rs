//! The directories of a run that has no root of its own: HOME and TMPDIR, open to no other user.
//!
//! The supervisor makes them and removes them when the launcher is killed; the launcher removes them
//! when the run is over, however it ended, also with the supervisor killed.

use std::fs;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use crate::core::host::Ids;

/// A name below the host's temporary directory that no program can guess.
pub fn name() -> PathBuf {
    let base = std::env::temp_dir();
    let base = base.canonicalize().unwrap_or_else(|_| PathBuf::from("/tmp"));
    // Keyed by the system's random numbers.
    let random = RandomState::new().build_hasher().finish();
    base.join(format!("mcp-run-{}-{random:016x}", std::process::id()))
}

/// Makes `at` and those of `below` that lie in it.
pub fn make(at: &Path, below: &[&Path], owner: Option<Ids>) -> io::Result<()> {
    let (uid, gid) = (owner.map(|ids| ids.uid), owner.map(|ids| ids.gid));
    let mut private = fs::DirBuilder::new();
    private.mode(0o700);
    // Not recursively: what is there already belongs to another user.
    private.create(at)?;
    for directory in below.iter().filter(|directory| directory.starts_with(at)) {
        private.create(directory)?;
        chown(directory, uid, gid)?;
    }
    chown(at, uid, gid)
}

/// Removes the directory, should it have been made, when it is dropped.
pub struct RunDirectory(pub PathBuf);

impl Drop for RunDirectory {
    fn drop(&mut self) {
        remove(&self.0);
    }
}

/// Nothing of the run is alive any more, so nothing changes under our hands.
pub fn remove(at: &Path) {
    if fs::remove_dir_all(at).is_err() {
        open_up(at);
        let _ = fs::remove_dir_all(at);
    }
}

/// A directory that its owner closed to itself cannot be emptied.
fn open_up(directory: &Path) {
    let _ = fs::set_permissions(directory, fs::Permissions::from_mode(0o700));
    let Ok(entries) = fs::read_dir(directory) else {
        return;
    };
    for entry in entries.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            open_up(&entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goes_with_all_that_is_in_it() {
        let at = name();
        let guard = RunDirectory(at.clone());
        make(&at, &[&at.join("home"), Path::new("/usr")], None).unwrap();
        assert_eq!(fs::metadata(&at).unwrap().permissions().mode() & 0o777, 0o700);
        fs::create_dir_all(at.join("home/closed/deep")).unwrap();
        fs::set_permissions(at.join("home/closed"), fs::Permissions::from_mode(0o000)).unwrap();
        assert!(make(&at, &[], None).is_err(), "another user's is never taken");
        drop(guard);
        assert!(!at.exists());
    }
}
