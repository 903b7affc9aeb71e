//! Other names of protected files inside what may be written: through them a file changes that is read-only by
//! its own name. No program makes such links by accident; backups made of hard links lie elsewhere.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{DirEntryExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::core::request::{DeniedKind, Guarded, Place, Protected};

/// Deeper than this no program looks for settings.
const DEEPEST: usize = 8;

/// Protected files and their other names.
pub fn find(protected: &[Protected], write: &[Place]) -> Vec<(PathBuf, PathBuf)> {
    let mut linked: BTreeMap<(u64, u64), PathBuf> = BTreeMap::new();
    for place in protected.iter().filter(|place| place.guarded == Guarded::ReadOnly) {
        match place.kind {
            DeniedKind::File => note(&place.path, &mut linked),
            DeniedKind::Directory => gather(&place.path, DEEPEST, &mut linked),
            DeniedKind::Link => {}
        }
    }
    let mut found = Vec::new();
    // Most of the time there are none, and nothing is searched.
    if !linked.is_empty() {
        for root in write {
            search(&root.path, protected, &linked, &mut found);
        }
    }
    found
}

fn note(file: &Path, linked: &mut BTreeMap<(u64, u64), PathBuf>) {
    if let Ok(metadata) = fs::symlink_metadata(file)
        && metadata.is_file()
        && metadata.nlink() > 1
    {
        linked.insert((metadata.dev(), metadata.ino()), file.to_owned());
    }
}

fn gather(directory: &Path, depth: usize, linked: &mut BTreeMap<(u64, u64), PathBuf>) {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    for entry in entries {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth > 0 => gather(&entry.path(), depth - 1, linked),
            Ok(kind) if kind.is_file() => note(&entry.path(), linked),
            _ => {}
        }
    }
}

fn search(
    root: &Path,
    protected: &[Protected],
    linked: &BTreeMap<(u64, u64), PathBuf>,
    found: &mut Vec<(PathBuf, PathBuf)>,
) {
    let is_closed = |path: &Path| {
        let is = |place: &Protected| place.guarded == Guarded::ReadOnly && path == place.path;
        protected.iter().any(is)
    };
    let mut pending = vec![root.to_owned()];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            let path = entry.path();
            match entry.file_type() {
                _ if is_closed(&path) => {}
                Ok(kind) if kind.is_dir() => pending.push(path),
                Ok(kind) if kind.is_file() && linked.keys().any(|(_, ino)| *ino == entry.ino()) => {
                    let own = fs::symlink_metadata(&path).map(|file| (file.dev(), file.ino()));
                    if let Some(name) = own.ok().and_then(|own| linked.get(&own)) {
                        found.push((name.clone(), path));
                    }
                }
                _ => {}
            }
        }
    }
}
