//! Terminals. The sandbox never holds the user's: it gets a pseudo-terminal of its own
//! (on its own devpts), and the launcher copies between the two.
//!
//! Stops: TIOCSTI and friends into the user's shell, reading what is typed after the end.
//! Leaves open: escape sequences in output reach the user's terminal, as with any program.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, unlockpt};
use rustix::termios::{
    OptionalActions, Termios, tcgetattr, tcgetpgrp, tcgetwinsize, tcsetattr, tcsetwinsize,
};

use crate::linux::apply::standard;
use crate::request::Stdio;

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

/// Size and modes of the user's terminal, for the sandbox's. A terminal that cannot be asked
/// leaves the kernel's defaults.
pub fn copy_settings(slave: &OwnedFd, stdio: &[Stdio; 3]) {
    let Some(user) = user_terminal(stdio) else {
        return;
    };
    if let Ok(size) = tcgetwinsize(user) {
        let _ = tcsetwinsize(slave, size);
    }
    if let Ok(modes) = tcgetattr(user) {
        let _ = tcsetattr(slave, OptionalActions::Now, &modes);
    }
}

fn user_terminal(stdio: &[Stdio; 3]) -> Option<BorrowedFd<'static>> {
    (0..).zip(stdio).find(|(_, kind)| **kind == Stdio::Terminal).map(|(fd, _)| standard(fd))
}

/// The user's terminal, as the launcher uses it while the command runs.
pub struct UserTerminal {
    /// A description of its own: non-blocking here must not be non-blocking for the shell.
    pub fd: OwnedFd,
    reads: bool,
    /// The command's output comes here, line ends included.
    writes: bool,
    saved: Option<Termios>,
}

impl UserTerminal {
    /// `None` when none of the descriptors is a terminal.
    pub fn open(stdio: &[Stdio; 3]) -> io::Result<Option<UserTerminal>> {
        let Some(user) = user_terminal(stdio) else {
            return Ok(None);
        };
        let fd = reopen(user)?;
        Ok(Some(UserTerminal {
            fd,
            reads: stdio[0] == Stdio::Terminal,
            writes: stdio[1] == Stdio::Terminal,
            saved: None,
        }))
    }

    /// Takes the keyboard, if the command is to read it and this job is in the foreground.
    pub fn engage(&mut self) {
        if !self.reads || self.saved.is_some() || !self.is_foreground() {
            return;
        }
        if let Ok(modes) = tcgetattr(&self.fd) {
            let mut raw = modes.clone();
            raw.make_raw();
            if !self.writes {
                // Something else in the pipeline writes here and needs its line ends.
                raw.output_modes = modes.output_modes;
            }
            if tcsetattr(&self.fd, OptionalActions::Now, &raw).is_ok() {
                self.saved = Some(modes);
            }
        }
    }

    /// Whether keys are to be read now.
    pub fn is_engaged(&self) -> bool {
        self.saved.is_some()
    }

    /// Gives the keyboard back as it was.
    pub fn release(&mut self) {
        if let Some(modes) = self.saved.take() {
            let _ = tcsetattr(&self.fd, OptionalActions::Now, &modes);
        }
    }

    pub fn copy_size(&self, master: BorrowedFd<'_>) {
        if let Ok(size) = tcgetwinsize(&self.fd) {
            let _ = tcsetwinsize(master, size);
        }
    }

    fn is_foreground(&self) -> bool {
        tcgetpgrp(&self.fd).is_ok_and(|group| group == rustix::process::getpgrp())
    }
}

impl Drop for UserTerminal {
    fn drop(&mut self) {
        self.release();
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
