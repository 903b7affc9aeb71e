//! The files of a package: unpacked from its bundle, compared with it, held while they are used.
//!
//! Stops: files that were changed, added or lost behind the store's back. What differs is named and not run; a
//! pull puts it right, from a bundle whose digest is checked. Leaves open: what [`record`](super::record) says.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use mcp_files::Links;

use super::adopt::adopt;
use super::layout::ImageManifest;
use super::record::{self, Record};
use super::unpack_progress::Told;
use super::{DAMAGED, SERVER, Staging, Store, make_private, read_manifests};
use crate::archive::{self, ArchiveLimits, Compare, Unpack};
use crate::digest::Digest;
use crate::error::{Error, Kind, Result};

/// When files that are there are unpacked again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    /// Only where they are not there.
    Missing,
    /// Also where they are not what the bundle has.
    Damaged,
}

/// Whether there is a directory of files; what is in it is another question.
fn has_files(directory: &Path) -> bool {
    fs::symlink_metadata(directory.join("root")).is_ok_and(|found| found.is_dir())
}

/// A hundred thousand files have a record of some 10 MB.
const LARGEST_RECORD: u64 = 1 << 30;

/// A package whose files are there, and stay while this is held.
#[non_exhaustive]
pub struct Ready {
    /// The digest of its manifest.
    pub digest: Digest,
    /// The package's files.
    pub root: PathBuf,
    /// `server.json`, for a package that came by way of the public registry.
    pub server_json: Option<String>,
    record: Record,
    _lock: File,
}

impl Ready {
    /// Whether each of the files looks as when it was unpacked or last compared.
    #[must_use]
    pub fn is_as_recorded(&self) -> bool {
        self.record.holds(&self.root)
    }
}

impl Store {
    /// Under the lock: the package's files, from its bundle.
    pub(super) fn unpack(
        &self,
        digest: &Digest,
        manifest: &ImageManifest,
        when: When,
        tree: Option<&Path>,
    ) -> Result<()> {
        let to = self.unpacked_path(digest);
        let is_there = has_files(&to) && to.join("record").is_file() && to.join("lock").is_file();
        match when {
            When::Missing if is_there => return Ok(()),
            When::Damaged if is_there && self.compare(digest, &to.join("root")).is_ok() => {
                return Ok(());
            }
            _ => {}
        }
        if self.is_running(digest) {
            return Err(Error::machine(
                format!("{digest} is damaged in the store, and is running"),
                "end it, and mcp pull it again",
            ));
        }
        let staging = Staging::new(&self.path("staging"))?;
        let root = staging.path().join("root");
        if !tree.is_some_and(|tree| adopt(tree, &root)) {
            make_private(&root).map_err(|e| Error::io("make", &root, &e))?;
            let mut bundle = self.open_bundle(manifest)?;
            let mut unpack = Told::new(&bundle, Unpack::into(&root)?, self.unpacking)?;
            archive::read(&mut bundle, &ArchiveLimits::DEFAULT, &mut unpack)?;
        }
        read_manifests(&root)?;
        record::settle();
        let recorded = record::of(&root)?;
        let path = staging.path().join("record");
        fs::write(&path, recorded.0).map_err(|e| Error::io("write", &path, &e))?;
        match fs::symlink_metadata(&to) {
            Ok(found) if found.is_dir() => fs::remove_dir_all(&to),
            Ok(_) => fs::remove_file(&to),
            Err(_) => Ok(()),
        }
        .map_err(|e| Error::io("remove", &to, &e))?;
        staging.keep(&to)
    }

    /// What was made from a package is made again at its next run, where it is damaged.
    pub(super) fn drop_damaged_derived(&self, from: &Digest) -> Result<()> {
        match self.derived(from)? {
            Some(derived) if self.verify_one(&derived).is_err() && !self.is_running(&derived) => {
                let path = self.unpacked_path(&derived);
                fs::remove_dir_all(&path)
                    .or_else(|e| if path.exists() { Err(e) } else { Ok(()) })
                    .map_err(|e| Error::io("remove", &path, &e))?;
                self.index_remove_derived(from)
            }
            _ => Ok(()),
        }
    }

    /// The bundle's blob, its digest checked on the very file that is read.
    fn open_bundle(&self, manifest: &ImageManifest) -> Result<File> {
        let layer = manifest.bundle()?;
        let path = self.blob_path(&layer.digest);
        let failed = |e: std::io::Error| Error::io("read", &path, &e);
        let file = mcp_files::open(&path, Links::Refuse).map_err(failed)?;
        let (found, _) = Digest::of_reader(&file).map_err(failed)?;
        if found != layer.digest {
            return Err(Error::digest(path.display(), layer.digest, found).hinted(DAMAGED));
        }
        Ok(file)
    }

    /// Makes sure that a package's files are what they were, and holds on to them.
    pub fn ready(&self, digest: &Digest) -> Result<Ready> {
        let mut ready = self.hold(digest)?;
        if !ready.is_as_recorded() {
            ready.record = self.compare_and_record(digest)?;
        }
        Ok(ready)
    }

    /// Holds on to a package's files, of which only those at the top, the manifests among them, are surely what they
    /// were. The others are looked at by [`Ready::is_as_recorded`], before anything of them is used.
    pub fn hold(&self, digest: &Digest) -> Result<Ready> {
        let directory = self.unpacked_path(digest);
        let lock_path = directory.join("lock");
        // Not open while the files are put there anew: Windows does not remove what is.
        let lock = match open_lock(&lock_path).ok().filter(|_| has_files(&directory)) {
            Some(lock) => lock,
            None => {
                let _lock = self.lock()?;
                self.unpack(digest, &self.manifest(digest)?, When::Missing, None)?;
                open_lock(&lock_path).map_err(|e| Error::io("open", &lock_path, &e))?
            }
        };
        lock.lock_shared().map_err(|e| Error::io("lock", &lock_path, &e))?;
        // For `gc` to know; on a read-only store it cannot, and need not.
        let _ = lock.set_modified(std::time::SystemTime::now());
        let root = directory.join("root");
        let record = mcp_files::read(&directory.join("record"), LARGEST_RECORD, Links::Refuse);
        let record = record.ok().map(Record);
        let record = match record.filter(|record| record.top_holds(&root)) {
            Some(record) => record,
            None => self.compare_and_record(digest)?,
        };
        let server_json = self.server_json(digest)?;
        Ok(Ready { digest: *digest, root, server_json, record, _lock: lock })
    }

    /// Every byte of a package's files is what it was: this is how they look then.
    fn compare_and_record(&self, digest: &Digest) -> Result<Record> {
        let directory = self.unpacked_path(digest);
        let root = directory.join("root");
        // Recorded first: what changes while it is compared is noticed at the next start.
        let record = record::of(&root)?;
        record::settle();
        self.compare(digest, &root)?;
        // In a store that cannot be written, such as a layer of an image or a restored backup, every start compares.
        let _ = self.replace(&directory.join("record"), &record.0);
        Ok(record)
    }

    fn server_json(&self, digest: &Digest) -> Result<Option<String>> {
        let manifest = self.manifest(digest)?;
        let Some(layer) = manifest.layer(SERVER) else {
            return Ok(None);
        };
        let bytes = self.read_blob(&layer.digest, crate::manifest::MAX_MANIFEST)?;
        String::from_utf8(bytes).map(Some).map_err(|_| Error::package("server.json is not UTF-8"))
    }

    /// Every byte of a package's files against its bundle, and that against its digest.
    fn compare(&self, digest: &Digest, root: &Path) -> Result<()> {
        let mut bundle = self.open_bundle(&self.manifest(digest)?)?;
        let mut compare = Compare::with(root);
        archive::read(&mut bundle, &ArchiveLimits::DEFAULT, &mut compare)?;
        let differing = compare.finish()?;
        if differing.is_empty() {
            return Ok(());
        }
        let list = differing.join("\n     ");
        Err(Error::new(
            Kind::Untrusted,
            format!(
                "the files of this package were changed in the store:\n     {list}\n     in {}",
                root.display()
            ),
            "mcp pull it again, which puts them right, and find out who changed them",
        ))
    }

    /// The thorough check of one package, and of what was made from it: blobs and files.
    pub fn verify(&self, digest: &Digest) -> Result<()> {
        self.verify_one(digest)?;
        match self.derived(digest)? {
            Some(derived) => self
                .verify_one(&derived)
                .map_err(|error| error.within("what was made from it for its dependencies")),
            None => Ok(()),
        }
    }

    fn verify_one(&self, digest: &Digest) -> Result<()> {
        let manifest = self.manifest(digest)?;
        for layer in &manifest.layers {
            self.check_blob(&layer.digest)?;
        }
        let directory = self.unpacked_path(digest);
        if !has_files(&directory) {
            return Err(Error::new(
                Kind::Untrusted,
                format!("its files are missing: {}", directory.join("root").display()),
                DAMAGED,
            ));
        }
        self.compare(digest, &directory.join("root"))
    }
}

/// On Windows only who may write can note when it was used; on a read-only store no process can.
fn open_lock(path: &Path) -> std::io::Result<File> {
    match cfg!(windows) {
        true => File::options().read(true).write(true).open(path).or_else(|_| File::open(path)),
        false => File::open(path),
    }
}
