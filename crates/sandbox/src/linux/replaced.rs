//! Notices when a program outside removes or replaces a protected place while the command runs, and has it closed
//! again.
//!
//! A read-only mount stands on a file, not on a name. When another file takes the name (`git config`, an editor that
//! saves), or the file goes, the kernel detaches the mount; when it is renamed, the mount goes with it. The first shows
//! in the sandbox's table of mounts, which can be polled; the second is told by inotify, and where there is no watch
//! to be had, seen by looking from time to time.
//!
//! Leaves open: the moment until the new file is closed. Whatever the command could have made is put aside in the end. Only
//! one thing stays: a file that took the place, by a single rename, of one that was closed to the command until then, for a
//! mount point cannot be renamed over from inside. It is told, for the command could write to it until it was closed.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::CWD;

use crate::core::request::{Guarded, Protected, Request};
use crate::host_files::id::{self as file_id, FileId};
use crate::linux::closer::{self, Reclosed};
use crate::linux::deny::{VisibleMount, seen_at};
use crate::linux::phases::LinuxPlan;
use crate::linux::protected_inotify::ProtectedInotify;
use crate::linux::sweeper::Sweeper;
use crate::protected::{GIT_SETTINGS, git};
use crate::unix::protect::undo::ReplacedPlaces;

/// How often is looked where nothing tells.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// How often is looked, and how many times, when something has happened: more may come, and a new file shows a moment
/// after the mount on the old one is gone.
const LOOK_AFTER: Duration = Duration::from_millis(5);
const LOOKS: usize = 40;
/// Who replaces settings more often than this holds the run up on purpose.
const MOST: usize = 256;
/// How often in a row something is closed before it is given up.
const ROUNDS: usize = 16;

pub struct ReplacementWatch<'a> {
    protected: Vec<&'a Protected>,
    sweeper: &'a Sweeper,
    /// Host paths of the plan's protected places.
    places: Vec<Option<PathBuf>>,
    /// The table of mounts, and the namespace.
    mounts: Option<(OwnedFd, OwnedFd)>,
    moves: Moves<'a>,
    /// The poll loop saw that there is news: the table of mounts says so once.
    has_news: Cell<bool>,
    look_at: Option<Instant>,
    /// How many looks are left before nothing is expected any more.
    looks: usize,
    /// What stands at a path since it was closed last.
    known: BTreeMap<&'a Path, FileId>,
    seen: ReplacedPlaces,
    times: usize,
}

/// What a look came to.
#[derive(Debug, PartialEq, Eq)]
pub enum Sighting {
    AsItWas,
    /// Something is not there: it may come back at once.
    Missing,
}

impl<'a> ReplacementWatch<'a> {
    pub fn new(
        plan: &LinuxPlan,
        request: &'a Request,
        sweeper: &'a Sweeper,
        inotify: &'a ProtectedInotify,
    ) -> ReplacementWatch<'a> {
        let protected: Vec<_> = request.protected.iter().collect();
        let read_only = protected.iter().filter(|place| place.guarded == Guarded::ReadOnly);
        let known = read_only.filter_map(|place| Some((place.path.as_path(), place.id?)));
        let known: BTreeMap<&Path, FileId> = known.collect();
        let shown: Vec<VisibleMount<'_>> =
            plan.placed().iter().filter_map(|placed| VisibleMount::of(&placed.step)).collect();
        let mut at = BTreeMap::new();
        for place in &protected {
            at.extend(seen_at(&place.path, &shown).into_iter().map(|at| (at, place.path.clone())));
        }
        let places = closer::places(plan).map(|place| at.get(place).cloned()).collect();
        let moves = Moves::watch(&protected, request, inotify);
        let is_settings =
            |place: &&&Protected| place.guarded == Guarded::ReadOnly && place.why == GIT_SETTINGS;
        let settings = protected.iter().filter(is_settings);
        let git_settings = settings
            .filter_map(|place| Some((place.path.clone(), git::settings_text(&place.path)?)))
            .collect();
        let seen = ReplacedPlaces { git_settings, ..ReplacedPlaces::default() };
        let look_at = None;
        let (mounts, has_news) = (None, Cell::new(false));
        let (looks, times) = (0, 0);
        ReplacementWatch {
            protected,
            sweeper,
            places,
            mounts,
            moves,
            has_news,
            look_at,
            looks,
            known,
            seen,
            times,
        }
    }

    /// From init: its table of mounts, and its mount namespace.
    pub fn begin(&mut self, fds: Vec<OwnedFd>) {
        let mut fds = fds.into_iter();
        if let (Some(table), Some(namespace)) = (fds.next(), fds.next()) {
            self.mounts = Some((table, namespace));
        }
    }

    /// The command starts: what init mounted is no news.
    pub fn started(&mut self) {
        self.forget_news();
        let is_blind = self.moves.misses_some;
        // Once at any rate, for what happened while the sandbox was made.
        self.look_at = (is_blind || self.differs()).then(Instant::now);
    }

    pub fn wants(&self) -> impl Iterator<Item = (BorrowedFd<'_>, PollFlags)> {
        let table = self.mounts.iter().map(|(table, _)| (table.as_fd(), PollFlags::PRI));
        let moves = self.moves.told.queue().map(|queue| (queue, PollFlags::IN));
        table.chain(moves)
    }

    pub fn note_news(&self) {
        self.has_news.set(true);
    }

    pub fn deadline(&self) -> Option<Instant> {
        self.look_at
    }

    /// Whether something happened that is worth a look. Answers once.
    pub fn has_news(&mut self) -> bool {
        let is_due = self.look_at.is_some_and(|at| at <= Instant::now());
        if is_due {
            self.looks = self.looks.saturating_sub(1);
        }
        let has_news = self.forget_news() || is_due && self.differs();
        if has_news {
            self.looks = LOOKS;
        }
        if is_due || has_news {
            self.look_at = match (self.looks, self.moves.misses_some) {
                (1.., _) => Some(Instant::now() + LOOK_AFTER),
                (0, true) => Some(Instant::now() + LOOK_EVERY),
                (0, false) => None,
            };
        }
        has_news
    }

    /// Whether there was any.
    fn forget_news(&self) -> bool {
        let table = self.mounts.iter().map(|(table, _)| PollFd::new(table, PollFlags::PRI));
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        // Polling the table is what forgets.
        let has_more =
            poll(&mut table.collect::<Vec<_>>(), Some(&now)).is_ok_and(|ready| ready > 0);
        let has_moved = self.moves.told.read();
        self.has_news.take() || has_more || has_moved
    }

    fn differs(&self) -> bool {
        self.known.iter().any(|(path, id)| match Now::at(path) {
            Now::There(now) => !now.is_same(id),
            Now::Gone => !self.seen.gone.contains(*path),
            Now::Unknown => false,
        })
    }

    /// Closes what is open. An error is a reason to end the command.
    pub fn close_again(&mut self) -> io::Result<()> {
        for _ in 0..ROUNDS {
            self.forget_news();
            // What happens from here on is in the queue, and is not forgotten below.
            let is_there = |path: &&&Path| matches!(Now::at(path), Now::There(_));
            let there: Vec<&Path> = self.known.keys().filter(is_there).copied().collect();
            let Some((_, namespace)) = &self.mounts else {
                return Err(io::ErrorKind::NotConnected.into());
            };
            match self.sweeper.close_again(namespace.as_fd())? {
                Reclosed::Again(again) if again.is_empty() => {
                    // Each of them was found to be mounted.
                    there.into_iter().for_each(|path| self.moves.told.forget(path));
                    return Ok(());
                }
                Reclosed::Again(again) => {
                    self.times += 1;
                    if self.times > MOST {
                        return Err(io::Error::other("it happened too often"));
                    }
                    for number in again {
                        if let Some(Some(path)) = self.places.get(number).cloned() {
                            self.note_other(&path);
                        }
                    }
                }
                Reclosed::Failed { at, errno } => {
                    let why = io::Error::from_raw_os_error(errno);
                    return Err(io::Error::other(format!("{at}: {why}")));
                }
            }
        }
        Err(io::Error::other("it was replaced again and again"))
    }

    /// Something else stands at a path. It stays in the end if the command cannot have made it. Directories are not replaced
    /// in one step.
    fn note_other(&mut self, path: &Path) {
        // Before the queue is read: what comes later is told by it.
        let Some(id) = file_id::at(CWD, path) else { return };
        let is_directory = fs::symlink_metadata(path).is_ok_and(|looked| looked.is_dir());
        match self.moves.told.took_its_place(path) && !is_directory {
            true => {
                self.seen.gone.remove(path);
                self.seen.closed_again.insert(path.to_owned(), id);
            }
            false => {
                self.seen.closed_again.remove(path);
                self.seen.gone.insert(path.to_owned());
            }
        }
    }

    /// From init: these were gone when they were to be mounted. What comes there is open to the command, also if it is what was
    /// there before: another run may be just removing it, and has given it another name.
    pub fn note_missing(&mut self, places: &[usize]) {
        for path in places.iter().filter_map(|number| self.places.get(*number)?.as_ref()) {
            self.moves.told.note_free(path);
            self.seen.gone.insert(path.clone());
        }
    }

    /// Compares what is there with what is known.
    pub fn look(&mut self) -> Sighting {
        let mut found = Sighting::AsItWas;
        let mut is_new = false;
        for (path, known) in &mut self.known {
            match Now::at(path) {
                Now::There(now) => {
                    is_new |= !now.is_same(known);
                    *known = now;
                }
                Now::Gone if !self.seen.gone.contains(*path) => found = Sighting::Missing,
                Now::Gone | Now::Unknown => {}
            }
        }
        if is_new {
            self.moves.watch_again(&self.protected);
        }
        found
    }

    /// What is missing now does not come back as what it was.
    pub fn give_up_missing(&mut self) {
        let is_missing = |path: &&&Path| matches!(Now::at(path), Now::Gone);
        let missing: Vec<PathBuf> =
            self.known.keys().filter(is_missing).map(|path| path.to_path_buf()).collect();
        self.seen.gone.extend(missing);
        self.moves.watch_again(&self.protected);
    }

    /// When the command is dead. It may have ended before anybody looked at what it did last.
    pub fn into_seen(mut self) -> ReplacedPlaces {
        self.moves.told.read();
        for place in std::mem::take(&mut self.protected) {
            let (path, now) = (&place.path, file_id::at(CWD, &place.path));
            let known = self.seen.closed_again.get(path).copied().or(place.id);
            let is_other = matches!((known, now), (Some(known), Some(now)) if !known.is_same(&now));
            let is_open = place.guarded == Guarded::ReadOnly && !self.seen.gone.contains(path);
            if is_open && (is_other || self.moves.told.was_free(path)) {
                self.note_other(path);
            }
        }
        self.seen
    }
}

/// What stands at a protected path.
enum Now {
    There(FileId),
    Gone,
    /// The command may close a directory above it to everybody, with all that is in it.
    Unknown,
}

impl Now {
    fn at(path: &Path) -> Now {
        match fs::symlink_metadata(path) {
            Ok(_) => file_id::at(CWD, path).map_or(Now::Unknown, Now::There),
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                Now::Gone
            }
            Err(_) => Now::Unknown,
        }
    }
}

/// Renames are told; a removal shows in the table of mounts.
struct Moves<'a> {
    told: &'a ProtectedInotify,
    /// Directories above protected places.
    above: Vec<PathBuf>,
    misses_some: bool,
}

impl<'a> Moves<'a> {
    fn watch(protected: &[&Protected], request: &Request, told: &'a ProtectedInotify) -> Moves<'a> {
        let is_below = |path: &Path| {
            request.write.iter().any(|root| path.starts_with(&root.path) && path != root.path)
        };
        let above = protected.iter().flat_map(|place| place.path.ancestors().skip(1));
        let mut above: Vec<PathBuf> =
            above.filter(|path| is_below(path)).map(Path::to_owned).collect();
        above.sort();
        above.dedup();
        let mut moves = Moves { told, above, misses_some: false };
        moves.watch_again(protected);
        moves
    }

    fn watch_again(&mut self, protected: &[&Protected]) {
        let places = protected.iter().map(|place| &place.path).chain(&self.above);
        for path in places {
            self.misses_some |= !self.told.watch_moves(path);
        }
    }
}
