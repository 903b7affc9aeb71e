//! Finds what is protected inside writable directories: once before a run, to be left read-only, and once after
//! it, to remove what is new. The rules are those of the other systems: a git directory is known by what is in
//! it, and what a `.git` file, `core.hooksPath`, an `include` or a link leads to is protected too, where it lies
//! in a writable directory. No link or junction is followed on the way.
//!
//! Leaves open: the time until the end, a launcher that is killed before, and another run that swaps a directory
//! for a junction between the look at the way and the removal.

use std::collections::BTreeMap;
use std::fs::{self, FileType};
use std::io;
use std::path::{Path, PathBuf};

use mcp_policy::protect::{Spot, reason};
use mcp_policy::{Policy, Protect};

use crate::error::Error;
use crate::file_names::real;
use crate::protected::{
    self, GIT_LINK, GIT_PLACE, UNREAD, git, is_harmless, is_named_git, is_part_of,
};
use crate::report::Undone;
use crate::request::{DeniedKind, Guarded, Place, PlaceKind, Protected, Request};

/// Directories in directories: more is nobody's project.
const DEEPEST: usize = 128;

/// What a policy protects in the places that it gives for writing.
pub fn find(
    policy: &Policy,
    write: &[Place],
    allowed: &[PathBuf],
) -> Result<Vec<Protected>, Error> {
    if policy.protect.value == Protect::Nothing || write.is_empty() {
        return Ok(Vec::new());
    }
    let search = Search::run(write, allowed);
    // Only the top of a place is not protected as a whole then, or nothing could be written.
    if let Some((path, why)) =
        search.unread.iter().find(|(path, _)| !search.found.contains_key(path))
    {
        let doing = format!("search {} for what is protected", path.display());
        return Err(Error::Io { doing, source: io::Error::other(why.clone()) });
    }
    protected::checked(search.protected(), allowed)
}

/// What is not protected: it need not be there yet.
pub fn exceptions(policy: &Policy, write: &[Place]) -> Result<Vec<PathBuf>, Error> {
    protected::exceptions(policy, write, real)
}

/// Looks for what is new in protected places, and removes it. Everything of the run is dead by then.
pub fn undo(request: &Request) -> Vec<Undone> {
    if !request.protects() {
        return Vec::new();
    }
    let search = Search::run(&request.write, &request.unprotected);
    let shown = |path: &Path| path.to_string_lossy().into_owned();
    let mut undone = Vec::new();
    for new in search.protected() {
        let was_there = request.protected.iter().any(|old| is_part_of(&new, old));
        if was_there
            || new.guarded == Guarded::InPlace
            || new.why == UNREAD
            || is_harmless(&new, request)
        {
            continue;
        }
        let failed = remove(&new.path).err().map(|error| error.to_string());
        undone.push(Undone { path: shown(&new.path), why: new.why, failed });
    }
    let was_unread = |path: &Path| request.protected.iter().any(|old| path.starts_with(&old.path));
    for (path, why) in search.unread.iter().filter(|(path, _)| !was_unread(path)) {
        undone.push(Undone {
            path: shown(path),
            why: "it may hold settings that were not there before".to_owned(),
            failed: Some(format!("could not be searched: {why}")),
        });
    }
    undone
}

fn remove(path: &Path) -> io::Result<()> {
    // Another run that may write here could have put a link in the place of a directory on the way.
    if path.parent().is_none_or(|above| !real(above).is_ok_and(|real| real == above)) {
        return Err(io::Error::other("a link leads there"));
    }
    let kind = match fs::symlink_metadata(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        looked => looked?.file_type(),
    };
    match kind {
        kind if kind.is_dir() => fs::remove_dir_all(path),
        // A link to a directory is removed as one, and as a file elsewhere.
        kind if kind.is_symlink() => fs::remove_file(path).or_else(|_| fs::remove_dir(path)),
        _ => fs::remove_file(path),
    }
}

#[derive(Default)]
struct Search {
    found: BTreeMap<PathBuf, (DeniedKind, Guarded, &'static str)>,
    /// Git directories, with the top of the work tree where one is known.
    repositories: BTreeMap<PathBuf, Option<PathBuf>>,
    unread: Vec<(PathBuf, String)>,
}

struct Here {
    path: PathBuf,
    is_top: bool,
    is_git: bool,
    depth: usize,
}

/// Somewhere that something protected leads to.
struct Led {
    path: PathBuf,
    is_git: bool,
    why: &'static str,
}

impl Search {
    /// Searches writable places; nothing in `allowed` or below it counts.
    fn run(write: &[Place], allowed: &[PathBuf]) -> Search {
        let mut search = Search::default();
        let is_directory = |place: &&Place| place.kind == PlaceKind::Directory;
        let roots: Vec<&Path> =
            write.iter().filter(is_directory).map(|place| place.path.as_path()).collect();
        for root in &roots {
            search.enter(root, true, is_named_git(root), allowed);
        }
        // What git directories point to may be git directories in turn.
        let mut done = 0;
        loop {
            let led = search.leads(&roots, allowed);
            if led.len() <= done {
                return search;
            }
            done = led.len();
            for Led { path, is_git, why } in led {
                if is_git && !search.repositories.contains_key(&path) {
                    search.enter(&path, false, true, allowed);
                } else if !is_git && let Ok(looked) = fs::symlink_metadata(&path) {
                    search.add(path, looked.file_type(), Guarded::ReadOnly, why, allowed);
                }
            }
        }
    }

    /// What is protected, outermost only.
    fn protected(&self) -> Vec<Protected> {
        let mut kept: Vec<Protected> = Vec::new();
        for (path, (kind, guarded, why)) in &self.found {
            let holds = |above: &Protected| {
                above.guarded == Guarded::ReadOnly && path.starts_with(&above.path)
            };
            if !kept.iter().any(holds) {
                let (kind, guarded) = (*kind, *guarded);
                kept.push(Protected { path: path.clone(), kind, guarded, why: (*why).to_owned() });
            }
        }
        kept
    }

    fn enter(&mut self, root: &Path, is_top: bool, is_git: bool, allowed: &[PathBuf]) {
        let mut pending = vec![Here { path: root.to_owned(), is_top, is_git, depth: 0 }];
        while let Some(here) = pending.pop() {
            let is_closed = |(_, guarded, _): &(_, Guarded, _)| *guarded == Guarded::ReadOnly;
            if is_within(&here.path, allowed) || self.found.get(&here.path).is_some_and(is_closed) {
                continue;
            }
            match list(&here.path) {
                _ if here.depth > DEEPEST => self.leave_out(&here, "is nested too deep"),
                Ok(names) => self.take(&here, names, allowed, &mut pending),
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => self.leave_out(&here, &e.to_string()),
            }
        }
    }

    /// Nobody knows what is in it: before a run it is protected as a whole.
    fn leave_out(&mut self, here: &Here, why: &str) {
        self.unread.push((here.path.clone(), why.to_owned()));
        if !here.is_top {
            let whole = (DeniedKind::Directory, Guarded::ReadOnly, UNREAD);
            self.found.insert(here.path.clone(), whole);
        }
    }

    fn take(
        &mut self,
        here: &Here,
        names: Vec<(String, FileType)>,
        allowed: &[PathBuf],
        pending: &mut Vec<Here>,
    ) {
        let has = |wanted: &str| names.iter().any(|(name, _)| name.eq_ignore_ascii_case(wanted));
        let looks_like_git = has("HEAD") && (has("commondir") || has("objects") && has("refs"));
        let is_git = here.is_git || looks_like_git;
        if is_git {
            let top = here.path.parent().filter(|_| is_named_git(&here.path));
            self.repositories.entry(here.path.clone()).or_insert(top.map(Path::to_owned));
        }
        let is_top = here.is_top || has(".git");
        for (name, kind) in names {
            let path = here.path.join(&name);
            let of = |spot: Spot| reason(spot, name.as_bytes());
            let why = of(Spot::GitDirectory).filter(|_| is_git);
            if let Some(why) = why.or_else(|| of(Spot::Top).filter(|_| is_top)) {
                self.add(path, kind, Guarded::ReadOnly, why, allowed);
                continue;
            }
            if is_named_git(&path) {
                match kind.is_dir() {
                    true => self.add(path.clone(), kind, Guarded::InPlace, GIT_PLACE, allowed),
                    false => self.add(path.clone(), kind, Guarded::ReadOnly, GIT_LINK, allowed),
                }
            }
            // Objects are no settings, and there are many of them.
            let holds_objects = is_git
                && name.eq_ignore_ascii_case("objects")
                && here.path.iter().any(|part| part.eq_ignore_ascii_case(".git"));
            if kind.is_dir() && !holds_objects {
                let is_git = is_named_git(&path);
                pending.push(Here { path, is_top: false, is_git, depth: here.depth + 1 });
            }
        }
    }

    fn add(
        &mut self,
        path: PathBuf,
        kind: FileType,
        guarded: Guarded,
        why: &'static str,
        allowed: &[PathBuf],
    ) {
        let kind = match kind {
            kind if kind.is_symlink() => DeniedKind::Link,
            kind if kind.is_dir() => DeniedKind::Directory,
            _ => DeniedKind::File,
        };
        if !is_within(&path, allowed) {
            self.found.entry(path).or_insert((kind, guarded, why));
        }
    }

    /// Where links, `.git` files and settings lead, in writable places.
    fn leads(&self, roots: &[&Path], allowed: &[PathBuf]) -> Vec<Led> {
        let mut leads = Vec::new();
        for (path, (kind, guarded, why)) in &self.found {
            let is_git = *why == GIT_LINK && is_named_git(path);
            let target = match kind {
                DeniedKind::Link => real(path).ok(),
                DeniedKind::File if is_git => git::pointer(path, "gitdir:"),
                _ => None,
            };
            if let Some(path) = target.filter(|_| *guarded == Guarded::ReadOnly) {
                leads.push(Led { path, is_git, why });
            }
        }
        for (path, top) in &self.repositories {
            if let Some(common) = git::pointer(&path.join("commondir"), "") {
                leads.push(Led { path: common, is_git: true, why: GIT_LINK });
            }
            for named in git::named(path, top.as_deref()) {
                leads.push(Led { path: named, is_git: false, why: "git runs what it holds" });
            }
        }
        // A root itself cannot be protected, or nothing could be written.
        let is_below = |path: &Path| {
            roots.iter().any(|root| path.starts_with(root) && path != *root)
                && !roots.iter().any(|root| root.starts_with(path))
        };
        leads.retain(|led| is_below(&led.path) && !is_within(&led.path, allowed));
        leads
    }
}

fn is_within(path: &Path, places: &[PathBuf]) -> bool {
    places.iter().any(|place| path.starts_with(place))
}

fn list(directory: &Path) -> io::Result<Vec<(String, FileType)>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        // One that is no text is none of the names that matter.
        names.push((entry.file_name().to_string_lossy().into_owned(), entry.file_type()?));
    }
    Ok(names)
}

#[cfg(test)]
mod tests;
