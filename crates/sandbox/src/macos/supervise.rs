//! The launcher while a command runs: one loop over process events, signals, terminal, time and
//! memory. Whatever happens, it ends with the tree dead and the terminal as it was.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::core::report::{Ending, Usage};
use crate::core::request::Stdio;
use crate::core::termination::{Due, Termination};
use crate::macos::helper_link;
use crate::macos::sys::{self, Change, Events, Signals, Waited};
use crate::macos::tree::Tree;
use crate::macos::watch::{MemoryUse, Watch};
use crate::unix::relay::{Relay, set_nonblocking};
use crate::unix::supervision::DRAIN;
use crate::unix::terminal::UserTerminal;

/// Events tell of forks and ends; this finds what they did not.
const LOOK: Duration = Duration::from_millis(250);

#[derive(Debug, Default)]
pub struct Limits {
    pub timeout: Option<Duration>,
    pub grace: Duration,
    pub memory: Option<u64>,
    pub processes: Option<u32>,
}

pub struct Ended {
    pub ending: Ending,
    pub usage: Usage,
    pub watch: Watch,
    pub is_tree_dead: bool,
}

pub struct Supervisor {
    root: i32,
    tree: Tree,
    events: Events,
    signals: Signals,
    watch: Watch,
    user: Option<UserTerminal>,
    master: Option<OwnedFd>,
    /// Keys of the user to the sandbox's terminal.
    keys: Option<Relay>,
    inputs: Vec<Relay>,
    outputs: Vec<Relay>,
    started: Instant,
    look_at: Instant,
    termination: Termination,
    ending: Option<Ending>,
    waited: Option<Waited>,
}

impl Supervisor {
    pub fn new(
        root: i32,
        tree: Tree,
        signals: Signals,
        limits: Limits,
        stdio: &[Stdio; 3],
        master: Option<OwnedFd>,
        (inputs, mut outputs): (Vec<Relay>, Vec<Relay>),
    ) -> io::Result<Supervisor> {
        let events = Events::new()?;
        events.watch(root);
        let mut user = UserTerminal::open(stdio)?;
        let mut keys = None;
        if let (Some(master), Some(user)) = (&master, &mut user) {
            set_nonblocking(master.as_fd())?;
            if stdio[0] == Stdio::Terminal {
                keys = Some(Relay::new(user.fd.try_clone()?, master.try_clone()?));
            }
            outputs.push(Relay::new(master.try_clone()?, user.fd.try_clone()?));
            user.engage();
        }
        let watch =
            Watch { memory: limits.memory, processes: limits.processes, ..Watch::default() };
        let now = Instant::now();
        let mut termination = Termination::new(limits.timeout, limits.grace);
        termination.start(now);
        Ok(Supervisor {
            root,
            tree,
            events,
            signals,
            watch,
            user,
            master,
            keys,
            inputs,
            outputs,
            started: now,
            look_at: now,
            termination,
            ending: None,
            waited: None,
        })
    }

    /// Runs until the command has ended, and then ends what it has left.
    pub fn run(mut self) -> io::Result<Ended> {
        while self.waited.is_none() {
            self.turn()?;
        }
        let is_tree_dead = self.tree.kill();
        self.drain();
        if let Some(user) = &mut self.user {
            user.release();
        }
        let mut usage = Usage {
            wall_seconds: self.started.elapsed().as_secs_f64(),
            max_tree_memory_bytes: (self.watch.looks > 0).then_some(self.watch.peak_memory),
            ..Usage::default()
        };
        if let Some(waited) = self.waited {
            usage.cpu_seconds = waited.cpu.as_secs_f64();
            usage.max_process_resident_bytes = waited.max_resident_bytes;
        }
        let ending = self.ending.unwrap_or(Ending::Signaled(libc::SIGKILL));
        Ok(Ended { ending, usage, watch: self.watch, is_tree_dead })
    }

    fn turn(&mut self) -> io::Result<()> {
        self.wait()?;
        while let Some(signal) = self.signals.next() {
            self.signal(signal);
        }
        // A fork: the tree has to know the child before it can leave.
        if self.events.take() {
            self.look_at = Instant::now();
        }
        while let Some(waited) = sys::wait_now(self.root)? {
            match waited.change {
                Change::Exited(code) => self.end(Ending::Exited(code)),
                Change::Signaled(signal) => self.end(Ending::Signaled(signal)),
                Change::Stopped => {
                    self.stop();
                    continue;
                }
                Change::Continued => continue,
            }
            self.waited = Some(waited);
            return Ok(());
        }
        if helper_link::is_caller_gone() {
            self.end(Ending::Signaled(libc::SIGKILL));
            self.tree.kill();
            return Ok(());
        }
        if self.user.as_ref().is_some_and(UserTerminal::is_engaged)
            && let Some(keys) = &mut self.keys
        {
            keys.advance();
        }
        for relay in self.inputs.iter_mut().chain(&mut self.outputs) {
            relay.advance();
        }
        self.look();
        self.keep_time();
        Ok(())
    }

    fn wait(&self) -> io::Result<()> {
        let mut fds = vec![
            PollFd::new(&self.events, PollFlags::IN),
            PollFd::new(&self.signals, PollFlags::IN),
        ];
        if let Some(leash) = helper_link::leash() {
            fds.push(PollFd::from_borrowed_fd(leash, PollFlags::IN));
        }
        let engaged = self.user.as_ref().is_some_and(UserTerminal::is_engaged);
        let keys = self.keys.iter().filter(|_| engaged);
        for (fd, flags) in keys.chain(&self.inputs).chain(&self.outputs).filter_map(Relay::wants) {
            fds.push(PollFd::from_borrowed_fd(fd, flags));
        }
        let end = self.termination.next();
        let deadline = end.map_or(self.look_at, |end| end.min(self.look_at));
        let pause = deadline.saturating_duration_since(Instant::now());
        let pause =
            Timespec { tv_sec: pause.as_secs() as i64, tv_nsec: i64::from(pause.subsec_nanos()) };
        match poll(&mut fds, Some(&pause)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }

    /// The first reason stands: a command that ends on the SIGTERM of a timeout has timed out.
    fn end(&mut self, ending: Ending) {
        self.ending.get_or_insert(ending);
    }

    fn look(&mut self) {
        let now = Instant::now();
        if now < self.look_at {
            return;
        }
        self.look_at = now + LOOK;
        let Some(members) = self.tree.look() else { return };
        for process in &members {
            self.events.watch(process.pid);
        }
        match self.watch.look(&members) {
            MemoryUse::Within { look_again } => self.look_at = now + look_again.min(LOOK),
            MemoryUse::OverMemory => {
                self.end(Ending::MemoryLimit);
                self.tree.kill();
            }
        }
    }

    fn keep_time(&mut self) {
        match self.termination.on_time(Instant::now()) {
            Due::Nothing => {}
            Due::Ask => {
                self.end(Ending::Timeout);
                self.tree.signal(libc::SIGTERM);
                // A stopped process would not see it.
                self.tree.signal(libc::SIGCONT);
            }
            Due::Kill => self.kill_asked(),
        }
    }

    fn kill_asked(&mut self) {
        if let Some(ending) = self.termination.ending() {
            self.end(ending);
        }
        self.tree.kill();
    }

    fn signal(&mut self, signal: i32) {
        match signal {
            libc::SIGCHLD | libc::SIGTTOU => {}
            libc::SIGWINCH => {
                if let (Some(user), Some(master)) = (&self.user, &self.master) {
                    user.copy_size(master.as_fd());
                }
            }
            libc::SIGCONT => self.resume(),
            libc::SIGTSTP => self.stop_all(),
            libc::SIGTERM | libc::SIGINT | libc::SIGHUP => {
                match self.termination.on_signal(signal, Instant::now()) {
                    Due::Nothing => {}
                    Due::Ask => {
                        self.pass_on(signal);
                        self.tree.signal(libc::SIGCONT);
                    }
                    Due::Kill => self.kill_asked(),
                }
            }
            _ => self.pass_on(signal),
        }
    }

    /// Typed at a terminal these mean the whole job.
    fn pass_on(&self, signal: i32) {
        let to = match signal {
            libc::SIGINT | libc::SIGQUIT => -self.root,
            _ => self.root,
        };
        let _ = sys::send_signal(to, signal);
    }

    /// The command has stopped itself. Only a user at a terminal can have meant the whole job;
    /// otherwise a server would stop its own timeout, and one that was asked to end its end.
    fn stop(&mut self) {
        if !self.termination.is_asked() && self.user.as_ref().is_some_and(UserTerminal::is_engaged)
        {
            self.stop_all();
        }
    }

    fn stop_all(&mut self) {
        self.tree.signal(libc::SIGSTOP);
        if let Some(user) = &mut self.user {
            user.release();
        }
        let _ = sys::send_signal(std::process::id().cast_signed(), libc::SIGSTOP);
        self.resume();
    }

    fn resume(&mut self) {
        if let Some(user) = &mut self.user {
            user.engage();
            if let Some(master) = &self.master {
                user.copy_size(master.as_fd());
            }
        }
        self.tree.signal(libc::SIGCONT);
    }

    /// Passes on what was written before the end.
    fn drain(&mut self) {
        let until = Instant::now() + DRAIN;
        while Instant::now() < until {
            let mut busy = false;
            for relay in &mut self.outputs {
                busy |= relay.drain();
            }
            if !busy {
                return;
            }
            let waiting = self.outputs.iter().filter_map(Relay::wants);
            let mut fds: Vec<_> = waiting
                .filter(|(_, flags)| *flags == PollFlags::OUT)
                .map(|(fd, flags)| PollFd::from_borrowed_fd(fd, flags))
                .collect();
            let tick = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
            if poll(&mut fds, Some(&tick)).is_err() {
                return;
            }
        }
    }
}
