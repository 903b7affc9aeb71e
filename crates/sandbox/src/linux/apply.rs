//! Carries out the steps of a plan: in init, then in the process that becomes the command.
//!
//! Both are copies of the single-threaded launcher. Whatever fails is sent to the launcher with
//! the number of its step, and the process ends: nothing half-made ever runs the command.

use std::ffi::{CString, OsStr, OsString};
use std::fs;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::process::{self, DumpableBehavior, Rlimit, Signal};

use crate::linux::channel::{Channel, Failed, LONGEST_TEXT, PACKET, Seen, ToInit, ToLauncher};
use crate::linux::landlock::{Ports, Rule, enforce};
use crate::linux::mounts::{Closed, Root, Trees, host_tree, keep_host_proc};
use crate::linux::outlet::Outlet;
use crate::linux::outlets::Workshop;
use crate::linux::seccomp::{Connects, Ground, Instruction, NewProcesses, Sockets};
use crate::linux::step::{Access, Mask, Owner, ProcView, Resource, Stage, Step};
use crate::linux::{init, netlink, run_directory, sys, terminal};
use crate::net::variables::variables;
use crate::plan::Plan;
use crate::request::{HOME, Request, Stdio};
pub use crate::unix::terminal::standard;

/// What the launcher made before init existed.
pub struct Prepared {
    pub trees: Trees,
    /// The sandbox's ends of relayed descriptors, and files opened again.
    pub stdio: [Option<OwnedFd>; 3],
    /// Paths whose owner ids could not be mapped.
    pub unmapped: Vec<std::path::PathBuf>,
    /// The system call filter.
    pub filter: Vec<Instruction>,
    /// Where sockets of the sandbox's network are handed out.
    pub workshop: Workshop,
}

/// Everything init and target need, owned by the process that uses it.
pub struct Sandbox<'a> {
    pub plan: &'a Plan,
    pub request: &'a Request,
    pub channel: Channel,
    pub signals: sys::Signals,
    prepared: Prepared,
    root: Option<Root>,
    pub terminal: Option<OwnedFd>,
    proc: Option<OwnedFd>,
    seen: Vec<(usize, Seen)>,
    argv: Vec<CString>,
    env: Vec<CString>,
    /// The caller's, for the command; init makes files with the modes it names.
    umask: Mode,
}

/// A failure inside a step that has several parts.
pub struct Trouble {
    pub part: String,
    pub error: io::Error,
}

impl Trouble {
    fn at(path: &Path, error: io::Error) -> Trouble {
        Trouble { part: path.display().to_string(), error }
    }
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Trouble {
        Trouble { part: String::new(), error }
    }
}

impl From<rustix::io::Errno> for Trouble {
    fn from(error: rustix::io::Errno) -> Trouble {
        Trouble::from(io::Error::from(error))
    }
}

/// The life of init. Never returns: the memory of this process is a copy of the launcher's, and
/// nothing of the launcher must run in it.
pub fn init(
    plan: &Plan,
    request: &Request,
    channel: Channel,
    signals: sys::Signals,
    prepared: Prepared,
) -> ! {
    let mut sandbox = Sandbox {
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
        umask: process::umask(Mode::empty()),
    };
    sandbox.init();
    match sys::spawn_until_exec(&|| sandbox.target()) {
        Ok(pid) => init::reap(sandbox, pid),
        Err(error) => {
            sandbox.clear_away();
            let execute = plan.steps.len().saturating_sub(1);
            fail(&sandbox.channel, execute, Trouble { part: "fork".to_owned(), error })
        }
    }
}

impl Sandbox<'_> {
    fn init(&mut self) {
        for (index, planned) in self.plan.steps.iter().enumerate() {
            if planned.step.stage() != Stage::Init {
                continue;
            }
            match self.init_step(&planned.step) {
                Ok(answer) => self.seen.push((index, answer)),
                Err(trouble) => {
                    self.clear_away();
                    fail(&self.channel, index, trouble)
                }
            }
        }
    }

    /// Sends the answers of init together with its own: one message less. Shares init's memory,
    /// so it changes nothing in it.
    fn target(&self) {
        let mut seen = Vec::new();
        let mut moved = None;
        let mut listener = None;
        for (index, planned) in self.plan.steps.iter().enumerate() {
            let answer = match &planned.step {
                Step::Landlock { abi, rules, ports } => self.landlock(*abi, rules, *ports),
                Step::Limit { resource, value } => limit(*resource, *value).map_err(Trouble::from),
                Step::LimitUserProcesses { more } => {
                    limit_user_processes(*more).map_err(Trouble::from)
                }
                Step::Descriptors { stdio } => {
                    self.announce(&mut seen);
                    self.descriptors(stdio)
                        .map(|channel| {
                            moved = Some(channel);
                            confirmed()
                        })
                        .map_err(Trouble::from)
                }
                Step::Filter { processes, connects, sockets, ground, .. } => self
                    .filter(*processes, *connects, *sockets, *ground)
                    .map(|made| {
                        listener = made;
                        Seen::Confirmed("seccomp mode 2".to_owned())
                    })
                    .map_err(Trouble::from),
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

    fn init_step(&mut self, step: &Step) -> Result<Seen, Trouble> {
        match step {
            Step::MapIds { uid, gid, outside_uid, .. } => {
                return Ok(self.map_ids(*uid, *gid, *outside_uid)?);
            }
            Step::CgroupRoot => {
                allow_oom_kill()?;
                sys::own_cgroup_root()?;
            }
            Step::DieWithLauncher => self.die_with_launcher()?,
            // The end of the channel tells of the launcher's death; a signal would end this
            // process before the tree.
            Step::Subreaper => sys::adopt_orphans()?,
            Step::PrivateDirectories { at, home, tmp, owner } => {
                run_directory::make(at, &[home, tmp], *owner)?;
            }
            Step::Become { uid, gid } => {
                sys::become_user(*uid, *gid, sys::Groups::Drop)?;
                let (real, effective) = (process::getuid().as_raw(), process::geteuid().as_raw());
                return Ok(Seen::Confirmed(format!("uid {real}, effective {effective}")));
            }
            Step::HideMemory => {
                process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
                self.compose()?;
                sys::scrub_start(c"mcp-init");
            }
            Step::NewSession => {
                process::setsid()?;
            }
            // A kernel without keys has no keyring to share either, and where a filter around us
            // refuses the call, the command cannot make it.
            Step::NewKeyring => match sys::join_new_keyring() {
                Err(e) if e.raw_os_error() == Some(libc::ENOSYS) => {}
                Err(e) if e.raw_os_error() == Some(libc::EPERM) && sys::is_filtered() => {}
                other => other?,
            },
            // The file means the user namespace of whoever opens it.
            Step::ForbidNamespaces => fs::write("/proc/sys/user/max_user_namespaces", "0")?,
            Step::Hostname { name } => rustix::system::sethostname(name.as_bytes())?,
            Step::Loopback => {
                sys::interface_up(c"lo")?;
                // Its own network, so every port of it may be its own; where /proc/sys is
                // read-only, a server must do with the high ones.
                let _ = fs::write("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0");
            }
            Step::Routes { own } => return Ok(routes(own)?),
            Step::Outlets { outlets } => return self.outlets(outlets),
            Step::Reopen { fd, path } => self.reopen(*fd, path)?,
            Step::NewRoot { scratch } => {
                let mut trees = std::mem::take(&mut self.prepared.trees);
                let of_host = |step: &Step| matches!(step, Step::Proc { view: ProcView::Host, .. });
                if self.plan.steps.iter().any(|planned| of_host(&planned.step)) {
                    keep_host_proc(&mut trees)?;
                }
                self.root = Some(Root::new(trees, *scratch, self.plan.steps.len())?);
            }
            Step::Directory { at } => self.root()?.directory(at)?,
            Step::Link { at, to } => self.root()?.link(at, to)?,
            Step::Text { at, text } => self.root()?.text(at, text)?,
            Step::Show { path, kind } => self.root()?.show(path, *kind)?,
            Step::Bind { from, at, kind, access, owner } => {
                self.root()?.bind(from, at, *kind, *access)?;
                if *owner == Owner::CallerMapped && self.prepared.unmapped.contains(from) {
                    let mut text = format!("files of root stay closed in {}", from.display());
                    cut(&mut text);
                    return Ok(Seen::Less(text));
                }
            }
            Step::Scratch { places } => self.root()?.scratch(places)?,
            Step::Devices => self.root()?.devices()?,
            Step::Proc { hidden, view } => self.proc = self.root()?.proc(hidden, *view)?,
            Step::Hold { places } => return self.hold(places),
            Step::Protect { places } => return self.protect(places),
            Step::Mask { masks } => return self.mask(masks),
            Step::EnterRoot => match self.root.take() {
                Some(root) => root.enter()?,
                None => return Err(no_root().into()),
            },
            Step::Terminal => {
                let pair = terminal::Pair::open()?;
                terminal::copy_settings(&pair.slave, &self.request.stdio);
                self.channel.send_with(&ToLauncher::Terminal, &[pair.master.as_fd()])?;
                self.terminal = Some(pair.slave);
            }
            Step::DropPrivileges => return Ok(drop_privileges()?),
            // Of the launcher or the target.
            Step::SetCgroup { .. }
            | Step::EnterCgroup { .. }
            | Step::Namespaces { .. }
            | Step::LimitUserProcesses { .. }
            | Step::Timeout { .. }
            | Step::WatchMemory { .. }
            | Step::Broker { .. }
            | Step::Proxy { .. }
            | Step::Landlock { .. }
            | Step::Limit { .. }
            | Step::Descriptors { .. }
            | Step::Filter { .. }
            | Step::Execute { .. } => {}
        }
        Ok(confirmed())
    }

    fn outlets(&self, outlets: &[Outlet]) -> Result<Seen, Trouble> {
        match self.prepared.workshop.stock(outlets) {
            Ok(count) => Ok(Seen::Confirmed(format!("{count} sockets made"))),
            Err((outlet, error)) => Err(Trouble { part: outlet.to_string(), error }),
        }
    }

    pub fn workshop(&self) -> &Workshop {
        &self.prepared.workshop
    }

    fn hold(&mut self, places: &[PathBuf]) -> Result<Seen, Trouble> {
        let root = self.root()?;
        let mut count = Count::default();
        for at in places {
            count.add(root.hold(at).map_err(|error| Trouble::at(at, error))?);
        }
        Ok(Seen::Confirmed(count.told("held in place")))
    }

    fn protect(&mut self, places: &[PathBuf]) -> Result<Seen, Trouble> {
        let root = self.root()?;
        let mut count = Count::default();
        for at in places {
            count.add(root.protect(at).map_err(|error| Trouble::at(at, error))?);
        }
        Ok(Seen::Confirmed(count.told("read-only")))
    }

    fn mask(&mut self, masks: &[Mask]) -> Result<Seen, Trouble> {
        let root = self.root()?;
        let mut count = Count::default();
        root.mask(masks, |closed| count.add(closed)).map_err(|(at, e)| Trouble::at(at, e))?;
        Ok(Seen::Confirmed(count.told("masked")))
    }

    fn root(&mut self) -> Result<&mut Root, io::Error> {
        self.root.as_mut().ok_or_else(no_root)
    }

    /// A process can map only its own id; root's launcher maps to another one from outside.
    fn map_ids(&self, uid: u32, gid: u32, outside_uid: u32) -> io::Result<Seen> {
        let groups = if uid == outside_uid {
            fs::write("/proc/self/setgroups", "deny")?;
            fs::write("/proc/self/gid_map", format!("{gid} {gid} 1"))?;
            fs::write("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
            sys::Groups::Keep
        } else {
            match self.channel.receive::<ToInit>()? {
                Some((ToInit::Mapped, _)) => sys::Groups::Drop,
                _ => return Err(io::Error::from_raw_os_error(libc::EPIPE)),
            }
        };
        sys::become_user(uid, gid, groups)?;
        let (real, effective) = (process::getuid().as_raw(), process::geteuid().as_raw());
        Ok(Seen::Confirmed(format!("uid {real}, effective {effective}")))
    }

    /// The parent's pid is 0 from in here, so whether it died before the first call shows only
    /// on the socket.
    fn die_with_launcher(&self) -> io::Result<()> {
        process::set_parent_process_death_signal(Some(Signal::KILL))?;
        let mut fds = [PollFd::new(&self.channel, PollFlags::IN)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut fds, Some(&now))?;
        if fds[0].revents().contains(PollFlags::HUP) {
            sys::exit_now(125);
        }
        Ok(())
    }

    /// The strings for execve, made before the launcher's own environment is overwritten.
    fn compose(&mut self) -> io::Result<()> {
        let request = self.request;
        let own = private_directories(self.plan);
        self.argv = request.argv.iter().map(|a| sys::c_string(a)).collect::<Result<_, _>>()?;
        let proxy = proxy_variables(self.plan);
        let is_given = |name: &OsStr| proxy.iter().all(|(ours, _)| name != *ours);
        let given = request.env.iter().filter(|(name, _)| is_given(name));
        let public = given.map(|(name, value)| match own {
            Some((_, home, tmp)) => sys::c_variable(name, &moved(value, home, tmp)),
            None => sys::c_variable(name, value),
        });
        let proxied =
            proxy.iter().map(|(name, value)| sys::c_variable(name.as_ref(), value.as_ref()));
        let public = public.chain(proxied);
        let has_tmp = request.env.iter().any(|(name, _)| name == "TMPDIR");
        let tmp = own.filter(|_| !has_tmp).map(|(_, _, tmp)| tmp.as_os_str());
        let public = public.chain(tmp.map(|tmp| sys::c_variable("TMPDIR".as_ref(), tmp)));
        let secret = request
            .secrets
            .iter()
            .filter(|(name, _)| is_given(name))
            .map(|(name, value)| sys::c_variable(name, value.reveal()));
        self.env = public.chain(secret).collect::<Result<_, _>>()?;
        Ok(())
    }

    /// What a launcher that was killed cannot remove any more.
    pub fn clear_away(&self) {
        if let Some((at, ..)) = private_directories(self.plan) {
            run_directory::remove(at);
        }
    }

    pub fn has_pid_namespace(&self) -> bool {
        self.plan.steps.iter().any(|planned| matches!(planned.step, Step::Namespaces { .. }))
    }

    fn reopen(&mut self, fd: i32, path: &Path) -> io::Result<()> {
        let slot = &mut self.prepared.stdio[fd as usize];
        if slot.is_none() {
            *slot = Some(open_read_only(standard(fd), path, None)?);
        }
        Ok(())
    }

    fn landlock(&self, abi: u32, rules: &[Rule], ports: Ports) -> Result<Seen, Trouble> {
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
    fn execute(&self, program: &Path, cwd: &Path) -> Trouble {
        if let Err(error) = process::chdir(cwd) {
            return Trouble { part: format!("chdir to {}", cwd.display()), error: error.into() };
        }
        let program = match sys::c_string(program.as_os_str()) {
            Ok(program) => program,
            Err(error) => return error.into(),
        };
        self.signals.restore_for_exec();
        process::umask(self.umask);
        sys::execute(&program, &self.argv, &self.env).into()
    }

    /// Closes what belongs to the command: its readers wait for the last writer to close.
    pub fn let_go(&mut self) {
        self.prepared.stdio = [None, None, None];
        self.terminal = None;
        let _ = sys::let_go_below(3);
    }
}

/// Where the target keeps its end of the channel until it executes.
const CHANNEL: i32 = 3;

/// What became of the paths of one step.
#[derive(Default)]
struct Count {
    now: usize,
    gone: usize,
    unreachable: usize,
}

impl Count {
    fn add(&mut self, closed: Closed) {
        match closed {
            Closed::Now => self.now += 1,
            Closed::Gone => self.gone += 1,
            Closed::Unreachable => self.unreachable += 1,
        }
    }

    fn told(&self, what: &str) -> String {
        let mut text = format!("{} {what}", self.now);
        for (count, why) in
            [(self.gone, "gone meanwhile"), (self.unreachable, "closed to the command anyway")]
        {
            if count > 0 {
                text += &format!(", {count} {why}");
            }
        }
        text
    }
}

/// A host may be without IPv6; then nothing is reached over it inside either.
fn routes(own: &[IpAddr]) -> io::Result<Seen> {
    let mut local = Vec::new();
    for own in own {
        match netlink::everything_is_local(*own) {
            Ok(()) => local.push(own.to_string()),
            Err(_) if own.is_ipv6() => {}
            Err(e) => return Err(e),
        }
    }
    Ok(Seen::Confirmed(format!("every address is local, by {}", local.join(" and "))))
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

fn fail(channel: &Channel, step: usize, Trouble { mut part, error }: Trouble) -> ! {
    cut(&mut part);
    let errno = error.raw_os_error().unwrap_or(libc::EIO);
    tell(channel, &ToLauncher::Failed(Failed { step, errno, part }));
    sys::exit_now(125)
}

/// Opens the file behind `fd` once more through a read-only mount of its own, at the same
/// place in the file.
pub fn open_read_only(
    fd: BorrowedFd<'_>,
    path: &Path,
    map: Option<&OwnedFd>,
) -> io::Result<OwnedFd> {
    let tree = host_tree(path, Access::ReadOnly, map)?;
    let (given, found) = (rustix::fs::fstat(fd)?, rustix::fs::fstat(&tree)?);
    if (given.st_dev, given.st_ino) != (found.st_dev, found.st_ino) {
        return Err(io::Error::from_raw_os_error(libc::ESTALE));
    }
    use std::os::fd::AsRawFd;
    let file = fs::File::open(format!("/proc/self/fd/{}", tree.as_raw_fd()))?;
    let offset = rustix::fs::tell(fd)?;
    rustix::fs::seek(&file, rustix::fs::SeekFrom::Start(offset))?;
    Ok(file.into())
}

fn cut(text: &mut String) {
    text.truncate(text.floor_char_boundary(LONGEST_TEXT));
}

/// A launcher that the kernel must never kill for memory (-1000) would make a sandbox that it
/// cannot kill either, and one at its memory limit would hang.
fn allow_oom_kill() -> io::Result<()> {
    let path = "/proc/self/oom_score_adj";
    match fs::read_to_string(path)?.trim().parse::<i32>() {
        Ok(score) if score < 0 => fs::write(path, "0"),
        _ => Ok(()),
    }
}

fn no_root() -> io::Error {
    io::Error::from_raw_os_error(libc::ENOENT)
}

/// The directories of a run without a root of its own: all, HOME, TMPDIR.
fn private_directories(plan: &Plan) -> Option<(&PathBuf, &PathBuf, &PathBuf)> {
    plan.steps.iter().find_map(|planned| match &planned.step {
        Step::PrivateDirectories { at, home, tmp, .. } => Some((at, home, tmp)),
        _ => None,
    })
}

/// What leads programs to the proxy, where they can have no other network.
fn proxy_variables(plan: &Plan) -> Vec<(&'static str, String)> {
    let proxy = plan.steps.iter().find_map(|planned| match planned.step {
        Step::Proxy { at, .. } => Some(at),
        _ => None,
    });
    proxy.map(|at| variables(&at.to_string())).unwrap_or_default()
}

/// A value that is a path of the private root which this run does not have.
fn moved(value: &OsStr, home: &Path, tmp: &Path) -> OsString {
    match Path::new(value).strip_prefix(HOME) {
        Ok(below) if below.as_os_str().is_empty() => home.into(),
        Ok(below) => home.join(below).into(),
        Err(_) if value == "/tmp" => tmp.into(),
        Err(_) => value.to_owned(),
    }
}

/// RLIMIT_NPROC counts threads, of the whole user.
fn limit_user_processes(more: u64) -> io::Result<Seen> {
    let uid = process::getuid().as_raw();
    let mut now = 0;
    for entry in fs::read_dir("/proc")?.flatten() {
        let Ok(status) = fs::read(entry.path().join("status")) else {
            continue;
        };
        let status = String::from_utf8_lossy(&status);
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            line.split_whitespace().next()?.parse::<u64>().ok()
        };
        if field("Uid:") == Some(uid.into()) {
            now += field("Threads:").unwrap_or(1);
        }
    }
    limit(Resource::Processes, now + more)
}

fn drop_privileges() -> io::Result<Seen> {
    rustix::thread::set_no_new_privs(true)?;
    let bounding = sys::drop_all_capabilities()?;
    let left = sys::capabilities_left()?;
    if left != 0 || !rustix::thread::no_new_privs()? {
        return Err(io::Error::from_raw_os_error(libc::EPERM));
    }
    Ok(Seen::Confirmed(match bounding {
        sys::Bounding::Empty => "capabilities 0 in every set, no_new_privs 1".to_owned(),
        sys::Bounding::Kept => {
            "capabilities 0 in every set but the bounding one, no_new_privs 1".to_owned()
        }
    }))
}

/// Sets both values, so that the program cannot raise it again. A hard limit that is already
/// lower stays: it cannot be raised, and it is stricter.
fn limit(resource: Resource, value: u64) -> io::Result<Seen> {
    let which = match resource {
        Resource::Cpu => process::Resource::Cpu,
        Resource::Data => process::Resource::Data,
        Resource::AddressSpace => process::Resource::As,
        Resource::Processes => process::Resource::Nproc,
        Resource::OpenFiles => process::Resource::Nofile,
        Resource::FileSize => process::Resource::Fsize,
        Resource::Core => process::Resource::Core,
    };
    let value = process::getrlimit(which).maximum.map_or(value, |hard| hard.min(value));
    // The first second over the soft limit is a signal that a program may handle; the hard
    // limit then kills.
    let hard = if resource == Resource::Cpu { value.saturating_add(1) } else { value };
    process::setrlimit(which, Rlimit { current: Some(value), maximum: Some(hard) })?;
    match process::getrlimit(which).current {
        Some(now) if now <= value => Ok(Seen::Confirmed(format!("{resource} {now}"))),
        _ => Err(io::Error::from_raw_os_error(libc::ERANGE)),
    }
}
