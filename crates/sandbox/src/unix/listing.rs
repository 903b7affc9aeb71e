//! The names in a directory and what they are, without a look at the files themselves.

use std::ffi::CStr;
use std::os::fd::{AsFd, OwnedFd};
#[cfg(target_os = "linux")]
use std::path::Component;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, openat, statat};
use rustix::io::Errno;
use rustix::path::Arg;

#[cfg(target_os = "linux")]
pub use linux::Lister;
#[cfg(not(target_os = "linux"))]
pub use other::Lister;

/// Opens a directory for listing; a symlink is none.
pub fn open(parent: impl AsFd, name: impl Arg) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(parent, name, flags, Mode::empty())
}

/// Opens a directory by its whole path, no part of which may be a symlink: where others write, one can take the
/// place of a directory at any moment. It is to go on from, and need not be readable.
#[cfg(target_os = "linux")]
pub fn open_without_links(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut at = openat(CWD, "/", flags, Mode::empty())?;
    for part in path.components().filter(|part| *part != Component::RootDir) {
        at = openat(&at, part.as_os_str(), flags, Mode::empty())?;
    }
    Ok(at)
}

#[cfg(not(target_os = "linux"))]
pub fn open_without_links(path: &Path) -> Result<OwnedFd, Errno> {
    let search = OFlags::from_bits_retain((libc::O_SEARCH | libc::O_NOFOLLOW_ANY) as u32);
    openat(CWD, path, search | OFlags::CLOEXEC, Mode::empty())
}

/// The same, for listing.
#[cfg(test)]
pub fn open_real(path: &Path) -> Result<OwnedFd, Errno> {
    open(&open_without_links(path)?, ".")
}

/// What a name stands for; `None` when it is gone.
pub fn kind(directory: &OwnedFd, name: impl Arg) -> Result<Option<FileType>, Errno> {
    kind_at(directory, name)
}

pub fn kind_at(directory: impl AsFd, name: impl Arg) -> Result<Option<FileType>, Errno> {
    match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(FileType::from_raw_mode(stat.st_mode))),
        Err(Errno::NOENT) => Ok(None),
        Err(e) => Err(e),
    }
}

/// Calls `visit` for an entry that is neither `.` nor `..`, with its type.
fn visit_entry(
    directory: &OwnedFd,
    name: &CStr,
    listed: FileType,
    visit: &mut impl FnMut(&CStr, FileType),
) -> Result<(), Errno> {
    if matches!(name.to_bytes(), b"." | b"..") {
        return Ok(());
    }
    // Some file systems do not tell the type in the listing.
    let kind = match listed {
        FileType::Unknown => kind(directory, name)?,
        listed => Some(listed),
    };
    if let Some(kind) = kind {
        visit(name, kind);
    }
    Ok(())
}

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::CStr;
    use std::os::fd::OwnedFd;

    use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, StatxFlags, fstatfs, openat, statx};
    use rustix::io::Errno;

    /// ext2 to ext4, XFS and tmpfs: a directory there has a link for each directory in it. Others
    /// count differently, or not at all.
    const COUNTING: [u32; 3] = [0xef53, 0x5846_5342, 0x0102_1994];

    /// Room for some hundred names at a time.
    const BUFFER: usize = 64 * 1024;

    #[derive(Default)]
    pub struct Lister {
        buffer: Vec<u8>,
        /// Devices met so far, and whether their file systems count.
        known: Vec<((u32, u32), bool)>,
    }

    impl Lister {
        /// Calls `visit` with each name but `.` and `..`.
        pub fn each(
            &mut self,
            directory: &OwnedFd,
            mut visit: impl FnMut(&CStr, FileType),
        ) -> Result<(), Errno> {
            self.buffer.reserve(BUFFER);
            let mut entries = RawDir::new(directory, self.buffer.spare_capacity_mut());
            while let Some(entry) = entries.next() {
                let entry = entry?;
                let name = entry.file_name();
                super::visit_entry(directory, name, entry.file_type(), &mut visit)?;
            }
            Ok(())
        }

        /// Whether a directory is known to hold no other, found out without listing it.
        pub fn is_leaf(&mut self, parent: &OwnedFd, name: &CStr) -> Result<bool, Errno> {
            let at = AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT;
            let found = statx(parent, name, at, StatxFlags::NLINK)?;
            if found.stx_nlink != 2 {
                return Ok(false);
            }
            let device = (found.stx_dev_major, found.stx_dev_minor);
            if let Some((_, counts)) = self.known.iter().find(|(known, _)| *known == device) {
                return Ok(*counts);
            }
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let directory = openat(parent, name, flags, Mode::empty())?;
            let counts = COUNTING.contains(&(fstatfs(&directory)?.f_type as u32));
            self.known.push((device, counts));
            Ok(counts)
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod other {
    use std::ffi::CStr;
    use std::os::fd::OwnedFd;

    use rustix::fs::{Dir, FileType};
    use rustix::io::Errno;

    #[derive(Default)]
    pub struct Lister {}

    impl Lister {
        pub fn each(
            &mut self,
            directory: &OwnedFd,
            mut visit: impl FnMut(&CStr, FileType),
        ) -> Result<(), Errno> {
            for entry in Dir::read_from(directory)? {
                let entry = entry?;
                let name = entry.file_name();
                super::visit_entry(directory, name, entry.file_type(), &mut visit)?;
            }
            Ok(())
        }

        pub fn is_leaf(&mut self, _: &OwnedFd, _: &CStr) -> Result<bool, Errno> {
            Ok(false)
        }
    }
}
