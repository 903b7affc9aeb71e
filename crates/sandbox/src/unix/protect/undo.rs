//! Undoes what a command made in protected places that were not there before.
//!
//! Stops: hooks, settings and rc files that are left for other programs to act on. Everything of the run is
//! dead by then, but another run may write to the same place and put a symlink where a directory was: none is
//! followed, on no part of a path, or it would choose what is removed. What was there before is known by its file,
//! not by its name alone: another run, or the user, may have removed it meanwhile, and the command made another.
//!
//! Leaves open: the time between their making and the end of the command. On Linux a process of its own does it
//! for a launcher that was killed (`linux/sweeper`). New settings of a repository stay if they run nothing, or `git init` could not be used.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::descent::Descent;
use super::removal::{put_back, remove_at, set_aside};
use super::search::{Mode, Search};
use crate::core::request::{Guarded, Protected, Request};
use crate::host_files::id::{self as file_id, FileId};
use crate::protected::{Undoings, git, is_harmless};
use crate::unix::listing::Lister;

/// What was seen to happen to protected places while the command ran.
#[derive(Debug, Default)]
pub struct ReplacedPlaces {
    /// Others stood in their place, and were closed to the command again.
    pub closed_again: BTreeMap<PathBuf, FileId>,
    /// They were gone: what is there now came later.
    pub gone: BTreeSet<PathBuf>,
    /// What git's settings held at the start.
    pub git_settings: BTreeMap<PathBuf, Vec<u8>>,
}

/// Looks for what is new in protected places, and removes it. Empty where nothing is protected.
pub fn undo(request: &Request, seen: &ReplacedPlaces) -> Undoings {
    if !request.protects() {
        return Undoings::default();
    }
    let mut undoing = Undoing::new(request, seen);
    let search = Search::run(&request.write, &request.unprotected, Mode::Undo(&mut undoing));
    let mut undoings = undoing.undoings;
    for (path, why) in &search.unread {
        undoings.left(
            path,
            "it may hold settings that were not there before",
            format!("could not be searched: {why}"),
        );
    }
    undoings
}

/// What became of something in a protected place.
pub enum Settled {
    WasThere,
    /// It is gone, or may stay.
    Done,
}

pub struct Undoing<'a> {
    request: &'a Request,
    seen: &'a ReplacedPlaces,
    old: BTreeMap<&'a Path, &'a Protected>,
    longest: usize,
    undoings: Undoings,
    /// What was put back; a search comes by more than once.
    put_back: BTreeSet<PathBuf>,
}

impl<'a> Undoing<'a> {
    fn new(request: &'a Request, seen: &'a ReplacedPlaces) -> Undoing<'a> {
        let old: BTreeMap<_, _> =
            request.protected.iter().map(|old| (old.path.as_path(), old)).collect();
        let paths = request.protected.iter().map(|old| &old.path).chain(&request.unprotected);
        let longest = paths.map(|path| path.as_os_str().len()).max().unwrap_or(0);
        let (undoings, put_back) = (Undoings::default(), BTreeSet::new());
        Undoing { request, seen, old, longest, undoings, put_back }
    }

    /// No path that was protected, or is not to be, is longer.
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// Whether anything protected was at a path or below it.
    pub fn had_below(&self, path: &Path) -> bool {
        let next = self.old.range(path..).next();
        next.is_some_and(|(old, _)| old.starts_with(path))
    }

    /// What was read-only, and is the same file still: only such settings are believed about where they lead.
    pub fn unchanged(&self) -> BTreeSet<PathBuf> {
        let closed = self.request.protected.iter().filter(|old| old.guarded == Guarded::ReadOnly);
        let same = closed.filter(|old| self.is_same(old, file_id::of(&old.path)));
        same.map(|old| old.path.clone()).collect()
    }

    /// Whether a directory was read-only, so that nothing in it is new.
    pub fn is_unchanged(&self, descent: &Descent, name: &CStr, path: &Path) -> bool {
        let old = self.old.get(path).filter(|old| old.guarded == Guarded::ReadOnly);
        old.is_some_and(|old| {
            let now = descent.here().ok().and_then(|here| file_id::at(here, name));
            self.is_same(old, now)
        })
    }

    fn is_same(&self, old: &Protected, now: Option<FileId>) -> bool {
        let is_same = match (old.id, now) {
            (Some(old), Some(now)) => old.is_same(&now),
            // It could not be looked at, and was closed with the directory that was in the way.
            _ => true,
        };
        let path = old.path.as_path();
        is_same && !self.seen.gone.contains(path) && !self.seen.closed_again.contains_key(path)
    }

    /// Decides about something in a protected place.
    pub fn settle(
        &mut self,
        descent: &Descent,
        name: &CStr,
        new: &Protected,
        lister: &mut Lister,
    ) -> Settled {
        let old = self.old.get(new.path.as_path()).copied();
        let was_there = match old {
            Some(old) => self.is_same(old, new.id) || new.guarded == Guarded::InPlace,
            // Only what something leads to is found inside of what was read-only.
            None => self.is_inside_of_old(&new.path),
        };
        if was_there || self.put_back.contains(&new.path) {
            return Settled::WasThere;
        }
        if new.guarded == Guarded::InPlace || is_harmless(new, self.request) {
            return Settled::Done;
        }
        match old {
            Some(_) if self.is_closed_again(new) && self.runs_the_same(new) => {
                self.undoings.replaced(&new.path);
            }
            // It may be the user's: nothing of it is lost.
            Some(_) => self.put_aside(descent, name, new),
            None => {
                let removed = match descent.here() {
                    Ok(here) => remove_at(here, name, lister).map_err(|e| e.to_string()),
                    Err(e) => Err(e.to_string()),
                };
                match removed {
                    Ok(()) => self.undoings.removed(&new.path, &new.why),
                    Err(why) => self.undoings.left(&new.path, &new.why, why),
                }
            }
        }
        Settled::Done
    }

    fn is_inside_of_old(&self, path: &Path) -> bool {
        let above = self.old.range(..=path).next_back();
        !path.as_os_str().is_empty()
            && above.is_some_and(|(above, old)| {
                old.guarded == Guarded::ReadOnly && path.starts_with(above)
            })
    }

    fn is_closed_again(&self, new: &Protected) -> bool {
        let closed = self.seen.closed_again.get(&new.path);
        closed.is_some_and(|closed| new.id.is_some_and(|id| id.is_same(closed)))
    }

    /// Whether what stands there names no program that the same settings did not name at the start. Of other files that
    /// cannot be told.
    fn runs_the_same(&self, new: &Protected) -> bool {
        let before = self.seen.git_settings.get(&new.path);
        before.is_none_or(|before| git::runs_the_same(before, &new.path))
    }

    fn put_aside(&mut self, descent: &Descent, name: &CStr, new: &Protected) {
        let moved = descent.here().and_then(|here| set_aside(here, name, "mcp-aside"));
        match moved {
            Ok(aside) => {
                // A repository without its settings would be another one.
                if let Some(before) = self.seen.git_settings.get(&new.path) {
                    match descent.here().and_then(|here| put_back(here, name, &aside, before)) {
                        Ok(()) => drop(self.put_back.insert(new.path.clone())),
                        Err(e) => {
                            let why = format!("could not be put back: {e}");
                            self.undoings.left(&new.path, &new.why, why);
                        }
                    }
                }
                let aside = new.path.with_file_name(std::ffi::OsStr::from_bytes(aside.to_bytes()));
                self.undoings.set_aside(&new.path, &aside);
            }
            Err(e) => self.undoings.left(&new.path, &new.why, e.to_string()),
        }
    }
}
