//! The link between a program that uses the library and the launcher it started: one pipe for the order and later
//! messages, one for the answers. The launcher ends the run when the first pipe is closed, so no sandbox outlives the
//! program that asked for it. When the launcher is killed, the system closes its job and so ends the run.

use std::fs::File;
use std::io::{self, PipeWriter, Read, Write};
use std::os::windows::io::AsHandle;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::core::wire::Heard;
use crate::windows::helper_main;
use crate::windows::sys::console::{self, TERMINATE};
use crate::windows::sys::handles::{self, Inheritable};
use crate::windows::sys::process;

/// The first argument of a launcher.
const MARK: &str = "mcp-sandbox-helper";
/// No order and no report is larger.
const LARGEST: u64 = 64 << 20;
/// Between looks for the end of a launcher.
const TICK: Duration = Duration::from_millis(20);
/// How long the last answer of a launcher that has ended may take to be read.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// The exit code of a launcher that was killed by its caller: nothing else has it.
const KILLED: u32 = 0x6d63_7009;
const SIGKILL: i32 = 9;
const NOT_SET_UP: i32 = crate::core::exit_code::NOT_SET_UP as i32;

/// Only one start at a time: what is made to be inherited must not get into another launcher.
static STARTING: Mutex<()> = Mutex::new(());

fn send(mut to: impl Write, message: &[u8]) -> io::Result<()> {
    to.write_all(&(message.len() as u64).to_le_bytes())?;
    to.write_all(message)?;
    to.flush()
}

/// `None` when the other side is gone.
fn receive(mut from: impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut length = [0; size_of::<u64>()];
    match from.read_exact(&mut length) {
        Err(e) if is_end(&e) => return Ok(None),
        other => other?,
    }
    let length = u64::from_le_bytes(length);
    if length > LARGEST {
        return Err(io::Error::from(io::ErrorKind::InvalidData));
    }
    let mut message = Vec::new();
    from.take(length).read_to_end(&mut message)?;
    Ok((message.len() as u64 == length).then_some(message))
}

fn is_end(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::BrokenPipe)
}

/// The launcher's end.
pub struct HelperLink {
    from: Option<File>,
    to: File,
}

impl HelperLink {
    pub fn send(&self, message: &[u8]) -> io::Result<()> {
        send(&self.to, message)
    }

    /// Waits for the order. After that a thread watches whether the caller is still there.
    pub fn receive(&mut self) -> io::Result<Option<Vec<u8>>> {
        let Some(mut from) = self.from.take() else { return Ok(None) };
        let order = receive(&mut from)?;
        std::thread::Builder::new().name("mcp-caller".to_owned()).spawn(move || obey(from))?;
        Ok(order)
    }
}

/// Every further message asks the command to end; the end of messages ends the run.
fn obey(mut from: File) {
    while let Ok(Some(_)) = receive(&mut from) {
        // The supervisor may not listen yet.
        for _ in 0..500 {
            if console::tell(TERMINATE) {
                break;
            }
            std::thread::sleep(TICK);
        }
    }
    if !console::tell(console::CLOSE) {
        std::process::exit(NOT_SET_UP);
    }
}

/// The caller's handle of a launcher. Dropping it ends the launcher and its sandbox.
pub struct Launcher {
    child: Child,
    to: PipeWriter,
    heard: Receiver<Vec<u8>>,
    ended: Option<ExitStatus>,
}

impl Launcher {
    /// Starts `helper`, or without one this very program once more.
    pub fn start(
        helper: Option<&Path>,
        [stdin, stdout, stderr]: [Stdio; 3],
    ) -> io::Result<Launcher> {
        let own = std::env::current_exe()?;
        let (hear, to) = io::pipe()?;
        let (mut from, speak) = io::pipe()?;
        let child = {
            let _one = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
            let theirs = [Inheritable::of(&hear)?, Inheritable::of(&speak)?];
            let mut command = Command::new(helper.unwrap_or(&own));
            command.arg(MARK).args(theirs.each_ref().map(|end| end.number().to_string()));
            command.stdin(stdin).stdout(stdout).stderr(stderr).spawn()?
        };
        drop((hear, speak));
        let (tell, heard) = channel();
        std::thread::Builder::new().name("mcp-answers".to_owned()).spawn(move || {
            while let Ok(Some(message)) = receive(&mut from) {
                if tell.send(message).is_err() {
                    return;
                }
            }
        })?;
        Ok(Launcher { child, to, heard, ended: None })
    }

    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn send(&self, message: &[u8]) -> io::Result<()> {
        send(&self.to, message)
    }

    /// Waits for the next message or the end, without a time for ever. Another process that inherited the answers' pipe
    /// may keep it open, so this also asks whether the launcher has ended.
    pub fn hear(&mut self, until: Option<Instant>) -> io::Result<Heard> {
        loop {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            let is_over = self.ended.is_some() || self.child.try_wait()?.is_some();
            let pause = if is_over { LAST_WORDS } else { left.unwrap_or(TICK).min(TICK) };
            match self.heard.recv_timeout(pause) {
                Ok(message) => return Ok(Heard::Message(message)),
                Err(_) if is_over => return Ok(Heard::End),
                Err(RecvTimeoutError::Disconnected) => std::thread::sleep(pause),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(Heard::Nothing);
            }
        }
    }

    /// How it ended. Waits for that.
    pub fn reap(&mut self) -> io::Result<ExitStatus> {
        let status = match self.ended {
            Some(status) => status,
            None => self.child.wait()?,
        };
        self.ended = Some(status);
        Ok(status)
    }

    /// The system closes its job, and with it ends the tree.
    pub fn kill(&self) -> io::Result<()> {
        match self.ended {
            Some(_) => Ok(()),
            None => process::terminate(self.child.as_handle(), KILLED),
        }
    }

    pub fn terminate(&self) -> io::Result<()> {
        match self.send(b"terminate") {
            Err(e) if is_end(&e) => Ok(()),
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

/// The signal that this ending stands for on other systems: the caller killed it.
pub fn ending_signal(status: ExitStatus) -> Option<i32> {
    (status.code()?.cast_unsigned() == KILLED).then_some(SIGKILL)
}

/// In a program that was started as a launcher: the line to its caller, or why there is none. One that was
/// started for the inside of a sandbox does its work there and ends.
pub fn caller() -> Option<Result<HelperLink, String>> {
    helper_main::dispatch();
    let mut args = std::env::args_os().skip(1);
    if args.next()? != MARK {
        return None;
    }
    let mut next = || handles::adopt(args.next()?.to_str()?.parse().ok()?).ok();
    match (next(), next()) {
        (Some(from), Some(to)) => Some(Ok(HelperLink { from: Some(from.into()), to: to.into() })),
        _ => Some(Err("started by hand; it is for programs that use mcp_sandbox".to_owned())),
    }
}

/// Windows starts a process without copying this one, so threads do not matter.
pub fn is_single_threaded() -> bool {
    true
}

/// Closes this process's copies of the command's standard handles, so that their readers see the end.
pub fn let_go_of_stdio() {
    handles::close_standard();
}
