//! The launcher while a sandbox runs: one loop over init's messages, signals, terminal, time
//! and memory. Whatever happens, it ends with the tree dead and the terminal as it was.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, pidfd_send_signal};

use crate::core::report::{Ending, Evidence, Usage};
use crate::core::request::Stdio;
use crate::core::termination::Termination;
use crate::core::watched::Watched;
use crate::linux::cgroup::held::RunCgroup;
use crate::linux::channel::{Failed, ToLauncher};
use crate::linux::failure::LaunchFailure;
use crate::linux::leftovers::Leftovers;
use crate::linux::memory_watch::{MemoryWatch, ProcessTree};
use crate::linux::network::Network;
use crate::linux::path_watch::PathWatch;
use crate::linux::process_tree;
use crate::linux::relay::Relay;
use crate::linux::replaced::ReplacementWatch;
use crate::linux::seccomp_notify::SeccompNotify;
use crate::linux::sys::{self, Change, Signals};
use crate::linux::terminal::UserTerminal;
use crate::unix::protect::undo::ReplacedPlaces;
use crate::unix::supervision::DRAIN;
use mcp_net::broker::NetworkUse;

mod closing;
mod init;
mod messages;
mod orders;

pub use self::init::{Dying, Init, Mounted};

/// Without a pid namespace the death of init does not end the tree: it is given this long, and then its work
/// is done here.
const LAST_RESORT_PLAIN: Duration = Duration::from_secs(10);

/// What a run holds of the host while it lasts.
pub struct HostResources<'a> {
    pub cgroup: Option<RunCgroup>,
    pub network: Option<Network>,
    pub watch: Option<ReplacementWatch<'a>>,
    /// Notes what the command looks for, in learning mode.
    pub paths: Option<PathWatch>,
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
    /// What happened to protected places.
    pub seen: ReplacedPlaces,
    /// Why the command was ended, where it was no limit.
    pub stopped: Option<String>,
    /// What was in a HOME that is gone.
    pub lost: Vec<String>,
    /// What the command looked for, in learning mode.
    pub watched: Option<Watched>,
    /// Where init is not collected yet.
    pub dying: Option<Dying>,
}

pub struct Supervisor<'a> {
    init: Init,
    /// Sees when something protected is replaced.
    protected: Option<ReplacementWatch<'a>>,
    /// Messages that came while another was awaited.
    unheard: Vec<(ToLauncher, Vec<OwnedFd>)>,
    /// Why the command was ended, where it was no limit.
    stopped: Option<String>,
    /// Its end of the channel is open. It closes while init is still dying, and a closed channel
    /// would end every wait at once: that would be spinning on the processor init needs to die.
    init_speaks: bool,
    signals: Signals,
    memory_limit: Option<u64>,
    user: Option<UserTerminal>,
    master: Option<OwnedFd>,
    /// Keys of the user to the sandbox's terminal.
    keys: Option<Relay>,
    inputs: Vec<Relay>,
    outputs: Vec<Relay>,
    stdio: [Stdio; 3],
    watch: Option<MemoryWatch>,
    /// Holds the sandbox; goes with the supervisor.
    cgroup: Option<RunCgroup>,
    /// Largest memory that was seen, where the kernel does not keep it.
    seen_memory: Option<u64>,
    notify: Option<SeccompNotify>,
    paths: Option<PathWatch>,
    network: Option<Network>,
    blocked_processes: Arc<AtomicU64>,
    evidence: Vec<Evidence>,
    started: Option<Instant>,
    look_at: Option<Instant>,
    /// When what only a start needs can be let go of.
    settle_at: Option<Instant>,
    termination: Termination,
    killed: Option<Instant>,
    stopping: bool,
    left: Leftovers,
    used: Option<sys::ProcessUsage>,
    /// Init has said that the last process is dead, and how the command ended.
    is_over: bool,
    ending: Option<Ending>,
}

impl<'a> Supervisor<'a> {
    pub fn new(
        init: Init,
        signals: Signals,
        limits: Limits,
        (stdio, user): ([Stdio; 3], Option<UserTerminal>),
        (inputs, outputs): (Vec<Relay>, Vec<Relay>),
        HostResources { cgroup, network, watch: protected, paths }: HostResources<'a>,
    ) -> Supervisor<'a> {
        Supervisor {
            init,
            protected,
            unheard: Vec::new(),
            stopped: None,
            init_speaks: true,
            signals,
            memory_limit: limits.memory,
            user,
            master: None,
            keys: None,
            inputs,
            outputs,
            stdio,
            watch: None,
            cgroup,
            seen_memory: None,
            notify: None,
            paths,
            network,
            blocked_processes: Arc::default(),
            evidence: Vec::new(),
            started: None,
            look_at: None,
            settle_at: None,
            termination: Termination::new(limits.timeout, limits.grace),
            killed: None,
            stopping: false,
            left: Leftovers::default(),
            used: None,
            is_over: false,
            ending: None,
        }
    }

    /// Runs until the sandbox is gone. Where it cannot go on although the command was started, that is an ending as
    /// well: what has run is never called not started.
    pub fn run(mut self) -> Result<Ended, LaunchFailure> {
        let begun = Instant::now();
        let end = loop {
            match self.turn() {
                Ok(None) => {}
                Ok(Some(end)) => break end,
                Err(trouble) => break End::Broken(trouble),
            }
        };
        let is_over = matches!(end, End::Over);
        let waited = if is_over { Ok(None) } else { self.clear() };
        self.drain();
        if let Some(user) = &mut self.user {
            user.release();
        }
        let waited = match (end, waited) {
            (End::Failed(failed), _) => return Err(LaunchFailure::Step(failed)),
            // Before the command was there, it can be said why it was not started; after that, never again.
            (End::Broken(trouble), _) if self.started.is_none() => return Err(trouble.into()),
            (End::Broken(trouble), waited) => {
                self.end(Ending::SandboxFailed(trouble.to_string()));
                waited.ok().flatten()
            }
            (End::Finished | End::Over, Err(trouble)) if self.started.is_none() => {
                return Err(trouble.into());
            }
            (End::Finished | End::Over, Err(trouble)) => {
                self.end(Ending::SandboxFailed(trouble.to_string()));
                None
            }
            (End::Finished | End::Over, Ok(waited)) => waited,
        };
        if self.started.is_none() {
            let why = match self.termination.ending() {
                Some(Ending::Signaled(signal)) => {
                    format!("signal {signal} ended it during the set-up")
                }
                // Killed from outside, or by a machine out of memory.
                _ => "its init ended during the set-up".to_owned(),
            };
            return Err(io::Error::other(why).into());
        }
        let mut usage = Usage {
            wall_seconds: begun.elapsed().as_secs_f64(),
            temporary_bytes: self.left.temporary,
            max_tree_memory_bytes: self.watch.as_ref().filter(|w| w.looks > 0).map(|w| w.peak),
            seen_processes: self.watch.as_ref().filter(|w| w.looks > 0).map(|w| w.most_tasks),
            seen_process_data_bytes: self
                .watch
                .as_ref()
                .map(|w| w.most_data)
                .filter(|data| *data > 0),
            ..Usage::default()
        };
        let change = waited.as_ref().map(|waited| waited.change);
        // The kernel's last count, where there is one, has init's own end as well.
        if let Some(used) = waited.map(|waited| waited.used).or(self.used) {
            used.add_to(&mut usage);
        }
        let mut ending = match (self.ending.take(), change) {
            (Some(ending), _) => ending,
            // Ours to answer for: no process killed it, and nothing is known of the command's own end.
            (None, Some(Change::Exited(_))) => Ending::SandboxFailed("its init gave up".to_owned()),
            // Init was killed from outside, and the command with it.
            (None, _) => Ending::Signaled(libc::SIGKILL),
        };
        if let Some(cgroup) = &self.cgroup {
            let used = cgroup.used();
            if used.oom_kills > 0 && ending == Ending::Signaled(libc::SIGKILL) {
                ending = Ending::MemoryLimit;
            }
            used.add_to(&mut usage, self.seen_memory);
        }
        let ended = self.ended(ending, usage);
        Ok(Ended { dying: is_over.then(|| Dying::new(self.init)), ..ended })
    }

    fn ended(&mut self, ending: Ending, usage: Usage) -> Ended {
        Ended {
            ending,
            evidence: std::mem::take(&mut self.evidence),
            usage,
            blocked_processes: self.blocked_processes.load(Ordering::Relaxed),
            network: self.network.as_mut().map(Network::finish).unwrap_or_default(),
            seen: self.protected.take().map(ReplacementWatch::into_seen).unwrap_or_default(),
            stopped: self.stopped.take(),
            lost: std::mem::take(&mut self.left.lost),
            watched: self.paths.take().map(PathWatch::finish),
            dying: None,
        }
    }

    /// Ends what may be left of the tree, and collects init.
    fn clear(&self) -> io::Result<Option<sys::Waited>> {
        // Init may have ended by itself; then this hits nothing, since the pidfd names only it.
        let _ = pidfd_send_signal(&self.init.pidfd, Signal::KILL);
        let waited = sys::wait_for(self.init.pid)?;
        if let ProcessTree::Below(_) = self.init.tree {
            // Should init have been killed, what was below it is below us now.
            process_tree::end_all(Some(LAST_RESORT_PLAIN))?;
        }
        Ok(waited)
    }

    fn turn(&mut self) -> io::Result<Option<End>> {
        if self.wait()? == News::BytesAlone {
            self.move_bytes();
            return Ok(None);
        }
        while let Some(arrived) = self.signals.next()? {
            self.signal(arrived);
        }
        while let Some(message) = self.next_message()? {
            if let Some(end) = self.hear(message)? {
                return Ok(Some(end));
            }
        }
        self.answer()?;
        if let Some(network) = &mut self.network {
            network.advance()?;
        }
        if self.is_over
            && self.cgroup.is_none()
            && matches!(self.init.tree, ProcessTree::OfNamespace)
        {
            return Ok(Some(End::Over));
        }
        if self.init_is_gone() {
            // Its last words may have come with its end.
            while let Some(message) = self.next_message()? {
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
        self.keep_closed();
        if self.settle_at.is_some_and(|at| at <= Instant::now()) {
            self.settle_at = None;
            sys::forget_code();
        }
        Ok(None)
    }

    fn move_bytes(&mut self) {
        self.inputs.iter_mut().chain(&mut self.outputs).for_each(Relay::advance);
    }

    fn wait(&self) -> io::Result<News> {
        let mut fds = vec![
            PollFd::new(&self.init.pidfd, PollFlags::IN),
            PollFd::new(&self.signals, PollFlags::IN),
        ];
        if self.init_speaks {
            fds.push(PollFd::new(&self.init.channel, PollFlags::IN));
        }
        let engaged = self.user.as_ref().is_some_and(UserTerminal::is_engaged);
        let keys = self.keys.iter().filter(|_| engaged);
        fds.extend(keys.filter_map(Relay::wants).map(polled));
        let relays = self.inputs.iter().chain(&self.outputs).filter(|_| self.started.is_some());
        let first_relay = fds.len();
        fds.extend(relays.filter_map(Relay::wants).map(polled));
        let relays = first_relay..fds.len();
        if let Some(notify) = &self.notify {
            fds.extend(notify.wants().map(polled));
        }
        for fd in self.network.iter().flat_map(Network::wants) {
            fds.push(PollFd::from_borrowed_fd(fd, PollFlags::IN));
        }
        let before = fds.len();
        if self.started.is_some() && self.killed.is_none() {
            fds.extend(self.protected.iter().flat_map(ReplacementWatch::wants).map(polled));
        }
        let deadline = self.next_deadline();
        let pause = deadline.map(|deadline| {
            let pause = deadline.saturating_duration_since(Instant::now());
            Timespec { tv_sec: pause.as_secs() as i64, tv_nsec: i64::from(pause.subsec_nanos()) }
        });
        let ready = match poll(&mut fds, pause.as_ref()) {
            Err(rustix::io::Errno::INTR) => return Ok(News::Any),
            other => other?,
        };
        // The queue of inotify keeps what it has; the table of mounts says it once.
        if let Some(protected) = &self.protected
            && fds[before..].iter().any(|fd| fd.revents().contains(PollFlags::PRI))
        {
            protected.note_news();
        }
        let moving = fds[relays].iter().filter(|fd| !fd.revents().is_empty()).count();
        let is_early = deadline.is_none_or(|deadline| Instant::now() < deadline);
        Ok(if ready > 0 && moving == ready && is_early { News::BytesAlone } else { News::Any })
    }

    fn next_deadline(&self) -> Option<Instant> {
        let end = match self.killed {
            Some(since) => Some(since + self.last_resort()),
            None => self.termination.next(),
        };
        let look = self
            .protected
            .as_ref()
            .and_then(ReplacementWatch::deadline)
            .filter(|_| self.killed.is_none());
        [end, self.look_at, self.settle_at, look].into_iter().flatten().min()
    }

    /// The first reason stands: a command that ends on the SIGTERM of a timeout has timed out.
    fn end(&mut self, ending: Ending) {
        self.ending.get_or_insert(ending);
    }

    fn init_is_gone(&self) -> bool {
        let mut fds = [PollFd::new(&self.init.pidfd, PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut fds, Some(&now)).is_ok() && !fds[0].revents().is_empty()
    }

    /// Passes on what was written before the end, unless the launcher is told to end.
    fn drain(&mut self) {
        let until = Instant::now() + DRAIN;
        while Instant::now() < until && !self.is_told_to_end() {
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

fn polled<'fd>((fd, flags): (BorrowedFd<'fd>, PollFlags)) -> PollFd<'fd> {
    PollFd::from_borrowed_fd(fd, flags)
}

/// What there is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum News {
    /// Nothing but bytes for relays, and whoever gets them waits: the rest of a turn takes longer than moving them.
    BytesAlone,
    Any,
}

enum End {
    Finished,
    /// Every process is dead but init, which takes its namespaces down and dies.
    Over,
    Failed(Failed),
    /// The launcher cannot go on.
    Broken(io::Error),
}
