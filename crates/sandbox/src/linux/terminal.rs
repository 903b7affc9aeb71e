//! The sandbox's own pseudo-terminal, on its own devpts, and the user's opened once more.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, unlockpt};

pub use crate::unix::terminal::{UserTerminal, copy_settings};

/// Both sides of a pseudo-terminal of the sandbox.
pub struct Pair {
    pub master: OwnedFd,
    pub slave: OwnedFd,
}

impl Pair {
    /// Opens a pair in the sandbox's own devpts and makes it the session's terminal.
    pub fn open() -> io::Result<Pair> {
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        // The host's devpts, where there is none of its own, is mostly used through the device.
        let master = rustix::fs::open("/dev/pts/ptmx", flags, Mode::empty())
            .or_else(|_| rustix::fs::open("/dev/ptmx", flags, Mode::empty()))?;
        unlockpt(&master)?;
        let slave = ioctl_tiocgptpeer(
            &master,
            OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC,
        )?;
        rustix::process::ioctl_tiocsctty(&slave)?;
        Ok(Pair { master, slave })
    }
}

/// The same terminal with a description of its own, non-blocking.
pub fn reopen(terminal: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    use std::os::fd::AsRawFd;
    let path = format!("/proc/self/fd/{}", terminal.as_fd().as_raw_fd());
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    match rustix::fs::open(&path, flags, Mode::empty()) {
        // A terminal of another user (su, sudo): what was inherited may be used, not opened.
        Err(rustix::io::Errno::ACCESS | rustix::io::Errno::PERM) => {
            Ok(rustix::io::fcntl_dupfd_cloexec(terminal, 3)?)
        }
        other => Ok(other?),
    }
}
