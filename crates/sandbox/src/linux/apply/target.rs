//! The steps of the process that becomes the command, in init's memory until it executes.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::io::Errno;
use rustix::process;

use super::rlimits::{limit, limit_user_processes};
use super::{Sandbox, confirmed, fail};
use crate::core::request::Stdio;
use crate::linux::channel::{Channel, Seen, ToLauncher};
use crate::linux::failure::StepFailure;
use crate::linux::landlock::{Ports, Rule, enforce};
use crate::linux::open_files::Before;
use crate::linux::step::Step;
use crate::linux::sys;
use crate::unix::terminal::standard;
use mcp_seccomp::{Connects, Ground, NewProcesses, Sockets};

/// Where the target keeps its end of the channel until it executes.
const CHANNEL: i32 = 3;

impl Sandbox<'_> {
    /// Sends the answers of init together with its own: one message less. Shares init's memory,
    /// so it changes nothing in it.
    pub(super) fn target(&self) {
        self.prepared.files.iter().for_each(Before::restore);
        let mut seen = Vec::new();
        let mut moved = None;
        let mut listener = None;
        for (index, planned) in self.plan.steps.iter().enumerate() {
            let answer = match &planned.step {
                Step::Landlock { abi, rules, ports } => self.landlock(*abi, rules, *ports),
                Step::Limit { resource, value } => {
                    limit(*resource, *value).map_err(StepFailure::from)
                }
                Step::LimitUserProcesses { more } => {
                    limit_user_processes(*more).map_err(StepFailure::from)
                }
                Step::Descriptors { stdio } => {
                    self.announce(&mut seen);
                    self.descriptors(stdio)
                        .map(|channel| {
                            moved = Some(channel);
                            confirmed()
                        })
                        .map_err(StepFailure::from)
                }
                Step::Filter { processes, connects, sockets, ground, .. } => self
                    .filter(*processes, *connects, *sockets, *ground)
                    .map(|made| {
                        listener = made;
                        Seen::Confirmed("seccomp mode 2".to_owned())
                    })
                    .map_err(StepFailure::from),
                Step::Execute { program, cwd } => {
                    let channel = moved.as_ref().unwrap_or(&self.channel);
                    let listener: Vec<_> = listener.iter().map(AsFd::as_fd).collect();
                    if channel.send_with(&ToLauncher::Done(seen), &listener).is_err() {
                        sys::exit_now(125);
                    }
                    fail(channel, index, self.execute(program, cwd));
                }
                _ => continue,
            };
            match answer {
                Ok(answer) => seen.push((index, answer)),
                Err(trouble) => fail(moved.as_ref().unwrap_or(&self.channel), index, trouble),
            }
        }
    }

    /// From here on only what the command may do works, and the one exec that starts it.
    fn filter(
        &self,
        processes: NewProcesses,
        connects: Connects,
        sockets: Sockets,
        ground: Ground,
    ) -> io::Result<Option<OwnedFd>> {
        let asks = processes == NewProcesses::Refused
            || connects == Connects::Announced
            || sockets == Sockets::Proxied
            || ground.asks();
        let listening = match asks {
            true => sys::Listening::On,
            false => sys::Listening::Off,
        };
        let listener = sys::install_filter(&self.prepared.filter, listening)?;
        if !sys::is_filtered() {
            return Err(io::Error::from_raw_os_error(libc::EPERM));
        }
        Ok(listener)
    }

    fn landlock(&self, abi: u32, rules: &[Rule], ports: Ports) -> Result<Seen, StepFailure> {
        let placed = self.plan.steps.iter().find_map(|planned| match &planned.step {
            Step::Descriptors { stdio } => Some(stdio),
            _ => None,
        });
        let [input, output, errors] = placed.unwrap_or(&self.request.stdio);
        let stdio = [self.source(0, input)?, self.source(1, output)?, self.source(2, errors)?];
        // A program that is merely at hand, and closed to this user: without a rule it stays so.
        let is_closed = |rule: &Rule| {
            self.request.shown.iter().any(|place| place.path == rule.path)
                && !self.request.program.starts_with(&rule.path)
                && matches!(rustix::fs::stat(&rule.path), Err(Errno::ACCESS))
        };
        let rules: Vec<Rule> = rules.iter().filter(|rule| !is_closed(rule)).cloned().collect();
        enforce::restrict(abi, &rules, ports, &stdio)?;
        Ok(Seen::Confirmed(format!("Landlock version {abi}, {} places", rules.len())))
    }

    /// What the command gets as this descriptor.
    fn source(&self, fd: i32, kind: &Stdio) -> io::Result<BorrowedFd<'_>> {
        match kind {
            Stdio::Direct => Ok(standard(fd)),
            Stdio::Terminal => match &self.terminal {
                Some(terminal) => Ok(terminal.as_fd()),
                None => Err(io::Error::from_raw_os_error(libc::ENOTTY)),
            },
            Stdio::ReadOnlyFile(_) | Stdio::Relayed => match &self.prepared.stdio[fd as usize] {
                Some(end) => Ok(end.as_fd()),
                None => Err(io::Error::from_raw_os_error(libc::EBADF)),
            },
        }
    }

    /// Closes everything but the standard descriptors and the channel, which it gives back at
    /// the number where it stands now.
    fn descriptors(&self, stdio: &[Stdio; 3]) -> io::Result<Channel> {
        process::setpgid(None, None)?;
        if let Some(terminal) = &self.terminal {
            rustix::termios::tcsetpgrp(terminal, process::getpid())?;
        }
        for (fd, kind) in (0..).zip(stdio) {
            sys::place_descriptor(self.source(fd, kind)?, fd)?;
        }
        // Nothing below is used again: what stood at this number is no longer needed.
        sys::place_descriptor(self.channel.as_fd(), CHANNEL)?;
        sys::close_on_exec(CHANNEL)?;
        sys::close_from(CHANNEL as u32 + 1)?;
        Ok(Channel::from_fd(sys::own(CHANNEL)))
    }

    /// Returns only what went wrong.
    fn execute(&self, program: &Path, cwd: &Path) -> StepFailure {
        if let Err(error) = process::chdir(cwd) {
            return StepFailure {
                part: format!("chdir to {}", cwd.display()),
                error: error.into(),
            };
        }
        let program = match sys::c_string(program.as_os_str()) {
            Ok(program) => program,
            Err(error) => return error.into(),
        };
        self.signals.restore_for_exec();
        process::umask(self.umask);
        sys::execute(&program, &self.argv, &self.env).into()
    }
}
