//! What is known of a package beside its line: each source in its place, the surest first.
//!
//! 1. A policy that was learned: `policies/NAME.toml` beside the user's config.
//! 2. What the package's manifest or its entry in the registry asks for, where it is in the store.
//!
//! All of it is a proposal; a person grants it.

use std::path::PathBuf;

use mcp_clients::Wanted;
use mcp_package::manifest::{Given, LaunchContext};
use mcp_package::{Reference, asks};

use crate::packages::{files, open_store};
use crate::paths;

pub fn known(reference: &str) -> Wanted {
    let wanted = Wanted::default();
    if let Some(policy) = learned(reference) {
        return wanted.set_policy(policy);
    }
    let rules = asked(reference).unwrap_or_default();
    match rules.is_empty() {
        true => wanted,
        false => wanted.set_network(rules, "the package's manifest asks for it"),
    }
}

/// The policy file of a package, by its name without a version.
fn learned(reference: &str) -> Option<PathBuf> {
    let (scheme, name) = reference.split_once(':').unwrap_or(("", reference));
    let name = match name.get(1..).and_then(|tail| tail.find('@')) {
        Some(at) => &name[..=at],
        None => name,
    };
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
