//! The sandbox's own pseudo-terminal, and the user's opened once more.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

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

/// The same terminal with a description of its own, non-blocking.
pub fn reopen(terminal: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let opened = rustix::termios::ttyname(terminal, Vec::new())
        .and_then(|name| rustix::fs::open(name.as_c_str(), flags, Mode::empty()));
    match opened {
        // A terminal of another user (su, sudo): what was inherited may be used, not opened.
        Err(_) => Ok(rustix::io::fcntl_dupfd_cloexec(terminal, 3)?),
        Ok(fd) => Ok(fd),
    }
}
