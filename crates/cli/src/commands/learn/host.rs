//! What the host has at the places that were missing inside. Looked up after the run, by the caller's own rights.
//!
//! Stops: a name that a program made up from mounting something (an automount point is not entered), from being read, and from
//! hanging in a loop of links.

#[cfg(target_os = "linux")]
mod walk;

use std::path::{Component, Path, PathBuf};

use mcp_learn::{Access, Evidence, FileKind, Grant, PathSeen};
use mcp_sandbox::{HOME, MissingPath, WatchedAct};

use super::drive::Phases;
use super::known::Known;

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

/// The caller's side of the paths that a command names.
pub struct Host {
    pub home: Option<PathBuf>,
    pub own: OwnHome,
    pub known: Known,
}

impl Host {
    pub fn new(home: Option<PathBuf>, own: OwnHome) -> Host {
        let known = Known::of(home.as_deref());
        Host { home, own, known }
    }

    /// The observations that missing places of a run come to.
    pub fn seen(
        &self,
        missing: &[MissingPath],
        phases: &Phases,
        granted: &[Grant],
    ) -> Vec<PathSeen> {
        let meant = |missing: &MissingPath| {
            let mut missing = missing.clone();
            if let Some(path) = self.in_home(&missing.path) {
                missing.path = path;
            }
            missing
        };
        missing.iter().filter_map(|missing| self.one(&meant(missing), phases, granted)).collect()
    }

    /// What the caller's home has where the command looked in its own.
    fn in_home(&self, path: &str) -> Option<String> {
        let below = Path::new(path).strip_prefix(HOME).ok()?;
        if self.own == OwnHome::Apart || below.as_os_str().is_empty() {
            return None;
        }
        let there = self.home.as_ref()?.join(below);
        find(&there)?;
        there.to_str().map(str::to_owned)
    }

    /// What it would make in the caller's home itself. Once it is there, it can be granted without the rest.
    pub fn made_in_home<'a>(
        &'a self,
        missing: &'a [MissingPath],
    ) -> impl Iterator<Item = PathBuf> + 'a {
        let makes = |missing: &&MissingPath| missing.act == WatchedAct::Create;
        missing.iter().filter(makes).filter_map(move |missing| {
            let path = Path::new(&missing.path);
            let is_new = path.parent() == Some(self.home.as_deref()?) && find(path).is_none();
            is_new.then(|| path.to_owned())
        })
    }

    /// Files and directories of the host that the command names: a script with what lies beside it, a directory to work on.
    pub fn named_by(&self, command: &[std::ffi::OsString]) -> Vec<PathSeen> {
        let here = std::env::current_dir().unwrap_or_default();
        let seen = |word: &std::ffi::OsString| {
            let path = here.join(word);
            let found = find(&path)?;
            let is_spelled = word
                .to_str()
                .is_some_and(|word| word.contains('/') || found.kind == FileKind::File);
            let evidence = Evidence { times: 1, first: "the command line".to_owned() };
            let access =
                if found.kind == FileKind::Socket { Access::Connect } else { Access::Look };
            let is_plain = path.components().all(|part| !matches!(part, Component::ParentDir));
            let path = if is_plain { path } else { found.real.clone() };
            is_spelled.then(|| self.path_seen(path, found, access, evidence))
        };
        command.iter().skip(1).filter_map(seen).collect()
    }

    fn one(&self, missing: &MissingPath, phases: &Phases, granted: &[Grant]) -> Option<PathSeen> {
        let named = Path::new(&missing.path);
        // Python keeps what it compiled beside a script where it can, and does without where it cannot.
        let is_bytecode = named.components().any(|part| part.as_os_str() == "__pycache__");
        if QUIET.contains(&missing.path.as_str()) || is_bytecode {
            return None;
        }
        let (named, found, access) = wanted(named, missing.act)?;
        let is_write = matches!(access, Access::Write | Access::WriteEntries);
        let as_grant = |path: &Path| match is_write {
            true => Grant::Write(path.to_owned()),
            false => Grant::Read(path.to_owned()),
        };
        let is_given = |path: &Path| granted.iter().any(|grant| grant.covers(&as_grant(path)));
        // A link that lies in a granted place leads out of it.
        let leads_out = is_given(named) && !is_given(&found.real);
        let path = if leads_out { found.real.clone() } else { named.to_owned() };
        let evidence =
            Evidence { times: missing.times, first: phases.at(missing.first).to_owned() };
        Some(self.path_seen(path, found, access, evidence))
    }

    fn path_seen(
        &self,
        path: PathBuf,
        Found { real, kind }: Found,
        access: Access,
        evidence: Evidence,
    ) -> PathSeen {
        let usual = self.known.name_of(&real).unwrap_or(real);
        let same_as = (usual != path).then_some(usual);
        PathSeen { path, same_as, kind, access, evidence }
    }
}

/// What there is that an act was about: the place itself, or the directory of an entry.
fn wanted(named: &Path, act: WatchedAct) -> Option<(&Path, Found, Access)> {
    let parent = || named.parent().and_then(|parent| Some((parent, find(parent)?)));
    Some(match act {
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
    })
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
        let made = |home: Option<&str>| {
            let host = Host::new(home.map(PathBuf::from), OwnHome::Linked);
            host.made_in_home(&seen).collect::<Vec<_>>()
        };
        assert_eq!(made(Some("/none/ada")), [Path::new("/none/ada/data")]);
        assert_eq!(made(None), Vec::<PathBuf>::new());
    }
}
