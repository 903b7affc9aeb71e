//! The steps of init.

use std::fs;
use std::io;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{self, DumpableBehavior, Signal};

use super::{InitContext, confirmed, cut};
use crate::core::host::Ids;
use crate::linux::channel::{Seen, ToInit, ToLauncher};
use crate::linux::failure::StepFailure;
use crate::linux::mounts::{MaskOutcome, Root, keep_host_proc};
use crate::linux::privileges::drop_privileges;
use crate::linux::sandbox_socket::SandboxSocket;
use crate::linux::step::{
    Access, MapIds, Mask, NewRoot, Owner, Placed, PrivateDirectories, ProcView, Reopen, Step,
};
use crate::linux::well_known::ROOT_BECOMES_OUTSIDE;
use crate::linux::{closer, netlink, run_directory, stdio, sys, terminal};
use crate::unix::terminal::standard;

/// A plan that lists a step of the launcher or the target under init is wrong, and nothing may run.
fn not_of_init(step: Step<'_>) -> StepFailure {
    StepFailure {
        part: format!("{} is no step of init", step.verb()),
        error: io::Error::from_raw_os_error(libc::EINVAL),
    }
}

fn become_user(Ids { uid, gid }: Ids) -> io::Result<Seen> {
    sys::become_user(uid, gid, sys::Groups::Drop)?;
    let (real, effective) = (process::getuid().as_raw(), process::geteuid().as_raw());
    Ok(Seen::Confirmed(format!("uid {real}, effective {effective}")))
}

/// A kernel without keys has no keyring to share either, and where a filter around us refuses the call, the command cannot make it.
///
/// A login session has a keyring, and a new one then counts against the user's quota (200 keys). The kernel gives back those of ended runs a
/// little later, so this asks again for a moment. With more live runs than the quota has room for, the command keeps the caller's keyring:
/// the filter refuses every call on it.
fn join_new_keyring() -> io::Result<Seen> {
    const TRIES: u32 = 10;
    const PAUSE: Duration = Duration::from_millis(10);
    let mut failed = None;
    for attempt in 0..TRIES {
        if attempt > 0 {
            thread::sleep(PAUSE);
        }
        match sys::join_new_keyring() {
            Ok(()) => return Ok(confirmed()),
            Err(error) => match error.raw_os_error() {
                Some(libc::EDQUOT) => failed = Some(error),
                Some(libc::ENOSYS) => return Ok(confirmed()),
                Some(libc::EPERM) if sys::is_filtered() => return Ok(confirmed()),
                _ => return Err(error),
            },
        }
    }
    let why = failed.map(|error| format!(": {error}")).unwrap_or_default();
    Ok(Seen::Less(format!(
        "the caller's session keyring is kept, and calls on it are refused{why}"
    )))
}

impl InitContext<'_> {
    pub(super) fn init_step(&mut self, step: Step<'_>) -> Result<Seen, StepFailure> {
        match step {
            Step::MapIds(ids) => return Ok(self.map_ids(ids)?),
            Step::CgroupRoot => {
                allow_oom_kill()?;
                sys::own_cgroup_root()?;
            }
            Step::DieWithLauncher => self.die_with_launcher()?,
            // The end of the channel tells of the launcher's death; a signal would end this
            // process before the tree.
            Step::Subreaper => sys::adopt_orphans()?,
            Step::PrivateDirectories(PrivateDirectories { at, home, tmp, owner }) => {
                run_directory::make(at, &[home, tmp], *owner)?;
            }
            Step::Become(ids) => return Ok(become_user(*ids)?),
            Step::HideMemory => {
                process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
                self.compose()?;
                sys::scrub_start(c"mcp-init");
            }
            Step::NewSession => {
                process::setsid()?;
            }
            Step::NewKeyring => return Ok(join_new_keyring()?),
            // The file means the user namespace of the process that opens it.
            Step::ForbidNamespaces => return Ok(self.forbid_namespaces()?),
            Step::Hostname(host) => match rustix::system::sethostname(host.name.as_bytes()) {
                // Filters of containers refuse the call altogether.
                Err(Errno::PERM) => return Ok(Seen::Less("the host's name is seen".to_owned())),
                other => other?,
            },
            Step::Loopback => {
                sys::interface_up(c"lo")?;
                // Its own network, so every port of it may be its own; where /proc/sys is
                // read-only, a server must do with the high ones.
                let _ = fs::write("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0");
            }
            Step::Routes(routes) => return Ok(make_routes(&routes.own)?),
            Step::SandboxSockets(made) => return self.sandbox_sockets(&made.sandbox_sockets),
            Step::Reopen(Reopen { fd, path }) => self.reopen(*fd, path)?,
            Step::NewRoot(new_root) => self.new_root(new_root)?,
            Step::Placed(placed) => return self.place(placed),
            Step::Hold(hold) => return self.hold(&hold.places),
            Step::Protect(protect) => return self.protect(&protect.places),
            Step::Mask(masks) => return self.mask(&masks.masks),
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
            Step::SetCgroup(_)
            | Step::EnterCgroup(_)
            | Step::Namespaces(_)
            | Step::Timeout(_)
            | Step::WatchMemory(_)
            | Step::SyscallProxy(_)
            | Step::ConnectionRelay(_)
            | Step::Landlock(_)
            | Step::Limit(_)
            | Step::Descriptors(_)
            | Step::Filter(_)
            | Step::Execute(_) => return Err(not_of_init(step)),
        }
        Ok(confirmed())
    }

    fn new_root(&mut self, NewRoot { scratch }: &NewRoot) -> Result<(), StepFailure> {
        // The new root stands on /proc until it is entered.
        if self.request.protects() {
            self.show_mounts()?;
        }
        let mut trees = std::mem::take(&mut self.prepared.trees);
        let of_host = |placed: &Placed| matches!(placed, Placed::Proc { view: ProcView::Host, .. });
        if self.plan.placed().iter().any(|placed| of_host(&placed.step)) {
            keep_host_proc(&mut trees)?;
        }
        self.root = Some(Root::new(trees, *scratch, self.plan.count())?);
        Ok(())
    }

    fn place(&mut self, placed: &Placed) -> Result<Seen, StepFailure> {
        match placed {
            Placed::Directory { at } => self.root()?.directory(at)?,
            Placed::Link { at, to } => self.root()?.link(at, to)?,
            Placed::Text { at, text } => self.root()?.text(at, text, 0o644)?,
            Placed::Script { at, text } => self.root()?.text(at, text, 0o755)?,
            Placed::Show { path, kind } => self.root()?.show(path, *kind)?,
            Placed::Bind { from, at, kind, access, owner } => {
                self.root()?.bind(from, at, *kind, *access)?;
                if *owner == Owner::CallerMapped && self.prepared.unmapped.contains(from) {
                    let mut text = format!("files of root stay closed in {}", from.display());
                    cut(&mut text);
                    return Ok(Seen::Less(text));
                }
            }
            Placed::Layer { at, kept_in, access, owner } => {
                return self.layer(at, kept_in, *access, *owner);
            }
            Placed::Scratch { places } => self.root()?.scratch(places)?,
            Placed::Devices => self.root()?.devices()?,
            Placed::Proc { hidden, view } => self.proc = self.root()?.proc(hidden, *view)?,
        }
        Ok(confirmed())
    }

    /// For the launcher, who sees by them when a mount is gone, and has it mounted again.
    fn show_mounts(&self) -> io::Result<()> {
        let (table, namespace) =
            (fs::File::open("/proc/self/mountinfo")?, fs::File::open("/proc/self/ns/mnt")?);
        self.channel.send_with(&ToLauncher::Mounts, &[table.as_fd(), namespace.as_fd()])
    }

    fn sandbox_sockets(&self, sandbox_sockets: &[SandboxSocket]) -> Result<Seen, StepFailure> {
        match self.prepared.socket_factory.stock(sandbox_sockets) {
            Ok(count) => Ok(Seen::Confirmed(format!("{count} sockets made"))),
            Err((sandbox_socket, error)) => {
                Err(StepFailure { part: sandbox_socket.to_string(), error })
            }
        }
    }

    /// What the kernel refuses here stays read-only, and is told.
    fn layer(
        &mut self,
        at: &Path,
        kept_in: &Path,
        access: Access,
        owner: Owner,
    ) -> Result<Seen, StepFailure> {
        let is_unmapped = self.prepared.unmapped.iter().any(|path| path == kept_in);
        if owner == Owner::CallerMapped && is_unmapped {
            return Ok(Seen::Less("the file system cannot map owners".to_owned()));
        }
        match self.root()?.layer(at, kept_in, access)? {
            Ok(()) => Ok(confirmed()),
            Err(refused) => Ok(Seen::Less(refused.to_string())),
        }
    }

    fn hold(&mut self, places: &[PathBuf]) -> Result<Seen, StepFailure> {
        let root = self.root()?;
        let mut count = Count::default();
        for at in places {
            count.add(root.hold(at).map_err(|error| StepFailure::at(at, error))?);
        }
        Ok(Seen::Confirmed(count.told("held in place")))
    }

    fn protect(&mut self, places: &[PathBuf]) -> Result<Seen, StepFailure> {
        let root = self.root()?;
        let mut count = Count::default();
        let mut missing = Vec::new();
        for (number, at) in places.iter().enumerate() {
            let closed = root.protect(at).map_err(|error| StepFailure::at(at, error))?;
            if closed == MaskOutcome::Gone {
                missing.push(number);
            }
            if missing.len() > closer::MOST {
                return Err(StepFailure::at(at, Errno::STALE.into()));
            }
            count.add(closed);
        }
        if !missing.is_empty() {
            self.channel.send(&ToLauncher::Missing(missing))?;
        }
        Ok(Seen::Confirmed(count.told("read-only")))
    }

    fn mask(&mut self, masks: &[Mask]) -> Result<Seen, StepFailure> {
        let root = self.root()?;
        let mut count = Count::default();
        root.mask(masks, |closed| count.add(closed)).map_err(|(at, e)| StepFailure::at(at, e))?;
        Ok(Seen::Confirmed(count.told("masked")))
    }

    fn root(&mut self) -> Result<&mut Root, io::Error> {
        self.root.as_mut().ok_or_else(no_root)
    }

    /// A process can map only its own id; root's launcher maps to another one from outside.
    fn map_ids(&self, ids: &MapIds) -> io::Result<Seen> {
        let MapIds { uid, gid, outside_uid, outside_gid, .. } = *ids;
        let groups = if outside_uid != ROOT_BECOMES_OUTSIDE {
            fs::write("/proc/self/setgroups", "deny")?;
            fs::write("/proc/self/gid_map", format!("{gid} {outside_gid} 1"))?;
            fs::write("/proc/self/uid_map", format!("{uid} {outside_uid} 1"))?;
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

    /// Stands behind the system call filter, which refuses to make them. A container has /proc/sys read-only.
    fn forbid_namespaces(&self) -> io::Result<Seen> {
        match fs::write("/proc/sys/user/max_user_namespaces", "0") {
            Ok(()) => Ok(confirmed()),
            Err(e) if e.raw_os_error() != Some(libc::EROFS) => Err(e),
            Err(_) if self.plan.target.filter.is_some() => {
                Ok(Seen::Confirmed("user namespaces refused by the filter alone".to_owned()))
            }
            Err(_) => Ok(Seen::Less("user namespaces can be made inside".to_owned())),
        }
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

    fn reopen(&mut self, fd: i32, path: &Path) -> io::Result<()> {
        let slot = &mut self.prepared.stdio[fd as usize];
        if slot.is_none() {
            *slot = Some(stdio::open_read_only(standard(fd), path, None)?);
        }
        Ok(())
    }
}

/// What became of the paths of one step.
#[derive(Default)]
struct Count {
    now: usize,
    gone: usize,
    above: usize,
}

impl Count {
    fn add(&mut self, closed: MaskOutcome) {
        match closed {
            MaskOutcome::Now => self.now += 1,
            MaskOutcome::Gone => self.gone += 1,
            MaskOutcome::Above => self.above += 1,
        }
    }

    fn told(&self, what: &str) -> String {
        let mut text = format!("{} {what}", self.now);
        for (count, why) in
            [(self.gone, "gone meanwhile"), (self.above, "behind a directory that was closed")]
        {
            if count > 0 {
                text += &format!(", {count} {why}");
            }
        }
        text
    }
}

/// A host may be without IPv6; then nothing is reached over it inside either.
fn make_routes(own: &[IpAddr]) -> io::Result<Seen> {
    if own.is_empty() {
        // Without them an attempt fails too, and the user does not learn of it.
        let told = match netlink::connections_are_refused() {
            Ok(()) => "connections are refused at once, to every address".to_owned(),
            Err(e) => format!("no address has a route ({e})"),
        };
        return Ok(Seen::Confirmed(told));
    }
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
