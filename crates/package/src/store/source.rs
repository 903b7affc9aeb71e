//! Where a package came from, and what it may be called because of that.
//!
//! A bundle says its own name, so a name alone says nothing of who made it. In the store all versions
//! of a name are of one source: another source does not get that name, and grants belong to a source, a
//! name and a digest. What an `mcp` before this rule stored has no source; it is fetched again.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use super::Stored;
use crate::error::{Error, Kind, Result};
use crate::reference::{Reference, Repository};

/// Who vouches for a package's name.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Source {
    /// No registry, only the file: the real path of a bundle or a directory.
    File(String),
    /// A repository of an OCI registry: its host, with the port, and its path.
    Oci {
        /// The host, with the port.
        host: String,
        /// The path of the repository.
        path: String,
    },
    /// An npm registry's address, without credentials.
    Npm(String),
    /// A Python package index's address, without credentials.
    Pypi(String),
    /// A registry that speaks as the public MCP registry does.
    Public(String),
}

impl Source {
    /// Of a file or directory; it must have no links in it.
    #[must_use]
    pub fn file(path: &Path) -> Source {
        Source::File(path.to_string_lossy().into_owned())
    }

    /// A repository as a source.
    #[must_use]
    pub fn oci(repository: &Repository) -> Source {
        Source::Oci { host: repository.host.clone(), path: repository.path.clone() }
    }

    /// Whether versions of one name may come from both. Files have no other name to vouch for theirs.
    fn shares_names_with(&self, other: &Source) -> bool {
        match (self, other) {
            (Source::File(_), Source::File(_)) => true,
            (one, other) => one == other,
        }
    }

    /// How to run what this source has, without a name in the store.
    fn other_way(&self, reference: &str) -> Option<String> {
        match self {
            Source::File(path) => Some(format!("mcp run {path}")),
            Source::Oci { host, path } => {
                let version = reference.split_once('@').map(|(_, version)| version);
                let mark =
                    if version.is_some_and(|version| version.contains(':')) { '@' } else { ':' };
                let version = version.map(|version| format!("{mark}{version}")).unwrap_or_default();
                Some(format!("mcp run oci://{host}/{path}{version}"))
            }
            Source::Npm(_) | Source::Pypi(_) | Source::Public(_) => None,
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::File(path) => write!(f, "file:{path}"),
            Source::Oci { host, path } => write!(f, "oci://{host}/{path}"),
            Source::Npm(url) => write!(f, "npm:{url}"),
            Source::Pypi(url) => write!(f, "pypi:{url}"),
            Source::Public(url) => write!(f, "public:{url}"),
        }
    }
}

impl FromStr for Source {
    type Err = Error;

    fn from_str(text: &str) -> Result<Source> {
        if let Some((host, path)) =
            text.strip_prefix("oci://").and_then(|rest| rest.split_once('/'))
        {
            return Ok(Source::Oci { host: host.to_owned(), path: path.to_owned() });
        }
        match text.split_once(':') {
            Some(("file", path)) => Ok(Source::File(path.to_owned())),
            Some(("npm", url)) => Ok(Source::Npm(url.to_owned())),
            Some(("pypi", url)) => Ok(Source::Pypi(url.to_owned())),
            Some(("public", url)) => Ok(Source::Public(url.to_owned())),
            _ => Err(Error::package(format!("{text:?} is no source of packages"))),
        }
    }
}

/// A name in the store without its version.
fn base(name: &str) -> String {
    name.parse::<Reference>().map_or_else(|_| name.to_owned(), |reference| reference.name())
}

/// Whether these names are for this source to give. `stored` is what there is.
pub(super) fn check_names(stored: &[Stored], names: &[String], source: &Source) -> Result<()> {
    for name in names {
        let theirs = |one: &&Stored| {
            let is_other = |bound: &Source| !bound.shares_names_with(source);
            one.source.as_ref().is_some_and(is_other) && base(&one.name) == base(name)
        };
        let others: Vec<&Stored> = stored.iter().filter(theirs).collect();
        if let Some(bound) = others.first().and_then(|one| one.source.as_ref()) {
            let names: Vec<&str> = others.iter().map(|one| one.name.as_str()).collect();
            return Err(taken(name, bound, source, &names.join(" ")));
        }
    }
    Ok(())
}

/// One name and version of two files: the second one does not quietly take the place of the first.
pub(super) fn check_files(
    stored: &[Stored],
    names: &[String],
    source: &Source,
    digest: &crate::Digest,
) -> Result<()> {
    for one in stored.iter().filter(|one| names.contains(&one.name) && one.digest != *digest) {
        match (&one.source, source) {
            (Some(bound @ Source::File(old)), Source::File(new)) if old != new => {
                return Err(taken(&one.name, bound, source, &one.name));
            }
            _ => {}
        }
    }
    Ok(())
}

fn taken(name: &str, bound: &Source, source: &Source, stored: &str) -> Error {
    let instead = match source.other_way(name) {
        Some(words) => format!("run this one with {words}, or give up the other first"),
        None => "give up the other first".to_owned(),
    };
    Error::new(
        Kind::Untrusted,
        format!(
            "{name} is another package's name: in the store it is from\n     {bound}\n     and this one is from\n     {source}"
        ),
        format!("{instead}: mcp remove {stored}"),
    )
}

/// What the store has under a name is from elsewhere than where it was asked for.
pub(super) fn elsewhere(stored: &Stored, bound: &Source, asked: &Source) -> Error {
    let name = &stored.name;
    let mut ways = Vec::new();
    ways.extend(bound.other_way(name).map(|words| format!("{words} for what is in the store")));
    ways.extend(asked.other_way(name).map(|words| format!("{words} for the other")));
    ways.push(format!("mcp remove {name} to give it the other one"));
    Error::new(
        Kind::Untrusted,
        format!(
            "{name} in the store is from\n     {bound}\n     and is not taken for what this has:\n     {asked}"
        ),
        format!("type one of:\n     {}", ways.join("\n     ")),
    )
}
