//! `index.json`: which names mean which package, and what was made from which.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use mcp_files::Links;

use super::layout::{Descriptor, ImageIndex, LARGEST_MANIFEST, MANIFEST};
use super::source::{self, Source};
use super::{Addition, Store, Under};
use crate::digest::Digest;
use crate::error::{Error, Result};

const NAME: &str = "org.opencontainers.image.ref.name";
const ADDED: &str = "dev.mcp.added";
/// Not the older `dev.mcp.source`, which was for people to read: entries with that alone have no source.
const SOURCE: &str = "dev.mcp.origin";
/// Instead of a name.
const DERIVED: &str = "dev.mcp.derived-from";
const SIGNATURE: &str = "dev.mcp.signature";

/// One name in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stored {
    /// A reference in its one spelling.
    pub name: String,
    /// The digest of its manifest.
    pub digest: Digest,
    /// When it was added.
    pub added: SystemTime,
    /// None in a store of an `mcp` that did not bind names: such an entry is listed, and not run.
    pub source: Option<Source>,
    /// The digest of its signature, if it has one.
    pub signature: Option<Digest>,
}

impl Store {
    pub(super) fn index(&self) -> Result<ImageIndex> {
        let path = self.path("index.json");
        match mcp_files::read(&path, 16 * LARGEST_MANIFEST, Links::Refuse) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|e| {
                Error::machine(format!("{}: {e}", path.display()), "remove it and pull again")
            }),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(ImageIndex::default()),
            Err(e) => Err(Error::io("read", &path, &e)),
        }
    }

    pub(super) fn write_index(&self, index: &ImageIndex) -> Result<()> {
        let bytes = serde_json::to_vec_pretty(index).map_err(|e| Error::package(e.to_string()))?;
        self.replace(&self.path("index.json"), &bytes)
    }

    /// All names, in their order.
    pub fn list(&self) -> Result<Vec<Stored>> {
        let mut stored: Vec<Stored> = self.index()?.manifests.iter().filter_map(stored).collect();
        stored.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(stored)
    }

    /// Whether names are free, or this source's already. With a digest: whether it may have them, too.
    pub fn check_free(&self, under: &Under<'_>, digest: Option<&Digest>) -> Result<()> {
        let Under::Names { names, source } = under else {
            return Ok(());
        };
        let stored = self.list()?;
        source::check_names(&stored, names, source)?;
        digest.map_or(Ok(()), |digest| source::check_files(&stored, names, source, digest))
    }

    /// What was made from a package, if that was done.
    pub fn derived(&self, from: &Digest) -> Result<Option<Digest>> {
        let index = self.index()?;
        let made = index.manifests.iter().find(|entry| derived_from(entry) == Some(*from));
        Ok(made.map(|entry| entry.digest))
    }

    /// Every package that a name leads to by way of another: what it was made from, and it.
    pub(super) fn all_derived(&self) -> Result<Vec<(Digest, Digest)>> {
        let of = |entry: &Descriptor| Some((derived_from(entry)?, entry.digest));
        Ok(self.index()?.manifests.iter().filter_map(of).collect())
    }

    /// Takes away what was made from a package.
    pub(super) fn index_remove_derived(&self, from: &Digest) -> Result<()> {
        let mut index = self.index()?;
        index.manifests.retain(|entry| derived_from(entry) != Some(*from));
        self.write_index(&index)
    }

    pub(super) fn index_add(
        &self,
        addition: &Addition<'_>,
        digest: &Digest,
        signature: Option<Digest>,
    ) -> Result<()> {
        let mut index = self.index()?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let annotated = |notes: &[(&str, String)]| {
            let mut entry = Descriptor::new(MANIFEST, *digest, addition.manifest.len() as u64);
            let notes = notes.iter().map(|(key, value)| ((*key).to_owned(), value.clone()));
            entry.annotations = notes.collect();
            entry.annotations.insert(ADDED.to_owned(), now.as_secs().to_string());
            if let Some(signature) = signature {
                entry.annotations.insert(SIGNATURE.to_owned(), signature.to_string());
            }
            entry
        };
        match addition.under {
            Under::Names { names, source } => {
                index.manifests.retain(|entry| {
                    entry.annotations.get(NAME).is_none_or(|name| !names.contains(name))
                });
                let entry = |name: &String| {
                    annotated(&[(NAME, name.clone()), (SOURCE, source.to_string())])
                };
                index.manifests.extend(names.iter().map(entry));
            }
            Under::Derived { from } => {
                index.manifests.retain(|entry| derived_from(entry) != Some(from));
                index.manifests.push(annotated(&[(DERIVED, from.to_string())]));
            }
        }
        self.write_index(&index)
    }

    /// Takes names away; what they meant stays until it is collected.
    pub(super) fn index_remove(&self, is_removed: impl Fn(&Stored) -> bool) -> Result<Vec<Stored>> {
        let mut index = self.index()?;
        let mut removed = Vec::new();
        index.manifests.retain(|entry| match stored(entry).filter(&is_removed) {
            Some(stored) => {
                removed.push(stored);
                false
            }
            None => true,
        });
        if !removed.is_empty() {
            let named: Vec<Digest> =
                index.manifests.iter().filter_map(stored).map(|one| one.digest).collect();
            index
                .manifests
                .retain(|entry| derived_from(entry).is_none_or(|of| named.contains(&of)));
            self.write_index(&index)?;
        }
        Ok(removed)
    }
}

fn derived_from(entry: &Descriptor) -> Option<Digest> {
    entry.annotations.get(DERIVED)?.parse().ok()
}

fn stored(entry: &Descriptor) -> Option<Stored> {
    let get = |key: &str| entry.annotations.get(key);
    let added = get(ADDED).and_then(|text| text.parse().ok()).unwrap_or(0);
    Some(Stored {
        name: get(NAME)?.clone(),
        digest: entry.digest,
        added: UNIX_EPOCH + Duration::from_secs(added),
        source: get(SOURCE).and_then(|text| text.parse().ok()),
        signature: get(SIGNATURE).and_then(|text| text.parse().ok()),
    })
}
