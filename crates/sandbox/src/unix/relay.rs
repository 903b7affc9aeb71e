//! Copies bytes between a descriptor of the user's and one of the sandbox's, where the first
//! must not get inside. Never blocks: the launcher has a timeout to keep meanwhile.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

const CHUNK: usize = 64 * 1024;

/// One direction. `from` and `to` are non-blocking, or known not to block.
pub struct Relay {
    from: Option<OwnedFd>,
    to: Option<OwnedFd>,
    buffer: Vec<u8>,
}

impl Relay {
    pub fn new(from: OwnedFd, to: OwnedFd) -> Relay {
        Relay { from: Some(from), to: Some(to), buffer: Vec::new() }
    }

    /// The descriptor to wait for now and what for; none when the relay has ended.
    pub fn wants(&self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        match (&self.from, &self.to) {
            (_, Some(to)) if !self.buffer.is_empty() => Some((to.as_fd(), PollFlags::OUT)),
            (Some(from), Some(_)) => Some((from.as_fd(), PollFlags::IN)),
            _ => None,
        }
    }

    /// Moves what can be moved now.
    pub fn advance(&mut self) {
        if self.buffer.is_empty() {
            self.read();
        }
        self.write();
        if self.from.is_none() && self.buffer.is_empty() {
            self.to = None;
        }
    }

    /// Whether something is left to be moved, now that nobody inside can write any more.
    pub fn drain(&mut self) -> bool {
        self.advance();
        self.to.is_some() && !(self.buffer.is_empty() && self.is_dry())
    }

    fn is_dry(&mut self) -> bool {
        self.read();
        self.buffer.is_empty()
    }

    fn read(&mut self) {
        let Some(from) = &self.from else { return };
        self.buffer.resize(CHUNK, 0);
        match read_now(from, &mut self.buffer) {
            Ok(0) => self.end(),
            Ok(count) => self.buffer.truncate(count),
            Err(Errno::AGAIN | Errno::INTR) => self.buffer.clear(),
            // A terminal whose last user has closed it reads as EIO.
            Err(_) => self.end(),
        }
    }

    fn end(&mut self) {
        self.buffer = Vec::new();
        self.from = None;
    }

    fn write(&mut self) {
        let Some(to) = &self.to else { return };
        if self.buffer.is_empty() {
            return;
        }
        match write_now(to, &self.buffer) {
            Ok(count) => {
                self.buffer.drain(..count);
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            // The reader is gone: so is the reason to copy.
            Err(_) => {
                self.end();
                self.to = None;
            }
        }
    }
}

/// A socket of the user's stays blocking for whoever shares it; each call here does not.
fn read_now(from: &OwnedFd, buffer: &mut [u8]) -> Result<usize, Errno> {
    match recv(from, &mut *buffer, RecvFlags::DONTWAIT) {
        Err(Errno::NOTSOCK) => {
            is_ready(from, PollFlags::IN)?;
            rustix::io::read(from, buffer)
        }
        other => other.map(|(count, _)| count),
    }
}

/// SIGPIPE is ignored in every launcher; where the flag exists it is for those who are none.
#[cfg(target_os = "linux")]
const NOW: SendFlags = SendFlags::DONTWAIT.union(SendFlags::NOSIGNAL);
#[cfg(not(target_os = "linux"))]
const NOW: SendFlags = SendFlags::DONTWAIT;

fn write_now(to: &OwnedFd, bytes: &[u8]) -> Result<usize, Errno> {
    match send(to, bytes, NOW) {
        Err(Errno::NOTSOCK) => {
            is_ready(to, PollFlags::OUT)?;
            let blocks = !fcntl_getfl(to)?.contains(OFlags::NONBLOCK);
            let most = if blocks { bytes.len().min(TAKEN_AT_ONCE) } else { bytes.len() };
            rustix::io::write(to, &bytes[..most])
        }
        other => other,
    }
}

/// What a terminal that says it is ready takes without waiting.
const TAKEN_AT_ONCE: usize = 256;

/// A terminal of another user cannot be opened anew, and its description may block.
fn is_ready(fd: &OwnedFd, flags: PollFlags) -> Result<(), Errno> {
    let mut fds = [PollFd::new(fd, flags)];
    poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))?;
    if fds[0].revents().is_empty() { Err(Errno::AGAIN) } else { Ok(()) }
}

/// A pipe of which the launcher keeps one end, non-blocking, and the sandbox gets the other.
pub struct Pipe {
    pub read: OwnedFd,
    pub write: OwnedFd,
}

impl Pipe {
    pub fn new() -> io::Result<Pipe> {
        let (read, write) = io::pipe()?;
        Ok(Pipe { read: read.into(), write: write.into() })
    }
}

pub fn set_nonblocking(fd: BorrowedFd<'_>) -> io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(fd)?;
    Ok(rustix::fs::fcntl_setfl(fd, flags | rustix::fs::OFlags::NONBLOCK)?)
}
