//! Sees who gets ready to replace a protected file: git writes `config.lock` beside `config` and renames it,
//! which fails. A hint for people, no control: nothing rests on it.

use std::collections::BTreeMap;
use std::ffi::{CStr, OsStr};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use rustix::fs::inotify::{self, CreateFlags, Reader, WatchFlags};

use crate::request::{DeniedKind, Protected};

/// The user has some thousands of watches for everything.
const MOST: usize = 64;

pub struct Attempts {
    queue: Option<OwnedFd>,
    /// The protected files, by the watch on their directory.
    files: BTreeMap<i32, Vec<PathBuf>>,
}

impl Attempts {
    /// Watches the directories of protected files; what cannot be watched is not.
    pub fn watch(protected: &[Protected]) -> Attempts {
        let mut attempts = Attempts { queue: None, files: BTreeMap::new() };
        let files = protected.iter().filter(|place| place.kind == DeniedKind::File).take(MOST);
        let files: Vec<PathBuf> = files.map(|place| place.path.clone()).collect();
        if files.is_empty() {
            return attempts;
        }
        let flags = CreateFlags::CLOEXEC | CreateFlags::NONBLOCK;
        let Ok(queue) = inotify::init(flags) else {
            return attempts;
        };
        for file in files {
            let directory = file.parent().map(|path| path.to_owned());
            let watch = directory.map(|path| inotify::add_watch(&queue, path, WatchFlags::CREATE));
            if let Some(Ok(watch)) = watch {
                attempts.files.entry(watch).or_default().push(file);
            }
        }
        attempts.queue = Some(queue);
        attempts
    }

    /// The files beside which a `.lock` was made.
    pub fn seen(&self) -> Vec<String> {
        let Some(queue) = &self.queue else {
            return Vec::new();
        };
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut reader = Reader::new(queue, &mut buffer);
        let mut seen: Vec<String> = Vec::new();
        while let Ok(event) = reader.next() {
            let Some(name) = event.file_name().map(CStr::to_bytes) else {
                continue;
            };
            for file in self.files.get(&event.wd()).into_iter().flatten() {
                let own = file.file_name().map(OsStr::as_bytes);
                let path = file.to_string_lossy();
                if name.strip_suffix(b".lock") == own && !seen.iter().any(|have| *have == path) {
                    seen.push(path.into_owned());
                }
            }
        }
        seen
    }
}
