//! What is not needed any more goes: by name, by age, by size.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, SystemTime};

use super::staging::remove_tree;
use super::{Store, Stored};
use crate::digest::Digest;
use crate::error::{Error, Result};

/// What `gc` leaves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Keep {
    /// Packages that were run or fetched since.
    pub younger_than: Option<Duration>,
    /// The newest packages up to this size together.
    pub bytes: Option<u64>,
}

/// What was removed from the store.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Collected {
    /// The packages that were removed.
    pub removed: Vec<Stored>,
    /// Running now, so left alone.
    pub in_use: Vec<Stored>,
    /// How many bytes were freed.
    pub bytes: u64,
}

impl Store {
    /// Takes all names of a package of one source away, and all that only they needed.
    pub fn remove(&self, stored: &Stored) -> Result<Collected> {
        let _lock = self.lock()?;
        if self.is_running(&stored.digest) {
            return Err(Error::machine(format!("{} is running", stored.name), "end it first"));
        }
        let removed =
            self.index_remove(|one| one.digest == stored.digest && one.source == stored.source)?;
        let bytes = self.drop_unnamed()?;
        Ok(Collected { removed, in_use: Vec::new(), bytes })
    }

    /// Removes the packages that are not to be kept.
    pub fn collect(&self, keep: Keep) -> Result<Collected> {
        let _lock = self.lock()?;
        self.sweep();
        let now = SystemTime::now();
        let mut by_use: Vec<(SystemTime, Stored)> =
            self.list()?.into_iter().map(|one| (self.last_use(&one), one)).collect();
        by_use.sort_by_key(|(used, _)| std::cmp::Reverse(*used));
        let mut doomed = BTreeSet::new();
        let mut counted = BTreeSet::new();
        let mut total = 0;
        for (used, one) in &by_use {
            let age = now.duration_since(*used).unwrap_or_default();
            if counted.insert(one.digest) {
                total += self.size(&one.digest);
            }
            let is_old = keep.younger_than.is_some_and(|most| age > most);
            if is_old || keep.bytes.is_some_and(|most| total > most) {
                doomed.insert(one.digest);
            }
        }
        let (in_use, free): (BTreeSet<_>, BTreeSet<_>) =
            doomed.into_iter().partition(|digest| self.is_running(digest));
        let removed = self.index_remove(|one| free.contains(&one.digest))?;
        let in_use = by_use
            .into_iter()
            .map(|(_, one)| one)
            .filter(|one| in_use.contains(&one.digest))
            .collect();
        Ok(Collected { removed, in_use, bytes: self.drop_unnamed()? })
    }

    /// It, and what is run in its place.
    fn with_derived(&self, digest: &Digest) -> impl Iterator<Item = Digest> {
        [Some(*digest), self.derived(digest).ok().flatten()].into_iter().flatten()
    }

    fn last_use(&self, stored: &Stored) -> SystemTime {
        let used = self.with_derived(&stored.digest).filter_map(|digest| {
            fs::metadata(self.unpacked_path(&digest).join("lock")).ok()?.modified().ok()
        });
        used.fold(stored.added, SystemTime::max)
    }

    pub(super) fn is_running(&self, digest: &Digest) -> bool {
        self.with_derived(digest).any(|digest| self.is_held(&digest))
    }

    fn is_held(&self, digest: &Digest) -> bool {
        match File::open(self.unpacked_path(digest).join("lock")) {
            Ok(lock) => lock.try_lock().is_err(),
            Err(_) => false,
        }
    }

    /// What a package takes on disk: its bundle, and its files; and of what was made from it.
    #[must_use]
    pub fn size(&self, digest: &Digest) -> u64 {
        let of_one = |digest: Digest| {
            let layers: u64 = self
                .manifest(&digest)
                .map_or(0, |manifest| manifest.layers.iter().map(|layer| layer.size).sum());
            layers + tree_size(&self.unpacked_path(&digest))
        };
        self.with_derived(digest).map(of_one).sum()
    }

    /// Under the lock: removes blobs and files that no name leads to.
    fn drop_unnamed(&self) -> Result<u64> {
        let mut needed = BTreeSet::from([Digest::of(b"{}").hex()]);
        let mut named = BTreeSet::new();
        let stored = self.list()?;
        needed.extend(stored.iter().filter_map(|one| Some(one.signature?.hex())));
        let derived = self.all_derived()?.into_iter().map(|(_, made)| made);
        for digest in stored.iter().map(|one| one.digest).chain(derived) {
            named.insert(digest.hex());
            needed.insert(digest.hex());
            if let Ok(manifest) = self.manifest(&digest) {
                needed.extend(manifest.layers.iter().map(|layer| layer.digest.hex()));
                needed.insert(manifest.config.digest.hex());
            }
        }
        let mut freed = 0;
        for (directory, wanted) in [("unpacked", &named), ("blobs/sha256", &needed)] {
            let path = self.path(directory);
            let entries = fs::read_dir(&path).map_err(|e| Error::io("read", &path, &e))?;
            for entry in entries.flatten() {
                let name = entry.file_name().to_string_lossy().into_owned();
                if wanted.contains(&name) {
                    continue;
                }
                let is_running = Digest::from_hex(&name).is_ok_and(|digest| self.is_held(&digest));
                if directory == "unpacked" && is_running {
                    continue;
                }
                let path = entry.path();
                let size = tree_size(&path);
                let is_gone =
                    if path.is_dir() { remove_tree(&path) } else { fs::remove_file(&path).is_ok() };
                if is_gone {
                    freed += size;
                }
            }
        }
        Ok(freed)
    }
}

fn tree_size(path: &Path) -> u64 {
    let Ok(metadata) = fs::symlink_metadata(path) else {
        return 0;
    };
    if !metadata.is_dir() {
        return metadata.len();
    }
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.map(|entry| tree_size(&entry.path())).sum()
}
