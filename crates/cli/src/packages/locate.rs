//! A reference → a package's files, fetched or made first where the store does not have them.

use std::ffi::OsStr;

use mcp_package::Reference;
use mcp_package::install::is_uv;
use mcp_package::store::{self, Store};

use super::files::{self, PackageFiles};
use super::install::{self, uv_bundle};
use super::{fetch, open_store};
use crate::args::package::Fetching;
use crate::failure::Failure;
use crate::render;

/// What came of looking for a package.
pub enum Located {
    /// Here it is.
    Ready(Box<PackageFiles>),
    /// It was fetched, or its dependencies were: it is in the store now. The next look finds it, in a launcher that
    /// has no part of TLS, its memory and its threads.
    Fetched,
}

/// How to look.
pub struct Looking<'a> {
    pub fetching: &'a Fetching,
    /// Nothing is fetched or made.
    pub explain: bool,
    /// How often something was fetched or made for this run before.
    pub fetched: u8,
}

pub fn locate(word: &OsStr, looking: &Looking<'_>) -> Result<Located, Failure> {
    let text = word.to_str().ok_or_else(|| {
        Failure::Usage(format!("{}: is not UTF-8; a command goes after --", word.to_string_lossy()))
    })?;
    let reference: Reference = text.parse()?;
    let package = match &reference {
        Reference::Path(path) => files::on_disk(path)?,
        _ => match stored(&reference, looking)? {
            Some(package) => package,
            None => return Ok(Located::Fetched),
        },
    };
    finished(package, looking)
}

/// None after it was fetched.
fn stored(reference: &Reference, looking: &Looking<'_>) -> Result<Option<PackageFiles>, Failure> {
    let store = open_store()?;
    let source = fetch::source(reference, looking.fetching)?;
    let stored = match store.find(reference, source.as_ref())? {
        Some(stored) => stored,
        None if looking.fetched > 0 => {
            return Err(Failure::Refused(format!(
                "{reference} was fetched, but is not in the store"
            )));
        }
        None if looking.explain => {
            return Err(Failure::Refused(format!(
                "{reference} is not in the store{}, and --explain fetches nothing; get it with mcp pull {reference}",
                older(&store, reference)
            )));
        }
        None => {
            if !older(&store, reference).is_empty() {
                render::say(&format!(
                    "{reference} is from an older mcp, which did not note its source: getting it again"
                ));
            }
            fetch::fetch(&store, reference, looking.fetching)?;
            return Ok(None);
        }
    };
    if let Some(key) = &looking.fetching.require_signature {
        fetch::check_signature(&store, &stored, reference, key)?;
    }
    let held = store.hold(&stored.digest)?;
    // What a flag of this run adds to an installation that went without it.
    let is_lacking = match reference {
        Reference::Npm(_) => looking.fetching.allow_scripts && install::lacks_scripts(&held.root),
        Reference::Pypi(_) => looking.fetching.allow_build && install::lacks_build(&held.root),
        _ => false,
    };
    if is_lacking && looking.fetched == 0 && !looking.explain {
        fetch::fetch(&store, reference, looking.fetching)?;
        return Ok(None);
    }
    files::from_store(&reference.name(), &stored, held).map(Some)
}

/// What is there under the name without a source is as good as nothing.
fn older(store: &Store, reference: &Reference) -> &'static str {
    match store.get(reference) {
        Ok(stored) if stored.source.is_none() => " with its source",
        _ => "",
    }
}

/// The same package with its dependencies, where it is of the type that leaves them to others.
fn finished(package: PackageFiles, looking: &Looking<'_>) -> Result<Located, Failure> {
    let Some(manifest) = package.files.mcpb.as_deref().filter(|text| is_uv(text)) else {
        return Ok(Located::Ready(Box::new(package)));
    };
    if package.ready.is_none() {
        return Err(Failure::Refused(format!(
            "{} is a package of type uv, whose dependencies have to be installed for it; pack it first: mcp pack {0}",
            render::plain(&package.name)
        )));
    }
    let store = open_store()?;
    match store.derived(&package.identity.digest)? {
        Some(made) => {
            let ready = store.hold(&made)?;
            // To people, to grants and in the log it is what they asked for.
            Ok(Located::Ready(Box::new(PackageFiles {
                root: ready.root.clone(),
                files: store::read_manifests(&ready.root)?,
                ready: Some(ready),
                ..package
            })))
        }
        // Once for the package, once for this.
        None if looking.explain || looking.fetched > 1 => Err(Failure::Refused(format!(
            "the dependencies of {} are not installed; --explain installs nothing",
            render::plain(&package.name)
        ))),
        None => {
            files::check(package.ready.as_ref())?;
            uv_bundle::make(
                &store,
                &package.identity.digest,
                &package.root,
                manifest,
                looking.fetching,
            )?;
            Ok(Located::Fetched)
        }
    }
}
