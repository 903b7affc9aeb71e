//! Carries out the steps of a plan: in init, then in the process that becomes the command.
//!
//! Both are copies of the single-threaded launcher. Whatever fails is sent to the launcher with
//! the number of its step, and the process ends: nothing half-made ever runs the command.

mod exec_arguments;
mod init;
mod rlimits;
mod steps;
mod target;

use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::Mode;
use rustix::process;

use crate::core::request::Request;
use crate::linux::channel::{Channel, Failed, LONGEST_TEXT, PACKET, Seen, ToInit, ToLauncher};
use crate::linux::failure::StepFailure;
use crate::linux::mounts::{Root, Trees};
use crate::linux::open_files::Before;
use crate::linux::phases::LinuxPlan;
use crate::linux::sandbox_sockets::SocketFactory;
use crate::linux::step::ListedStep;
use crate::linux::{run_directory, sys};
use mcp_seccomp::Instruction;

/// What the launcher made before init existed.
pub struct InitInputs {
    pub trees: Trees,
    /// The sandbox's ends of relayed descriptors, and files opened again.
    pub stdio: [Option<OwnedFd>; 3],
    /// Paths whose owner ids could not be mapped.
    pub unmapped: Vec<std::path::PathBuf>,
    /// The system call filter.
    pub filter: Vec<Instruction>,
    /// Where sockets of the sandbox's network are handed out.
    pub socket_factory: SocketFactory,
    /// The limit of open files that the command gets, where ours is another.
    pub files: Option<Before>,
    /// Whether the launcher looks at what is to be run while the sandbox is made, and says when it has.
    pub is_checked: bool,
}

/// Everything init and target need, owned by the process that uses it.
pub struct InitContext<'a> {
    pub plan: &'a LinuxPlan,
    pub request: &'a Request,
    pub channel: Channel,
    pub signals: sys::Signals,
    prepared: InitInputs,
    root: Option<Root>,
    pub terminal: Option<OwnedFd>,
    proc: Option<OwnedFd>,
    seen: Vec<(usize, Seen)>,
    argv: Vec<CString>,
    env: Vec<CString>,
    /// Every process is stopped for a moment, because the launcher asked for it.
    pub is_frozen: bool,
    /// The caller's, for the command; init makes files with the modes it names.
    umask: Mode,
}

/// The life of init. Never returns: the memory of this process is a copy of the launcher's, and
/// nothing of the launcher must run in it.
pub fn init(
    plan: &LinuxPlan,
    request: &Request,
    channel: Channel,
    signals: sys::Signals,
    prepared: InitInputs,
) -> ! {
    let mut sandbox = InitContext {
        plan,
        request,
        channel,
        signals,
        prepared,
        root: None,
        terminal: None,
        proc: None,
        seen: Vec::new(),
        argv: Vec::new(),
        env: Vec::new(),
        is_frozen: false,
        umask: process::umask(Mode::empty()),
    };
    sandbox.init();
    sandbox.await_check();
    match sys::spawn_until_exec(&|| sandbox.target()) {
        Ok(pid) => init::reap(sandbox, pid),
        Err(error) => {
            sandbox.clear_away();
            let execute = plan.target.execute.number;
            fail(&sandbox.channel, execute, StepFailure { part: "fork".to_owned(), error })
        }
    }
}

impl InitContext<'_> {
    fn init(&mut self) {
        for ListedStep { number, step, .. } in self.plan.init.steps() {
            match self.init_step(step) {
                Ok(answer) => self.seen.push((number, answer)),
                Err(failure) => {
                    self.clear_away();
                    fail(&self.channel, number, failure)
                }
            }
        }
    }

    fn await_check(&self) {
        if self.prepared.is_checked
            && !matches!(self.channel.receive(), Ok(Some((ToInit::Checked, _))))
        {
            self.clear_away();
            sys::exit_now(125);
        }
    }

    /// Everything so far in as few messages as hold it, mostly one: each wakes the launcher.
    fn announce(&self, seen: &mut Vec<(usize, Seen)>) {
        let mut packet = Vec::new();
        let mut size = 0;
        for answer in self.seen.iter().cloned().chain(std::mem::take(seen)) {
            size += answer.1.largest_size();
            if size > PACKET {
                tell(&self.channel, &ToLauncher::Done(std::mem::take(&mut packet)));
                size = answer.1.largest_size();
            }
            packet.push(answer);
        }
        let proc: Vec<_> = self.proc.iter().map(AsFd::as_fd).collect();
        if self.channel.send_with(&ToLauncher::Executing(packet), &proc).is_err() {
            sys::exit_now(125);
        }
    }

    pub fn socket_factory(&self) -> &SocketFactory {
        &self.prepared.socket_factory
    }

    /// What a launcher that was killed cannot remove any more.
    pub fn clear_away(&self) {
        if let Some(directories) = self.plan.private_directories() {
            run_directory::remove(&directories.at);
        }
    }

    pub fn has_pid_namespace(&self) -> bool {
        self.plan.namespaces.is_some()
    }

    pub fn has_own_root(&self) -> bool {
        self.plan.init.root.is_some()
    }

    /// Closes what belongs to the command: its readers wait for the last writer to close.
    pub fn let_go(&mut self) {
        self.prepared.stdio = [None, None, None];
        self.terminal = None;
        let _ = sys::let_go_below(3);
    }
}

fn confirmed() -> Seen {
    Seen::Confirmed(String::new())
}

/// A launcher that is gone needs no news, and this process is about to end with it.
fn tell(channel: &Channel, message: &ToLauncher) {
    if channel.send(message).is_err() {
        sys::exit_now(125);
    }
}

fn fail(channel: &Channel, step: usize, StepFailure { mut part, error }: StepFailure) -> ! {
    cut(&mut part);
    let errno = error.raw_os_error().unwrap_or(libc::EIO);
    tell(channel, &ToLauncher::Failed(Failed { step, errno, part }));
    sys::exit_now(125)
}

fn cut(text: &mut String) {
    text.truncate(text.floor_char_boundary(LONGEST_TEXT));
}
