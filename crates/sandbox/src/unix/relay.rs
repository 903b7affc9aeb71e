//! Copies bytes between a descriptor of the user's and one of the sandbox's, where the first
//! must not get inside. Never blocks: the launcher has a timeout to keep meanwhile.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use mcp_protocol::{Destination, OutputFilter};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, OFlags, fcntl_getfl, fstat};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

const CHUNK: usize = 64 * 1024;

/// A line up to this length is kept until it is whole and known to be JSON; a longer one is judged by its beginning.
const JUDGED: usize = 64 * 1024;

const NOTICE: &[u8] = b"mcp: lines of the server's standard output that are not JSON are shown here, because they break clients (--raw passes them on)\n";

/// One direction. `from` and `to` are non-blocking, or known not to block.
pub struct Relay {
    from: Option<Far>,
    to: Option<Far>,
    buffer: Vec<u8>,
    kind: SinkKind,
    sorter: Option<Sorter>,
}

/// A descriptor of a relay.
pub enum Far {
    /// Only the launcher has its description, a pipe's, and that is non-blocking: no other process can make a call on it wait.
    Own(OwnedFd),
    /// A socket of the user's stays blocking for whoever shares it; each call here does not.
    Socket(OwnedFd),
    /// Others have its description too, and may make it blocking at any time.
    Shared(OwnedFd),
}

impl Far {
    /// Of the user's.
    pub fn shared(fd: OwnedFd) -> Far {
        let kind = fstat(&fd).map(|it| FileType::from_raw_mode(it.st_mode));
        if kind == Ok(FileType::Socket) { Far::Socket(fd) } else { Far::Shared(fd) }
    }

    fn read_now<'a>(&self, space: &'a mut Space) -> Result<&'a mut [u8], Errno> {
        let space = &mut space[..];
        let (bytes, _) = match self {
            Far::Own(pipe) => rustix::io::read(pipe, space)?,
            Far::Socket(socket) => recv(socket, space, RecvFlags::DONTWAIT)?.0,
            Far::Shared(fd) => {
                is_ready(fd, PollFlags::IN)?;
                rustix::io::read(fd, space)?
            }
        };
        Ok(bytes)
    }

    fn write_now(&self, bytes: &[u8]) -> Result<usize, Errno> {
        match self {
            Far::Own(pipe) => rustix::io::write(pipe, bytes),
            Far::Socket(fd) | Far::Shared(fd) => write_now(fd, bytes),
        }
    }
}

impl AsFd for Far {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Far::Own(fd) | Far::Socket(fd) | Far::Shared(fd) => fd.as_fd(),
        }
    }
}

/// What one read takes, on the stack and not cleared before: clearing it took as long as the rest of a short message.
type Space = [MaybeUninit<u8>; CHUNK];

/// Parts what is no JSON from what is.
struct Sorter {
    filter: OutputFilter,
    /// What goes to standard error.
    aside: Vec<u8>,
    told: bool,
}

impl Sorter {
    fn place<'a>(
        to: &'a mut Vec<u8>,
        aside: &'a mut Vec<u8>,
        told: &'a mut bool,
    ) -> impl FnMut(Destination, &[u8]) + use<'a> {
        move |destination, bytes| match destination {
            Destination::Client => to.extend_from_slice(bytes),
            Destination::Stderr => {
                if !std::mem::replace(told, true) {
                    aside.extend_from_slice(NOTICE);
                }
                aside.extend_from_slice(bytes);
            }
        }
    }

    fn feed(&mut self, bytes: &[u8], to: &mut Vec<u8>) {
        self.filter.feed(bytes, Sorter::place(to, &mut self.aside, &mut self.told));
    }

    fn end(&mut self, to: &mut Vec<u8>) {
        self.filter.end(Sorter::place(to, &mut self.aside, &mut self.told));
    }

    fn write(&mut self) {
        match write_now(rustix::stdio::stderr(), &self.aside) {
            Ok(count) => drop(self.aside.drain(..count)),
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => self.aside.clear(),
        }
    }
}

#[derive(Clone, Copy)]
enum SinkKind {
    /// A socket, a pipe or a terminal, which may be slow to take something.
    Stream,
    /// A file that is only added to, up to this size.
    File { most: Option<u64> },
}

impl Relay {
    pub fn new(from: OwnedFd, to: OwnedFd) -> Relay {
        Relay::between(Far::shared(from), Far::shared(to))
    }

    fn between(from: Far, to: Far) -> Relay {
        let (from, to) = (Some(from), Some(to));
        Relay { from, to, buffer: Vec::new(), kind: SinkKind::Stream, sorter: None }
    }

    /// To what a user has given for the command's output: a file grows to `most` bytes and no further.
    pub fn output(from: OwnedFd, to: OwnedFd, most: Option<u64>) -> Relay {
        Relay::to_output(Far::shared(from), Far::shared(to), most)
    }

    fn to_output(from: Far, to: Far, most: Option<u64>) -> Relay {
        let is_file = fstat(&to)
            .is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::RegularFile);
        let kind = if is_file { SinkKind::File { most } } else { SinkKind::Stream };
        Relay { kind, ..Relay::between(from, to) }
    }

    /// As [`Relay::output`], but for lines that are not JSON, which go to standard error. `from` is a [`Pipe`]'s, non-blocking.
    pub fn filtered(from: OwnedFd, to: Far, most: Option<u64>) -> Relay {
        let filter = OutputFilter::new(JUDGED);
        let sorter = Sorter { filter, aside: Vec::new(), told: false };
        Relay { sorter: Some(sorter), ..Relay::to_output(Far::Own(from), to, most) }
    }

    fn is_aside(&self) -> bool {
        self.sorter.as_ref().is_some_and(|sorter| !sorter.aside.is_empty())
    }

    /// The descriptor to wait for now and what for; none when the relay has ended.
    pub fn wants(&self) -> Option<(BorrowedFd<'_>, PollFlags)> {
        match (&self.from, &self.to) {
            (_, Some(to)) if !self.buffer.is_empty() => Some((to.as_fd(), PollFlags::OUT)),
            _ if self.is_aside() => Some((rustix::stdio::stderr(), PollFlags::OUT)),
            (Some(from), Some(_)) => Some((from.as_fd(), PollFlags::IN)),
            _ => None,
        }
    }

    /// Moves what can be moved now.
    pub fn advance(&mut self) {
        if self.buffer.is_empty() && !self.is_aside() {
            self.read();
        }
        self.write();
        self.sorter.iter_mut().filter(|it| !it.aside.is_empty()).for_each(Sorter::write);
        if self.from.is_none() && self.buffer.is_empty() && !self.is_aside() {
            self.to = None;
        }
    }

    /// Whether something is left to be moved, now that no process inside can write any more.
    pub fn drain(&mut self) -> bool {
        self.advance();
        self.to.is_some() && (self.is_aside() || !(self.buffer.is_empty() && self.is_dry()))
    }

    fn is_dry(&mut self) -> bool {
        self.read();
        self.buffer.is_empty() && !self.is_aside()
    }

    fn read(&mut self) {
        let Some(from) = &self.from else { return };
        let mut space: Space = [MaybeUninit::uninit(); CHUNK];
        match from.read_now(&mut space) {
            Ok([]) => self.end(),
            Ok(bytes) => match &mut self.sorter {
                Some(sorter) => sorter.feed(bytes, &mut self.buffer),
                None => self.buffer.extend_from_slice(bytes),
            },
            Err(Errno::AGAIN | Errno::INTR) => {}
            // A terminal whose last user has closed it reads as EIO.
            Err(_) => self.end(),
        }
    }

    /// Nothing more comes: what stands there without a line end is judged as it is.
    fn end(&mut self) {
        self.sorter.iter_mut().for_each(|sorter| sorter.end(&mut self.buffer));
        self.from = None;
    }

    fn write(&mut self) {
        let Some(to) = &self.to else { return };
        if self.buffer.is_empty() {
            return;
        }
        let written = match self.kind {
            SinkKind::Stream => to.write_now(&self.buffer),
            SinkKind::File { most } => append(to.as_fd(), &self.buffer, most),
        };
        match written {
            Ok(count) => {
                self.buffer.drain(..count);
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            // The reader is gone: so is the reason to copy.
            Err(_) => {
                self.buffer = Vec::new();
                self.from = None;
                self.to = None;
            }
        }
    }
}

/// SIGPIPE is ignored in every launcher; where the flag exists it is for those who are none.
#[cfg(target_os = "linux")]
const NOW: SendFlags = SendFlags::DONTWAIT.union(SendFlags::NOSIGNAL);
#[cfg(not(target_os = "linux"))]
const NOW: SendFlags = SendFlags::DONTWAIT;

fn write_now(to: impl AsFd, bytes: &[u8]) -> Result<usize, Errno> {
    let to = to.as_fd();
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
fn append(to: BorrowedFd<'_>, bytes: &[u8], most: Option<u64>) -> Result<usize, Errno> {
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

/// What a terminal or a pipe that says it is ready takes without waiting.
const TAKEN_AT_ONCE: usize = 256;

/// A terminal of another user cannot be opened anew, and its description may block.
fn is_ready(fd: impl AsFd, flags: PollFlags) -> Result<(), Errno> {
    let mut fds = [PollFd::new(&fd, flags)];
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

/// A pipe of the user's, opened once more, so that it does not block here and stays as it is for the programs that share it.
#[cfg(target_os = "linux")]
pub fn own_nonblocking(user: BorrowedFd<'_>) -> io::Result<Far> {
    use std::os::fd::AsRawFd;
    let is_pipe = fstat(user).is_ok_and(|it| FileType::from_raw_mode(it.st_mode) == FileType::Fifo);
    let path = format!("/proc/self/fd/{}", user.as_raw_fd());
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    match is_pipe.then(|| rustix::fs::open(path, flags, rustix::fs::Mode::empty())) {
        Some(Ok(opened)) => Ok(Far::Own(opened)),
        _ => user.try_clone_to_owned().map(Far::shared),
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
