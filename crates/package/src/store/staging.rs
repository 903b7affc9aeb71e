//! A directory for what is not finished. Its lock tells a live one from what a crash left.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use super::{Store, make_private};
use crate::error::{Error, Result};

/// A directory for a download, removed when it is dropped.
pub struct Staging {
    path: PathBuf,
    /// Held while this lives. In the end it is the lock of what was made.
    lock: Option<File>,
}

/// A name that no other process or thread has.
pub(super) fn unique() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    format!("{}-{}-{now:x}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

impl Staging {
    /// It is made under another name and gets its own when it has its lock, so that one without a lock is dead.
    /// Windows does not rename a directory with something open in it: see [`is_dead_without_lock`].
    pub(super) fn new(within: &Path) -> Result<Staging> {
        loop {
            let name = unique();
            let path = within.join(&name);
            let made = if cfg!(windows) { path.clone() } else { within.join(format!(".{name}")) };
            let failed = |e: std::io::Error| Error::io("make", &path, &e);
            make_private(&made).map_err(failed)?;
            let lock = File::create_new(made.join("lock")).map_err(failed)?;
            lock.lock().map_err(failed)?;
            if made != path {
                fs::rename(&made, &path).map_err(failed)?;
            }
            // On Windows a sweep may have come before the lock.
            if path.join("lock").exists() {
                return Ok(Staging { path, lock: Some(lock) });
            }
        }
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// It is finished, and gets its place.
    pub(super) fn keep(mut self, to: &Path) -> Result<()> {
        self.let_go();
        place(&self.path, to).map_err(|e| Error::io("finish", to, &e))
    }

    /// Windows neither moves nor removes a directory with something open in it. No process sweeps meanwhile without
    /// the lock of the store, which who keeps something has.
    fn let_go(&mut self) {
        if cfg!(windows) {
            self.lock = None;
        }
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        self.let_go();
        // After `keep` there is nothing at that path any more.
        remove_tree(&self.path);
    }
}

/// Puts something in its place. On Windows another process may have it open this moment, or what was there before: a
/// reader, another process of ours, a virus scanner.
pub(super) fn place(from: &Path, to: &Path) -> std::io::Result<()> {
    const TRIES: u32 = 50;
    for _ in 1..TRIES {
        match fs::rename(from, to) {
            Err(e) if cfg!(windows) && e.kind() == std::io::ErrorKind::PermissionDenied => {
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            done => return done,
        }
    }
    fs::rename(from, to)
}

/// Whether it is gone. A package may have closed its directories, or nested them deeply.
pub(super) fn remove_tree(path: &Path) -> bool {
    mcp_files::remove_tree(path).is_ok() || !path.exists()
}

impl Store {
    /// Removes what no process works on any more: whose lock is free, or that is old and has none.
    pub(super) fn sweep(&self) {
        let Ok(entries) = fs::read_dir(self.path("staging")) else {
            return;
        };
        for entry in entries.flatten() {
            let path = entry.path();
            if path.is_file() {
                // A small file on its way, unless its writer is gone: then a minute is long past.
                if is_old(&entry) {
                    let _ = fs::remove_file(&path);
                }
                continue;
            }
            // Its maker may have the lock's file and not yet the lock.
            if is_being_made(&entry) && !is_old(&entry) {
                continue;
            }
            // Held until it is removed: who makes it anew under our hands waits for that, and sees it.
            let held = match File::open(path.join("lock")) {
                Ok(lock) if lock.try_lock().is_ok() => Some(lock),
                Ok(_) => continue,
                Err(_) => None,
            };
            if held.is_some() || is_dead_without_lock(&entry) {
                remove_dead(&path, held);
            }
        }
    }
}

/// On Windows what is open stays, so the lock is let go; what can be moved away no other process has open either.
fn remove_dead(path: &Path, held: Option<File>) {
    if !cfg!(windows) {
        remove_tree(path);
        return;
    }
    drop(held);
    let away = path.with_extension("dead");
    if fs::rename(path, &away).is_ok() {
        remove_tree(&away);
    }
}

/// A directory without a lock is being made, under a hidden name, or was being removed by a process that was killed.
fn is_dead_without_lock(entry: &fs::DirEntry) -> bool {
    !(cfg!(windows) || is_being_made(entry)) || is_old(entry)
}

/// It has the hidden name of a directory whose maker does not hold its lock yet.
fn is_being_made(entry: &fs::DirEntry) -> bool {
    entry.file_name().as_encoded_bytes().starts_with(b".")
}

fn is_old(entry: &fs::DirEntry) -> bool {
    let changed = entry.metadata().and_then(|metadata| metadata.modified());
    let age = changed.ok().and_then(|time| time.elapsed().ok());
    age.is_some_and(|age| age.as_secs() > 60)
}
