//! Reading a client's file, and putting another in its place in one step.
//!
//! Keeps: mode, owner, the symlink that leads to it. A crash leaves the old file or the new one, and at most
//! a temporary file beside it, which the next run takes away. Notices: another program that wrote to it since it
//! was read. Leaves open: one that writes between the last look and the rename, a few microseconds.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, Metadata};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use mcp_files::Links;

use crate::error::Error;

/// A larger file is no configuration.
const MOST_BYTES: u64 = 64 << 20;

/// A file as it was read.
#[derive(Debug)]
#[non_exhaustive]
pub struct Original {
    /// As people name it.
    pub path: PathBuf,
    /// Where it is, links followed.
    pub real: PathBuf,
    /// The content.
    pub bytes: Vec<u8>,
    /// None for a file that is to be made.
    meta: Option<Metadata>,
}

/// Reads a file so that it can be replaced later. A symlink is followed.
pub fn read(path: &Path) -> Result<Original, Error> {
    let fail = |error: io::Error| Error::file(path, &error);
    let real = path.canonicalize().map_err(fail)?;
    let bytes = mcp_files::read(&real, MOST_BYTES, Links::Refuse).map_err(fail)?;
    let meta = real.metadata().map_err(fail)?;
    Ok(Original { path: path.to_owned(), real, bytes, meta: Some(meta) })
}

impl Original {
    /// For a file that is not there.
    #[must_use]
    pub fn missing(path: &Path) -> Original {
        Original { path: path.to_owned(), real: path.to_owned(), bytes: Vec::new(), meta: None }
    }

    /// Whether the file does not exist yet.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        self.meta.is_none()
    }
}

/// Puts new bytes in the place of each file that was read, unless it is another one by now. Many at once cost little
/// more than one: the disk is waited for once.
pub fn write(edits: &[(&Original, &[u8])]) -> Vec<Result<(), Error>> {
    let mut seen = BTreeSet::new();
    let prepare = |(original, bytes): &(&Original, &[u8])| match seen.insert(original.real.clone())
    {
        true => Prepared::new(original, bytes),
        // One file by two names: the second would be written over the first.
        false => Err(Error::Changed { path: original.path.clone() }),
    };
    let prepared: Vec<_> = edits.iter().map(prepare).collect();
    sync(prepared.iter().flatten().map(|one| &one.file));
    let (mut results, mut directories) = (Vec::new(), BTreeSet::new());
    for (prepared, (original, _)) in prepared.into_iter().zip(edits) {
        let result = prepared.and_then(|prepared| prepared.put(original));
        if result.is_ok() {
            directories.extend(original.real.parent());
        }
        results.push(result);
    }
    // What it brings is safety against a power cut; some file systems refuse.
    let directories: Vec<File> =
        directories.into_iter().filter_map(|path| owner::open_directory(path).ok()).collect();
    sync(&directories);
    results
}

/// The new file beside the old one.
struct Prepared {
    temporary: PathBuf,
    file: File,
}

impl Prepared {
    fn new(original: &Original, bytes: &[u8]) -> Result<Prepared, Error> {
        let path = &original.path;
        let fail = |error: io::Error| Error::file(path, &error);
        let real = &original.real;
        if let Some(meta) = &original.meta {
            owner::check(meta).map_err(|why| Error::why(path, why))?;
        }
        let directory = real.parent().ok_or_else(|| Error::why(path, "is no file"))?;
        if original.meta.is_none() {
            fs::create_dir_all(directory).map_err(fail)?;
        }
        let temporary = temporary(real).ok_or_else(|| Error::why(path, "is no file"))?;
        let file = create(&temporary).map_err(fail)?;
        let filled = fill(&file, original, bytes).map_err(fail);
        let prepared = Prepared { temporary, file };
        match filled {
            Ok(()) => Ok(prepared),
            Err(error) => Err(prepared.drop_for(error)),
        }
    }

    fn put(self, original: &Original) -> Result<(), Error> {
        // Once more for the error: where the disk has it already, this costs nothing.
        let written = self.file.sync_all().and_then(|()| match is_as_read(original) {
            true => fs::rename(&self.temporary, &original.real).map(|()| true),
            false => Ok(false),
        });
        match written {
            Ok(true) => Ok(()),
            Ok(false) => Err(self.drop_for(Error::Changed { path: original.path.clone() })),
            Err(error) => Err(self.drop_for(Error::file(&original.path, &error))),
        }
    }

    fn drop_for(self, error: Error) -> Error {
        let _ = fs::remove_file(&self.temporary);
        error
    }
}

/// Waits until the disk has all of these. The file system puts waits that come together into one.
fn sync<'a>(files: impl IntoIterator<Item = &'a File>) {
    const THREADS: usize = 8;
    let files: Vec<&File> = files.into_iter().collect();
    let share = files.len().div_ceil(THREADS).max(1);
    std::thread::scope(|scope| {
        for share in files.chunks(share) {
            scope.spawn(move || {
                for file in share {
                    let _ = file.sync_all();
                }
            });
        }
    });
}

/// Takes away a file that `mcp add` made, unless it is another one by now.
pub fn remove(original: &Original) -> Result<(), Error> {
    match is_as_read(original) {
        true => {
            fs::remove_file(&original.real).map_err(|error| Error::file(&original.path, &error))
        }
        false => Err(Error::Changed { path: original.path.clone() }),
    }
}

/// Beside the file, so that the rename stays on one file system. One name: what a crash left is found again.
fn temporary(real: &Path) -> Option<PathBuf> {
    let name = real.file_name()?.to_str()?;
    Some(real.with_file_name(format!(".{name}.mcp-wire")))
}

fn create(temporary: &Path) -> io::Result<File> {
    match owner::create(temporary) {
        // Of a run that was killed; the journal's lock is ours, so none is at work.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            fs::remove_file(temporary)?;
            owner::create(temporary)
        }
        file => file,
    }
}

fn fill(mut file: &File, original: &Original, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes)?;
    match &original.meta {
        Some(meta) => owner::keep(file, meta),
        None => Ok(()),
    }
}

/// The same file with the same bytes.
fn is_as_read(original: &Original) -> bool {
    let Some(meta) = &original.meta else {
        return fs::symlink_metadata(&original.real).is_err();
    };
    let Ok(now) = read(&original.path) else {
        return false;
    };
    now.real == original.real
        && now.bytes == original.bytes
        && now.meta.is_some_and(|now| owner::is_same(&now, meta))
}

/// Copies of ours in one directory: for the eyes of their owner alone.
pub(crate) fn write_private(directory: &Path, copies: &BTreeMap<String, &[u8]>) -> io::Result<()> {
    let mut files = Vec::new();
    for (name, bytes) in copies {
        let temporary = directory.join(name).with_extension("new");
        let mut file = create(&temporary)?;
        file.write_all(bytes)?;
        files.push((temporary, file));
    }
    sync(files.iter().map(|(_, file)| file));
    for (temporary, file) in &files {
        file.sync_all()?;
        fs::rename(temporary, temporary.with_extension(""))?;
    }
    if let Ok(directory) = owner::open_directory(directory) {
        sync([&directory]);
    }
    Ok(())
}

#[cfg(unix)]
mod owner {
    use std::fs::{File, Metadata, Permissions};
    use std::io;
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
    use std::path::Path;

    pub fn create(path: &Path) -> io::Result<File> {
        File::options().write(true).create_new(true).mode(0o600).open(path)
    }

    /// What a rename could not keep is told before anything is written.
    pub fn check(meta: &Metadata) -> Result<(), String> {
        if meta.nlink() > 1 {
            return Err(format!(
                "has {} names (hard links), which a rename would part; make it one file, or a symlink",
                meta.nlink()
            ));
        }
        let own = rustix::process::geteuid();
        match own.is_root() || own.as_raw() == meta.uid() {
            true => Ok(()),
            false => Err(format!("belongs to user {}; run mcp as that user", meta.uid())),
        }
    }

    pub fn keep(file: &File, meta: &Metadata) -> io::Result<()> {
        let new = file.metadata()?;
        if (new.uid(), new.gid()) != (meta.uid(), meta.gid()) {
            let told = |error: io::Error| match error.kind() {
                io::ErrorKind::PermissionDenied => io::Error::other(format!(
                    "its group ({}) is none of yours, so a new file cannot have it; nothing is written. Give it one of \
                     yours first: chgrp {} FILE",
                    meta.gid(),
                    rustix::process::getegid().as_raw()
                )),
                _ => error,
            };
            fchown(file, Some(meta.uid()), Some(meta.gid())).map_err(told)?;
        }
        file.set_permissions(Permissions::from_mode(meta.mode() & 0o7777))
    }

    pub fn is_same(one: &Metadata, two: &Metadata) -> bool {
        (one.dev(), one.ino()) == (two.dev(), two.ino())
    }

    pub fn open_directory(path: &Path) -> io::Result<File> {
        File::open(path)
    }
}

#[cfg(not(unix))]
mod owner {
    use std::fs::{File, Metadata};
    use std::io;
    use std::path::Path;

    pub fn create(path: &Path) -> io::Result<File> {
        File::options().write(true).create_new(true).open(path)
    }

    pub fn check(meta: &Metadata) -> Result<(), String> {
        match meta.permissions().readonly() {
            true => Err("is read-only".to_owned()),
            false => Ok(()),
        }
    }

    /// The new file has what the directory gives to all of its files.
    pub fn keep(_: &File, _: &Metadata) -> io::Result<()> {
        Ok(())
    }

    pub fn is_same(_: &Metadata, _: &Metadata) -> bool {
        true
    }

    /// A directory is no file here.
    pub fn open_directory(_: &Path) -> io::Result<File> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn alone(original: &Original) -> Result<(), Error> {
        write(&[(original, b"ours")]).remove(0)
    }

    /// Another program that writes after we have read: its bytes stay, and so do ours where it did nothing.
    #[test]
    fn a_file_that_changed_since_it_was_read_is_left_alone() {
        let directory = std::env::temp_dir().join(format!("mcp-changed-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let path = directory.join("mcp.json");
        fs::write(&path, "{}").unwrap();
        let original = read(&path).unwrap();
        fs::write(&path, r#"{"theirs": 1}"#).unwrap();
        let told = alone(&original).unwrap_err();
        assert!(matches!(told, Error::Changed { .. }), "{told}");
        assert_eq!(fs::read(&path).unwrap(), br#"{"theirs": 1}"#);
        // The same bytes in another file: a program replaced it.
        let original = read(&path).unwrap();
        let other = directory.join("other");
        fs::copy(&path, &other).unwrap();
        fs::rename(&other, &path).unwrap();
        assert_eq!(alone(&original).is_err(), cfg!(unix));
        let original = read(&path).unwrap();
        alone(&original).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"ours");
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 1, "no temporary file is left");
        fs::remove_dir_all(&directory).unwrap();
    }
}
