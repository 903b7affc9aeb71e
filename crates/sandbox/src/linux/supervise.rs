//! The launcher while a sandbox runs: one loop over init's messages, signals, terminal, time
//! and memory. Whatever happens, it ends with the tree dead and the terminal as it was.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Signal, pidfd_send_signal};

use crate::linux::cgroup::held::Held as HeldCgroup;
use crate::linux::channel::{Channel, Failed, ToInit, ToLauncher};
use crate::linux::deputy::Deputy;
use crate::linux::gate::{Askers, Gate};
use crate::linux::network::Network;
use crate::linux::relay::{Relay, set_nonblocking};
use crate::linux::sys::{self, Change, Signals};
use crate::linux::terminal::UserTerminal;
use crate::linux::tree;
use crate::linux::watch::{Found, MemoryWatch, Tree};
use crate::net::broker::NetworkUse;
use crate::report::{Ending, Evidence, Usage};
use crate::request::Stdio;

/// Taken by descriptor in the launcher. What is not here (SIGSEGV, SIGKILL …) means the
/// launcher itself.
pub const SIGNALS: [i32; 11] = [
    libc::SIGINT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGWINCH,
    libc::SIGTSTP,
    libc::SIGCONT,
    libc::SIGCHLD,
    libc::SIGTTOU,
];

/// How long a reader of relayed output may keep a finished run waiting.
const DRAIN: Duration = Duration::from_secs(5);

/// How long init may take to kill and collect the tree before it is killed with it.
const LAST_RESORT: Duration = Duration::from_millis(500);
/// Without a pid namespace its death does not end the tree: it is given more time, and then its work
/// is done here.
const LAST_RESORT_PLAIN: Duration = Duration::from_secs(10);

/// How often memory is looked at for a kernel that keeps no peak.
const PEAK_EVERY: Duration = Duration::from_millis(100);
/// A command that takes this long may take days.
const SETTLED_AFTER: Duration = Duration::from_secs(1);

pub struct Init {
    pub pid: i32,
    pub pidfd: OwnedFd,
    pub channel: Channel,
    pub tree: Tree,
    /// Who answers for files and signals, where no namespace keeps them apart.
    pub deputy: Option<Deputy>,
}

impl Init {
    /// For one that has not started the command.
    pub fn end(self) {
        let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
        let _ = sys::wait_for(self.pid);
    }
}

/// What a run holds of the host while it lasts.
pub struct Held {
    pub cgroup: Option<HeldCgroup>,
    pub network: Option<Network>,
}

pub struct Limits {
    pub timeout: Option<Duration>,
    pub grace: Duration,
    pub memory: Option<u64>,
}

pub struct Ended {
    pub ending: Ending,
    pub evidence: Vec<Evidence>,
    pub usage: Usage,
    pub blocked_processes: u64,
    pub network: NetworkUse,
}

pub struct Supervisor {
    init: Init,
    /// Its end of the channel is open. It closes while init is still dying, and a closed channel
    /// would end every wait at once: that would be spinning on the processor init needs to die.
    init_speaks: bool,
    signals: Signals,
    limits: Limits,
    user: Option<UserTerminal>,
    master: Option<OwnedFd>,
    /// Keys of the user to the sandbox's terminal.
    keys: Option<Relay>,
    inputs: Vec<Relay>,
    outputs: Vec<Relay>,
    stdio: [Stdio; 3],
    watch: Option<MemoryWatch>,
    /// Holds the sandbox; goes with the supervisor.
    cgroup: Option<HeldCgroup>,
    /// Largest memory that was seen, where the kernel does not keep it.
    seen_memory: Option<u64>,
    gate: Option<Gate>,
    network: Option<Network>,
    blocked_processes: Arc<AtomicU64>,
    evidence: Vec<Evidence>,
    started: Option<Instant>,
    look_at: Option<Instant>,
    /// When what only a start needs can be let go of.
    settle_at: Option<Instant>,
    terminated: Option<Instant>,
    killed: Option<Instant>,
    stopping: bool,
    ending: Option<Ending>,
}

impl Supervisor {
    pub fn new(
        init: Init,
        signals: Signals,
        limits: Limits,
        stdio: [Stdio; 3],
        (inputs, outputs): (Vec<Relay>, Vec<Relay>),
        Held { cgroup, network }: Held,
    ) -> io::Result<Supervisor> {
        let user = UserTerminal::open(&stdio)?;
        Ok(Supervisor {
            init,
            init_speaks: true,
            signals,
            limits,
            user,
            master: None,
            keys: None,
            inputs,
            outputs,
            stdio,
            watch: None,
            cgroup,
            seen_memory: None,
            gate: None,
            network,
            blocked_processes: Arc::default(),
            evidence: Vec::new(),
            started: None,
            look_at: None,
            settle_at: None,
            terminated: None,
            killed: None,
            stopping: false,
            ending: None,
        })
    }

    /// Runs until the sandbox is gone.
    pub fn run(mut self) -> Result<Ended, Trouble> {
        let begun = Instant::now();
        let failed = loop {
            if let Some(step) = self.turn()? {
                break step;
            }
        };
        // Init may have ended by itself; then this hits nothing, since the pidfd names only it.
        let _ = pidfd_send_signal(&self.init.pidfd, Signal::KILL);
        let waited = sys::wait_for(self.init.pid)?;
        if let Tree::Below(_) = self.init.tree {
            // Should init have been killed, what was below it is below us now.
            tree::end_all(Some(LAST_RESORT_PLAIN))?;
        }
        self.drain();
        if let Some(user) = &mut self.user {
            user.release();
        }
        if let End::Failed(failed) = failed {
            return Err(Trouble::Step(failed));
        }
        if self.started.is_none() {
            // Killed from outside, or by a machine out of memory.
            return Err(io::Error::other("its init ended during the set-up").into());
        }
        let mut usage = Usage {
            wall_seconds: begun.elapsed().as_secs_f64(),
            max_tree_memory_bytes: self.watch.as_ref().filter(|w| w.looks > 0).map(|w| w.peak),
            ..Usage::default()
        };
        let change = waited.as_ref().map(|waited| waited.change);
        if let Some(waited) = waited {
            usage.cpu_seconds = waited.cpu.as_secs_f64();
            usage.max_process_resident_bytes = waited.max_resident_bytes;
        }
        let mut ending = match (self.ending.take(), change) {
            (Some(ending), _) => ending,
            // Ours to answer for: nobody killed it, and nothing is known of the command.
            (None, Some(Change::Exited(_))) => {
                return Err(io::Error::other("its init gave up").into());
            }
            // Init was killed from outside, and the command with it.
            (None, _) => Ending::Signaled(libc::SIGKILL),
        };
        if let Some(cgroup) = &self.cgroup {
            let used = cgroup.used();
            if used.oom_kills > 0 && ending == Ending::Signaled(libc::SIGKILL) {
                ending = Ending::MemoryLimit;
            }
            usage.count(&used, self.seen_memory);
        }
        let network = self.network.as_mut().map(Network::finish).unwrap_or_default();
        let blocked_processes = self.blocked_processes.load(Ordering::Relaxed);
        Ok(Ended { ending, evidence: self.evidence, usage, blocked_processes, network })
    }

    fn turn(&mut self) -> Result<Option<End>, Trouble> {
        self.wait()?;
        while let Some(arrived) = self.signals.next()? {
            self.signal(arrived);
        }
        while let Some(message) = self.message()? {
            if let Some(end) = self.hear(message)? {
                return Ok(Some(end));
            }
        }
        self.answer()?;
        if let Some(network) = &mut self.network {
            network.advance()?;
        }
        if self.init_is_gone() {
            // Its last words may have come with its end.
            while let Some(message) = self.message()? {
                if let Some(end) = self.hear(message)? {
                    return Ok(Some(end));
                }
            }
            return Ok(Some(End::Finished));
        }
        if self.user.as_ref().is_some_and(UserTerminal::is_engaged)
            && let Some(keys) = &mut self.keys
        {
            keys.advance();
        }
        // Before the command is there, what is taken from the input would be lost if the set-up
        // fails and is done in another way.
        if self.started.is_some() {
            for relay in self.inputs.iter_mut().chain(&mut self.outputs) {
                relay.advance();
            }
        }
        self.keep_time();
        self.keep_memory();
        if self.settle_at.is_some_and(|at| at <= Instant::now()) {
            self.settle_at = None;
            sys::forget_code();
        }
        Ok(None)
    }

    fn wait(&self) -> io::Result<()> {
        let mut fds = vec![
            PollFd::new(&self.init.pidfd, PollFlags::IN),
            PollFd::new(&self.signals, PollFlags::IN),
        ];
        if self.init_speaks {
            fds.push(PollFd::new(&self.init.channel, PollFlags::IN));
        }
        let engaged = self.user.as_ref().is_some_and(UserTerminal::is_engaged);
        let keys = self.keys.iter().filter(|_| engaged);
        let relays = self.inputs.iter().chain(&self.outputs).filter(|_| self.started.is_some());
        for (fd, flags) in keys.chain(relays).filter_map(Relay::wants) {
            fds.push(PollFd::from_borrowed_fd(fd, flags));
        }
        if let Some(gate) = &self.gate {
            fds.push(PollFd::new(gate, PollFlags::IN));
        }
        if let Some(fd) = self.network.as_ref().and_then(Network::wants) {
            fds.push(PollFd::from_borrowed_fd(fd, PollFlags::IN));
        }
        let pause = self.next_deadline().map(|deadline| {
            let pause = deadline.saturating_duration_since(Instant::now());
            Timespec { tv_sec: pause.as_secs() as i64, tv_nsec: i64::from(pause.subsec_nanos()) }
        });
        match poll(&mut fds, pause.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        let end = match (self.terminated, self.started, self.limits.timeout) {
            _ if self.killed.is_some() => self.killed.map(|since| since + self.last_resort()),
            (Some(since), ..) => since.checked_add(self.limits.grace),
            (None, Some(since), Some(timeout)) => since.checked_add(timeout),
            _ => None,
        };
        [end, self.look_at, self.settle_at].into_iter().flatten().min()
    }

    fn message(&mut self) -> io::Result<Option<(ToLauncher, Option<OwnedFd>)>> {
        let mut fds = [PollFd::new(&self.init.channel, PollFlags::IN)];
        poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))?;
        if !self.init_speaks || !fds[0].revents().contains(PollFlags::IN) {
            return Ok(None);
        }
        let message = self.init.channel.receive()?;
        self.init_speaks = message.is_some();
        Ok(message)
    }

    fn hear(&mut self, (message, fd): (ToLauncher, Option<OwnedFd>)) -> io::Result<Option<End>> {
        match message {
            ToLauncher::Failed(failed) => return Ok(Some(End::Failed(failed))),
            ToLauncher::Done(seen) => {
                self.evidence.extend(seen.into_iter().map(Evidence::from));
                if let Some(listener) = fd {
                    let deputy = self.init.deputy.take();
                    let gate = Gate::new(listener, deputy, self.blocked_processes.clone());
                    self.gate = match &self.network {
                        Some(network) => network.take_over(gate),
                        None => Some(gate),
                    };
                }
            }
            ToLauncher::Terminal => self.connect(fd)?,
            ToLauncher::Executing(seen) => {
                self.evidence.extend(seen.into_iter().map(Evidence::from));
                let now = Instant::now();
                self.started = Some(now);
                self.settle_at = Some(now + SETTLED_AFTER);
                if let Some(limit) = self.limits.memory {
                    // Where init has no /proc to send, the tree is in ours.
                    let (proc, tree) = match fd {
                        Some(proc) => (proc, self.init.tree),
                        None => (open_proc()?, Tree::Below(self.init.pid)),
                    };
                    self.watch = Some(MemoryWatch::new(proc, tree, limit));
                }
                if let Some(network) = &mut self.network {
                    network.begin()?;
                }
                self.look_at = self.watch.as_ref().map(|watch| now + watch.first_pause());
                if self.cgroup.as_ref().is_some_and(|cgroup| !cgroup.keeps_peak()) {
                    self.look_at = Some(now);
                }
                if let Some(user) = &mut self.user {
                    user.engage();
                }
            }
            ToLauncher::Stopped => self.stop(),
            ToLauncher::Exited(code) => self.end(Ending::Exited(code)),
            ToLauncher::Signaled(signal) => self.end(Ending::Signaled(signal)),
        }
        Ok(None)
    }

    fn answer(&mut self) -> io::Result<()> {
        let Some(gate) = &mut self.gate else {
            return Ok(());
        };
        let askers = gate.serve()?;
        if askers == Askers::Gone {
            self.gate = None;
        }
        Ok(())
    }

    /// The first reason stands: a command that ends on the SIGTERM of a timeout has timed out.
    fn end(&mut self, ending: Ending) {
        self.ending.get_or_insert(ending);
    }

    /// Joins the user's terminal and the sandbox's.
    fn connect(&mut self, master: Option<OwnedFd>) -> io::Result<()> {
        let (Some(master), Some(user)) = (master, &self.user) else {
            return Ok(());
        };
        set_nonblocking(master.as_fd())?;
        if self.stdio[0] == Stdio::Terminal {
            self.keys = Some(Relay::new(user.fd.try_clone()?, master.try_clone()?));
        }
        self.outputs.push(Relay::new(master.try_clone()?, user.fd.try_clone()?));
        self.master = Some(master);
        Ok(())
    }

    fn signal(&mut self, sys::Arrived { signal, from_kernel }: sys::Arrived) {
        match signal {
            libc::SIGCHLD | libc::SIGTTOU => {}
            libc::SIGWINCH => {
                if let (Some(user), Some(master)) = (&self.user, &self.master) {
                    user.copy_size(master.as_fd());
                } else {
                    self.order(ToInit::SignalGroup(signal));
                }
            }
            libc::SIGCONT => self.resume(),
            libc::SIGTSTP => {
                self.stopping = true;
                self.order(ToInit::SignalGroup(signal));
            }
            // Typed at a terminal it means the whole job, sent by a process only this one.
            _ if from_kernel => self.order(ToInit::SignalGroup(signal)),
            _ => self.order(ToInit::Signal(signal)),
        }
    }

    /// The command has stopped. With a user at a terminal (or one who asked for it) the job as a
    /// whole stops: everything inside first, since nobody watches it meanwhile. Otherwise a
    /// server that stops itself would stop its own timeout.
    fn stop(&mut self) {
        let interactive = self.user.as_ref().is_some_and(UserTerminal::is_engaged);
        if !interactive && !self.stopping {
            return;
        }
        self.order(ToInit::SignalAll(libc::SIGSTOP));
        if let Some(user) = &mut self.user {
            user.release();
        }
        sys::stop_self();
        self.resume();
    }

    fn resume(&mut self) {
        self.stopping = false;
        if let Some(user) = &mut self.user {
            user.engage();
            if let Some(master) = &self.master {
                user.copy_size(master.as_fd());
            }
        }
        self.order(ToInit::SignalAll(libc::SIGCONT));
    }

    /// Init that is gone is found by its pidfd.
    fn order(&self, order: ToInit) {
        let _ = self.init.channel.send(&order);
    }

    fn keep_time(&mut self) {
        if self.killed.is_some() {
            return self.kill();
        }
        let now = Instant::now();
        if let Some(since) = self.terminated {
            if now.duration_since(since) >= self.limits.grace {
                self.kill();
            }
            return;
        }
        let (Some(started), Some(timeout)) = (self.started, self.limits.timeout) else {
            return;
        };
        if now.duration_since(started) >= timeout {
            self.terminated = Some(now);
            self.end(Ending::Timeout);
            self.order(ToInit::SignalAll(libc::SIGTERM));
            // A stopped process would not see it.
            self.order(ToInit::SignalAll(libc::SIGCONT));
        }
    }

    fn keep_memory(&mut self) {
        let now = Instant::now();
        if self.look_at.is_none_or(|at| now < at) {
            return;
        }
        if let (Some(cgroup), None) = (&self.cgroup, &self.watch) {
            self.seen_memory = self.seen_memory.max(cgroup.memory_now());
            self.look_at = self.seen_memory.map(|_| now + PEAK_EVERY);
            return;
        }
        let Some(watch) = &mut self.watch else {
            return;
        };
        match watch.look() {
            Found::Within { look_again } => self.look_at = Some(now + look_again),
            Found::Over => {
                self.look_at = None;
                self.end(Ending::MemoryLimit);
                self.kill();
            }
        }
    }

    /// Init kills the tree and collects it, so that what it used is counted; an init that does
    /// not is killed itself, and the kernel ends the tree.
    fn kill(&mut self) {
        match self.killed {
            None => {
                self.killed = Some(Instant::now());
                self.order(ToInit::SignalAll(libc::SIGKILL));
            }
            Some(since) if since.elapsed() >= self.last_resort() => {
                if let Some(cgroup) = &self.cgroup {
                    cgroup.kill();
                }
                let _ = pidfd_send_signal(&self.init.pidfd, Signal::KILL);
            }
            Some(_) => {}
        }
    }

    fn last_resort(&self) -> Duration {
        match self.init.tree {
            Tree::OfNamespace => LAST_RESORT,
            Tree::Below(_) => LAST_RESORT_PLAIN,
        }
    }

    fn init_is_gone(&self) -> bool {
        let mut fds = [PollFd::new(&self.init.pidfd, PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut fds, Some(&now)).is_ok() && !fds[0].revents().is_empty()
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
            let mut fds: Vec<_> = self
                .outputs
                .iter()
                .filter_map(Relay::wants)
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

fn open_proc() -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::open("/proc", flags, Mode::empty())?)
}

enum End {
    Finished,
    Failed(Failed),
}

/// Why a run came to no end of its own.
pub enum Trouble {
    Step(Failed),
    /// What was to be run.
    Changed,
    Io(io::Error),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Trouble {
        Trouble::Io(error)
    }
}
