//! `index.json`: which names mean which package.

use std::fs;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::layout::{Descriptor, Index, LARGEST_MANIFEST, MANIFEST};
use super::{Addition, Store};
use crate::digest::Digest;
use crate::error::{Error, Result};

const NAME: &str = "org.opencontainers.image.ref.name";
const ADDED: &str = "dev.mcp.added";
const SOURCE: &str = "dev.mcp.source";
const SIGNATURE: &str = "dev.mcp.signature";

/// One name in the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// A reference in its one spelling.
    pub name: String,
    pub digest: Digest,
    pub added: SystemTime,
    pub source: String,
    pub signature: Option<Digest>,
}

impl Store {
    pub(super) fn index(&self) -> Result<Index> {
        let path = self.path("index.json");
        match fs::read(&path) {
            Ok(bytes) if bytes.len() as u64 <= 16 * LARGEST_MANIFEST => {
                serde_json::from_slice(&bytes).map_err(|e| {
                    Error::machine(format!("{}: {e}", path.display()), "remove it and pull again")
                })
            }
            Ok(_) => Err(Error::machine(format!("{}: is too large", path.display()), "")),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Index::default()),
            Err(e) => Err(Error::io("read", &path, &e)),
        }
    }

    pub(super) fn write_index(&self, index: &Index) -> Result<()> {
        let bytes = serde_json::to_vec_pretty(index).map_err(|e| Error::package(e.to_string()))?;
        self.replace(&self.path("index.json"), &bytes)
    }

    /// All names, in their order.
    pub fn list(&self) -> Result<Vec<Stored>> {
        let mut stored: Vec<Stored> = self.index()?.manifests.iter().filter_map(stored).collect();
        stored.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(stored)
    }

    pub(super) fn index_add(
        &self,
        addition: &Addition<'_>,
        digest: &Digest,
        signature: Option<Digest>,
    ) -> Result<()> {
        let mut index = self.index()?;
        index.manifests.retain(|entry| {
            entry.annotations.get(NAME).is_none_or(|name| !addition.names.contains(name))
        });
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        for name in addition.names {
            let mut entry = Descriptor::new(MANIFEST, *digest, addition.manifest.len() as u64);
            let mut note =
                |key: &str, value: String| entry.annotations.insert(key.to_owned(), value);
            note(NAME, name.clone());
            note(ADDED, now.as_secs().to_string());
            note(SOURCE, addition.source.to_owned());
            if let Some(signature) = signature {
                note(SIGNATURE, signature.to_string());
            }
            index.manifests.push(entry);
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
            self.write_index(&index)?;
        }
        Ok(removed)
    }
}

fn stored(entry: &Descriptor) -> Option<Stored> {
    let get = |key: &str| entry.annotations.get(key);
    let added = get(ADDED).and_then(|text| text.parse().ok()).unwrap_or(0);
    Some(Stored {
        name: get(NAME)?.clone(),
        digest: entry.digest,
        added: UNIX_EPOCH + Duration::from_secs(added),
        source: get(SOURCE).cloned().unwrap_or_default(),
        signature: get(SIGNATURE).and_then(|text| text.parse().ok()),
    })
}
