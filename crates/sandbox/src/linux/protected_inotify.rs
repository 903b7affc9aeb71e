//! What inotify tells of protected places: that one was renamed, or its name was free for a moment, which `linux/replaced`
//! acts on, and who gets ready to replace one. git writes `config.lock` beside `config` and renames it, which fails; that is a hint for people, and
//! nothing rests on it.
//!
//! One queue for both: the kernel takes milliseconds to close one.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ffi::{CStr, OsStr};
use std::fs;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;

use crate::core::request::{DeniedKind, Protected};
use crate::host_files::id::{self as file_id, FileId};

/// The user has some thousands of watches for everything.
const MOST: usize = 512;

pub struct ProtectedInotify {
    queue: Option<OwnedFd>,
    /// What was read from the queue, and is a hint.
    seen: RefCell<Vec<String>>,
    /// What happened to names since they were last found to be closed.
    since: RefCell<BTreeMap<PathBuf, Since>>,
    /// The queue was too long: any name may have been free.
    is_lost: Cell<bool>,
    /// The watched directories, as they were then.
    directories: BTreeMap<PathBuf, FileId>,
    /// The protected files, by the watch on their directory, and what they were.
    files: BTreeMap<i32, Vec<(PathBuf, Option<FileVersion>)>>,
}

/// What happened to a name.
#[derive(Default)]
struct Since {
    /// It was free for a moment.
    is_free: bool,
    /// How many files took the place of another by a rename.
    renames: usize,
}

/// What changes with every change of a file: which it is, how large, and when something about it was changed last. A
/// program can set the other times as it likes.
#[derive(PartialEq, Eq)]
struct FileVersion {
    file: (u64, u64),
    size: u64,
    changed: (i64, i64),
}

impl FileVersion {
    fn of(path: &Path) -> Option<FileVersion> {
        let now = fs::symlink_metadata(path).ok()?;
        let (file, changed) = ((now.dev(), now.ino()), (now.ctime(), now.ctime_nsec()));
        Some(FileVersion { file, size: now.len(), changed })
    }
}

impl ProtectedInotify {
    /// Watches the directories of protected files; what cannot be watched is not.
    pub fn watch(protected: &[Protected]) -> ProtectedInotify {
        let mut watched = ProtectedInotify {
            queue: None,
            seen: RefCell::default(),
            since: RefCell::default(),
            is_lost: Cell::new(false),
            directories: BTreeMap::new(),
            files: BTreeMap::new(),
        };
        if protected.is_empty() {
            return watched;
        }
        let flags = CreateFlags::CLOEXEC | CreateFlags::NONBLOCK;
        let Ok(queue) = inotify::init(flags) else {
            return watched;
        };
        let files = protected.iter().filter(|place| place.kind != DeniedKind::Directory).take(MOST);
        for file in files.map(|place| place.path.clone()) {
            let flags = WatchFlags::CREATE | WatchFlags::DELETE | WatchFlags::MOVED_FROM;
            let flags = flags | WatchFlags::MOVED_TO | WatchFlags::MASK_ADD;
            let Some(directory) = file.parent() else { continue };
            let id = file_id::of(directory);
            let watch = inotify::add_watch(&queue, directory, flags);
            if let (Ok(watch), Some(id)) = (watch, id) {
                watched.directories.entry(directory.to_owned()).or_insert(id);
                let state = FileVersion::of(&file);
                watched.files.entry(watch).or_default().push((file, state));
            }
        }
        watched.queue = Some(queue);
        watched
    }

    /// Watches for renames; whether it can.
    pub fn watch_moves(&self, path: &Path) -> bool {
        let flags = WatchFlags::MOVE_SELF | WatchFlags::DONT_FOLLOW | WatchFlags::MASK_ADD;
        let Some(queue) = &self.queue else {
            return false;
        };
        // What is not there cannot be renamed. Others may not be read, or are one more than the user may have.
        let watched = inotify::add_watch(queue, path, flags);
        matches!(watched, Ok(_) | Err(Errno::NOENT | Errno::NOTDIR))
    }

    pub fn queue(&self) -> Option<BorrowedFd<'_>> {
        self.queue.as_ref().map(AsFd::as_fd)
    }

    /// Reads what there is; whether something was renamed or took a protected name, or we do not know. The kernel takes a mount
    /// away before the new file has the name, and tells this after it: who has looked in between looks again.
    pub fn read(&self) -> bool {
        let Some(queue) = &self.queue else {
            return false;
        };
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = Reader::new(queue, &mut buffer);
        let mut has_moved = false;
        while let Ok(event) = reader.next() {
            let lost = ReadFlags::MOVE_SELF | ReadFlags::QUEUE_OVERFLOW;
            has_moved |= event.events().intersects(lost);
            self.is_lost
                .set(self.is_lost.get() || event.events().contains(ReadFlags::QUEUE_OVERFLOW));
            if let Some(name) = event.file_name().map(CStr::to_bytes) {
                has_moved |= self.note(event.wd(), name, event.events());
            }
        }
        has_moved
    }

    /// Whether what stands at a path took the place of what was closed there by a single rename: the command cannot do that,
    /// for what was there is a mount point to it. Where the name was free for a moment it could have made it, and where there
    /// was more than one rename, the second can be its own.
    pub fn took_its_place(&self, path: &Path) -> bool {
        self.read();
        let is_same = |directory: &Path| {
            let then = self.directories.get(directory);
            then.is_some_and(|then| file_id::of(directory).is_some_and(|now| now.is_same(then)))
        };
        let is_watched = self.files.values().flatten().any(|(file, _)| file == path);
        let is_single =
            self.since.borrow().get(path).is_some_and(|since| !since.is_free && since.renames == 1);
        is_watched && is_single && !self.is_lost.get() && path.parent().is_some_and(is_same)
    }

    /// Whether a name was free for a moment, or we do not know, as far as was read.
    pub fn was_free(&self, path: &Path) -> bool {
        self.is_lost.get() || self.since.borrow().get(path).is_some_and(|since| since.is_free)
    }

    pub fn note_free(&self, path: &Path) {
        self.since.borrow_mut().entry(path.to_owned()).or_default().is_free = true;
    }

    /// It was closed after all that was read so far, and still is.
    pub fn forget(&self, path: &Path) {
        self.since.borrow_mut().remove(path);
    }

    /// Whether it was the name of a protected file.
    fn note(&self, watch: i32, name: &[u8], events: ReadFlags) -> bool {
        let mut is_own = false;
        let mut seen = self.seen.borrow_mut();
        for (file, _) in self.files.get(&watch).into_iter().flatten() {
            let own = file.file_name().map(OsStr::as_bytes);
            if Some(name) == own {
                is_own = true;
                let mut since = self.since.borrow_mut();
                let since = since.entry(file.clone()).or_default();
                match events.contains(ReadFlags::MOVED_TO) {
                    true => since.renames += 1,
                    false => since.is_free = true,
                }
            }
            let path = file.to_string_lossy();
            if name.strip_suffix(b".lock") == own && !seen.iter().any(|have| *have == path) {
                seen.push(path.into_owned());
            }
        }
        is_own
    }

    /// The files beside which a `.lock` was made, and that are what they were: of others nothing can be claimed.
    pub fn seen(self) -> Vec<String> {
        self.read();
        let is_kept = |path: &String| {
            let own =
                self.files.values().flatten().find(|(file, _)| file.as_os_str() == path.as_str());
            own.is_some_and(|(file, state)| state.is_some() && FileVersion::of(file) == *state)
        };
        self.seen.borrow().iter().filter(|path| is_kept(path)).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::request::Guarded;
    use crate::unix::fixture::Fixture;

    /// What a watch says of a file after something happened to it.
    fn after(act: impl FnOnce(&Path)) -> (bool, bool) {
        let fixture = Fixture::new();
        let path = fixture.file("top/.mcp.json", "{}");
        let (kind, guarded) = (DeniedKind::File, Guarded::ReadOnly);
        let id = file_id::of(&path);
        let place = Protected { path: path.clone(), kind, guarded, why: String::new(), id };
        let watched = ProtectedInotify::watch(&[place]);
        act(&path);
        (watched.took_its_place(&path), watched.was_free(&path))
    }

    fn replace(path: &Path) {
        let beside = path.with_extension("new");
        fs::write(&beside, "other").unwrap();
        fs::rename(&beside, path).unwrap();
    }

    #[test]
    fn only_a_single_rename_takes_the_place() {
        assert_eq!(after(|_| ()), (false, false));
        assert_eq!(after(replace), (true, false));
        // The command can do this to what the user has just put there.
        assert_eq!(after(|path| (0..2).for_each(|_| replace(path))), (false, false));
    }

    #[test]
    fn where_a_name_was_free_nothing_took_the_place() {
        let anew = |path: &Path| {
            fs::remove_file(path).unwrap();
            fs::write(path, "other").unwrap();
        };
        assert_eq!(after(anew), (false, true));
        let moved = |path: &Path| {
            fs::rename(path, path.with_extension("old")).unwrap();
            replace(path);
        };
        assert_eq!(after(moved), (false, true));
        // The same file under the same name: by another name it could be written to meanwhile.
        let back = |path: &Path| {
            fs::hard_link(path, path.with_extension("link")).unwrap();
            fs::remove_file(path).unwrap();
            fs::rename(path.with_extension("link"), path).unwrap();
        };
        assert_eq!(after(back), (false, true));
    }
}
