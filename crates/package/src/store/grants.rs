//! What was granted to which package, so that nobody is asked the same twice.
//!
//! A grant belongs to a name and to one digest. Another digest of that name has the grant as far as
//! it asks for no more; what it asks beyond that is asked about, and nothing else.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Store;
use crate::digest::Digest;
use crate::error::{Error, Result};

/// What was agreed to, in the words it was asked in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// The package's name without its version, or the directory it lies in.
    pub package: String,
    pub digest: Digest,
    pub granted: BTreeSet<String>,
}

pub struct Grants<'a> {
    store: &'a Store,
}

impl<'a> Grants<'a> {
    pub(super) fn of(store: &'a Store) -> Grants<'a> {
        Grants { store }
    }

    /// Any name makes a good file name this way.
    fn path(&self, package: &str) -> PathBuf {
        self.store.path("grants").join(format!("{}.json", Digest::of(package.as_bytes()).hex()))
    }

    /// A grant that cannot be read is none: people are asked again.
    pub fn find(&self, package: &str) -> Option<Grant> {
        let bytes = fs::read(self.path(package)).ok()?;
        let grant: Grant = serde_json::from_slice(&bytes).ok()?;
        (grant.package == package).then_some(grant)
    }

    pub fn remember(&self, grant: &Grant) -> Result<()> {
        let _lock = self.store.lock()?;
        let bytes = serde_json::to_vec_pretty(grant).map_err(|e| Error::package(e.to_string()))?;
        self.store.replace(&self.path(&grant.package), &bytes)
    }

    pub fn forget(&self, package: &str) -> Result<bool> {
        let path = self.path(package);
        match fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(false),
            Err(e) => Err(Error::io("remove", &path, &e)),
        }
    }
}
