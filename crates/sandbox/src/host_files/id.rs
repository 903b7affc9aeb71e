//! Which file a name stands for, as the system says it.

pub use crate::core::file_id::FileId;

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
    let found = super::sys::look(path).ok()?;
    Some(FileId { device: found.volume, inode: found.number, born: None })
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
