//! Which file a name stands for: a name alone can stand for another file a moment later, and a number alone too,
//! for file systems give the numbers of removed files to new ones.

use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct FileId {
    pub device: u64,
    pub inode: u64,
    /// Seconds and nanoseconds; not every file system keeps it.
    pub born: Option<(i64, u32)>,
}

impl FileId {
    /// Whether two looks saw the same file. Without a time of birth the numbers have to do.
    pub fn is_same(&self, other: &FileId) -> bool {
        let born = match (self.born, other.born) {
            (Some(own), Some(other)) => own == other,
            _ => true,
        };
        (self.device, self.inode) == (other.device, other.inode) && born
    }
}

/// What a name in a directory stands for; a symlink stands for itself. `None` where it cannot be known.
#[cfg(target_os = "linux")]
pub fn at(directory: impl std::os::fd::AsFd, name: impl rustix::path::Arg) -> Option<FileId> {
    use rustix::fs::{AtFlags, StatxFlags, makedev, statx};
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
    let found = statx(directory, name, flags, StatxFlags::INO | StatxFlags::BTIME).ok()?;
    let born = found.stx_mask & StatxFlags::BTIME.bits() != 0;
    Some(FileId {
        device: makedev(found.stx_dev_major, found.stx_dev_minor),
        inode: found.stx_ino,
        born: born.then_some((found.stx_btime.tv_sec, found.stx_btime.tv_nsec)),
    })
}

/// Elsewhere what is protected is protected by its path, whatever file is there.
#[cfg(all(unix, not(target_os = "linux")))]
pub fn at(_: impl std::os::fd::AsFd, _: impl rustix::path::Arg) -> Option<FileId> {
    None
}

/// What a path stands for; a link stands for itself.
#[cfg(windows)]
pub fn of(path: &std::path::Path) -> Option<FileId> {
    let (device, inode) = crate::windows::file_id(path).ok()?;
    Some(FileId { device, inode, born: None })
}

/// For what is compiled for Windows, and tried here.
#[cfg(unix)]
pub fn of(path: &std::path::Path) -> Option<FileId> {
    use std::os::unix::fs::MetadataExt;
    let found = std::fs::symlink_metadata(path).ok()?;
    let born = found.created().ok().and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
    Some(FileId {
        device: found.dev(),
        inode: found.ino(),
        born: born.map(|at| (at.as_secs() as i64, at.subsec_nanos())),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_was_given_again_is_another_file() {
        let id = |inode, born| FileId { device: 1, inode, born };
        assert!(id(7, Some((1, 2))).is_same(&id(7, Some((1, 2)))));
        assert!(!id(7, Some((1, 2))).is_same(&id(7, Some((1, 3)))));
        assert!(!id(7, None).is_same(&id(8, None)));
        assert!(id(7, None).is_same(&id(7, Some((1, 2)))));
    }
}
