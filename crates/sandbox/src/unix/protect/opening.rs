//! Directories opened for listing; those of the caller's whatever their modes say.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Mode, fchmod, fstat, statat};
use rustix::io::Errno;

use crate::unix::listing;

/// Whether modes are in the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Force {
    No,
    Yes,
}

/// With the mode it had before it was opened by force: the code that opened it puts it back.
pub type Opened = (OwnedFd, Option<Mode>);

pub fn open(parent: impl AsFd, name: &CStr, force: Force) -> io::Result<Opened> {
    let parent = parent.as_fd();
    match (listing::open(parent, name), force) {
        (Ok(directory), Force::No) => Ok((directory, None)),
        (Ok(directory), Force::Yes) => {
            // One that can be listed, but not entered, would hide what is below.
            let mut before = None;
            if matches!(statat(&directory, ".", AtFlags::empty()), Err(Errno::ACCESS)) {
                let mode = Mode::from_raw_mode(fstat(&directory)?.st_mode);
                fchmod(&directory, mode | Mode::RWXU)?;
                before = Some(mode);
            }
            Ok((directory, before))
        }
        (Err(Errno::ACCESS), Force::Yes) => {
            let stat = statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?;
            let before = Mode::from_raw_mode(stat.st_mode);
            change_mode(parent, name, before | Mode::RWXU)?;
            Ok((listing::open(parent, name)?, Some(before)))
        }
        (Err(errno), _) => Err(errno.into()),
    }
}

/// By a handle, so that no link is followed; it needs no permission to be had.
#[cfg(target_os = "linux")]
fn change_mode(parent: BorrowedFd<'_>, name: &CStr, mode: Mode) -> io::Result<()> {
    use std::os::fd::AsRawFd;

    use rustix::fs::{OFlags, chmod, openat};

    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let handle = openat(parent, name, flags, Mode::empty())?;
    Ok(chmod(format!("/proc/self/fd/{}", handle.as_raw_fd()).as_str(), mode)?)
}

#[cfg(not(target_os = "linux"))]
fn change_mode(parent: BorrowedFd<'_>, name: &CStr, mode: Mode) -> io::Result<()> {
    Ok(rustix::fs::chmodat(parent, name, mode, AtFlags::SYMLINK_NOFOLLOW)?)
}
