//! Copies bytes between a descriptor of the user's and one of the sandbox's, where the first
//! must not get inside. Never blocks: the launcher has a timeout to keep meanwhile.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, OFlags, fcntl_getfl, fstat};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

const CHUNK: usize = 64 * 1024;

/// One direction. `from` and `to` are non-blocking, or known not to block.
pub struct Relay {
    from: Option<OwnedFd>,
    to: Option<OwnedFd>,
    buffer: Vec<u8>,
    kind: Kind,
}

#[derive(Clone, Copy)]
enum Kind {
    /// A socket, a pipe or a terminal, which may be slow to take something.
    Stream,
    /// A file that is only added to, up to this size.
    File { most: Option<u64> },
}

impl Relay {
    pub fn new(from: OwnedFd, to: OwnedFd) -> Relay {
        Relay { from: Some(from), to: Some(to), buffer: Vec::new(), kind: Kind::Stream }
    }

    /// To what a user has given for the command's output: a file grows to `most` bytes and no further.
    pub fn output(from: OwnedFd, to: OwnedFd, most: Option<u64>) -> Relay {
        let is_file = fstat(&to)
            .is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::RegularFile);
        let kind = if is_file { Kind::File { most } } else { Kind::Stream };
        Relay { kind, ..Relay::new(from, to) }
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

    /// Whether something is left to be moved, now that no process inside can write any more.
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
        let written = match self.kind {
            Kind::Stream => write_now(to, &self.buffer),
            Kind::File { most } => append(to, &self.buffer, most),
        };
        match written {
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

/// A file takes what it is given. As for a process of its own at its limit, nothing is added beyond it.
fn append(to: &OwnedFd, bytes: &[u8], most: Option<u64>) -> Result<usize, Errno> {
    let Some(most) = most else {
        return rustix::io::write(to, bytes);
    };
    let size = u64::try_from(fstat(to)?.st_size).unwrap_or(u64::MAX);
    let room = usize::try_from(most.saturating_sub(size)).unwrap_or(usize::MAX);
    match room {
        0 => Err(Errno::FBIG),
        _ => rustix::io::write(to, &bytes[..bytes.len().min(room)]),
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

/// Whether two descriptors are of the same file: their output goes through one pipe, and stays in order.
pub fn is_same_file(a: BorrowedFd<'_>, b: BorrowedFd<'_>) -> bool {
    match (fstat(a), fstat(b)) {
        (Ok(a), Ok(b)) => {
            let is_file = FileType::from_raw_mode(a.st_mode) == FileType::RegularFile;
            is_file && (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino)
        }
        _ => false,
    }
}

/// Whether a descriptor is of a file that may only be added to. With the descriptor itself that is no bound: whoever has
/// it can take the flag off, shorten the file, and change its mode, times and attributes.
pub fn is_append_only(fd: BorrowedFd<'_>) -> bool {
    let is_file = fstat(fd)
        .is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::RegularFile);
    is_file && fcntl_getfl(fd).is_ok_and(|flags| flags.contains(OFlags::APPEND))
}
