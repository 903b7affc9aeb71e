//! Manifests of all three formats: read or refused, and never a grant.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use mcp_package::manifest::{Files, Given, Manifest, Places, Platform, LaunchContext, ServerJson};
use mcp_policy::{Defaults, Policy};

fuzz_target!(|texts: (&str, &str)| {
    let (mcpb, ours) = texts;
    let _ = ServerJson::read(mcpb);
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let files = Files { mcpb: some(mcpb), ours: some(ours) };
    let platform = Platform { os: "linux", arch: "x86_64" };
    let home = Some("/home/me".into());
    let Ok(manifest) = Manifest::read(&files, &platform, "/package".into(), home.clone()) else { return };
    let places = Places { directory: "/package".into(), home, desktop: None, documents: None, downloads: None };
    let scene = LaunchContext { places: &places, given: &Given::default(), cwd: Path::new("/cwd") };
    let Ok(launch) = manifest.launch(&scene) else { return };
    let mut layers = launch.asks;
    layers.push(launch.given);
    let Ok(policy) = Policy::merge(&layers, Defaults::run()) else { return };
    assert!(policy.filesystem.read.is_empty() && policy.filesystem.write.is_empty());
    assert!(policy.network.allow.is_empty() && policy.env.secrets.is_empty());
});
