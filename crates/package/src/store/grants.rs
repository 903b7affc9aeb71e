//! What was granted to which package, so that a user is not asked the same twice.
//!
//! A grant belongs to a source, a name and a digest. Another package of that name has none of it, be it from
//! another source or another version of the same; what was granted to the others only helps to ask. Grants
//! of an `mcp` that remembered them by name alone are in files of other names, and not read.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use mcp_files::Links;
use serde::{Deserialize, Serialize};

use super::{Source, Store};
use crate::digest::Digest;
use crate::error::{Error, Result};

const LARGEST: u64 = 16 << 20;

/// Whom something is granted to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder<'a> {
    /// Where the package comes from.
    pub source: &'a Source,
    /// The package's name without its version, or the directory it lies in.
    pub package: &'a str,
    /// The digest of its manifest.
    pub digest: Digest,
}

/// All that was granted under one name of one source, in the words it was asked in.
#[derive(Serialize, Deserialize)]
struct Remembered {
    source: String,
    package: String,
    granted: BTreeMap<Digest, BTreeSet<String>>,
}

/// What one package was granted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Granted {
    /// Where the package comes from.
    pub source: String,
    /// Its name, or its directory.
    pub package: String,
    /// The digest of its manifest.
    pub digest: Digest,
    /// What it was granted, a line for each.
    pub wishes: BTreeSet<String>,
}

/// The grants that a store remembers.
pub struct Grants<'a> {
    store: &'a Store,
}

impl<'a> Grants<'a> {
    pub(super) fn of(store: &'a Store) -> Grants<'a> {
        Grants { store }
    }

    /// Any source and name make a good file name this way. A length between the two: no other pair has the same text.
    fn path(&self, holder: &Holder<'_>) -> PathBuf {
        let source = holder.source.to_string();
        let text = format!("{}:{source}{}", source.len(), holder.package);
        self.store.path("grants").join(format!("{}.json", Digest::of(text.as_bytes()).hex()))
    }

    /// A grant that cannot be read is none: people are asked again.
    fn remembered(&self, holder: &Holder<'_>) -> Option<Remembered> {
        let bytes = mcp_files::read(&self.path(holder), LARGEST, Links::Refuse).ok()?;
        let found: Remembered = serde_json::from_slice(&bytes).ok()?;
        let is_theirs =
            found.source == holder.source.to_string() && found.package == holder.package;
        is_theirs.then_some(found)
    }

    /// What this very package was granted.
    #[must_use]
    pub fn find(&self, holder: &Holder<'_>) -> BTreeSet<String> {
        let granted = self.remembered(holder).map(|found| found.granted).unwrap_or_default();
        granted.get(&holder.digest).cloned().unwrap_or_default()
    }

    /// What others of its source and name were granted: for a question to tell, and no more.
    #[must_use]
    pub fn of_others(&self, holder: &Holder<'_>) -> BTreeSet<String> {
        let granted = self.remembered(holder).map(|found| found.granted).unwrap_or_default();
        granted
            .into_iter()
            .filter(|(digest, _)| *digest != holder.digest)
            .flat_map(|(_, of)| of)
            .collect()
    }

    /// All that is remembered, in the order of names.
    pub fn all(&self) -> Result<Vec<Granted>> {
        let mut all = Vec::new();
        for (_, found) in self.files()? {
            let Remembered { source, package, granted } = found;
            all.extend(granted.into_iter().map(|(digest, wishes)| Granted {
                source: source.clone(),
                package: package.clone(),
                digest,
                wishes,
            }));
        }
        all.sort_by(|a, b| {
            (&a.package, &a.source, a.digest).cmp(&(&b.package, &b.source, b.digest))
        });
        Ok(all)
    }

    /// Forgets what is meant, and says what that was. The next start asks again.
    pub fn revoke(&self, is_meant: impl Fn(&str, &str) -> bool) -> Result<Vec<Granted>> {
        let _lock = self.store.lock()?;
        let mut revoked = Vec::new();
        for (path, mut found) in self.files()? {
            let mut has_changed = false;
            for (digest, wishes) in &mut found.granted {
                let gone: BTreeSet<String> =
                    wishes.iter().filter(|wish| is_meant(&found.package, wish)).cloned().collect();
                if gone.is_empty() {
                    continue;
                }
                wishes.retain(|wish| !gone.contains(wish));
                has_changed = true;
                revoked.push(Granted {
                    source: found.source.clone(),
                    package: found.package.clone(),
                    digest: *digest,
                    wishes: gone,
                });
            }
            found.granted.retain(|_, wishes| !wishes.is_empty());
            if found.granted.is_empty() {
                std::fs::remove_file(&path).map_err(|e| Error::io("remove", &path, &e))?;
            } else if has_changed {
                let bytes =
                    serde_json::to_vec_pretty(&found).map_err(|e| Error::package(e.to_string()))?;
                self.store.replace(&path, &bytes)?;
            }
        }
        Ok(revoked)
    }

    /// What can be read of what is there: the rest is no grant at a start either.
    fn files(&self) -> Result<Vec<(PathBuf, Remembered)>> {
        let directory = self.store.path("grants");
        let entries = match std::fs::read_dir(&directory) {
            Ok(entries) => entries,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(Error::io("read", &directory, &e)),
        };
        let read = |entry: std::fs::DirEntry| {
            let bytes = mcp_files::read(&entry.path(), LARGEST, Links::Refuse).ok()?;
            Some((entry.path(), serde_json::from_slice::<Remembered>(&bytes).ok()?))
        };
        Ok(entries.flatten().filter_map(read).collect())
    }

    /// Remembers what a package was granted.
    pub fn remember(&self, holder: &Holder<'_>, granted: BTreeSet<String>) -> Result<()> {
        let _lock = self.store.lock()?;
        let mut all = self.remembered(holder).unwrap_or_else(|| Remembered {
            source: holder.source.to_string(),
            package: holder.package.to_owned(),
            granted: BTreeMap::new(),
        });
        all.granted.insert(holder.digest, granted);
        let bytes = serde_json::to_vec_pretty(&all).map_err(|e| Error::package(e.to_string()))?;
        self.store.replace(&self.path(holder), &bytes)
    }
}
