//! A reference → the package that it means in the store.

use super::source::{self, Source};
use super::{Store, Stored};
use crate::error::{Error, Result};
use crate::reference::{Named, Reference, Which};

impl Store {
    /// The package, or nothing where it has to be fetched. `from` is who was asked for it, where that is
    /// known: what another source has under the name is refused. An entry without a source is not found.
    pub fn find(&self, reference: &Reference, from: Option<&Source>) -> Result<Option<Stored>> {
        let mut stored = self.list()?;
        stored.retain(|one| one.source.is_some());
        let Some(found) = one(reference, &stored)? else {
            return Ok(None);
        };
        match (&found.source, from) {
            (Some(bound), Some(asked)) if bound != asked => {
                Err(source::elsewhere(&found, bound, asked))
            }
            _ => Ok(Some(found)),
        }
    }

    /// What has that name, from wherever it is.
    pub fn get(&self, reference: &Reference) -> Result<Stored> {
        one(reference, &self.list()?)?.ok_or_else(|| {
            Error::not_found(
                format!("{reference} is not in the store"),
                format!("mcp list shows what is; get it with mcp pull {reference}"),
            )
        })
    }
}

fn one(reference: &Reference, stored: &[Stored]) -> Result<Option<Stored>> {
    let by_name = |name: &str| stored.iter().find(|one| one.name == name).cloned();
    Ok(match reference {
        Reference::Path(_) => None,
        Reference::Npm(_) | Reference::Pypi(_) => by_name(&reference.to_string()),
        Reference::Named(named) | Reference::Official(named) => named_one(named, stored),
        Reference::Oci(repository) => {
            let mut tagged = repository.clone();
            tagged.digest = None;
            let found = by_name(&Reference::Oci(tagged).to_string());
            match (found, &repository.digest) {
                (Some(found), Some(digest)) if found.digest != *digest => {
                    return Err(Error::digest(
                        format_args!("{} in the store", found.name),
                        digest,
                        found.digest,
                    ));
                }
                (None, Some(digest)) => {
                    let source = Source::oci(repository);
                    let same = |one: &&Stored| {
                        one.digest == *digest && one.source.as_ref() == Some(&source)
                    };
                    stored.iter().find(same).cloned()
                }
                (found, _) => found,
            }
        }
    })
}

fn named_one(named: &Named, stored: &[Stored]) -> Option<Stored> {
    let Named { name, which } = named;
    let versions = || {
        stored.iter().filter_map(|one| {
            let version = one.name.strip_prefix(name.as_str())?.strip_prefix('@')?;
            Some((version, one))
        })
    };
    match which {
        Which::Version(version) => versions().find(|(found, _)| found == version),
        Which::Digest(digest) => versions().find(|(_, one)| one.digest == *digest),
        // What the registry called the latest, else the highest that is there.
        Which::Latest => versions().find(|(found, _)| *found == "latest").or_else(|| {
            versions()
                .filter_map(|found| Some((semver::Version::parse(found.0).ok()?, found)))
                .max_by(|a, b| a.0.cmp(&b.0))
                .map(|(_, found)| found)
        }),
    }
    .map(|(_, one)| one.clone())
}
