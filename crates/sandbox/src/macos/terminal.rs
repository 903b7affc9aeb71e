//! The sandbox's own pseudo-terminal.

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

pub use crate::unix::terminal::reopen;

/// Both sides of a pseudo-terminal, and its name.
pub struct Pair {
    pub master: OwnedFd,
    pub slave: OwnedFd,
    pub name: PathBuf,
}

impl Pair {
    pub fn open() -> io::Result<Pair> {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
        rustix::io::fcntl_setfd(&master, rustix::io::FdFlags::CLOEXEC)?;
        grantpt(&master)?;
        unlockpt(&master)?;
        let name = ptsname(&master, Vec::new())?;
        let name = PathBuf::from(OsStr::from_bytes(name.to_bytes()));
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let slave = rustix::fs::open(&name, flags, Mode::empty())?;
        Ok(Pair { master, slave, name })
    }
}
