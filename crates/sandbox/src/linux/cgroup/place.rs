//! Where a run's cgroup can be made, in this order: below our own cgroup or beside it, where that
//! was handed over to us; in a scope of the systemd user manager; as root, in a directory of ours at
//! the top. Each is tried for real, and what could not be had says why.
//!
//! What systemd manages and has not handed over is left alone, even where the permissions would
//! let us: it is the only writer there, and may undo what others did.

use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use super::files::Cgroup;
use super::held::{BOX, LAUNCHER, Layout, PREFIX, RunCgroup, SLICE};
use super::mount::{self, Standing};
use super::systemd;
use crate::core::run_record::RunId;
use crate::linux::facts::CgroupMeans;

/// What most lists of mounts fit in.
const PAGES: usize = 16 << 10;
/// How often a directory is made anew that another launcher removed under our hands.
const ATTEMPTS: usize = 8;

/// What was found on the way.
pub struct OwnCgroup {
    pub mount: Option<PathBuf>,
    pub held: Result<RunCgroup, String>,
}

/// Makes a cgroup for a run that needs these controllers.
pub fn reserve(wanted: &[&str], id: &RunId, is_root: bool) -> OwnCgroup {
    let standing = match standing(wanted) {
        Ok(standing) => standing,
        Err(why) => return OwnCgroup { mount: None, held: Err(why) },
    };
    let seeker = Seeker { wanted, id, standing: &standing };
    let held = if is_root { seeker.as_root() } else { seeker.as_user() };
    OwnCgroup { mount: Some(standing.mount), held }
}

/// Where we are, if that can be of use for any of these controllers.
fn standing(wanted: &[&str]) -> Result<Standing, String> {
    let text = |path: &str| whole(path).map_err(|e| format!("{path}: {e}"));
    let membership = text("/proc/self/cgroup")?;
    let elsewhere = mount::held_by_version_1(&membership, wanted);
    if elsewhere.len() == wanted.len() {
        return Err(format!("cgroup version 1 has the controllers {}", elsewhere.join(", ")));
    }
    if let Some(standing) = usual(&membership) {
        return Ok(standing);
    }
    let mountinfo = text("/proc/self/mountinfo")?;
    mount::standing(&mountinfo, &membership).ok_or_else(|| match mount::is_mounted(&mountinfo) {
        true => "our own cgroup is outside of the mounted part of cgroup v2".to_owned(),
        false => "cgroup v2 is not mounted".to_owned(),
    })
}

/// The place where it mostly is, if that is true: the kernel lists us there. Spares the list of
/// mounts, which can be long.
fn usual(membership: &[u8]) -> Option<Standing> {
    let mount = PathBuf::from("/sys/fs/cgroup");
    let own = mount.join(mount::own_path(membership)?.strip_prefix("/").ok()?);
    let us = std::process::id().to_string();
    let listed = Cgroup::open(&own).ok()?.read("cgroup.procs").ok()?;
    listed.lines().any(|pid| pid == us).then_some(Standing { mount, own })
}

/// In few large reads: the kernel makes these texts anew for every one.
fn whole(path: &str) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty())?;
    let (mut text, mut length) = (vec![0; PAGES], 0);
    loop {
        match rustix::io::read(&file, &mut text[length..])? {
            0 => break,
            count => length += count,
        }
        if text.len() - length < PAGES / 4 {
            text.resize(text.len() * 2, 0);
        }
    }
    text.truncate(length);
    Ok(text)
}

struct Seeker<'a> {
    wanted: &'a [&'a str],
    id: &'a RunId,
    standing: &'a Standing,
}

impl Seeker<'_> {
    fn as_user(&self) -> Result<RunCgroup, String> {
        let manager = systemd::Manager::of_user();
        // Without a manager, what we may write is ours to use.
        match self.near(|cgroup| manager.is_none() || cgroup.is_marked_delegated()) {
            Ok(held) => Ok(held),
            Err(why) => match manager {
                Some(manager) => self.in_scope(&manager),
                None => Err(format!("{why}, and there is no systemd user manager to ask")),
            },
        }
    }

    fn as_root(&self) -> Result<RunCgroup, String> {
        let systemd = Path::new("/run/systemd/system").exists();
        if let Ok(held) = self.near(Cgroup::is_marked_delegated) {
            return Ok(held);
        }
        self.at_top().or_else(|why| match systemd {
            true => Err(why),
            false => self.near(|_| true),
        })
    }

    /// Below our own cgroup, or beside it.
    fn near(&self, is_ours: impl Fn(&Cgroup) -> bool) -> Result<RunCgroup, String> {
        let own = Cgroup::open(&self.standing.own).map_err(|e| self.refused(&e))?;
        let offered = own.read("cgroup.controllers").map_err(|e| self.refused(&e))?;
        if !self.wanted.iter().any(|name| offered.split_whitespace().any(|word| word == *name)) {
            return Err(self.no_controllers());
        }
        let mut why = "our cgroup is not delegated to us".to_owned();
        if is_ours(&own) {
            match self.below(&own) {
                Ok(held) => return Ok(held),
                Err(e) => why = self.refused(&e),
            }
        }
        let parent = mount::parent(self.standing, &self.standing.own);
        if let Some(parent) = parent.and_then(|path| Cgroup::open(path).ok())
            && is_ours(&parent)
        {
            match self.flat(parent, CgroupMeans::Beside) {
                Ok(held) => return Ok(held),
                Err(e) => why = self.refused(&e),
            }
        }
        Err(why)
    }

    fn no_controllers(&self) -> String {
        format!("cgroup v2 has none of the controllers {} for us", self.wanted.join(", "))
    }

    fn refused(&self, error: &io::Error) -> String {
        let own = self.standing.own.display();
        match error.raw_os_error() {
            Some(libc::EACCES | libc::EPERM | libc::EROFS) => {
                format!("our cgroup {own} is not delegated to us ({error})")
            }
            _ => format!("our cgroup {own} cannot be divided ({error})"),
        }
    }

    /// A cgroup with children that have limits holds no processes itself, so we move into a leaf;
    /// no other process can be moved without being asked.
    fn below(&self, above: &Cgroup) -> io::Result<RunCgroup> {
        if !above.holds_only_us() {
            return Err(io::Error::from_raw_os_error(libc::EBUSY));
        }
        let (name, own) = self.make(above)?;
        let made = own
            .make(LAUNCHER)
            .and_then(|leaf| leaf.enter())
            .and_then(|()| above.enable(self.wanted))
            .and_then(|_| self.divide(&own));
        match made {
            Ok((controllers, run)) => {
                let above = Cgroup::open(&above.path)?;
                let layout = Layout::Nested { above, name, own, run };
                Ok(self.held(CgroupMeans::Below, controllers, layout))
            }
            Err(e) => {
                let _ = above.enter();
                let _ = own.remove(BOX);
                let _ = own.remove(LAUNCHER);
                let _ = above.remove(&name);
                Err(e)
            }
        }
    }

    /// The part of a cgroup that will hold the sandbox.
    fn divide(&self, own: &Cgroup) -> io::Result<(Vec<String>, Cgroup)> {
        let controllers = own.enable(self.wanted)?;
        if controllers.is_empty() {
            return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
        }
        Ok((controllers, own.make(BOX)?))
    }

    fn flat(&self, above: Cgroup, means: CgroupMeans) -> io::Result<RunCgroup> {
        // The sandbox is moved from our own cgroup past this one.
        if !above.admits_moves() {
            return Err(io::Error::from_raw_os_error(libc::EACCES));
        }
        let controllers = above.enable(self.wanted)?;
        if controllers.is_empty() {
            return Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP));
        }
        let (name, run) = self.make(&above)?;
        Ok(self.held(means, controllers, Layout::Flat { above, name, run }))
    }

    /// A new directory with our lock on it. A sweep of another launcher may come between.
    fn make(&self, above: &Cgroup) -> io::Result<(String, Cgroup)> {
        for attempt in 0..ATTEMPTS {
            let name = match attempt {
                0 => format!("{PREFIX}{}", self.id),
                _ => format!("{PREFIX}{}-{attempt}", self.id),
            };
            let made = match above.make(&name) {
                Ok(made) => made,
                Err(e) if matches!(e.raw_os_error(), Some(libc::EEXIST | libc::ENOENT)) => continue,
                Err(e) => return Err(e),
            };
            if made.lock()? && made.is_child_of(above, &name) {
                return Ok((name, made));
            }
        }
        Err(io::Error::from_raw_os_error(libc::EAGAIN))
    }

    fn in_scope(&self, manager: &systemd::Manager) -> Result<RunCgroup, String> {
        let unit = format!("{PREFIX}{}.scope", self.id);
        let why = |e: String| format!("the systemd user manager gave no scope: {e}");
        manager.start_scope(&unit).map_err(why)?;
        let standing = standing(self.wanted)?;
        if standing.own.file_name().is_none_or(|name| name != unit.as_str()) {
            return Err(why(format!("we are in {}", standing.own.display())));
        }
        let scope = Cgroup::open(&standing.own).map_err(|e| why(e.to_string()))?;
        let made = scope.make(LAUNCHER).and_then(|leaf| leaf.enter());
        match made.and_then(|()| self.divide(&scope)) {
            Ok((controllers, run)) => {
                let layout = Layout::Scope { scope, run };
                Ok(self.held(CgroupMeans::Systemd, controllers, layout))
            }
            Err(e) => Err(why(format!("it cannot be divided ({e})"))),
        }
    }

    fn at_top(&self) -> Result<RunCgroup, String> {
        let why = |e: &io::Error| format!("no cgroup can be made at the top ({e})");
        let root = Cgroup::open(&self.standing.mount).map_err(|e| why(&e))?;
        for _ in 0..ATTEMPTS {
            if root.enable(self.wanted).map_err(|e| why(&e))?.is_empty() {
                return Err(self.no_controllers());
            }
            let slice = match root.make(SLICE) {
                Err(e) if e.raw_os_error() == Some(libc::EEXIST) => root.child(SLICE),
                other => other,
            };
            match slice.and_then(|slice| self.flat(slice, CgroupMeans::TopLevel)) {
                Ok(held) => return Ok(held),
                // The last run in it has just removed it.
                Err(e) if matches!(e.raw_os_error(), Some(libc::ENOENT | libc::ENODEV)) => {}
                Err(e) => {
                    let _ = root.remove(SLICE);
                    return Err(why(&e));
                }
            }
        }
        Err(why(&io::Error::from_raw_os_error(libc::EAGAIN)))
    }

    fn held(&self, means: CgroupMeans, controllers: Vec<String>, layout: Layout) -> RunCgroup {
        RunCgroup { means, controllers, layout, owner: std::process::id() }
    }
}
