//! Whether the command can have what it wants at a path: by looking into its own root, or by Landlock's rules where it has none.

use std::ffi::OsStr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, StatVfsMountFlags, openat2};

use super::reading::PathCall;
use crate::core::watched::WatchedAct;
use crate::linux::landlock::{Allowed, Rule};
use crate::linux::phases::LinuxPlan;

/// What is at a path inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LookupOutcome {
    /// It can be had, at this place without links.
    There(PathBuf),
    /// It is not there, or what is wanted with it is closed.
    Missing,
}

pub enum Inside {
    /// A root of its own, opened when the first path is looked up.
    Root(Option<OwnedFd>),
    /// The host's own root, behind Landlock.
    Rules(Vec<Rule>),
}

impl Inside {
    pub fn of(plan: &LinuxPlan) -> Inside {
        match (&plan.init.root, &plan.target.landlock) {
            (None, Some(landlock)) => Inside::Rules(landlock.step.rules.clone()),
            (None, None) => Inside::Rules(Vec::new()),
            (Some(_), _) => Inside::Root(None),
        }
    }

    pub fn look(&mut self, thread: i32, wanted: &PathCall) -> LookupOutcome {
        match self {
            Inside::Root(root) => {
                if root.is_none() {
                    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
                    *root =
                        rustix::fs::open(format!("/proc/{thread}/root"), flags, Mode::empty()).ok();
                }
                // Not to be told: as if all were well.
                let Some(root) = root else { return LookupOutcome::There(PathBuf::new()) };
                in_root(root, wanted)
            }
            Inside::Rules(rules) => by_rules(rules, wanted),
        }
    }
}

fn in_root(root: &OwnedFd, wanted: &PathCall) -> LookupOutcome {
    let open = |path: &Path, follows| handle(root.as_fd(), path, follows);
    let found = open(&wanted.path, wanted.follows);
    let parent = || wanted.path.parent().and_then(|parent| open(parent, true));
    let writable = |handle: OwnedFd| is_writable(&handle).then(|| there(&handle)).flatten();
    let place = match wanted.act {
        // It is about to be made, in a place of the sandbox's own.
        WatchedAct::MadeInstead if found.is_none() && is_temporary(&wanted.path) => {
            return LookupOutcome::Missing;
        }
        WatchedAct::Look | WatchedAct::Read => found.and_then(|handle| there(&handle)),
        WatchedAct::Write => found.and_then(writable),
        // What is there already is written, or tells the program so.
        WatchedAct::Create | WatchedAct::MadeInstead => match found {
            Some(handle) if !is_directory(&handle) => writable(handle),
            Some(handle) => there(&handle),
            None => parent().and_then(writable),
        },
        WatchedAct::Remove => parent().and_then(writable),
        WatchedAct::Connect => found.filter(is_socket).and_then(|handle| there(&handle)),
    };
    place.map_or(LookupOutcome::Missing, LookupOutcome::There)
}

/// Without a root of its own everything of the host is there, and Landlock refuses what no rule covers. It does not keep
/// anybody from looking.
fn by_rules(rules: &[Rule], wanted: &PathCall) -> LookupOutcome {
    let open = |path: &Path| handle(CWD, path, true).and_then(|handle| there(&handle));
    let parent = || wanted.path.parent().and_then(open);
    let real = match wanted.act {
        WatchedAct::Look => return LookupOutcome::There(wanted.path.clone()),
        WatchedAct::Create | WatchedAct::MadeInstead => open(&wanted.path).or_else(parent),
        WatchedAct::Remove => parent(),
        _ => open(&wanted.path),
    };
    // Not there at all: nothing could be granted.
    let Some(real) = real else { return LookupOutcome::There(wanted.path.clone()) };
    let writes = !matches!(wanted.act, WatchedAct::Read | WatchedAct::Connect);
    let allows = |rule: &&Rule| {
        real.starts_with(&rule.path)
            && match rule.allowed {
                Allowed::Write | Allowed::Devices | Allowed::InputOutput => {
                    wanted.act != WatchedAct::Connect
                }
                Allowed::Socket => wanted.act == WatchedAct::Connect,
                _ => !writes && wanted.act != WatchedAct::Connect,
            }
    };
    if rules.iter().any(|rule| allows(&rule)) {
        LookupOutcome::There(real)
    } else {
        LookupOutcome::Missing
    }
}

/// Where the command may make what it likes, and the host has other things.
fn is_temporary(path: &Path) -> bool {
    ["/tmp", "/var/tmp"].iter().any(|place| path.starts_with(place))
}

fn handle(root: impl AsFd, path: &Path, follows: bool) -> Option<OwnedFd> {
    let mut flags = OFlags::PATH | OFlags::CLOEXEC;
    if !follows {
        flags |= OFlags::NOFOLLOW;
    }
    let below = path.strip_prefix("/").unwrap_or(path);
    let below = if below.as_os_str().is_empty() { Path::new(OsStr::new(".")) } else { below };
    let is_own = root.as_fd().as_raw_fd() == CWD.as_raw_fd();
    // A link that leads to `/` means the command's own root.
    match is_own {
        true => rustix::fs::open(path, flags, Mode::empty()).ok(),
        false => {
            let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
            openat2(root, below, flags, Mode::empty(), resolve).ok()
        }
    }
}

/// The place without links, as the kernel names it.
fn there(handle: &OwnedFd) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/self/fd/{}", handle.as_raw_fd())).ok()
}

fn is_writable(handle: &OwnedFd) -> bool {
    rustix::fs::fstatvfs(handle)
        .is_ok_and(|found| !found.f_flag.contains(StatVfsMountFlags::RDONLY))
}

fn is_directory(handle: &OwnedFd) -> bool {
    kind(handle) == Some(FileType::Directory)
}

fn is_socket(handle: &OwnedFd) -> bool {
    kind(handle) == Some(FileType::Socket)
}

fn kind(handle: &OwnedFd) -> Option<FileType> {
    rustix::fs::fstat(handle).ok().map(|found| FileType::from_raw_mode(found.st_mode))
}
