//! What inotify tells of protected places: that one was renamed, which `linux/replaced` acts on, and who gets ready to
//! replace one. git writes `config.lock` beside `config` and renames it, which fails; that is a hint for people, and
//! nothing rests on it.
//!
//! One queue for both: the kernel takes milliseconds to close one.

use std::cell::RefCell;
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

/// The user has some thousands of watches for everything.
const MOST: usize = 64;

pub struct Attempts {
    queue: Option<OwnedFd>,
    /// What was read from the queue, and is a hint.
    seen: RefCell<Vec<String>>,
    /// The protected files, by the watch on their directory, and what they were.
    files: BTreeMap<i32, Vec<(PathBuf, Option<State>)>>,
}

/// What changes with every change of a file: which it is, how large, and when something about it was changed last. A
/// program can set the other times as it likes.
#[derive(PartialEq, Eq)]
struct State {
    file: (u64, u64),
    size: u64,
    changed: (i64, i64),
}

impl State {
    fn of(path: &Path) -> Option<State> {
        let now = fs::symlink_metadata(path).ok()?;
        let (file, changed) = ((now.dev(), now.ino()), (now.ctime(), now.ctime_nsec()));
        Some(State { file, size: now.len(), changed })
    }
}

impl Attempts {
    /// Watches the directories of protected files; what cannot be watched is not.
    pub fn watch(protected: &[Protected]) -> Attempts {
        let mut attempts =
            Attempts { queue: None, seen: RefCell::default(), files: BTreeMap::new() };
        if protected.is_empty() {
            return attempts;
        }
        let flags = CreateFlags::CLOEXEC | CreateFlags::NONBLOCK;
        let Ok(queue) = inotify::init(flags) else {
            return attempts;
        };
        let files = protected.iter().filter(|place| place.kind == DeniedKind::File).take(MOST);
        for file in files.map(|place| place.path.clone()) {
            let flags = WatchFlags::CREATE | WatchFlags::MASK_ADD;
            let watch = file.parent().map(|directory| inotify::add_watch(&queue, directory, flags));
            if let Some(Ok(watch)) = watch {
                let state = State::of(&file);
                attempts.files.entry(watch).or_default().push((file, state));
            }
        }
        attempts.queue = Some(queue);
        attempts
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

    /// Reads what there is; whether something was renamed, or nobody knows.
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
            if let Some(name) = event.file_name().map(CStr::to_bytes) {
                self.note(event.wd(), name);
            }
        }
        has_moved
    }

    fn note(&self, watch: i32, made: &[u8]) {
        let mut seen = self.seen.borrow_mut();
        for (file, _) in self.files.get(&watch).into_iter().flatten() {
            let own = file.file_name().map(OsStr::as_bytes);
            let path = file.to_string_lossy();
            if made.strip_suffix(b".lock") == own && !seen.iter().any(|have| *have == path) {
                seen.push(path.into_owned());
            }
        }
    }

    /// The files beside which a `.lock` was made, and that are what they were: of others nothing can be claimed.
    pub fn seen(self) -> Vec<String> {
        self.read();
        let is_kept = |path: &String| {
            let own =
                self.files.values().flatten().find(|(file, _)| file.as_os_str() == path.as_str());
            own.is_some_and(|(file, state)| state.is_some() && State::of(file) == *state)
        };
        self.seen.borrow().iter().filter(|path| is_kept(path)).cloned().collect()
    }
}
