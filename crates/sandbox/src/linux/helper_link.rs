//! Between a program that uses the library and the launcher it started: a socket for the order
//! and the answers, and a pipe that nothing is written to. The launcher dies when the pipe's
//! other end is closed, so no sandbox outlives the program that asked for it.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair, sockopt,
};
use rustix::process::{Pid, PidfdFlags, Signal, getppid, pidfd_open, pidfd_send_signal};

use crate::core::wire::Heard;
use crate::unix::supervision;

mod sys;

/// The name a helper is started under. Not a path: no program gets it by accident.
const MARK: &str = "mcp-sandbox-helper";

/// Every message is preceded by its length.
const PREFIX: usize = size_of::<u64>();

/// One end of the socket.
pub struct HelperLink {
    socket: OwnedFd,
    received: Vec<u8>,
    /// Held for its effect.
    _leash: OwnedFd,
}

enum LinkRead {
    Some,
    NotYet,
    End,
}

impl HelperLink {
    pub fn send(&self, message: &[u8]) -> io::Result<()> {
        let length = (message.len() as u64).to_le_bytes();
        self.send_all(&length)?;
        self.send_all(message)
    }

    fn send_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            // The other side may be gone, which is no reason to be killed.
            match send(&self.socket, bytes, SendFlags::NOSIGNAL) {
                Ok(sent) => bytes = &bytes[sent..],
                Err(Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(())
    }

    /// Waits for a message; `None` when the other side is gone.
    pub fn receive(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            if let Some(message) = self.complete() {
                return Ok(Some(message));
            }
            if let LinkRead::End = self.read(RecvFlags::empty())? {
                return Ok(None);
            }
        }
    }

    fn read(&mut self, flags: RecvFlags) -> io::Result<LinkRead> {
        let mut piece = [0u8; 16 << 10];
        match recv(&self.socket, &mut piece, flags) {
            Ok((0, _)) | Err(Errno::CONNRESET) => Ok(LinkRead::End),
            Ok((read, _)) => {
                self.received.extend_from_slice(&piece[..read]);
                Ok(LinkRead::Some)
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(LinkRead::NotYet),
            Err(e) => Err(e.into()),
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

/// The caller's grip on a launcher. Letting go of it kills the launcher, and the sandbox with it.
pub struct Launcher {
    child: Child,
    process: OwnedFd,
    link: HelperLink,
    is_silent: bool,
    ended: Option<ExitStatus>,
}

impl Launcher {
    /// Starts `helper`, or without one this very program once more.
    pub fn start(helper: Option<&Path>, stdio: [Stdio; 3]) -> io::Result<Launcher> {
        let flags = SocketFlags::CLOEXEC;
        let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        let (reader, leash) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        let (theirs, reader) = (above_standard(theirs)?, above_standard(reader)?);
        // By this name it is the same program even after its file was replaced.
        let mut command = Command::new(helper.unwrap_or(Path::new("/proc/self/exe")));
        let [stdin, stdout, stderr] = stdio;
        command.arg0(MARK).stdin(stdin).stdout(stdout).stderr(stderr);
        command.args([&theirs, &reader].map(|fd| fd.as_raw_fd().to_string()));
        sys::keep_open(&mut command, [theirs.as_fd(), reader.as_fd()]);
        let mut child = command.spawn()?;
        let link = HelperLink { socket: ours, received: Vec::new(), _leash: leash };
        match pidfd_open(Pid::from_child(&child), PidfdFlags::empty()) {
            Ok(process) => Ok(Launcher { child, process, link, is_silent: false, ended: None }),
            Err(e) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(e.into())
            }
        }
    }

    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn send(&self, message: &[u8]) -> io::Result<()> {
        self.link.send(message)
    }

    /// Waits for the next message or the end; without a time, for ever.
    pub fn hear(&mut self, until: Option<Instant>) -> io::Result<Heard> {
        loop {
            if let Some(message) = self.link.complete() {
                return Ok(Heard::Message(message));
            }
            let has_ended = self.wait(until)?;
            // What it said last is read before its end is believed.
            if !self.is_silent {
                match self.link.read(RecvFlags::DONTWAIT)? {
                    LinkRead::Some => continue,
                    LinkRead::End => self.is_silent = true,
                    LinkRead::NotYet => {}
                }
            }
            if has_ended {
                return Ok(Heard::End);
            }
            if until.is_some_and(|until| until <= Instant::now()) {
                return Ok(Heard::Nothing);
            }
        }
    }

    /// Until there is something to read or the launcher has ended; tells the latter.
    fn wait(&self, until: Option<Instant>) -> io::Result<bool> {
        let mut fds = vec![PollFd::new(&self.process, PollFlags::IN)];
        if !self.is_silent {
            fds.push(PollFd::new(&self.link.socket, PollFlags::IN));
        }
        let pause = until.map(supervision::pause);
        match poll(&mut fds, pause.as_ref()) {
            Ok(_) => Ok(!fds[0].revents().is_empty()),
            Err(Errno::INTR) => Ok(false),
            Err(e) => Err(e.into()),
        }
    }

    /// How it ended. Waits for that.
    pub fn reap(&mut self) -> io::Result<ExitStatus> {
        supervision::reap(&mut self.child, &mut self.ended)
    }

    pub fn kill(&self) -> io::Result<()> {
        self.signal(Signal::KILL)
    }

    pub fn terminate(&self) -> io::Result<()> {
        self.signal(Signal::TERM)
    }

    /// One that has ended needs no signal any more.
    fn signal(&self, signal: Signal) -> io::Result<()> {
        match pidfd_send_signal(&self.process, signal) {
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(e) => Err(e.into()),
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

/// In a program without standard descriptors a new one can get their numbers, and the child's
/// own are put there.
fn above_standard(fd: OwnedFd) -> io::Result<OwnedFd> {
    if fd.as_raw_fd() > 2 { Ok(fd) } else { Ok(rustix::io::fcntl_dupfd_cloexec(&fd, 3)?) }
}

/// In a program that was started as a helper: the line to its caller, or why there is none.
pub fn caller() -> Option<Result<HelperLink, String>> {
    let mut args = std::env::args_os();
    if args.next()? != MARK {
        return None;
    }
    Some(answer(args))
}

fn answer(mut args: impl Iterator<Item = OsString>) -> Result<HelperLink, String> {
    // A user who can start a set-uid program can give it any name and any descriptors.
    if sys::is_privileged_start() {
        return Err(
            "a program that has more rights than its caller cannot be the helper".to_owned()
        );
    }
    let mut next = || {
        let number = args.next()?.to_str()?.parse().ok().filter(|fd| *fd > 2)?;
        sys::adopt(number).ok()
    };
    let (Some(socket), Some(leash)) = (next(), next()) else {
        return Err("started by hand; it is for programs that use mcp_sandbox".to_owned());
    };
    sys::die_when_closed(leash.as_fd()).map_err(|e| format!("watch the caller: {e}"))?;
    // The caller may have ended before that: then its socket has no owner, and this one's parent
    // is another.
    let peer = sockopt::socket_peercred(&socket).map_err(|e| format!("ask for the caller: {e}"))?;
    if getppid() != Some(peer.pid) {
        return Err("the caller is gone".to_owned());
    }
    sys::hear_of_children();
    Ok(HelperLink { socket, received: Vec::new(), _leash: leash })
}

/// Whether this process can be copied without copying another thread's locks.
pub fn is_single_threaded() -> bool {
    std::fs::read_dir("/proc/self/task").is_ok_and(|threads| threads.count() == 1)
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
