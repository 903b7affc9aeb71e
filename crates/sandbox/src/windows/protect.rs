//! Finds what is protected inside writable directories: once before a run, to be left read-only, and once after
//! it, to remove what is new. The rules are those of the other systems: a git directory is known by what is in
//! it, and what a `.git` file, git's settings or a link lead to is protected too, where it lies
//! in a writable directory. No link or mux endpoint is followed on the way.
//!
//! Leaves open: the time until the end, a launcher that is killed before, and another run that swaps a directory
//! for a mux endpoint between the look at the way and the removal.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, FileType};
use std::io;
use std::path::{Path, PathBuf};

use mcp_policy::protect::{Spot, beyond, is_of_others, reason, reason_in};
use mcp_policy::{Policy, Protect};

use crate::core::error::Error;
use crate::core::request::{DeniedKind, Guarded, Place, PlaceKind, Protected, Request};
use crate::host_files::id as file_id;
use crate::host_files::names::real;
use crate::protected::git_leads::{
    self, Believe, GitFiles, Lead, Leads, ON_THE_WAY, Role, Unreadable,
};
use crate::protected::user_settings::UserSettings;
use crate::protected::{
    self, GIT_LINK, GIT_PLACE, TO_SETTINGS, UNREAD, Undoings, is_harmless, is_named_git,
    settings_beyond,
};

/// What a policy protects in the places that it gives for writing.
pub fn find(
    policy: &Policy,
    write: &[Place],
    allowed: &[PathBuf],
) -> Result<Vec<Protected>, Error> {
    if policy.protect.value == Protect::Nothing || write.is_empty() {
        return Ok(Vec::new());
    }
    let search = Search::run(write, allowed, Believe::All);
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
#[cfg(windows)]
pub fn exceptions(policy: &Policy, write: &[Place]) -> Result<Vec<PathBuf>, Error> {
    protected::exceptions(policy, write, real)
}

/// Looks for what is new in protected places, and removes it. Everything of the run is dead by then.
pub fn undo(request: &Request) -> Undoings {
    let mut undoings = Undoings::default();
    if !request.protects() {
        return undoings;
    }
    let closed = request.protected.iter().filter(|old| old.guarded == Guarded::ReadOnly);
    let known: BTreeSet<PathBuf> =
        closed.filter(|old| is_same(old)).map(|old| old.path.clone()).collect();
    let search = Search::run(&request.write, &request.unprotected, Believe::ReadOnly(&known));
    let old: BTreeMap<&Path, &Protected> =
        request.protected.iter().map(|old| (old.path.as_path(), old)).collect();
    for new in search.protected() {
        if new.guarded == Guarded::InPlace || new.why == UNREAD || is_old(&new, &old) {
            continue;
        }
        if is_harmless(&new, request) {
            continue;
        }
        // Something else was there before: it may be the user's, and nothing of it is lost.
        if old.contains_key(new.path.as_path()) {
            match set_aside(&new.path, "mcp-aside") {
                Ok(aside) => undoings.set_aside(&new.path, &aside),
                Err(e) => undoings.left(&new.path, &new.why, e.to_string()),
            }
            continue;
        }
        match remove(&new.path) {
            Ok(()) => undoings.removed(&new.path, &new.why),
            Err(e) => undoings.left(&new.path, &new.why, e.to_string()),
        }
    }
    for (path, why) in search.unread.iter().filter(|(path, _)| nearest(path, &old).is_none()) {
        let may = "it may hold settings that were not there before";
        undoings.left(path, may, format!("could not be searched: {why}"));
    }
    undoings
}

/// What was there before at a path or above it.
fn nearest<'a>(path: &Path, old: &BTreeMap<&Path, &'a Protected>) -> Option<&'a Protected> {
    let above = old.range(..=path).next_back();
    above.filter(|(above, _)| path.starts_with(above)).map(|(_, old)| *old)
}

/// Whether something was there before, or lies in something that was; by its file, not by its name alone.
fn is_old(new: &Protected, old: &BTreeMap<&Path, &Protected>) -> bool {
    nearest(&new.path, old).is_some_and(|old| {
        is_same(old) && (old.guarded == Guarded::ReadOnly || new.path == old.path)
    })
}

/// Whether the file is there that was there before.
fn is_same(old: &Protected) -> bool {
    match (old.id, file_id::of(&old.path)) {
        (Some(old), Some(now)) => old.is_same(&now),
        _ => true,
    }
}

/// Renames a path to a name that no program acts on.
fn set_aside(path: &Path, word: &str) -> io::Result<PathBuf> {
    // Another run that may write here could have put a link in the place of a directory on the way.
    if path.parent().is_none_or(|above| !real(above).is_ok_and(|real| real == above)) {
        return Err(io::Error::other("a link leads there"));
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    for number in 0..64 {
        let number = if number > 0 { format!("-{number}") } else { String::new() };
        let aside = path.with_file_name(format!("{name}.{word}{number}"));
        if fs::symlink_metadata(&aside).is_err() {
            fs::rename(path, &aside)?;
            return Ok(aside);
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

fn remove(path: &Path) -> io::Result<()> {
    if let Err(e) = fs::symlink_metadata(path)
        && e.kind() == io::ErrorKind::NotFound
    {
        return Ok(());
    }
    // Nothing of it counts any more while it is being removed, or when that fails.
    let aside = set_aside(path, "mcp-removed")?;
    let kind = fs::symlink_metadata(&aside)?.file_type();
    let removed = match kind {
        kind if kind.is_dir() => fs::remove_dir_all(&aside),
        // A link to a directory is removed as one, and as a file elsewhere.
        kind if kind.is_symlink() => fs::remove_file(&aside).or_else(|_| fs::remove_dir(&aside)),
        _ => fs::remove_file(&aside),
    };
    removed.map_err(|e| {
        let name = aside.file_name().unwrap_or_default().to_string_lossy().into_owned();
        io::Error::other(format!("renamed to {name}, but not removed: {e}"))
    })
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
    /// In a directory of packages and the like.
    is_of_others: bool,
}

impl Search {
    /// Searches writable places; nothing in `allowed` or below it counts.
    fn run(write: &[Place], allowed: &[PathBuf], believe: Believe<'_>) -> Search {
        let mut search = Search::default();
        let is_directory = |place: &&Place| place.kind == PlaceKind::Directory;
        let roots: Vec<&Path> =
            write.iter().filter(is_directory).map(|place| place.path.as_path()).collect();
        for root in &roots {
            search.enter(root, true, is_named_git(root), allowed);
        }
        // What git directories point to may be git directories in turn.
        let user = UserSettings::of_the_caller();
        let mut done = 0;
        loop {
            let Leads { leads, unreadable } = search.leads(&roots, allowed, believe, &user);
            if leads.len() <= done {
                // After a run such settings are old, or gone.
                if matches!(believe, Believe::All) {
                    unreadable.into_iter().for_each(|settings| search.refuse(settings));
                }
                return search;
            }
            done = leads.len();
            leads.into_iter().for_each(|lead| search.follow(lead, allowed));
        }
    }

    fn follow(&mut self, lead: Lead, allowed: &[PathBuf]) {
        if lead.role == Role::Git {
            if !self.repositories.contains_key(&lead.path) {
                self.enter(&lead.path, false, true, allowed);
            }
            return;
        }
        let Ok(looked) = fs::symlink_metadata(&lead.path) else { return };
        if lead.role == Role::Whole || !looked.is_dir() {
            self.add(lead.path, looked.file_type(), Guarded::ReadOnly, lead.why, allowed);
        }
    }

    /// What such settings name is unknown.
    fn refuse(&mut self, settings: Unreadable) {
        if let Some(directory) = settings.whole() {
            let whole = (DeniedKind::Directory, Guarded::ReadOnly, UNREAD);
            self.found.insert(directory.to_owned(), whole);
        } else {
            self.unread.push((settings.file, settings.why));
        }
    }

    /// What is protected, outermost only.
    fn protected(&self) -> Vec<Protected> {
        let mut kept: Vec<Protected> = Vec::new();
        // Sorted by names: what is inside of something comes right after it.
        let mut closed: Option<&Path> = None;
        for (path, (kind, guarded, why)) in &self.found {
            if closed.is_some_and(|above| path.starts_with(above)) {
                continue;
            }
            closed = Some(path.as_path()).filter(|_| *guarded == Guarded::ReadOnly);
            let (path, kind, guarded) = (path.clone(), *kind, *guarded);
            let id = file_id::of(&path);
            kept.push(Protected { path, kind, guarded, why: (*why).to_owned(), id });
        }
        kept
    }

    fn enter(&mut self, root: &Path, is_top: bool, is_git: bool, allowed: &[PathBuf]) {
        let mut pending =
            vec![Here { path: root.to_owned(), is_top, is_git, is_of_others: !is_top }];
        while let Some(here) = pending.pop() {
            let is_closed = |(_, guarded, _): &(_, Guarded, _)| *guarded == Guarded::ReadOnly;
            if is_within(&here.path, allowed) || self.found.get(&here.path).is_some_and(is_closed) {
                continue;
            }
            match list(&here.path) {
                Ok(names) => self.take(&here, names, allowed, &mut pending),
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => self.leave_out(&here, &e.to_string()),
            }
        }
    }

    /// Its contents are unknown: before a run it is protected as a whole.
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
        let is_config = |(name, kind): &(String, FileType)| {
            name.eq_ignore_ascii_case("config") && !kind.is_dir()
        };
        let has_config = names.iter().any(is_config);
        let looks_like_git = has("HEAD") && has("commondir")
            || has("objects") && has("refs") && (has("HEAD") || has_config);
        let is_git = here.is_git || looks_like_git;
        if is_git {
            let top = here.path.parent().filter(|_| is_named_git(&here.path));
            self.repositories.entry(here.path.clone()).or_insert(top.map(Path::to_owned));
        }
        let is_top = here.is_top || has(".git");
        let own = protected::end_of(&here.path);
        for (name, kind) in names {
            let path = here.path.join(&name);
            let of_git = reason(Spot::GitDirectory, name.as_bytes()).filter(|_| is_git);
            let of_top = || reason(Spot::Top, name.as_bytes()).filter(|_| is_top);
            let counts = is_top || !here.is_of_others;
            let of_any = || reason_in(Spot::Anywhere, &own, name.as_bytes()).filter(|_| counts);
            if let Some(why) = of_git.or_else(of_top).or_else(of_any) {
                self.add(path, kind, Guarded::ReadOnly, why, allowed);
                continue;
            }
            if kind.is_symlink() && counts && !beyond(&own, name.as_bytes()).is_empty() {
                self.add(path.clone(), kind, Guarded::ReadOnly, TO_SETTINGS, allowed);
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
                // What is in a git directory is checked out nowhere.
                let is_of_others = here.is_of_others || is_git || is_of_others(name.as_bytes());
                pending.push(Here { path, is_top: false, is_git, is_of_others });
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
    fn leads(
        &self,
        roots: &[&Path],
        allowed: &[PathBuf],
        believe: Believe<'_>,
        user: &UserSettings,
    ) -> Leads {
        let repositories = &self.repositories;
        let (git_links, links, directories) = (Vec::new(), Vec::new(), Vec::new());
        let mut found =
            GitFiles { repositories, git_links, links, directories, roots, allowed, believe };
        for (path, (kind, guarded, why)) in &self.found {
            match kind {
                _ if *guarded == Guarded::InPlace => {}
                _ if *why == GIT_LINK && is_named_git(path) => found.git_links.push(path.clone()),
                DeniedKind::Link if *why == TO_SETTINGS => {
                    found.links.extend(settings_beyond(path))
                }
                DeniedKind::Link if *why != ON_THE_WAY => found.links.push((path.clone(), *why)),
                DeniedKind::Directory if *why != UNREAD => {
                    found.directories.push((path.clone(), *why));
                }
                _ => {}
            }
        }
        git_leads::follow(&found, user)
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
