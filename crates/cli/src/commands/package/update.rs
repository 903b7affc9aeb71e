//! `mcp update`: newer versions of what was asked for without one, and what they ask for beyond today's.
//!
//! A grant is for one digest, so a newer version has none: its first start asks again, whatever is shown here.

use std::collections::BTreeSet;

use mcp_package::store::{Source, Stored};
use mcp_package::{Digest, Reference, Store, Which};
use serde_json::json;

use super::{inspect, stored};
use crate::args::package::{Fetching, Update};
use crate::failure::Failure;
use crate::packages::files::from_store;
use crate::packages::{fetch, install, open_store};
use crate::render::to_json;
use crate::render::{self, Paint};

/// One package that was looked at.
struct Looked {
    reference: String,
    outcome: Result<Change, Failure>,
}

enum Change {
    None { version: String },
    Newer { before: String, after: String, more: Vec<String>, less: Vec<String> },
}

/// A package as it is in a store.
struct Version {
    digest: Digest,
    version: String,
    wishes: BTreeSet<String>,
}

pub fn run(args: &Update) -> Result<u8, Failure> {
    let store = open_store()?;
    let wanted = wanted(&store, args)?;
    if wanted.is_empty() {
        render::say("nothing to update: no package was asked for without an exact version");
        return Ok(0);
    }
    let scratch = match args.dry_run {
        true => Some(Scratch::beside(&store)?),
        false => None,
    };
    let into = scratch.as_ref().map_or(&store, |scratch| &scratch.store);
    let mut all = Vec::new();
    for (reference, stored) in wanted {
        let outcome = change(&store, into, &reference, &stored, &args.fetching);
        let looked = Looked { reference: reference.to_string(), outcome };
        if !args.json {
            show(&looked, args);
        }
        all.push(looked);
    }
    if args.json {
        render::print(&(to_json(&all.iter().map(as_json).collect::<Vec<_>>()) + "\n"));
    }
    Ok(u8::from(all.iter().any(|looked| looked.outcome.is_err())))
}

/// What can have a newer version: names that leave the version open, or those that were given.
fn wanted(store: &Store, args: &Update) -> Result<Vec<(Reference, Stored)>, Failure> {
    if !args.references.is_empty() {
        let one = |text: &String| Ok((text.parse::<Reference>()?, stored::find(store, text)?));
        return args.references.iter().map(one).collect();
    }
    let open = |one: Stored| {
        let reference: Reference = one.name.parse().ok()?;
        let is_open = match &reference {
            Reference::Npm(package) | Reference::Pypi(package) => {
                !package.version.as_deref().is_some_and(is_exact)
            }
            Reference::Named(named) | Reference::Official(named) => named.which == Which::Latest,
            Reference::Oci(repository) => repository.digest.is_none(),
            Reference::Path(_) => false,
        };
        let is_elsewhere =
            matches!(one.source, Some(ref source) if !matches!(source, Source::File(_)));
        (is_open && is_elsewhere).then_some((reference, one))
    };
    Ok(store.list()?.into_iter().filter_map(open).collect())
}

/// `1.2.3`; not `latest`, `^2`, `20`.
fn is_exact(version: &str) -> bool {
    version.starts_with(|c: char| c.is_ascii_digit()) && version.matches('.').count() >= 1
}

fn change(
    store: &Store,
    into: &Store,
    reference: &Reference,
    stored: &Stored,
    fetching: &Fetching,
) -> Result<Change, Failure> {
    let before = version(store, reference, &stored.digest)?;
    if install::newest(store, reference)?.as_ref() == Some(&before.version) {
        return Ok(Change::None { version: before.version });
    }
    let fetching = Fetching {
        registry: fetching.registry.clone().or_else(|| registry_of(reference, stored)),
        ..fetching.clone()
    };
    let digest = fetch::fetch(into, reference, &fetching)?;
    let after = version(into, reference, &digest)?;
    if after.digest == before.digest
        || after.version == before.version && after.wishes == before.wishes
    {
        return Ok(Change::None { version: after.version });
    }
    Ok(Change::Newer {
        more: after.wishes.difference(&before.wishes).cloned().collect(),
        less: before.wishes.difference(&after.wishes).cloned().collect(),
        before: before.version,
        after: after.version,
    })
}

/// The registry that a name came from, where none is set.
fn registry_of(reference: &Reference, stored: &Stored) -> Option<String> {
    let (Reference::Named(named), Some(Source::Oci { host, path })) = (reference, &stored.source)
    else {
        return None;
    };
    let prefix = path.strip_suffix(named.name.as_str())?.trim_end_matches('/');
    Some(if prefix.is_empty() { host.clone() } else { format!("{host}/{prefix}") })
}

fn version(store: &Store, reference: &Reference, digest: &Digest) -> Result<Version, Failure> {
    let found = store.list()?.into_iter().find(|one| one.digest == *digest).ok_or_else(|| {
        Failure::Refused(format!("{reference} was fetched, and is not in the store"))
    })?;
    let located = from_store(&reference.name(), &found, store.ready(digest)?)?;
    let (manifest, wishes) = inspect::wishes(&located)?;
    let wishes = wishes.into_iter().map(|ask| ask.text).collect();
    Ok(Version { digest: *digest, version: manifest.version, wishes })
}

fn show(looked: &Looked, args: &Update) {
    let paint = Paint::stdout();
    let name = render::plain(&looked.reference);
    match &looked.outcome {
        Err(failure) => render::say(&format!("{name}: {failure}")),
        Ok(Change::None { version }) => {
            render::print(&format!("{name}  {} is the newest\n", render::plain(version)));
        }
        Ok(Change::Newer { before, after, more, less }) => {
            let done = if args.dry_run { " (not fetched: --dry-run)" } else { "" };
            render::print(&format!(
                "{}  {} → {}{done}\n",
                paint.strong(&name),
                render::plain(before),
                render::plain(after)
            ));
            for wish in more {
                render::print(&format!("  {} {}\n", paint.warn("+"), render::plain(wish)));
            }
            for wish in less {
                render::print(&format!("  {} {}\n", paint.faint("-"), render::plain(wish)));
            }
            if more.is_empty() {
                render::print("  asks for nothing beyond what it asked for before\n");
            }
        }
    }
}

fn as_json(looked: &Looked) -> serde_json::Value {
    let reference = &looked.reference;
    match &looked.outcome {
        Err(failure) => json!({"reference": reference, "error": failure.to_string()}),
        Ok(Change::None { version }) => {
            json!({"reference": reference, "version": version, "newer": null})
        }
        Ok(Change::Newer { before, after, more, less }) => json!({
            "reference": reference, "version": before, "newer": after, "asks_more": more, "asks_no_more": less,
        }),
    }
}

/// A store that is gone when it was looked into.
struct Scratch {
    store: Store,
}

impl Scratch {
    fn beside(store: &Store) -> Result<Scratch, Failure> {
        let root = store.root().with_file_name(format!("update-{}", std::process::id()));
        mcp_package::store::make_private(&root).map_err(|e| Failure::file(&root, &e))?;
        Ok(Scratch { store: Store::at(root) })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = mcp_files::remove_tree(self.store.root());
    }
}
