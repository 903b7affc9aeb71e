//! Terminals. The sandbox never holds the user's: it gets a pseudo-terminal of its own, and the
//! launcher copies between the two.
//!
//! Stops: TIOCSTI and friends into the user's shell, reading what is typed after the end.
//! Leaves open: escape sequences in output reach the user's terminal, as with any program.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::termios::{
    OptionalActions, Termios, tcgetattr, tcgetpgrp, tcgetwinsize, tcsetattr, tcsetwinsize,
};

use crate::core::request::Stdio;

/// One of the descriptors 0 to 2, which are open as long as the process lives: Rust's runtime
/// opens /dev/null on those it finds closed.
pub fn standard(fd: i32) -> BorrowedFd<'static> {
    match fd {
        0 => rustix::stdio::stdin(),
        1 => rustix::stdio::stdout(),
        _ => rustix::stdio::stderr(),
    }
}

/// The same terminal with a description of its own, non-blocking.
#[cfg(target_os = "linux")]
pub fn reopen(terminal: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    use std::os::fd::AsRawFd;
    let path = format!("/proc/self/fd/{}", terminal.as_raw_fd());
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    match rustix::fs::open(&path, flags, Mode::empty()) {
        // A terminal of another user (su, sudo): what was inherited may be used, not opened.
        Err(rustix::io::Errno::ACCESS | rustix::io::Errno::PERM) => {
            Ok(rustix::io::fcntl_dupfd_cloexec(terminal, 3)?)
        }
        other => Ok(other?),
    }
}

/// The same terminal with a description of its own, non-blocking.
#[cfg(not(target_os = "linux"))]
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
