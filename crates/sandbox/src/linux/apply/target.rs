//! The steps of the process that becomes the command, in init's memory until it executes.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::io::Errno;
use rustix::process;

use super::rlimits::limit;
use super::{InitContext, confirmed, fail};
use crate::core::request::Stdio;
use crate::core::rlimit::Resource;
use crate::linux::channel::{Channel, Seen, ToLauncher};
use crate::linux::failure::StepFailure;
use crate::linux::landlock::{Rule, enforce};
use crate::linux::open_files::Before;
use crate::linux::phases::TargetPhase;
use crate::linux::step::{Execute, Filter, Landlock, Limit, Numbered};
use crate::linux::sys;
use crate::unix::terminal::standard;

/// Where the target keeps its end of the channel until it executes.
const CHANNEL: i32 = 3;

/// What the kernel said to each step, and where a failure goes: to the launcher, and nothing runs.
struct Answers<'a> {
    channel: &'a Channel,
    seen: Vec<(usize, Seen)>,
}

impl Answers<'_> {
    fn take<E: Into<StepFailure>>(&mut self, number: usize, answer: Result<Seen, E>) {
        match answer {
            Ok(answer) => self.seen.push((number, answer)),
            Err(failure) => fail(self.channel, number, failure.into()),
        }
    }
}

fn is_of_files(limit: Limit) -> bool {
    matches!(limit, Limit::To { resource: Resource::OpenFiles, .. })
}

impl InitContext<'_> {
    /// Sends the answers of init together with its own: one message less. Shares init's memory,
    /// so it changes nothing in it.
    pub(super) fn target(&self) {
        self.prepared.files.iter().for_each(Before::restore);
        let TargetPhase { landlock, limits, descriptors, filter, late_limits, execute } =
            &self.plan.target;
        let mut answers = Answers { channel: &self.channel, seen: Vec::new() };
        if let Some(Numbered { number, step, .. }) = landlock {
            answers.take(*number, self.landlock(step));
        }
        // RLIMIT_NOFILE also bounds how many descriptors of the user may be on their way, other runs' included: one is
        // sent first.
        let (of_files, others): (Vec<_>, Vec<_>) =
            limits.iter().partition(|one| is_of_files(one.step));
        for Numbered { number, step, .. } in others {
            answers.take(*number, limit(*step));
        }
        self.announce(&mut answers.seen);
        for Numbered { number, step, .. } in of_files {
            answers.take(*number, limit(*step));
        }
        let moved = match self.place_descriptors(&descriptors.step.stdio) {
            Ok(channel) => channel,
            Err(error) => fail(&self.channel, descriptors.number, error.into()),
        };
        answers.channel = &moved;
        answers.seen.push((descriptors.number, confirmed()));
        let mut listener = None;
        if let Some(Numbered { number, step, .. }) = filter {
            let installed = self.filter(step).map(|made| {
                listener = made;
                Seen::Confirmed("seccomp mode 2".to_owned())
            });
            answers.take(*number, installed);
        }
        for Numbered { number, step, .. } in late_limits {
            answers.take(*number, limit(*step));
        }
        let listener: Vec<_> = listener.iter().map(AsFd::as_fd).collect();
        if moved.send_with(&ToLauncher::Done(answers.seen), &listener).is_err() {
            sys::exit_now(125);
        }
        let Execute { program, cwd } = &execute.step;
        fail(&moved, execute.number, self.execute(program, cwd));
    }

    /// From here on only what the command may do works, and the one exec that starts it.
    fn filter(&self, filter: &Filter) -> io::Result<Option<OwnedFd>> {
        let listening = match filter.asks() {
            true => sys::Listener::On,
            false => sys::Listener::Off,
        };
        let listener = sys::install_filter(&self.prepared.filter, listening)?;
        if !sys::is_filtered() {
            return Err(io::Error::from_raw_os_error(libc::EPERM));
        }
        Ok(listener)
    }

    fn landlock(&self, Landlock { abi, rules, ports }: &Landlock) -> Result<Seen, StepFailure> {
        let [input, output, errors] = &self.plan.target.descriptors.step.stdio;
        let stdio = [self.source(0, input)?, self.source(1, output)?, self.source(2, errors)?];
        // A program that is merely at hand, and closed to this user: without a rule it stays so.
        let is_closed = |rule: &Rule| {
            self.request.shown.iter().any(|place| place.path == rule.path)
                && !self.request.program.starts_with(&rule.path)
                && matches!(rustix::fs::stat(&rule.path), Err(Errno::ACCESS))
        };
        let rules: Vec<Rule> = rules.iter().filter(|rule| !is_closed(rule)).cloned().collect();
        enforce::restrict(*abi, &rules, *ports, &stdio)?;
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
            Stdio::ReadOnlyFile(_) | Stdio::Relayed | Stdio::Filtered => {
                match &self.prepared.stdio[fd as usize] {
                    Some(end) => Ok(end.as_fd()),
                    None => Err(io::Error::from_raw_os_error(libc::EBADF)),
                }
            }
        }
    }

    /// Closes everything but the standard descriptors and the channel, which it gives back at
    /// the number where it stands now.
    fn place_descriptors(&self, stdio: &[Stdio; 3]) -> io::Result<Channel> {
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
