//! What the host has at the places that were missing inside. Looked up after the run, by the caller's own rights.
//!
//! Stops: a name that a program made up from mounting something (an automount point is not entered), from being read, and from
//! hanging in a loop of links.

use std::path::{Component, Path, PathBuf};

use mcp_learn::{Access, Evidence, FileKind, Grant, PathSeen, path_reason};
use mcp_sandbox::{HOME, MissingPath, WatchedAct};

use super::drive::Phases;

/// What C libraries look for in every program, and do without.
const QUIET: &[&str] = &[
    "/etc/gai.conf",
    "/etc/ld.so.preload",
    "/etc/locale.alias",
    "/usr/share/locale/locale.alias",
    "/var/run/nscd/socket",
    "/run/nscd/socket",
];

/// What is at a path of the host, without its links.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Found {
    real: PathBuf,
    kind: FileKind,
}

/// Whether what is granted below the caller's home is in the command's HOME as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnHome {
    /// It is, under the same name.
    Linked,
    /// It is not: the HOME is kept, or another system's.
    Apart,
}

/// The observations that missing places of a run come to.
pub fn seen(
    missing: &[MissingPath],
    phases: &Phases,
    granted: &[Grant],
    (home, own): (Option<&Path>, OwnHome),
) -> Vec<PathSeen> {
    let meant = |missing: &MissingPath| {
        let mut missing = missing.clone();
        if let Some(path) = in_home(&missing.path, home).filter(|_| own == OwnHome::Linked) {
            missing.path = path;
        }
        missing
    };
    missing.iter().filter_map(|missing| one(&meant(missing), phases, granted, home)).collect()
}

/// What the caller's home has where the command looked in its own.
fn in_home(path: &str, home: Option<&Path>) -> Option<String> {
    let below = Path::new(path).strip_prefix(HOME).ok()?;
    let there = home?.join(below);
    find(&there).filter(|_| !below.as_os_str().is_empty())?;
    there.to_str().map(str::to_owned)
}

/// What it would make in the caller's home itself. Once it is there, it can be granted without the rest.
pub fn made_in_home<'a>(
    missing: &'a [MissingPath],
    home: Option<&'a Path>,
) -> impl Iterator<Item = PathBuf> + 'a {
    let makes = |missing: &&MissingPath| missing.act == WatchedAct::Create;
    missing.iter().filter(makes).filter_map(move |missing| {
        let path = Path::new(&missing.path);
        (path.parent() == Some(home?) && find(path).is_none()).then(|| path.to_owned())
    })
}

/// Files and directories of the host that the command names: a script with what lies beside it, a directory to work on.
pub fn named_by(command: &[std::ffi::OsString], home: Option<&Path>) -> Vec<PathSeen> {
    let here = std::env::current_dir().unwrap_or_default();
    let seen = |word: &std::ffi::OsString| {
        let path = here.join(word);
        let found = find(&path)?;
        let is_spelled =
            word.to_str().is_some_and(|word| word.contains('/') || found.kind == FileKind::File);
        let evidence = Evidence { times: 1, first: "the command line".to_owned() };
        let access = if found.kind == FileKind::Socket { Access::Connect } else { Access::Look };
        let is_plain = path.components().all(|part| !matches!(part, Component::ParentDir));
        let is_harmless = path_reason(&found.real, home).is_none();
        let path = if is_plain && is_harmless { path } else { found.real };
        is_spelled.then_some(PathSeen { path, kind: found.kind, access, evidence })
    };
    command.iter().skip(1).filter_map(seen).collect()
}

fn one(
    missing: &MissingPath,
    phases: &Phases,
    granted: &[Grant],
    home: Option<&Path>,
) -> Option<PathSeen> {
    let named = Path::new(&missing.path);
    // Python keeps what it compiled beside a script where it can, and does without where it cannot.
    let is_bytecode = named.components().any(|part| part.as_os_str() == "__pycache__");
    if QUIET.contains(&missing.path.as_str()) || is_bytecode {
        return None;
    }
    let parent = || named.parent().and_then(|parent| Some((parent, find(parent)?)));
    let (named, found, access) = match missing.act {
        WatchedAct::Look => (named, find(named)?, Access::Look),
        WatchedAct::Read => (named, find(named)?, Access::Read),
        WatchedAct::Write => (named, find(named)?, Access::Write),
        WatchedAct::Connect => {
            (named, find(named).filter(|found| found.kind == FileKind::Socket)?, Access::Connect)
        }
        WatchedAct::Create => match find(named) {
            Some(found) if found.kind == FileKind::Directory => {
                (named, found, Access::WriteEntries)
            }
            Some(found) => (named, found, Access::Write),
            None => parent().map(|(parent, found)| (parent, found, Access::WriteEntries))?,
        },
        WatchedAct::MadeInstead => {
            let found = find(named).filter(|found| found.kind == FileKind::Directory)?;
            (named, found, Access::WriteEntries)
        }
        WatchedAct::Remove => {
            find(named)?;
            parent().map(|(parent, found)| (parent, found, Access::WriteEntries))?
        }
        _ => return None,
    };
    let is_write = matches!(access, Access::Write | Access::WriteEntries);
    let as_grant = |path: &Path| match is_write {
        true => Grant::Write(path.to_owned()),
        false => Grant::Read(path.to_owned()),
    };
    // A link that lies in a granted place leads out of it; a link to credentials is named by them.
    let is_given = granted.iter().any(|grant| grant.covers(&as_grant(named)));
    let leads_out = is_given && !granted.iter().any(|grant| grant.covers(&as_grant(&found.real)));
    let path = match leads_out || path_reason(&found.real, home).is_some() {
        true => found.real,
        false => named.to_owned(),
    };
    let evidence = Evidence { times: missing.times, first: phases.at(missing.first).to_owned() };
    Some(PathSeen { path, kind: found.kind, access, evidence })
}

#[cfg(target_os = "linux")]
fn find(path: &Path) -> Option<Found> {
    let (real, kind) = walk::find(path)?;
    Some(Found { real, kind })
}

#[cfg(not(target_os = "linux"))]
fn find(path: &Path) -> Option<Found> {
    let real = std::fs::canonicalize(path).ok()?;
    let found = std::fs::metadata(&real).ok()?;
    let kind = if found.is_dir() { FileKind::Directory } else { FileKind::File };
    Some(Found { real, kind })
}

#[cfg(target_os = "linux")]
mod walk {
    use std::collections::VecDeque;
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;
    use std::path::{Component, Path, PathBuf};

    use mcp_learn::FileKind;
    use rustix::fs::{AtFlags, FileType, Mode, OFlags, fstat, fstatfs, open, openat, readlinkat};

    const MOST_LINKS: usize = 40;
    const AUTOFS: i64 = 0x0187;

    /// Component by component: one that is opened as a mere handle does not set off an automount.
    pub fn find(path: &Path) -> Option<(PathBuf, FileKind)> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut left: VecDeque<OsString> = parts(path);
        let mut real = PathBuf::from("/");
        let mut handles = vec![open("/", flags, Mode::empty()).ok()?];
        let mut links = 0;
        while let Some(part) = left.pop_front() {
            if part == ".." {
                if handles.len() > 1 {
                    handles.pop();
                    real.pop();
                }
                continue;
            }
            let handle = openat(handles.last()?, &part, flags, Mode::empty()).ok()?;
            if fstatfs(&handle).ok()?.f_type as i64 == AUTOFS {
                return None;
            }
            match FileType::from_raw_mode(fstat(&handle).ok()?.st_mode) {
                FileType::Symlink => {
                    links += 1;
                    if links > MOST_LINKS {
                        return None;
                    }
                    let to = readlinkat(&handle, "", Vec::new()).ok()?;
                    let to = PathBuf::from(OsString::from_vec(to.into_bytes()));
                    if to.is_absolute() {
                        handles.truncate(1);
                        real = PathBuf::from("/");
                    }
                    for part in parts(&to).into_iter().rev() {
                        left.push_front(part);
                    }
                }
                _ => {
                    real.push(&part);
                    handles.push(handle);
                }
            }
        }
        let found = rustix::fs::statat(handles.last()?, "", AtFlags::EMPTY_PATH).ok()?;
        let kind = match FileType::from_raw_mode(found.st_mode) {
            FileType::RegularFile => FileKind::File,
            FileType::Directory => FileKind::Directory,
            FileType::Socket => FileKind::Socket,
            // A device or a pipe: nothing that a grant is meant for.
            _ => return None,
        };
        Some((real, kind))
    }

    fn parts(path: &Path) -> VecDeque<OsString> {
        let part = |part: Component<'_>| match part {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some("..".into()),
            _ => None,
        };
        path.components().filter_map(part).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_would_make_in_the_home_is_told() {
        let missing = |path: &str, act: &str| -> MissingPath {
            let value = serde_json::json!({ "path": path, "act": act, "times": 1, "first": 0.0 });
            serde_json::from_value(value).unwrap()
        };
        let seen = [
            missing("/none/ada/data", "create"),
            missing("/none/ada/deep/er", "create"),
            missing("/none/ada/read", "read"),
            missing("/none/data", "create"),
        ];
        let made = |home| made_in_home(&seen, home).collect::<Vec<_>>();
        assert_eq!(made(Some(Path::new("/none/ada"))), [Path::new("/none/ada/data")]);
        assert_eq!(made(None), Vec::<PathBuf>::new());
    }
}
