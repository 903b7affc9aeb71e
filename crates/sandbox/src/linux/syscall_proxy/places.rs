//! Where a file is that the syscall proxy has opened: in a place that was granted, or nowhere that counts.
//!
//! Names alone do not tell. A path through `/proc/PID/root` leads to a file of another mount namespace, whose name
//! there may be that of a granted place here. So each place is held open, and a file is in it where it is on the
//! same mount and beneath it by name, or where the same name, looked up from the place, leads to the same
//! file on the same mount (another file system that is mounted inside of a place).

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags, ResolveFlags, StatxFlags, openat2, statx};

use super::errno;
use crate::core::request::PlaceKind;
use crate::linux::landlock::{Allowed, Rule, enforce};

pub struct GrantedPlaces(Vec<GrantedPlace>);

struct GrantedPlace {
    held: OwnedFd,
    kind: PlaceKind,
    reach: AttributeAccess,
}

/// What may be done with the attributes of files in a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AttributeAccess {
    Read,
    Change,
}

/// One file by one way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileIdentity {
    mount: u64,
    device: (u32, u32),
    inode: u64,
}

impl GrantedPlaces {
    /// What cannot be opened is not granted.
    pub fn hold(rules: &[Rule]) -> GrantedPlaces {
        let places = rules.iter().filter_map(|rule| {
            let reach = match rule.allowed {
                Allowed::Read => AttributeAccess::Read,
                Allowed::Write => AttributeAccess::Change,
                _ => return None,
            };
            let held = enforce::place(&rule.path).ok()?;
            Some(GrantedPlace { held, kind: rule.kind, reach })
        });
        GrantedPlaces(places.collect())
    }

    pub fn contain(&self, file: &OwnedFd, reach: AttributeAccess) -> io::Result<bool> {
        let (identity, name) = (identity(file.as_fd())?.0, name(file.as_fd())?);
        Ok(self
            .0
            .iter()
            .filter(|place| place.reach >= reach)
            .any(|place| place.contains(identity, &name).unwrap_or(false)))
    }
}

impl GrantedPlace {
    fn contains(&self, file: FileIdentity, file_name: &Path) -> io::Result<bool> {
        let (own, links) = identity(self.held.as_fd())?;
        if own == file {
            return Ok(true);
        }
        // A directory that was removed has a name that another may have.
        if self.kind != PlaceKind::Directory || links == 0 {
            return Ok(false);
        }
        let Ok(below) = file_name.strip_prefix(name(self.held.as_fd())?) else {
            return Ok(false);
        };
        if own.mount == file.mount {
            return Ok(true);
        }
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let strictly = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let found = openat2(&self.held, below, flags, Mode::empty(), strictly)?;
        Ok(identity(found.as_fd())?.0 == file)
    }
}

/// The name that the kernel has for what was opened.
fn name(file: BorrowedFd<'_>) -> io::Result<PathBuf> {
    fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// And how many names it has. Needs Linux 5.8; before, nothing is in any place.
fn identity(file: BorrowedFd<'_>) -> io::Result<(FileIdentity, u32)> {
    let wanted = StatxFlags::INO | StatxFlags::NLINK | StatxFlags::MNT_ID;
    let seen = statx(file, "", AtFlags::EMPTY_PATH, wanted)?;
    if seen.stx_mask & StatxFlags::MNT_ID.bits() == 0 {
        return Err(errno(libc::ENOSYS));
    }
    let device = (seen.stx_dev_major, seen.stx_dev_minor);
    let identity = FileIdentity { mount: seen.stx_mnt_id, device, inode: seen.stx_ino };
    Ok((identity, seen.stx_nlink))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unix::fixture::Fixture;

    fn open(path: &Path, more: OFlags) -> OwnedFd {
        rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC | more, Mode::empty()).unwrap()
    }

    #[test]
    fn a_file_is_where_the_kernel_says_it_is() {
        let fixture = Fixture::new();
        for file in ["write/file", "write/deep/file", "writes/file", "read/file", "one", "two"] {
            fixture.file(file, "");
        }
        fixture.link("write/link", fixture.path("read/file"));
        let top = fixture.path("write").canonicalize().unwrap();
        let top = top.parent().unwrap();
        let places = GrantedPlaces::hold(&[
            Rule::beneath(top.join("write"), Allowed::Write),
            Rule::beneath(top.join("read"), Allowed::Read),
            Rule { path: top.join("one"), kind: PlaceKind::File, allowed: Allowed::Write },
            Rule::beneath(top.join("none"), Allowed::Write),
        ]);
        let contain = |file: &OwnedFd, reach| places.contain(file, reach).unwrap();
        for (name, reach) in [
            ("write", Some(AttributeAccess::Change)),
            ("write/file", Some(AttributeAccess::Change)),
            ("write/deep/file", Some(AttributeAccess::Change)),
            ("write/../one", Some(AttributeAccess::Change)),
            ("read/file", Some(AttributeAccess::Read)),
            ("write/link", Some(AttributeAccess::Read)),
            ("writes/file", None),
            ("write/..", None),
            ("two", None),
        ] {
            let file = open(&top.join(name), OFlags::empty());
            assert_eq!(
                contain(&file, AttributeAccess::Change),
                reach == Some(AttributeAccess::Change),
                "{name}"
            );
            assert_eq!(contain(&file, AttributeAccess::Read), reach.is_some(), "{name}");
        }
        let link = open(&top.join("write/link"), OFlags::NOFOLLOW);
        assert!(contain(&link, AttributeAccess::Change), "the link itself");
        // A file without a name is still where it was; a place that is gone is nowhere.
        let file = open(&top.join("write/file"), OFlags::empty());
        fs::remove_file(top.join("write/file")).unwrap();
        assert!(contain(&file, AttributeAccess::Change));
        fs::remove_dir_all(top.join("write")).unwrap();
        fs::create_dir(top.join("write (deleted)")).unwrap();
        fs::write(top.join("write (deleted)/file"), "").unwrap();
        let file = open(&top.join("write (deleted)/file"), OFlags::empty());
        assert!(!contain(&file, AttributeAccess::Read));
    }
}
