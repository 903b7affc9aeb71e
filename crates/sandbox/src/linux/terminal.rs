//! The sandbox's own pseudo-terminal, on its own devpts.

use std::io;
use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, unlockpt};

pub use crate::unix::terminal::{UserTerminal, copy_settings, reopen};

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
