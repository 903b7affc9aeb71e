//! What is known of a package beside its line: each source in its place, the surest first.
//!
//! 1. A policy that was learned: `policies/NAME.toml` beside the user's config.
//! 2. What the package's manifest or its entry in the registry asks for, where it is in the store.
//! 3. The recipe of a well-known server.
//!
//! All of it is a proposal; a person grants it.

use std::path::PathBuf;

use mcp_clients::Wanted;
use mcp_package::manifest::{Given, LaunchContext};
use mcp_package::{Reference, asks, recipes};

use crate::packages::{files, open_store};
use crate::paths;

pub fn known(reference: &str) -> Wanted {
    let wanted = Wanted::default();
    if let Some(policy) = learned(reference) {
        return wanted.set_policy(policy);
    }
    let rules = asked(reference).unwrap_or_default();
    if !rules.is_empty() {
        return wanted.set_network(rules, "the package's manifest asks for it");
    }
    match recipes::find(without_version(reference)) {
        Some(recipe) if !recipe.hosts.is_empty() => {
            wanted.set_network(recipe.hosts, "the recipe of this server names it")
        }
        _ => wanted,
    }
}

/// `npm:@scope/name` of `npm:@scope/name@1.2.3`.
pub fn without_version(reference: &str) -> &str {
    let name = reference.find(':').map_or(0, |at| at + 1);
    // An @ at the beginning is a scope's.
    let version = reference.get(name + 1..).and_then(|tail| tail.find('@'));
    version.map_or(reference, |at| &reference[..name + 1 + at])
}

/// The policy file of a package, by its name without a version.
fn learned(reference: &str) -> Option<PathBuf> {
    let reference = without_version(reference);
    let (scheme, name) = reference.split_once(':').unwrap_or(("", reference));
    let name = format!("{scheme}-{name}").trim_start_matches('-').replace(['/', '\\', ':'], "+");
    let path = paths::config_file()?.with_file_name("policies").join(format!("{name}.toml"));
    path.is_file().then_some(path)
}

/// Network rules that the package's own words ask for; nothing is fetched for it.
fn asked(reference: &str) -> Option<Vec<String>> {
    paths::store().filter(|store| store.is_dir())?;
    let parsed: Reference = reference.parse().ok()?;
    let store = open_store().ok()?;
    let found = store.get(&parsed).ok()?;
    let ready = store.ready(&found.digest).ok()?;
    let located = files::from_store(&parsed.name(), &found, ready).ok()?;
    let (manifest, places) = files::read(&located).ok()?;
    let cwd = std::env::current_dir().unwrap_or_else(|_| located.root.clone());
    let given = Given::default();
    let wishes = match manifest.launch(&LaunchContext { places: &places, given: &given, cwd: &cwd })
    {
        Ok(launch) => asks(&launch.asks),
        Err(_) => asks(manifest.asks.as_slice()),
    };
    let rule = |flag: &str| flag.strip_prefix("--allow-net ").map(str::to_owned);
    Some(wishes.iter().filter_map(|ask| rule(&ask.flag)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_without_versions() {
        for (reference, name) in [
            ("npm:@scope/name@1.2.3", "npm:@scope/name"),
            ("npm:@scope/name", "npm:@scope/name"),
            ("npm:name@latest", "npm:name"),
            ("pypi:name@1.0", "pypi:name"),
            ("acme/test@1.0.0", "acme/test"),
            ("npm:", "npm:"),
            ("", ""),
        ] {
            assert_eq!(without_version(reference), name, "{reference}");
        }
    }
}
