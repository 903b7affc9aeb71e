//! The search itself: every directory of what may be written, by its names.
//!
//! A git directory is known by what is in it, not by its name alone. No symlink is followed on the way.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use mcp_policy::protect::{Spot, reason};
use rustix::fs::{CWD, FileType};

use super::opening::{self, Force, Opened};
use crate::protected::{GIT_LINK, GIT_PLACE, UNREAD, git, is_named_git};
use crate::request::{DeniedKind, Guarded, Place, PlaceKind, Protected};
use crate::unix::listing::Lister;
use crate::unix::walk::walk;

/// Directories in directories: more is nobody's project, and each holds a descriptor.
const DEEPEST: usize = 128;

/// What to do about directories that cannot be listed.
#[derive(Debug, Clone, Copy)]
pub enum Unlisted<'a> {
    /// Their modes are the owner's wish.
    Protect,
    /// Their modes may be a hiding place: they are opened for the search, and closed again. What was
    /// read-only has not changed, and is left alone.
    Open(&'a [Protected]),
}

impl Unlisted<'_> {
    fn force(self) -> Force {
        match self {
            Unlisted::Protect => Force::No,
            Unlisted::Open(_) => Force::Yes,
        }
    }

    /// Whether a directory was read-only, so that nothing in it is new.
    fn knows(self, path: &Path) -> bool {
        let is = |old: &Protected| old.guarded == Guarded::ReadOnly && old.path == path;
        matches!(self, Unlisted::Open(known) if known.iter().any(is))
    }
}

/// What a search came to.
#[derive(Debug, Default)]
pub struct Search {
    found: BTreeMap<PathBuf, (DeniedKind, Guarded, &'static str)>,
    /// Git directories, with the top of the work tree where one is known.
    repositories: BTreeMap<PathBuf, Option<PathBuf>>,
    /// Could not be searched, and why.
    pub unread: Vec<(PathBuf, String)>,
    /// Closed again when the search is over.
    forced: Vec<Opened>,
}

/// A directory on the way down.
struct Here {
    directory: Opened,
    path: PathBuf,
    is_top: bool,
    /// Something says that this is a git directory, whatever it looks like.
    is_git: bool,
    depth: usize,
}

/// The names in a directory that matter.
#[derive(Default)]
struct Names {
    directories: Vec<CString>,
    of_git: Vec<(CString, FileType)>,
    of_top: Vec<(CString, FileType)>,
    git: Option<(CString, FileType)>,
    has_head: bool,
    has_objects: bool,
    has_refs: bool,
    has_common: bool,
}

impl Names {
    fn take(&mut self, name: &CStr, kind: FileType) {
        let bytes = name.to_bytes();
        let is = |word: &[u8]| bytes.eq_ignore_ascii_case(word);
        if is(b".git") {
            self.git = Some((name.to_owned(), kind));
        }
        self.has_head |= is(b"HEAD");
        self.has_objects |= is(b"objects");
        self.has_refs |= is(b"refs");
        self.has_common |= is(b"commondir");
        if reason(Spot::GitDirectory, bytes).is_some() {
            self.of_git.push((name.to_owned(), kind));
        }
        if reason(Spot::Top, bytes).is_some() {
            self.of_top.push((name.to_owned(), kind));
        }
        if kind == FileType::Directory {
            self.directories.push(name.to_owned());
        }
    }

    fn look_like_git(&self) -> bool {
        self.has_head && (self.has_common || self.has_objects && self.has_refs)
    }
}

impl Search {
    /// Searches writable places; nothing in `allowed` or below it counts.
    pub fn run(write: &[Place], allowed: &[PathBuf], unlisted: Unlisted<'_>) -> Search {
        let mut search = Search::default();
        let mut lister = Lister::default();
        let roots: Vec<&Path> = write
            .iter()
            .filter(|place| place.kind == PlaceKind::Directory)
            .map(|place| place.path.as_path())
            .collect();
        let mut within = Within { roots: &roots, allowed, unlisted, lister: &mut lister };
        for root in &roots {
            search.enter_path(root, Role::Root, &mut within);
        }
        // What git directories point to may be git directories in turn.
        let mut done = 0;
        loop {
            let led: Vec<Led> = search.leads(&within);
            if led.len() <= done {
                break;
            }
            done = led.len();
            led.into_iter().for_each(|led| search.follow(led, &mut within));
        }
        search
    }

    /// What is protected, outermost only.
    pub fn protected(&self) -> Vec<Protected> {
        let mut kept: Vec<Protected> = Vec::new();
        for (path, (kind, guarded, why)) in &self.found {
            let is_inside = kept
                .iter()
                .rev()
                .any(|above| above.guarded == Guarded::ReadOnly && path.starts_with(&above.path));
            if !is_inside {
                kept.push(Protected {
                    path: path.clone(),
                    kind: *kind,
                    guarded: *guarded,
                    why: (*why).to_owned(),
                });
            }
        }
        kept
    }

    fn enter_path(&mut self, path: &Path, role: Role, within: &mut Within<'_>) {
        let name = match CString::new(path.as_os_str().as_bytes()) {
            Ok(name) => name,
            Err(_) => return,
        };
        match opening::open(CWD, &name, within.unlisted.force()) {
            Ok(directory) => {
                let here = Here {
                    directory,
                    path: path.to_owned(),
                    is_top: role == Role::Root,
                    is_git: role == Role::Git || is_named_git(path),
                    depth: 0,
                };
                self.enter(&here, within);
                self.forced.extend(Some(here.directory).filter(Opened::is_forced));
            }
            Err(e)
                if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {}
            Err(e) => self.unread.push((path.to_owned(), e.to_string())),
        }
    }

    fn enter(&mut self, here: &Here, within: &mut Within<'_>) {
        let mut names = Names::default();
        if let Err(errno) =
            within.lister.each(&here.directory.directory, |name, kind| names.take(name, kind))
        {
            self.unread.push((here.path.clone(), io::Error::from(errno).to_string()));
        }
        let is_git = here.is_git || names.look_like_git();
        if is_git {
            let top = here.path.parent().filter(|_| is_named_git(&here.path));
            self.repositories.entry(here.path.clone()).or_insert(top.map(Path::to_owned));
            for (name, kind) in &names.of_git {
                let why = reason(Spot::GitDirectory, name.to_bytes()).unwrap_or(GIT_PLACE);
                self.add(below(&here.path, name), *kind, Guarded::ReadOnly, why, within);
            }
        }
        if here.is_top || names.git.is_some() {
            for (name, kind) in &names.of_top {
                let why = reason(Spot::Top, name.to_bytes()).unwrap_or(GIT_PLACE);
                self.add(below(&here.path, name), *kind, Guarded::ReadOnly, why, within);
            }
        }
        if let Some((name, kind)) = &names.git {
            let path = below(&here.path, name);
            match kind {
                FileType::Directory => self.add(path, *kind, Guarded::InPlace, GIT_PLACE, within),
                _ => self.add(path, *kind, Guarded::ReadOnly, GIT_LINK, within),
            }
        }
        for name in names.directories {
            // Objects are no settings, and there are many of them.
            let holds_objects = is_git
                && name.to_bytes() == b"objects"
                && here.path.iter().any(|part| part == ".git");
            if !holds_objects {
                self.descend(here, &name, within);
            }
        }
    }

    fn descend(&mut self, above: &Here, name: &CStr, within: &mut Within<'_>) {
        let path = below(&above.path, name);
        let is_closed = |(_, guarded, _): &(_, Guarded, _)| *guarded == Guarded::ReadOnly;
        let is_done = within.allows(&path) || within.unlisted.knows(&path);
        if is_done || self.found.get(&path).is_some_and(is_closed) {
            return;
        }
        if above.depth >= DEEPEST {
            return self.leave_out(path, "is nested too deep", within);
        }
        let before = self.found.len();
        match opening::open(&above.directory.directory, name, within.unlisted.force()) {
            Ok(directory) => {
                let is_git = is_named_git(&path);
                let depth = above.depth + 1;
                let here = Here { directory, path, is_top: false, is_git, depth };
                self.enter(&here, within);
                // What was found in it has to be reached again.
                if self.found.len() > before && here.directory.is_forced() {
                    self.forced.push(here.directory);
                }
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => self.leave_out(path, &e.to_string(), within),
        }
    }

    /// Nobody knows what is in it: before a run it is protected as a whole.
    fn leave_out(&mut self, path: PathBuf, why: &str, within: &Within<'_>) {
        match within.unlisted {
            Unlisted::Protect => {
                self.found.insert(path, (DeniedKind::Directory, Guarded::ReadOnly, UNREAD));
            }
            Unlisted::Open(_) => self.unread.push((path, why.to_owned())),
        }
    }

    fn add(
        &mut self,
        path: PathBuf,
        kind: FileType,
        guarded: Guarded,
        why: &'static str,
        within: &Within<'_>,
    ) {
        let kind = match kind {
            FileType::Directory => DeniedKind::Directory,
            FileType::Symlink => DeniedKind::Link,
            _ => DeniedKind::File,
        };
        if !within.allows(&path) {
            self.found.entry(path).or_insert((kind, guarded, why));
        }
    }

    /// Where links, `.git` files and settings lead, in writable places.
    fn leads(&self, within: &Within<'_>) -> Vec<Led> {
        let mut leads = Vec::new();
        for (path, (kind, guarded, why)) in &self.found {
            let is_git_link = *why == GIT_LINK && is_named_git(path);
            let target = match kind {
                DeniedKind::Link => walk(path).ok().map(|walked| walked.real),
                DeniedKind::File if is_git_link => git::pointer(path, "gitdir:"),
                _ => None,
            };
            if let Some(path) = target.filter(|_| *guarded == Guarded::ReadOnly) {
                let role = if is_git_link { Role::Git } else { Role::Plain };
                leads.push(Led { path, role, why });
            }
        }
        for (path, top) in &self.repositories {
            if let Some(common) = git::pointer(&path.join("commondir"), "") {
                leads.push(Led { path: common, role: Role::Git, why: GIT_LINK });
            }
            for named in git::named(path, top.as_deref()) {
                leads.push(Led { path: named, role: Role::Plain, why: "git runs what it holds" });
            }
        }
        leads.retain(|led| within.holds(&led.path) && !within.allows(&led.path));
        leads
    }

    fn follow(&mut self, led: Led, within: &mut Within<'_>) {
        if led.role == Role::Git {
            if !self.repositories.contains_key(&led.path) {
                self.enter_path(&led.path, Role::Git, within);
            }
            return;
        }
        if let Ok(stat) = rustix::fs::lstat(&led.path) {
            let kind = FileType::from_raw_mode(stat.st_mode);
            self.add(led.path, kind, Guarded::ReadOnly, led.why, within);
        }
    }
}

/// Somewhere that something protected leads to.
struct Led {
    path: PathBuf,
    role: Role,
    why: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Root,
    Git,
    Plain,
}

struct Within<'a> {
    roots: &'a [&'a Path],
    allowed: &'a [PathBuf],
    unlisted: Unlisted<'a>,
    lister: &'a mut Lister,
}

impl Within<'_> {
    fn allows(&self, path: &Path) -> bool {
        self.allowed.iter().any(|allowed| path.starts_with(allowed))
    }

    /// Below a root: a root itself cannot be protected, or nothing could be written.
    fn holds(&self, path: &Path) -> bool {
        self.roots.iter().any(|root| path.starts_with(root) && path != *root)
            && !self.roots.iter().any(|root| root.starts_with(path))
    }
}

fn below(path: &Path, name: &CStr) -> PathBuf {
    path.join(OsStr::from_bytes(name.to_bytes()))
}
