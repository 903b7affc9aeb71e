//! An OCI image layout on disk: `oci-layout`, `index.json` and `blobs/sha256/`.

use std::path::{Path, PathBuf};

use mcp_files::Links;
use serde_json::{Value, json};

use super::INDEX;
use super::base::{Base, Selected, select};
use super::config::Assembled;
use super::layer::Layer;
use crate::digest::Digest;
use crate::error::{Error, Result};
use crate::store::{Descriptor, MANIFEST};

const LARGEST: u64 = 4 << 20;

/// A directory in the layout of OCI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout(PathBuf);

impl Layout {
    /// One that is there; none where the directory is something else.
    #[must_use]
    pub fn open(directory: &Path) -> Option<Layout> {
        directory.join("oci-layout").is_file().then(|| Layout(directory.to_owned()))
    }

    /// A new one, in a directory that is made or empty.
    ///
    /// # Errors
    /// Where something is there already.
    pub fn create(directory: &Path) -> Result<Layout> {
        let failed = |e: std::io::Error| Error::io("write", directory, &e);
        if std::fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_some()) {
            return Err(Error::usage(
                format!("{}: is not empty", directory.display()),
                "name a directory that does not exist yet",
            ));
        }
        std::fs::create_dir_all(directory.join("blobs/sha256")).map_err(failed)?;
        std::fs::write(directory.join("oci-layout"), br#"{"imageLayoutVersion":"1.0.0"}"#)
            .map_err(failed)?;
        Ok(Layout(directory.to_owned()))
    }

    /// Where a blob is.
    #[must_use]
    pub fn blob(&self, digest: &Digest) -> PathBuf {
        self.0.join("blobs/sha256").join(digest.hex())
    }

    /// The image for Linux on this architecture.
    ///
    /// # Errors
    /// Where there is none, or several.
    pub fn base(&self, architecture: &str) -> Result<Base> {
        let index = self.0.join("index.json");
        let bytes = mcp_files::read(&index, LARGEST, Links::Follow)
            .map_err(|e| Error::io("read", &index, &e))?;
        let mut selected = select(&bytes, architecture)?;
        // An index may lead to another one, which lists platforms.
        for _ in 0..3 {
            match selected {
                Selected::Within(descriptor) => {
                    let bytes = self.small(&descriptor)?;
                    match select(&bytes, architecture)? {
                        Selected::Image(manifest) => {
                            let config = self.small(&manifest.config)?;
                            return Base::new(descriptor.digest, &manifest, config);
                        }
                        within => selected = within,
                    }
                }
                Selected::Image(_) => break,
            }
        }
        Err(Error::package(format!("{}: its index leads to no image", self.0.display())))
    }

    fn small(&self, of: &Descriptor) -> Result<Vec<u8>> {
        let path = self.blob(&of.digest);
        let bytes = mcp_files::read(&path, LARGEST, Links::Follow)
            .map_err(|e| Error::io("read", &path, &e))?;
        let found = Digest::of(&bytes);
        match found == of.digest {
            true => Ok(bytes),
            false => Err(Error::digest("a blob of the layout", of.digest, found)),
        }
    }

    /// Writes a blob.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn put(&self, bytes: &[u8]) -> Result<()> {
        let path = self.blob(&Digest::of(bytes));
        std::fs::write(&path, bytes).map_err(|e| Error::io("write", &path, &e))
    }

    /// Copies a blob from a file, and compares it.
    ///
    /// # Errors
    /// Where it is another one.
    pub fn copy(&self, of: &Descriptor, from: &Path) -> Result<()> {
        let to = self.blob(&of.digest);
        let (found, _) = crate::store::stage(from, &to)?;
        match found == of.digest {
            true => Ok(()),
            false => Err(Error::digest("a layer", of.digest, found)),
        }
    }

    /// Writes an image whose base layers are there already, and what refers to it, into the index.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn finish(
        &self,
        image: &Assembled,
        added: &[Layer],
        referrers: &[Vec<u8>],
        name: &str,
    ) -> Result<()> {
        for layer in added {
            self.copy(&layer.descriptor, &layer.path)?;
        }
        self.put(&image.config)?;
        self.put(&image.manifest)?;
        let entry = |bytes: &[u8]| json!({"mediaType": MANIFEST, "digest": Digest::of(bytes), "size": bytes.len()});
        let mut first = entry(&image.manifest);
        first["annotations"] = json!({"org.opencontainers.image.ref.name": name});
        let mut manifests: Vec<Value> = vec![first];
        for referrer in referrers {
            self.put(referrer)?;
            manifests.push(entry(referrer));
        }
        let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": manifests});
        let path = self.0.join("index.json");
        std::fs::write(&path, index.to_string()).map_err(|e| Error::io("write", &path, &e))
    }
}
