//! Packages on disk: an OCI image layout, and each package unpacked beside it.
//!
//! ```text
//! oci-layout, index.json      which package a name means
//! blobs/sha256/HEX            manifests and bundles, named by their digest
//! unpacked/HEX/root/          what is run; HEX is the digest of the package's manifest
//! unpacked/HEX/record         inode, size and ctime of all in it, as it was unpacked
//! unpacked/HEX/lock           shared by those who run it; its time is when it was last run
//! staging/                    what is not finished; each holds its own lock while somebody works on it
//! lock                        held to change any of the above
//! grants/                     what was granted to which package
//! notes/                      versions of interpreters on this machine
//! ```
//!
//! Everything appears by a rename, so a kill at any point leaves the old state or the new one; what
//! is left in `staging` is swept by the next change. Files that are changed behind the store's back
//! are noticed at the next start: see [`record`].

mod collect;
mod grants;
mod index;
mod layout;
mod lookup;
mod notes;
mod record;
mod staging;
#[cfg(test)]
mod tests;
mod told;

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use crate::archive::{self, Compare, Limits, Unpack};
use crate::digest::{Digest, Hashing};
use crate::error::{Error, Kind, Result};
use crate::manifest::{Files, MCPB, OURS};

pub use collect::{Collected, Keep};
pub use grants::{Grant, Grants};
pub use index::Stored;
pub use layout::{
    BUNDLE, Descriptor, EMPTY, ImageManifest, MANIFEST, MINISIG, PACKAGE, SERVER, TAR_GZIP,
    TAR_ZSTD,
};
use record::Record;
pub use staging::Staging;
use told::Told;

pub struct Store {
    root: PathBuf,
    /// Told while a package is unpacked: how much of its bundle was read, of how much.
    unpacking: Option<fn(u64, u64)>,
}

/// A package whose files are there, and stay while this is held.
pub struct Ready {
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
    pub fn is_as_recorded(&self) -> bool {
        self.record.holds(&self.root)
    }
}

/// A package to be kept, its bundle downloaded already.
pub struct Addition<'a> {
    /// References that mean it from now on.
    pub names: &'a [String],
    pub manifest: &'a [u8],
    /// The bundle and other layers, as finished files in a staging directory.
    pub blobs: &'a [(Digest, PathBuf)],
    pub source: &'a str,
    /// The text of a signature that was found with it.
    pub signature: Option<&'a str>,
}

impl Store {
    pub fn at(root: impl Into<PathBuf>) -> Store {
        Store { root: root.into(), unpacking: None }
    }

    /// The same store, with somebody to be told how unpacking goes.
    pub fn telling(self, unpacking: fn(u64, u64)) -> Store {
        Store { unpacking: Some(unpacking), ..self }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    pub fn blob_path(&self, digest: &Digest) -> PathBuf {
        self.root.join("blobs/sha256").join(digest.hex())
    }

    fn unpacked_path(&self, digest: &Digest) -> PathBuf {
        self.root.join("unpacked").join(digest.hex())
    }

    /// Makes the directories, private to the user.
    fn prepare_directories(&self) -> Result<()> {
        for directory in ["blobs/sha256", "unpacked", "staging", "grants", "notes"] {
            let path = self.path(directory);
            make_private(&path).map_err(|e| Error::io("make", &path, &e))?;
        }
        let layout = self.path("oci-layout");
        if !layout.exists() {
            self.replace(&layout, br#"{"imageLayoutVersion":"1.0.0"}"#)?;
        }
        Ok(())
    }

    /// Waits until nobody else changes the store.
    fn lock(&self) -> Result<File> {
        self.prepare_directories()?;
        let path = self.path("lock");
        let failed = |e: std::io::Error| Error::io("lock", &path, &e);
        let lock =
            File::options().create(true).truncate(false).write(true).open(&path).map_err(failed)?;
        lock.lock().map_err(failed)?;
        Ok(lock)
    }

    pub fn staging(&self) -> Result<Staging> {
        self.prepare_directories()?;
        // What an interrupted one left goes before there is more of it. Who changes the store this moment has swept.
        let lock = File::options().create(true).truncate(false).write(true).open(self.path("lock"));
        if lock.as_ref().is_ok_and(|lock| lock.try_lock().is_ok()) {
            self.sweep();
        }
        drop(lock);
        Staging::new(&self.path("staging"))
    }

    /// A small file as a whole or not at all.
    fn replace(&self, path: &Path, bytes: &[u8]) -> Result<()> {
        let staging =
            self.path("staging").join(format!(".{}-{}", std::process::id(), staging::unique()));
        let write = || {
            let mut file = File::create_new(&staging)?;
            file.write_all(bytes)?;
            file.sync_all()?;
            drop(file);
            staging::place(&staging, path)
        };
        write().map_err(|e| {
            let _ = fs::remove_file(&staging);
            Error::io("write", path, &e)
        })
    }

    /// A blob, checked against its digest.
    pub fn read_blob(&self, digest: &Digest, most: u64) -> Result<Vec<u8>> {
        let path = self.blob_path(digest);
        let failed = |e: std::io::Error| Error::io("read", &path, &e);
        let mut bytes = Vec::new();
        File::open(&path)
            .map_err(failed)?
            .take(most + 1)
            .read_to_end(&mut bytes)
            .map_err(failed)?;
        if bytes.len() as u64 > most {
            return Err(Error::package(format!("{} is larger than {most} bytes", path.display())));
        }
        let found = Digest::of(&bytes);
        if found != *digest {
            return Err(Error::digest(path.display(), digest, &found));
        }
        Ok(bytes)
    }

    pub fn has_blob(&self, digest: &Digest) -> bool {
        self.blob_path(digest).is_file()
    }

    pub fn manifest(&self, digest: &Digest) -> Result<ImageManifest> {
        ImageManifest::read(&self.read_blob(digest, layout::LARGEST_MANIFEST)?)
    }

    /// Takes a package in: its blobs, its files, its names, in this order.
    pub fn add(&self, addition: &Addition<'_>) -> Result<Digest> {
        let digest = Digest::of(addition.manifest);
        let manifest = ImageManifest::read(addition.manifest)?;
        let lock = self.lock()?;
        self.sweep();
        for (digest, path) in addition.blobs {
            self.take_blob(digest, path)?;
        }
        let signature = match addition.signature {
            Some(text) => Some(self.put_blob(text.as_bytes())?),
            None => None,
        };
        self.put_blob(addition.manifest)?;
        self.put_blob(b"{}")?;
        // Before it has a name: a bundle that cannot be unpacked is never found.
        self.unpack(&digest, &manifest)?;
        self.index_add(addition, &digest, signature)?;
        drop(lock);
        Ok(digest)
    }

    fn take_blob(&self, digest: &Digest, from: &Path) -> Result<()> {
        let to = self.blob_path(digest);
        if to.is_file() {
            return Ok(());
        }
        let failed = |e: std::io::Error| Error::io("take in", from, &e);
        // Windows writes to the disk only for who may write.
        let file = File::options().read(true).write(true).open(from).map_err(failed)?;
        let (found, _) = Digest::of_reader(&file).map_err(failed)?;
        if found != *digest {
            return Err(Error::digest(from.display(), digest, &found));
        }
        file.sync_all().map_err(failed)?;
        drop(file);
        staging::place(from, &to).map_err(failed)
    }

    fn put_blob(&self, bytes: &[u8]) -> Result<Digest> {
        let digest = Digest::of(bytes);
        let path = self.blob_path(&digest);
        if !path.is_file() {
            self.replace(&path, bytes)?;
        }
        Ok(digest)
    }

    /// Under the lock: the package's files, from its bundle.
    fn unpack(&self, digest: &Digest, manifest: &ImageManifest) -> Result<()> {
        let to = self.unpacked_path(digest);
        if to.join("record").is_file() {
            return Ok(());
        }
        let staging = Staging::new(&self.path("staging"))?;
        let root = staging.path().join("root");
        make_private(&root).map_err(|e| Error::io("make", &root, &e))?;
        let mut bundle = self.open_bundle(manifest)?;
        let mut unpack = Told::new(&bundle, Unpack::into(&root)?, self.unpacking)?;
        archive::read(&mut bundle, &Limits::DEFAULT, &mut unpack)?;
        drop(unpack);
        read_manifests(&root)?;
        record::settle();
        let recorded = record::of(&root)?;
        let path = staging.path().join("record");
        fs::write(&path, recorded.0).map_err(|e| Error::io("write", &path, &e))?;
        if to.exists() {
            fs::remove_dir_all(&to).map_err(|e| Error::io("remove", &to, &e))?;
        }
        staging.keep(&to)
    }

    /// The bundle's blob, its digest checked on the very file that is read.
    fn open_bundle(&self, manifest: &ImageManifest) -> Result<File> {
        let layer = manifest.bundle()?;
        let path = self.blob_path(&layer.digest);
        let failed = |e: std::io::Error| Error::io("read", &path, &e);
        let file = File::open(&path).map_err(failed)?;
        let (found, _) = Digest::of_reader(&file).map_err(failed)?;
        if found != layer.digest {
            return Err(Error::digest(path.display(), &layer.digest, &found));
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
        let lock = match open_lock(&lock_path) {
            Ok(lock) => lock,
            Err(_) => {
                let _lock = self.lock()?;
                self.unpack(digest, &self.manifest(digest)?)?;
                open_lock(&lock_path).map_err(|e| Error::io("open", &lock_path, &e))?
            }
        };
        lock.lock_shared().map_err(|e| Error::io("lock", &lock_path, &e))?;
        // For `gc` to know; on a read-only store it cannot, and need not.
        let _ = lock.set_modified(std::time::SystemTime::now());
        let root = directory.join("root");
        let record = fs::read(directory.join("record")).ok().map(Record);
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
        self.replace(&directory.join("record"), &record.0)?;
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
        archive::read(&mut bundle, &Limits::DEFAULT, &mut compare)?;
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
            "mcp remove and pull it again, or find out who changed it",
        ))
    }

    /// The thorough check of one package: blobs and files.
    pub fn verify(&self, digest: &Digest) -> Result<()> {
        let manifest = self.manifest(digest)?;
        for layer in &manifest.layers {
            let path = self.blob_path(&layer.digest);
            let file = File::open(&path).map_err(|e| Error::io("read", &path, &e))?;
            let (found, _) = Digest::of_reader(file).map_err(|e| Error::io("read", &path, &e))?;
            if found != layer.digest {
                return Err(Error::digest(path.display(), &layer.digest, &found));
            }
        }
        let root = self.unpacked_path(digest).join("root");
        if root.exists() { self.compare(digest, &root) } else { Ok(()) }
    }

    pub fn grants(&self) -> Grants<'_> {
        Grants::of(self)
    }
}

/// The manifest files of a package that lies in a directory.
pub fn read_manifests(directory: &Path) -> Result<Files> {
    let read = |name: &str| -> Result<Option<String>> {
        let path = directory.join(name);
        let failed = |e: std::io::Error| Error::io("read", &path, &e);
        match fs::symlink_metadata(&path) {
            Ok(metadata)
                if metadata.is_file() && metadata.len() <= crate::manifest::MAX_MANIFEST => {}
            Ok(metadata) if metadata.is_file() => {
                return Err(Error::package(format!("{name} is larger than 1 MiB")));
            }
            Ok(_) => return Err(Error::package(format!("{name} is not a file"))),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(failed(e)),
        }
        let bytes = fs::read(&path).map_err(failed)?;
        String::from_utf8(bytes)
            .map(Some)
            .map_err(|_| Error::package(format!("{name} is not UTF-8 text")))
    };
    let files = Files { mcpb: read(MCPB)?, ours: read(OURS)? };
    if files == Files::default() {
        return Err(Error::package(format!(
            "{} has neither a {MCPB} nor an {OURS}",
            directory.display()
        ))
        .hinted("a package has one of them at its top"));
    }
    Ok(files)
}

/// On Windows only who may write can note when it was used; on a read-only store nobody can.
fn open_lock(path: &Path) -> std::io::Result<File> {
    match cfg!(windows) {
        true => File::options().read(true).write(true).open(path).or_else(|_| File::open(path)),
        false => File::open(path),
    }
}

/// Copies a file into a staging directory, and tells its digest.
pub fn stage(from: &Path, to: &Path) -> Result<(Digest, u64)> {
    let mut source = File::open(from).map_err(|e| Error::io("read", from, &e))?;
    let target = File::create_new(to).map_err(|e| Error::io("write", to, &e))?;
    let mut hashing = Hashing::new(target);
    let length =
        std::io::copy(&mut source, &mut hashing).map_err(|e| Error::io("write", to, &e))?;
    Ok((hashing.finish().1, length))
}

/// Makes a directory, and what is missing above it, for this user and nobody else, whatever the
/// umask says.
pub fn make_private(directory: &Path) -> std::io::Result<()> {
    if directory.is_dir() {
        return Ok(());
    }
    if let Some(parent) = directory.parent() {
        make_private(parent)?;
    }
    #[cfg_attr(not(unix), expect(unused_mut, reason = "modes are of unix"))]
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(directory) {
        // Somebody else was faster.
        Err(_) if directory.is_dir() => return Ok(()),
        made => made?,
    }
    #[cfg(unix)]
    fs::set_permissions(directory, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
    Ok(())
}
