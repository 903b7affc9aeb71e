//! Packages on disk: an OCI image layout, and each package unpacked beside it.
//!
//! ```text
//! oci-layout, index.json      which package a name means
//! blobs/sha256/HEX            manifests and bundles, named by their digest
//! unpacked/HEX/root/          what is run; HEX is the digest of the package's manifest
//! unpacked/HEX/record         inode, size and ctime of all in it, as it was unpacked
//! unpacked/HEX/lock           shared by those who run it; its time is when it was last run
//! staging/                    what is not finished; each holds its own lock while a process works on it
//! lock                        held to change any of the above
//! grants/                     what was granted to which package
//! notes/                      versions of interpreters on this machine
//! ```
//!
//! Everything appears by a rename, so a kill at any point leaves the old state or the new one; what
//! is left in `staging` is swept by the next change. Files that are changed behind the store's back
//! are noticed at the next start: see `record`.

mod adopt;
mod garbage;
mod grants;
mod index;
mod layout;
mod lookup;
mod notes;
mod record;
mod source;
mod staging;
#[cfg(test)]
mod tests;
mod unpack_progress;
mod unpacked;

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use mcp_files::Links;

use crate::digest::{Digest, Hashing};
use crate::error::{Error, Result};
use crate::manifest::{Files, MCPB, OURS};

pub use garbage::{Collected, Keep};
pub use grants::{Granted, Grants, Holder};
pub use index::Stored;
pub use layout::{
    BUNDLE, Descriptor, EMPTY, ImageManifest, MANIFEST, MINISIG, PACKAGE, SERVER, TAR_GZIP,
    TAR_ZSTD,
};
pub use source::Source;
pub use staging::Staging;
pub use unpacked::Ready;
use unpacked::When;

/// What to do about a blob or files of the store that are not what they were.
const DAMAGED: &str = "mcp pull it again: that puts right what is damaged";

/// The packages on this machine, by digest, with their names, sources and grants.
pub struct Store {
    root: PathBuf,
    /// Told while a package is unpacked: how much of its bundle was read, of how much.
    unpacking: Option<fn(u64, u64)>,
}

/// What leads to a package in the store.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Under<'a> {
    /// References that mean it from now on, which have to be free or this source's already.
    Names {
        /// The references.
        names: &'a [String],
        /// Where the package comes from.
        source: &'a Source,
    },
    /// Nothing that people or manifests can say: only the package it was made from, by its digest.
    Derived {
        /// The digest of the package it was made from.
        from: Digest,
    },
}

/// A package to be kept, its bundle downloaded already.
pub struct Addition<'a> {
    /// What leads to the package.
    pub under: Under<'a>,
    /// The OCI manifest.
    pub manifest: &'a [u8],
    /// The bundle and other layers, as finished files in a staging directory.
    pub blobs: &'a [(Digest, PathBuf)],
    /// The text of a signature that was found with it.
    pub signature: Option<&'a str>,
    /// The directory that the bundle was packed from, to become the package's files: no process writes to it any more.
    pub tree: Option<&'a Path>,
}

impl Store {
    /// A store in this directory. The directory is made when something is added.
    pub fn at(root: impl Into<PathBuf>) -> Store {
        Store { root: root.into(), unpacking: None }
    }

    /// The same store, with a callback for the progress of unpacking.
    pub fn telling(self, unpacking: fn(u64, u64)) -> Store {
        Store { unpacking: Some(unpacking), ..self }
    }

    /// The directory of the store.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Where the blob with this digest is, or would be.
    #[must_use]
    pub fn blob_path(&self, digest: &Digest) -> PathBuf {
        self.root.join("blobs/sha256").join(digest.hex())
    }

    fn unpacked_path(&self, digest: &Digest) -> PathBuf {
        self.root.join("unpacked").join(digest.hex())
    }

    /// Where the files of the package with this digest are, or would be.
    #[must_use]
    pub fn files_of(&self, digest: &Digest) -> PathBuf {
        self.unpacked_path(digest).join("root")
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

    /// Waits until no other process changes the store.
    fn lock(&self) -> Result<File> {
        self.prepare_directories()?;
        let path = self.path("lock");
        let failed = |e: std::io::Error| Error::io("lock", &path, &e);
        let lock =
            File::options().create(true).truncate(false).write(true).open(&path).map_err(failed)?;
        lock.lock().map_err(failed)?;
        Ok(lock)
    }

    /// A directory for a download, removed when it is dropped.
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
        mcp_files::open(&path, Links::Refuse)
            .map_err(failed)?
            .take(most + 1)
            .read_to_end(&mut bytes)
            .map_err(failed)?;
        if bytes.len() as u64 > most {
            return Err(Error::package(format!("{} is larger than {most} bytes", path.display())));
        }
        let found = Digest::of(&bytes);
        if found != *digest {
            return Err(Error::digest(path.display(), digest, found).hinted(DAMAGED));
        }
        Ok(bytes)
    }

    /// Whether it is there and is what its digest says: one that is damaged has to be had again.
    #[must_use]
    pub fn has_blob(&self, digest: &Digest) -> bool {
        self.check_blob(digest).is_ok()
    }

    fn check_blob(&self, digest: &Digest) -> Result<()> {
        let path = self.blob_path(digest);
        let failed = |e: std::io::Error| Error::io("read", &path, &e);
        let file = mcp_files::open(&path, Links::Refuse).map_err(failed)?;
        let (found, _) = Digest::of_reader(file).map_err(failed)?;
        if found != *digest {
            return Err(Error::digest(path.display(), digest, found).hinted(DAMAGED));
        }
        Ok(())
    }

    /// The manifest of a package.
    pub fn manifest(&self, digest: &Digest) -> Result<ImageManifest> {
        ImageManifest::read(&self.read_blob(digest, layout::LARGEST_MANIFEST)?)
    }

    /// Takes a package in: its blobs, its files, its names, in this order.
    pub fn add(&self, addition: &Addition<'_>) -> Result<Digest> {
        let digest = Digest::of(addition.manifest);
        let manifest = ImageManifest::read(addition.manifest)?;
        let lock = self.lock()?;
        self.sweep();
        self.check_free(&addition.under, Some(&digest))?;
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
        self.unpack(&digest, &manifest, When::Damaged, addition.tree)?;
        self.drop_damaged_derived(&digest)?;
        self.index_add(addition, &digest, signature)?;
        drop(lock);
        Ok(digest)
    }

    fn take_blob(&self, digest: &Digest, from: &Path) -> Result<()> {
        let to = self.blob_path(digest);
        if self.has_blob(digest) {
            return Ok(());
        }
        let failed = |e: std::io::Error| Error::io("take in", from, &e);
        // Windows writes to the disk only for who may write.
        let file = File::options().read(true).write(true).open(from).map_err(failed)?;
        let (found, _) = Digest::of_reader(&file).map_err(failed)?;
        if found != *digest {
            return Err(Error::digest(from.display(), digest, found));
        }
        file.sync_all().map_err(failed)?;
        drop(file);
        staging::place(from, &to).map_err(failed)
    }

    fn put_blob(&self, bytes: &[u8]) -> Result<Digest> {
        let digest = Digest::of(bytes);
        let path = self.blob_path(&digest);
        if !self.has_blob(&digest) {
            self.replace(&path, bytes)?;
        }
        Ok(digest)
    }

    /// The grants that this store remembers.
    #[must_use]
    pub fn grants(&self) -> Grants<'_> {
        Grants::of(self)
    }
}

/// The manifest files of a package that lies in a directory.
pub fn read_manifests(directory: &Path) -> Result<Files> {
    let read = |name: &str| -> Result<Option<String>> {
        let path = directory.join(name);
        let failed = |e: std::io::Error| Error::io("read", &path, &e);
        let found = match fs::symlink_metadata(&path) {
            Ok(found) => found,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(failed(e)),
        };
        if !found.is_file() {
            return Err(Error::package(format!("{name} is not a file")));
        }
        mcp_files::read_text(&path, crate::manifest::MAX_MANIFEST, Links::Refuse)
            .map(Some)
            .map_err(|e| Error::package(format!("{name} {e}")))
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

/// Copies a file into a staging directory, and tells its digest.
pub fn stage(from: &Path, to: &Path) -> Result<(Digest, u64)> {
    let mut source =
        mcp_files::open(from, Links::Follow).map_err(|e| Error::io("read", from, &e))?;
    let target = File::create_new(to).map_err(|e| Error::io("write", to, &e))?;
    let mut hashing = Hashing::new(target);
    let length =
        std::io::copy(&mut source, &mut hashing).map_err(|e| Error::io("write", to, &e))?;
    Ok((hashing.finish().1, length))
}

/// Makes a directory, and what is missing above it, for this user and no other, whatever the
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
        // Another process was faster.
        Err(_) if directory.is_dir() => return Ok(()),
        made => made?,
    }
    #[cfg(unix)]
    fs::set_permissions(directory, std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
    Ok(())
}
