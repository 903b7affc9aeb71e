//! File systems that take names for the same whatever their case, without the kernel's knowledge.
//!
//! A mount stands on one spelling of a name. Where the kernel itself folds case (ext4, vfat), every spelling leads to
//! it. FUSE, 9p, virtiofs and CIFS leave that to a server: there `.git/CONFIG` is a name of its own, without a mount,
//! for the same file. Nothing can close it, so such a place is an error.
//!
//! Leaves open: names that a server takes for the same in other ways (Unicode, 8.3) while it minds their case.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{self, Mode, OFlags};
use rustix::io::Errno;

use super::Root;
use super::mask::{is_mount_root, open_inside};
use crate::unix::listing::Lister;

impl Root {
    /// An error (ENOTUNIQ) where another spelling of a closed path, or of a directory above it, leads around the mount.
    pub(super) fn has_one_case(&mut self, at: &Path) -> io::Result<()> {
        // Directories above are looked at once, unless their spelling matters.
        for part in at.ancestors().filter(|part| part.parent().is_some()) {
            if part != at && self.one_case.contains(part) {
                break;
            }
            let Some(spelled) = spelled_otherwise(part) else {
                continue;
            };
            match open_inside(&self.top, &spelled) {
                Err(_) => drop(self.one_case.insert(part.to_owned())),
                Ok(_) => {
                    let below = at.strip_prefix(part).unwrap_or(Path::new(""));
                    let other = match below.as_os_str().is_empty() {
                        true => spelled.clone(),
                        false => spelled.join(below),
                    };
                    self.is_closed_too(at, &other, [part, spelled.as_path()])?;
                }
            }
        }
        Ok(())
    }

    /// An error where another spelling of a path leads neither to the same mount nor, by right, to another file:
    /// then the directory has entries of both names.
    fn is_closed_too(&self, at: &Path, other: &Path, names: [&Path; 2]) -> io::Result<()> {
        let Ok(found) = open_inside(&self.top, other) else {
            return Ok(());
        };
        let closed = open_inside(&self.top, at)?;
        let id = |place: &OwnedFd| fs::fstat(place).map(|stat| (stat.st_dev, stat.st_ino));
        let is_ours = is_mount_root(&found)? && id(&found)? == id(&closed)?;
        for name in names {
            if !is_ours && !self.is_listed(name)? {
                return Err(Errno::NOTUNIQ.into());
            }
        }
        Ok(())
    }

    /// Whether a directory has an entry of exactly this name.
    fn is_listed(&self, path: &Path) -> io::Result<bool> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Ok(false);
        };
        let parent = open_inside(&self.top, parent)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = fs::openat(&parent, ".", flags, Mode::empty())?;
        let mut is_listed = false;
        let mut compare = |entry: &std::ffi::CStr| is_listed |= entry.to_bytes() == name.as_bytes();
        Lister::default().each(&directory, |entry, _| compare(entry))?;
        Ok(is_listed)
    }
}

/// The same path with its last name in the other case; `None` where it has no letters.
fn spelled_otherwise(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?;
    let flipped = flipped(name)?;
    Some(path.with_file_name(flipped))
}

fn flipped(name: &OsStr) -> Option<OsString> {
    let flip = |byte: &u8| match byte {
        b'a'..=b'z' => byte.to_ascii_uppercase(),
        _ => byte.to_ascii_lowercase(),
    };
    let flipped: Vec<u8> = name.as_bytes().iter().map(flip).collect();
    (flipped != name.as_bytes()).then(|| OsString::from_vec(flipped))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_letter_changes_its_case() {
        let flipped = |name: &str| super::flipped(OsStr::new(name));
        assert_eq!(flipped(".git").unwrap(), ".GIT");
        assert_eq!(flipped("ReadMe.1").unwrap(), "rEADmE.1");
        assert_eq!(flipped("123").map(drop), None);
        let at = Path::new("/project/.git/config");
        assert_eq!(spelled_otherwise(at).unwrap(), Path::new("/project/.git/CONFIG"));
        assert_eq!(spelled_otherwise(Path::new("/")), None);
    }
}
