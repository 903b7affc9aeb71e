//! Finds what the deny rules match on this host, now.
//!
//! A path is looked up; only a glob makes us search, and only where it can match: from its own
//! literal directory on, inside what is granted or shown. Rules without a directory (`**/.env`)
//! search all that is granted and the program's own surroundings, but not the system: it holds
//! nothing of the user's and most of the files. The search goes into mounts below, as the binds do,
//! and follows no symlink.
//!
//! What a denied symlink leads to is denied as well. A directory that the caller may not list, but
//! that the command could get into, is denied as a whole: we do not know what it holds.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use mcp_policy::{Origin, Sourced};
use rustix::fs::{Access, CWD, FileType, access, lstat};
use rustix::io::Errno;

use crate::core::error::Error;
use crate::core::glob_set::{GlobSet, Position};
use crate::core::request::{Denied, DeniedKind, Place, PlaceKind};
use crate::host_files::walk::walk;
use crate::unix::glob::{self, Glob};
use crate::unix::listing::{self, Lister};

/// Each is a mount inside; a rule that matches more of them means a directory.
const MOST: usize = 4096;

const SEARCHING: &str = "could not search for what is denied";

/// What is shown of the system, and stores that are like it.
const SYSTEM: [&str; 9] =
    ["/usr", "/etc", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix/store", "/gnu/store"];

/// What the rules match in what is granted and shown. Nothing in the answer lies below another.
pub fn find(
    rules: &[Sourced<PathBuf>],
    granted: &[&Place],
    shown: &[&Place],
) -> Result<Vec<Denied>, Error> {
    let mut found = DeniedPaths::default();
    let mut globs = Vec::new();
    for (rule, Sourced { value: entry, origin }) in rules.iter().enumerate() {
        let refuse = |why: String| Error::Grant { flag: flag(origin), path: entry.clone(), why };
        if entry.is_absolute() {
            found.look_up(entry, rule).map_err(|e| refuse(e.to_string()))?;
        }
        for glob in glob::parse(entry).map_err(|why| refuse(why.to_owned()))? {
            if glob.tail.is_empty() {
                found.look_up(&glob.head, rule).map_err(|e| refuse(e.to_string()))?;
                continue;
            }
            match walk(&glob.head) {
                Ok(walked) => globs.push((rule, Glob { head: walked.real, ..glob })),
                // What holds the matches is not there, or not to be looked into.
                Err(_) => found.look_up(&glob.head, rule).map_err(|e| refuse(e.to_string()))?,
            }
        }
    }
    let globs = GlobSet::new(globs);
    let starts = starts(&globs, &roots(granted, shown), &mut found)
        .map_err(|source| Error::Io { doing: SEARCHING.to_owned(), source })?;
    for (start, position) in starts {
        found.search(&globs, &start, position)?;
    }
    found.outermost()
}

/// How the user gave a rule.
pub fn flag(origin: &Origin) -> String {
    match origin {
        Origin::CommandLine { .. } => "--deny".to_owned(),
        place => format!("{place}: deny"),
    }
}

/// Which globs a tree is searched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    All,
    /// Those that name a directory.
    Anchored,
}

/// The trees to search, without those that another one holds.
fn roots(granted: &[&Place], shown: &[&Place]) -> Vec<(Place, Scope)> {
    let is_system = |path: &Path| SYSTEM.iter().any(|system| path.starts_with(system));
    let own = shown.iter().filter(|place| !is_system(&place.path));
    let mut all: Vec<&Place> = granted.iter().chain(own).copied().collect();
    all.sort();
    all.dedup();
    let is_inside = |place: &Place, other: &Place| {
        place.path != other.path && place.path.starts_with(&other.path)
    };
    let outermost = all.iter().filter(|place| !all.iter().any(|other| is_inside(place, other)));
    let mut roots: Vec<_> = outermost.map(|place| ((*place).clone(), Scope::All)).collect();
    for path in SYSTEM {
        roots.push((Place { path: path.into(), kind: PlaceKind::Directory }, Scope::Anchored));
    }
    roots
}

/// Where to search, and for what. What denies a whole tree is settled here.
fn starts(
    globs: &GlobSet,
    roots: &[(Place, Scope)],
    found: &mut DeniedPaths,
) -> io::Result<BTreeMap<PathBuf, Rc<Position>>> {
    let mut starts: BTreeMap<PathBuf, Vec<Rc<Position>>> = BTreeMap::new();
    for (root, scope) in roots {
        for (number, glob) in globs.iter() {
            if glob.floating && *scope == Scope::Anchored {
                continue;
            }
            let start = if glob.head.starts_with(&root.path) {
                &glob.head
            } else if root.path.starts_with(&glob.head) {
                &root.path
            } else {
                continue;
            };
            let below = start.strip_prefix(&glob.head).unwrap_or(Path::new(""));
            match globs.descend(number, below) {
                Ok(position) => starts.entry(start.clone()).or_default().push(position),
                Err((depth, rule)) => {
                    let denied: PathBuf = below.iter().take(depth).collect();
                    // Not every system has every part of one.
                    match found.deny(glob.head.join(denied), rule) {
                        Err(e) if is_nothing(&e) => {}
                        other => other?,
                    }
                }
            }
        }
    }
    Ok(starts.into_iter().map(|(start, all)| (start, globs.joined(&all))).collect())
}

/// What was found so far, by its path.
#[derive(Default)]
struct DeniedPaths(BTreeMap<PathBuf, (DeniedKind, usize)>);

impl DeniedPaths {
    /// Denies the file or directory of exactly this path, if there is one.
    fn look_up(&mut self, path: &Path, rule: usize) -> io::Result<()> {
        let real = match (path.parent(), path.file_name()) {
            (Some(parent), Some(name)) => walk(parent).map(|walked| walked.real.join(name)),
            _ => walk(path).map(|walked| walked.real),
        };
        let looked = match real.and_then(|real| self.deny(real, rule)) {
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
                match path.ancestors().skip(1).find_map(|above| walk(above).ok()) {
                    Some(nearest) => self.close(&nearest.real, rule),
                    None => Err(e),
                }
            }
            other => other,
        };
        looked.or_else(|e| if is_nothing(&e) { Ok(()) } else { Err(e) })
    }

    /// Denies what is there. No symlink leads to `path`, but it may be one.
    fn deny(&mut self, path: PathBuf, rule: usize) -> io::Result<()> {
        let kind = FileType::from_raw_mode(lstat(&path)?.st_mode);
        self.insert(path, kind, rule)
    }

    fn insert(&mut self, path: PathBuf, kind: FileType, rule: usize) -> io::Result<()> {
        let kind = match kind {
            FileType::Directory => DeniedKind::Directory,
            FileType::Symlink => DeniedKind::Link,
            _ => DeniedKind::File,
        };
        if kind == DeniedKind::Link {
            match walk(&path).and_then(|walked| self.deny(walked.real, rule)) {
                Err(e) if is_nothing(&e) => {}
                Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
                    let to = std::fs::read_link(&path)?;
                    self.look_up(&path.parent().unwrap_or(&path).join(to), rule)?;
                }
                other => other?,
            }
        }
        self.0.entry(path).or_insert((kind, rule));
        Ok(())
    }

    /// A directory whose names cannot be seen: denied, unless the command cannot get in either. One that cannot
    /// even be looked at lies in a directory that may not be entered, and is denied with that.
    fn close(&mut self, directory: &Path, rule: usize) -> io::Result<()> {
        let mut closed = directory;
        let owner = loop {
            match (lstat(closed), closed.parent()) {
                (Err(Errno::ACCESS), Some(above)) => closed = above,
                (looked, _) => break looked?.st_uid,
            }
        };
        let passable = access(closed, Access::EXEC_OK).is_ok();
        if passable || owner == rustix::process::geteuid().as_raw() {
            self.0.entry(closed.to_owned()).or_insert((DeniedKind::Directory, rule));
        }
        Ok(())
    }

    /// Searches a directory and all that is below it.
    fn search(
        &mut self,
        globs: &GlobSet,
        start: &Path,
        position: Rc<Position>,
    ) -> Result<(), Error> {
        let mut path = start.as_os_str().as_bytes().to_vec();
        let mut lister = Lister::default();
        let mut levels: Vec<Level> = Vec::new();
        let mut next = (listing::open(CWD, start), position);
        loop {
            let here = Path::new(OsStr::from_bytes(&path));
            let listed = match next {
                // By its path, or as the target of a link.
                _ if self.0.contains_key(here) => Ok(None),
                (Ok(directory), position) => {
                    self.list(globs, directory, &position, here, &mut lister).map(Some)
                }
                (Err(Errno::ACCESS), position) => {
                    self.close(here, globs.a_rule(&position)).map(|()| None)
                }
                (Err(e), _) => Err(e.into()),
            };
            match listed {
                Ok(level) => levels.extend(level),
                Err(e) if is_nothing(&e) => {}
                Err(source) => {
                    return Err(Error::Io {
                        doing: format!("{SEARCHING} in {}", here.display()),
                        source,
                    });
                }
            }
            if self.0.len() > MOST {
                return Err(too_many());
            }
            // On to the next directory: in this one, or in the nearest above that has any left.
            next = loop {
                let Some(level) = levels.last_mut() else {
                    return Ok(());
                };
                path.truncate(level.length);
                let Some((name, position)) = level.pending.pop() else {
                    levels.pop();
                    continue;
                };
                path.push(b'/');
                path.extend_from_slice(name.to_bytes());
                if let Some(names) = &position.in_leaf
                    && lister.is_leaf(&level.directory, &name).unwrap_or(false)
                    && self.ask(level, &path, names).is_ok()
                {
                    continue;
                }
                break (listing::open(&level.directory, name.as_c_str()), position);
            };
        }
    }

    /// Takes what matches in a directory that holds no directories, without listing it. `path`
    /// is the directory's own.
    fn ask(&mut self, level: &Level, path: &[u8], names: &[(CString, usize)]) -> io::Result<()> {
        for (name, rule) in names {
            let below = [&path[level.length + 1..], b"/", name.to_bytes()].concat();
            if let Some(kind) = listing::kind(&level.directory, &below)? {
                let path = [path, b"/", name.to_bytes()].concat();
                self.insert(OsStr::from_bytes(&path).into(), kind, *rule)?;
            }
        }
        Ok(())
    }

    /// Takes what matches in one directory, and leaves the directories to search next.
    fn list(
        &mut self,
        globs: &GlobSet,
        directory: OwnedFd,
        position: &Rc<Position>,
        path: &Path,
        lister: &mut Lister,
    ) -> io::Result<Level> {
        let mut pending = Vec::new();
        let mut failed = Ok(());
        let mut visit = |name: &CStr, kind: FileType| {
            let bytes = name.to_bytes();
            if let Some(rule) = position.denies(bytes) {
                let denied = self.insert(path.join(OsStr::from_bytes(bytes)), kind, rule);
                failed = std::mem::replace(&mut failed, Ok(())).and(denied);
            } else if kind == FileType::Directory {
                let below = globs.below(position, bytes);
                if !below.is_dead() {
                    pending.push((name.to_owned(), below));
                }
            }
        };
        match globs.names(position) {
            // Nothing else can match, so nothing else is looked at.
            Some(names) => {
                for name in names {
                    let name = CString::new(name)?;
                    if let Some(kind) = listing::kind(&directory, &name)? {
                        visit(&name, kind);
                    }
                }
            }
            None => lister.each(&directory, visit)?,
        }
        failed?;
        Ok(Level { directory, length: path.as_os_str().len(), pending })
    }

    /// Without what lies below something else.
    fn outermost(self) -> Result<Vec<Denied>, Error> {
        let mut kept: Vec<Denied> = Vec::new();
        for (path, (kind, rule)) in self.0 {
            // Sorted by names: what holds this one would be the last that was kept.
            if !kept.last().is_some_and(|last| path.starts_with(&last.path)) {
                kept.push(Denied { path, kind, rule });
            }
        }
        if kept.len() > MOST { Err(too_many()) } else { Ok(kept) }
    }
}

/// A directory on the way down, with what is still to be searched in it.
struct Level {
    directory: OwnedFd,
    /// How much of the path is this directory's.
    length: usize,
    pending: Vec<(CString, Rc<Position>)>,
}

/// Whether there is nothing at a path.
fn is_nothing(error: &io::Error) -> bool {
    let nothing = [libc::ENOENT, libc::ENOTDIR, libc::ELOOP, libc::ENAMETOOLONG];
    error.raw_os_error().is_some_and(|errno| nothing.contains(&errno))
}

fn too_many() -> Error {
    Error::Input {
        what: "deny".to_owned(),
        why: format!(
            "the rules match more than {MOST} paths; deny the directories that hold them, or grant less"
        ),
    }
}

#[cfg(test)]
mod tests;
