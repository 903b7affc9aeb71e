//! The search itself: every directory of what may be written, by its names, however deep.
//!
//! A git directory is known by what is in it, not by its name alone. No symlink is followed on the way.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use mcp_policy::protect::{Spot, is_of_others, reason};
use rustix::fs::{FileType, Mode as Permissions};

use super::descent::{Descent, below};
use super::names::Names;
use super::opening::Force;
use super::undo::{Settled, Undoing};
use crate::core::request::{DeniedKind, Guarded, Place, PlaceKind, Protected};
use crate::host_files::id::{self as file_id, FileId};
use crate::protected::{GIT_LINK, GIT_PLACE, TO_SETTINGS, UNREAD, is_named_git};
use crate::unix::listing::Lister;

mod leads;

/// Deeper, or with a longer path, is no project: before a run it is protected as a whole, for a mount needs a
/// path, and each directory above it a mount.
const DEEPEST: usize = 128;
const LONGEST: usize = 3000;

/// What is done about what is found.
pub enum Mode<'a, 'r> {
    /// Before a run: it is noted. Modes are the owner's spec: what cannot be listed is protected as a whole.
    Find,
    /// After a run: what is new is removed where it is found. Modes may be a hiding place: directories are opened
    /// for the search, and closed again.
    Undo(&'a mut Undoing<'r>),
}

impl Mode<'_, '_> {
    fn force(&self) -> Force {
        match self {
            Mode::Find => Force::No,
            Mode::Undo(_) => Force::Yes,
        }
    }
}

/// What a search came to.
#[derive(Debug, Default)]
pub struct Search {
    /// After a run only what was there before it.
    found: BTreeMap<PathBuf, ProtectedPlace>,
    /// Git directories, with the top of the work tree where one is known.
    repositories: BTreeMap<PathBuf, Option<PathBuf>>,
    /// Could not be searched, and why.
    pub unread: Vec<(PathBuf, String)>,
    /// Were opened by force, and stay open while git's files in them are read; inner ones first.
    kept_open: Vec<KeptOpen>,
}

#[derive(Debug)]
struct KeptOpen {
    path: PathBuf,
    id: (u64, u64),
    before: Permissions,
}

#[derive(Debug)]
struct ProtectedPlace {
    kind: DeniedKind,
    guarded: Guarded,
    why: &'static str,
    id: Option<FileId>,
}

/// A directory on the way down.
#[derive(Default)]
struct Here {
    is_top: bool,
    /// Something says that this is a git directory, whatever it looks like.
    is_git: bool,
    /// It lies in one, or is one.
    in_git: bool,
    /// In a directory of packages and the like.
    is_of_others: bool,
    /// How many git directories were known before it.
    repositories: usize,
    /// Directories in it that are still to be searched.
    pending: Vec<CString>,
}

impl Search {
    /// Searches writable places; nothing in `allowed` or below it counts.
    pub fn run(write: &[Place], allowed: &[PathBuf], mode: Mode<'_, '_>) -> Search {
        let mut search = Search::default();
        let mut lister = Lister::default();
        let roots: Vec<&Path> = write
            .iter()
            .filter(|place| place.kind == PlaceKind::Directory)
            .map(|place| place.path.as_path())
            .collect();
        let mut within = Within { roots: &roots, allowed, mode, lister: &mut lister };
        for root in &roots {
            search.enter_path(root, At::Root, &mut within);
        }
        search.follow_leads(&mut within);
        let kept_open = std::mem::take(&mut search.kept_open);
        kept_open.iter().for_each(|directory| within.put_back(directory));
        search
    }

    /// What is protected, outermost only.
    pub fn protected(&self) -> Vec<Protected> {
        let mut kept: Vec<Protected> = Vec::new();
        // Sorted by names: what is inside of something comes right after it.
        let mut closed: Option<&Path> = None;
        for (path, found) in &self.found {
            if closed.is_some_and(|above| path.starts_with(above)) {
                continue;
            }
            closed = Some(path.as_path()).filter(|_| found.guarded == Guarded::ReadOnly);
            kept.push(Protected {
                path: path.clone(),
                kind: found.kind,
                guarded: found.guarded,
                why: found.why.to_owned(),
                id: found.id,
            });
        }
        kept
    }

    fn enter_path(&mut self, path: &Path, at: At, within: &mut Within<'_, '_>) {
        let is_gone = |e: &io::Error| {
            matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
        };
        match Descent::open(path, within.mode.force()) {
            Ok(descent) => {
                let is_git = at == At::Git || is_named_git(path);
                let in_git = path.iter().any(|part| part == ".git");
                let (is_top, is_of_others) = (at == At::Root, at == At::Git);
                let repositories = self.repositories.len();
                let pending = Vec::new();
                let top = Here { is_top, is_git, in_git, is_of_others, repositories, pending };
                if let Err(e) = self.traverse(descent, top, within) {
                    self.unread.push((path.to_owned(), e.to_string()));
                }
            }
            // A place that the user moved takes with it what the command made there.
            Err(e) if is_gone(&e) && !(at == At::Root && within.mode.force() == Force::Yes) => {}
            Err(e) => self.unread.push((path.to_owned(), e.to_string())),
        }
    }

    /// Goes through a whole tree. An error where the way back was lost.
    fn traverse(
        &mut self,
        mut descent: Descent,
        mut top: Here,
        within: &mut Within<'_, '_>,
    ) -> io::Result<()> {
        self.look(&descent, &mut top, within);
        let mut way = vec![top];
        while let Some(here) = way.last_mut() {
            let Some(name) = here.pending.pop() else {
                self.leave(&mut descent, here.repositories, within);
                way.pop();
                if !way.is_empty() {
                    descent.up()?;
                }
                continue;
            };
            if !self.is_to_be_searched(&descent, &name, within) {
                continue;
            }
            let is_git = name.to_bytes().eq_ignore_ascii_case(b".git");
            let in_git = here.in_git || name.to_bytes() == b".git";
            // What is in a git directory is checked out nowhere.
            let is_of_others = here.is_of_others || is_git || is_of_others(name.to_bytes());
            let repositories = self.repositories.len();
            let next = Here { is_git, in_git, is_of_others, repositories, ..Here::default() };
            match descent.down(&name) {
                Ok(()) => {
                    let mut next = next;
                    self.look(&descent, &mut next, within);
                    way.push(next);
                }
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => self.leave_out(&descent, &name, &e.to_string(), within),
            }
        }
        Ok(())
    }

    /// After a run: where git's files lead is read by their paths, so what they lie in is not closed before that.
    fn leave(&mut self, descent: &mut Descent, repositories: usize, within: &Within<'_, '_>) {
        let Mode::Undo(undoing) = &within.mode else {
            return;
        };
        let path = descent.path();
        let is_needed = path.as_os_str().len() <= LONGEST
            && (self.repositories.len() > repositories || undoing.had_below(path));
        if is_needed && let Some((id, before)) = descent.keep_open() {
            let path = descent.path().to_owned();
            self.kept_open.push(KeptOpen { path, id, before });
        }
    }

    /// Takes what matters in a directory, and leaves the directories in it to be searched next.
    fn look(&mut self, descent: &Descent, here: &mut Here, within: &mut Within<'_, '_>) {
        let mut names = Names::of(descent.path().as_os_str().as_bytes());
        let listed = descent.here().and_then(|directory| {
            Ok(within.lister.each(directory, |name, kind| names.take(name, kind))?)
        });
        if let Err(e) = listed {
            self.unread.push((descent.path().to_owned(), e.to_string()));
        }
        here.is_git |= names.look_like_git();
        // Names that are done with.
        let mut closed: Vec<&CStr> = Vec::new();
        if here.is_git {
            self.note_repository(descent.path());
            for (name, kind) in &names.of_git {
                let why = reason(Spot::GitDirectory, name.to_bytes()).unwrap_or(GIT_PLACE);
                self.add(descent, name, *kind, Guarded::ReadOnly, why, within);
                closed.push(name);
            }
        }
        let is_top = here.is_top || names.git.is_some();
        let of_top = names.of_top.iter().filter(|_| is_top);
        let of_any = names.of_any.iter().filter(|_| is_top || !here.is_of_others);
        for (name, kind, why) in of_top.chain(of_any) {
            self.add(descent, name, *kind, Guarded::ReadOnly, why, within);
            closed.push(name);
        }
        for name in names.links_above.iter().filter(|_| is_top || !here.is_of_others) {
            self.add(descent, name, FileType::Symlink, Guarded::ReadOnly, TO_SETTINGS, within);
        }
        if let Some((name, kind)) = &names.git {
            match kind {
                FileType::Directory => {
                    self.add(descent, name, *kind, Guarded::InPlace, GIT_PLACE, within);
                }
                _ => self.add(descent, name, *kind, Guarded::ReadOnly, GIT_LINK, within),
            }
        }
        let is_open = |name: &CString| {
            // Objects are no settings, and there are many of them.
            let holds_objects = here.is_git && here.in_git && name.to_bytes() == b"objects";
            !holds_objects && !closed.contains(&name.as_c_str())
        };
        here.pending = names.directories.iter().filter(|name| is_open(name)).cloned().collect();
    }

    /// Git directories lead elsewhere by their settings, and new ones by the user's own. No path is noted that is longer
    /// than any that can be looked up.
    fn note_repository(&mut self, path: &Path) {
        if path.as_os_str().len() > LONGEST {
            return;
        }
        let top = path.parent().filter(|_| is_named_git(path));
        self.repositories.entry(path.to_owned()).or_insert(top.map(Path::to_owned));
    }

    fn is_to_be_searched(
        &mut self,
        descent: &Descent,
        name: &CStr,
        within: &mut Within<'_, '_>,
    ) -> bool {
        let length = descent.path().as_os_str().len() + 1 + name.to_bytes().len();
        match &mut within.mode {
            Mode::Find if descent.depth() >= DEEPEST || length > LONGEST => {
                self.leave_out(descent, name, "is nested too deep", within);
                false
            }
            Mode::Find => !within.allows(&below(descent.path(), name)),
            // A long path is not made for every directory, or it would take a day.
            Mode::Undo(undoing) => {
                length > undoing.longest() || {
                    let path = below(descent.path(), name);
                    !undoing.is_unchanged(descent, name, &path) && !within.allows(&path)
                }
            }
        }
    }

    /// We do not know what is in it: before a run it is protected as a whole.
    fn leave_out(
        &mut self,
        descent: &Descent,
        name: &CStr,
        why: &str,
        within: &mut Within<'_, '_>,
    ) {
        let path = below(descent.path(), name);
        match within.mode {
            Mode::Find if within.allows(&path) => {}
            Mode::Find => {
                let (kind, guarded) = (DeniedKind::Directory, Guarded::ReadOnly);
                let id = descent.here().ok().and_then(|here| file_id::at(here, name));
                self.found.insert(path, ProtectedPlace { kind, guarded, why: UNREAD, id });
            }
            Mode::Undo(_) => self.unread.push((path, why.to_owned())),
        }
    }

    fn add(
        &mut self,
        descent: &Descent,
        name: &CStr,
        kind: FileType,
        guarded: Guarded,
        why: &'static str,
        within: &mut Within<'_, '_>,
    ) {
        let path = below(descent.path(), name);
        if within.allows(&path) {
            return;
        }
        let kind = match kind {
            FileType::Directory => DeniedKind::Directory,
            FileType::Symlink => DeniedKind::Link,
            _ => DeniedKind::File,
        };
        let id = descent.here().ok().and_then(|here| file_id::at(here, name));
        if let Mode::Undo(undoing) = &mut within.mode {
            let new = Protected { path: path.clone(), kind, guarded, why: why.to_owned(), id };
            match undoing.settle(descent, name, &new, within.lister) {
                Settled::WasThere => {}
                Settled::Done => return,
            }
        }
        self.found.entry(path).or_insert(ProtectedPlace { kind, guarded, why, id });
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Root,
    Git,
}

struct Within<'a, 'r> {
    roots: &'a [&'a Path],
    allowed: &'a [PathBuf],
    mode: Mode<'a, 'r>,
    lister: &'a mut Lister,
}

impl Within<'_, '_> {
    fn allows(&self, path: &Path) -> bool {
        self.allowed.iter().any(|allowed| path.starts_with(allowed))
    }

    /// A way from a root to a directory below it. Directories on the way may have been closed.
    fn descend(&self, directory: &Path) -> io::Result<Descent> {
        let root = self.roots.iter().find(|root| directory.starts_with(root));
        let root = root.ok_or(io::ErrorKind::NotFound)?;
        let mut descent = Descent::open(root, self.mode.force())?;
        for part in directory.strip_prefix(root).into_iter().flat_map(Path::iter) {
            descent.down(&CString::new(part.as_bytes())?)?;
        }
        Ok(descent)
    }

    /// The mode that a directory had before it was opened by force; not that of another in its place.
    fn put_back(&self, kept: &KeptOpen) {
        if let Ok(descent) = self.descend(&kept.path)
            && descent.id() == kept.id
            && let Ok(here) = descent.here()
        {
            let _ = rustix::fs::fchmod(here, kept.before);
        }
    }

    /// Below a root: a root itself cannot be protected, or nothing could be written.
    fn holds(&self, path: &Path) -> bool {
        self.roots.iter().any(|root| path.starts_with(root) && path != *root)
            && !self.roots.iter().any(|root| root.starts_with(path))
    }
}
