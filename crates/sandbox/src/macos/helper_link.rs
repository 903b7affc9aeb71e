//! Between a program that uses the library and the launcher it started: a socket for the order and
//! the answers, and a pipe that nothing is written to. The launcher ends the run when the pipe's
//! other end is closed, so no sandbox outlives the program that asked for it.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::core::wire::Heard;
use crate::macos::{helper_main, sys};
use crate::unix::relay::Pipe;
use crate::unix::supervision;

/// The name a launcher is started under. Not a path, so no program gets it by accident.
const MARK: &str = "mcp-sandbox-helper";
/// Every message is preceded by its length.
const PREFIX: usize = size_of::<u64>();
/// Between looks for the end of a launcher that has closed its socket.
const TICK: Duration = Duration::from_millis(5);

/// Closed when the program that asked for this sandbox is gone.
static LEASH: OnceLock<OwnedFd> = OnceLock::new();

pub fn leash() -> Option<BorrowedFd<'static>> {
    LEASH.get().map(AsFd::as_fd)
}

pub fn is_caller_gone() -> bool {
    let Some(leash) = leash() else { return false };
    let mut fds = [PollFd::from_borrowed_fd(leash, PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut fds, Some(&now)).is_ok() && !fds[0].revents().is_empty()
}

/// One end of the socket.
pub struct HelperLink {
    socket: UnixStream,
    received: Vec<u8>,
}

impl HelperLink {
    fn new(socket: UnixStream) -> HelperLink {
        HelperLink { socket, received: Vec::new() }
    }

    pub fn send(&self, message: &[u8]) -> io::Result<()> {
        let mut socket = &self.socket;
        socket.write_all(&(message.len() as u64).to_le_bytes())?;
        socket.write_all(message)
    }

    /// Waits for a message; `None` when the other side is gone.
    pub fn receive(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            if let Some(message) = self.complete() {
                return Ok(Some(message));
            }
            if !self.read()? {
                return Ok(None);
            }
        }
    }

    /// Whether the other side is still there.
    fn read(&mut self) -> io::Result<bool> {
        let mut piece = [0u8; 16 << 10];
        match self.socket.read(&mut piece) {
            Ok(0) => Ok(false),
            Ok(read) => {
                self.received.extend_from_slice(&piece[..read]);
                Ok(true)
            }
            Err(e) if e.kind() == io::ErrorKind::ConnectionReset => Ok(false),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => Ok(true),
            Err(e) => Err(e),
        }
    }

    fn complete(&mut self) -> Option<Vec<u8>> {
        let length = u64::from_le_bytes(*self.received.first_chunk::<PREFIX>()?);
        let end = PREFIX.checked_add(usize::try_from(length).ok()?)?;
        let message = self.received.get(PREFIX..end)?.to_vec();
        self.received.drain(..end);
        Some(message)
    }
}

/// The caller's grip on a launcher. Letting go of it ends the launcher, and the sandbox with it.
pub struct Launcher {
    child: Child,
    line: HelperLink,
    /// Held for its effect.
    _leash: OwnedFd,
    is_silent: bool,
    ended: Option<ExitStatus>,
}

impl Launcher {
    /// Starts `helper`, or without one this very program once more.
    pub fn start(
        helper: Option<&Path>,
        [stdin, stdout, stderr]: [Stdio; 3],
    ) -> io::Result<Launcher> {
        let (ours, theirs) = UnixStream::pair()?;
        let Pipe { read: reader, write: leash } = Pipe::new()?;
        let (theirs, reader) = (above_standard(theirs.into())?, above_standard(reader)?);
        let own = std::env::current_exe()?;
        let mut command = Command::new(helper.unwrap_or(&own));
        command.arg0(MARK).stdin(stdin).stdout(stdout).stderr(stderr);
        command.args([&theirs, &reader].map(|fd| fd.as_raw_fd().to_string()));
        sys::keep_open(&mut command, &[theirs.as_fd(), reader.as_fd()]);
        let child = command.spawn()?;
        Ok(Launcher {
            child,
            line: HelperLink::new(ours),
            _leash: leash,
            is_silent: false,
            ended: None,
        })
    }

    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn send(&self, message: &[u8]) -> io::Result<()> {
        self.line.send(message)
    }

    /// Waits for the next message or the end; without a time, for ever.
    pub fn hear(&mut self, until: Option<Instant>) -> io::Result<Heard> {
        loop {
            if let Some(message) = self.line.complete() {
                return Ok(Heard::Message(message));
            }
            if !self.is_silent {
                if !self.waits_for_more(until)? {
                    return Ok(Heard::Nothing);
                }
                self.is_silent = !self.line.read()?;
                continue;
            }
            // It closes its socket with its end, or right before.
            if self.ended.is_some() || self.child.try_wait()?.is_some() {
                return Ok(Heard::End);
            }
            if until.is_some_and(|until| until <= Instant::now()) {
                return Ok(Heard::Nothing);
            }
            std::thread::sleep(TICK);
        }
    }

    /// Until there is something to read; whether there is.
    fn waits_for_more(&self, until: Option<Instant>) -> io::Result<bool> {
        let mut fds = [PollFd::new(&self.line.socket, PollFlags::IN)];
        let pause = until.map(supervision::pause);
        match poll(&mut fds, pause.as_ref()) {
            Ok(_) => Ok(!fds[0].revents().is_empty()),
            Err(rustix::io::Errno::INTR) => Ok(false),
            Err(e) => Err(e.into()),
        }
    }

    /// How it ended. Waits for that.
    pub fn reap(&mut self) -> io::Result<ExitStatus> {
        supervision::reap(&mut self.child, &mut self.ended)
    }

    /// Its guardian ends the tree.
    pub fn kill(&self) -> io::Result<()> {
        self.signal(libc::SIGKILL)
    }

    pub fn terminate(&self) -> io::Result<()> {
        self.signal(libc::SIGTERM)
    }

    /// One that has been collected needs no signal, and its number may be another's.
    fn signal(&self, signal: i32) -> io::Result<()> {
        if self.ended.is_some() {
            return Ok(());
        }
        match sys::send_signal(self.child.id().cast_signed(), signal) {
            Err(e) if e.raw_os_error() == Some(libc::ESRCH) => Ok(()),
            other => other,
        }
    }
}

impl Drop for Launcher {
    fn drop(&mut self) {
        if self.ended.is_none() {
            let _ = self.kill();
            let _ = self.reap();
        }
    }
}

/// The signal that ended a launcher.
pub fn ending_signal(status: ExitStatus) -> Option<i32> {
    status.signal()
}

/// In a program without standard descriptors a new one can get their numbers.
fn above_standard(fd: OwnedFd) -> io::Result<OwnedFd> {
    if fd.as_raw_fd() > 2 { Ok(fd) } else { Ok(rustix::io::fcntl_dupfd_cloexec(&fd, 3)?) }
}

/// In a program that was started as a launcher: the line to its caller, or why there is none. One
/// that was started inside a sandbox becomes the command here.
pub fn caller() -> Option<Result<HelperLink, String>> {
    helper_main::dispatch();
    let mut args = std::env::args_os();
    if args.next()? != MARK {
        return None;
    }
    Some(answer(args))
}

fn answer(mut args: impl Iterator<Item = OsString>) -> Result<HelperLink, String> {
    if sys::is_privileged_start() {
        return Err("a program with more rights than its caller is no helper".to_owned());
    }
    let mut next = || {
        let number = args.next()?.to_str()?.parse().ok().filter(|fd| *fd > 2)?;
        sys::adopt(number).ok()
    };
    let (Some(socket), Some(leash)) = (next(), next()) else {
        return Err("started by hand; it is for programs that use mcp_sandbox".to_owned());
    };
    let _ = LEASH.set(leash);
    if is_caller_gone() {
        return Err("the caller is gone".to_owned());
    }
    Ok(HelperLink::new(socket.into()))
}

/// Nothing of ours runs before `dispatch`, and no library of the system starts threads.
pub fn is_single_threaded() -> bool {
    sys::thread_count().is_none_or(|count| count == 1)
}

/// Closes this process's ends of what belongs to the command, whose readers wait for the last one.
pub fn let_go_of_stdio() {
    let Ok(nothing) = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null") else {
        return;
    };
    let _ = rustix::stdio::dup2_stdin(&nothing);
    let _ = rustix::stdio::dup2_stdout(&nothing);
    let _ = rustix::stdio::dup2_stderr(&nothing);
}
