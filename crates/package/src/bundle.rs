//! A directory or a bundle file → a package in the store.

use std::fs::File;
use std::path::{Path, PathBuf};

use mcp_files::Links;

use crate::archive::{self, ArchiveLimits, Effort, Picked};
use crate::digest::{Digest, Hashing};
use crate::error::{Error, Result};
use crate::manifest::{Files, MCPB, Manifest, OURS, Platform};
use crate::pack::{Packed, Take, pack};
use crate::store::{
    Addition, BUNDLE, Descriptor, ImageManifest, SERVER, Staging, Store, Under, stage,
};

/// A bundle and what it says of itself.
#[non_exhaustive]
pub struct Bundle {
    /// The name in its manifest.
    pub name: String,
    /// The version in its manifest.
    pub version: String,
    /// The digest of the whole bundle.
    pub digest: Digest,
    /// Its size in bytes.
    pub size: u64,
}

/// The manifest files of a bundle. Reads all of it: what is not sound has no manifest.
pub fn manifests(path: &Path) -> Result<Files> {
    let mut picked = Picked::new(&[MCPB, OURS]);
    archive::read_path(path, &ArchiveLimits::DEFAULT, &mut picked)?;
    let mut text = |name: &str| match picked.take(name) {
        None => Ok(None),
        Some(bytes) => String::from_utf8(bytes)
            .map(Some)
            .map_err(|_| Error::package(format!("{name} is not UTF-8 text"))),
    };
    Ok(Files { mcpb: text(MCPB)?, ours: text(OURS)? })
}

/// What a bundle says of itself, on whatever system it is for.
pub fn look(path: &Path) -> Result<Bundle> {
    let manifest = named(&manifests(path)?).map_err(|error| error.within(path.display()))?;
    let file = mcp_files::open(path, Links::Follow).map_err(|e| Error::io("read", path, &e))?;
    let (digest, size) = Digest::of_reader(file).map_err(|e| Error::io("read", path, &e))?;
    Ok(Bundle { name: manifest.name, version: manifest.version, digest, size })
}

/// Name and version are the same on every platform; a bundle for another one has them, too.
pub fn named(files: &Files) -> Result<Manifest> {
    let mut first = None;
    for os in ["linux", "macos", "windows"] {
        for arch in ["x86_64", "aarch64"] {
            match Manifest::read(
                files,
                &Platform { os, arch },
                "/package".into(),
                Some("/home".into()),
            ) {
                Ok(manifest) => return Ok(manifest),
                Err(error) => drop(first.get_or_insert(error)),
            }
        }
    }
    Err(first.unwrap_or_else(|| Error::package("no platform is known")))
}

/// Packs a directory into a file that is there as a whole or not at all.
pub fn pack_to(directory: &Path, to: &Path) -> Result<(Packed, Bundle)> {
    named(&crate::store::read_manifests(directory)?)?;
    let name = to.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let partial = to.with_file_name(format!(".{name}.{}.partial", std::process::id()));
    let write = || {
        let file = File::create(&partial).map_err(|e| Error::io("write", &partial, &e))?;
        let mut out = Hashing::new(std::io::BufWriter::new(file));
        let packed = pack(directory, Take::Sources, Effort::Thorough, &mut out)?;
        let bundle = look(&partial)?;
        std::fs::rename(&partial, to).map_err(|e| Error::io("write", to, &e))?;
        Ok((packed, bundle))
    };
    let outcome = write();
    if outcome.is_err() {
        let _ = std::fs::remove_file(&partial);
    }
    outcome
}

/// A bundle in a staging directory.
struct Staged<'a> {
    staging: &'a Staging,
    bundle: (Digest, PathBuf),
    size: u64,
    /// What it was packed from.
    tree: Option<&'a Path>,
}

impl Store {
    /// Takes a bundle file in. What it calls itself is not what leads to it.
    pub fn add_bundle(
        &self,
        path: &Path,
        under: Under<'_>,
        server_json: Option<&str>,
    ) -> Result<Digest> {
        self.check_free(&under, None)?;
        let staging = self.staging()?;
        let copy = staging.path().join("bundle");
        let (digest, size) = stage(path, &copy)?;
        let manifest = named(&manifests(&copy)?).map_err(|error| error.within(path.display()))?;
        let bundle = Staged { staging: &staging, bundle: (digest, copy), size, tree: None };
        self.add_staged(bundle, &manifest, under, server_json)
    }

    /// Packs a directory and takes it in, files and all: each of them is read once. No process writes to the directory
    /// any more, and it is gone or of no more use afterwards.
    pub fn add_tree(
        &self,
        tree: &Path,
        under: Under<'_>,
        server_json: Option<&str>,
    ) -> Result<Digest> {
        self.check_free(&under, None)?;
        let staging = self.staging()?;
        let path = staging.path().join("bundle");
        let failed = |e: std::io::Error| Error::io("write", &path, &e);
        let file = File::create_new(&path).map_err(failed)?;
        let mut out = Hashing::new(std::io::BufWriter::with_capacity(1 << 20, file));
        let packed = pack(tree, Take::Everything, Effort::Quick, &mut out)?;
        let (mut out, digest) = out.finish();
        std::io::Write::flush(&mut out).map_err(failed)?;
        let size = std::fs::metadata(&path).map_err(failed)?.len();
        let manifest = named(&crate::store::read_manifests(tree)?)?;
        // A reader refuses more than that.
        let tree = Some(tree).filter(|_| packed.bytes <= ArchiveLimits::DEFAULT.budget(size));
        let bundle = Staged { staging: &staging, bundle: (digest, path.clone()), size, tree };
        self.add_staged(bundle, &manifest, under, server_json)
    }

    fn add_staged(
        &self,
        staged: Staged<'_>,
        manifest: &Manifest,
        under: Under<'_>,
        server_json: Option<&str>,
    ) -> Result<Digest> {
        let Staged { staging, bundle, size, tree } = staged;
        let mut layers = vec![Descriptor::new(BUNDLE, bundle.0, size)];
        let mut blobs = vec![bundle];
        if let Some(text) = server_json {
            let path = staging.path().join("server.json");
            std::fs::write(&path, text).map_err(|e| Error::io("write", &path, &e))?;
            layers.push(Descriptor::of(SERVER, text.as_bytes()));
            blobs.push((Digest::of(text.as_bytes()), path));
        }
        let manifest =
            ImageManifest::package(&manifest.name, &manifest.version, layers).to_bytes()?;
        self.add(&Addition { under, manifest: &manifest, blobs: &blobs, signature: None, tree })
    }
}
