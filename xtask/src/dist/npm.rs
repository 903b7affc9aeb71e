//! The packages for npm: one for each platform that holds the program, and the main one, `packaging/node`, which has them
//! as optional dependencies, so that npm installs the one whose `os` and `cpu` fit. No install script runs.

use std::fs;

use serde_json::{Map, Value, json};

use super::Release;
use super::archive::Files;
use super::platform::Platform;
use crate::Result;

const MAIN: &str = "mcp-sandbox";

/// What npm puts in front of every path.
const TOP: &str = "package";

pub fn platform_package(
    release: &Release,
    platform: &Platform,
    program: &[u8],
) -> Result<(String, Vec<u8>)> {
    let name = platform.node_name();
    let (os, cpu) = platform.node;
    let manifest = json!({
        "name": scoped(platform),
        "version": release.version,
        "description": format!("The program of {MAIN} for {name}"),
        "license": "MIT OR Apache-2.0",
        "os": [os],
        "cpu": [cpu],
        "preferUnplugged": true,
    });
    let mut files = Files::default();
    files.file(format!("{TOP}/package.json"), format!("{manifest:#}\n"));
    files.program(format!("{TOP}/bin/{MAIN}{}", platform.suffix), program);
    files.file(
        format!("{TOP}/README.md"),
        format!("The program of `{MAIN}` for {name}. Install `{MAIN}`.\n"),
    );
    licences(release, &mut files);
    files.file(format!("{TOP}/mcp.cdx.json"), release.sbom.clone());
    for completion in &release.shared.completions {
        files.file(format!("{TOP}/completions/{}", completion.file), completion.text.clone());
    }
    Ok((format!("{MAIN}-{name}-{}.tgz", release.version), files.tar_gz(release.epoch)?))
}

/// It names every platform of a release, those that were not built here as well: npm leaves out what does not fit.
pub fn main_package(release: &Release, platforms: &[Platform]) -> Result<(String, Vec<u8>)> {
    let package = crate::workspace().join("packaging/node");
    let text = fs::read_to_string(package.join("package.json"))?;
    let mut manifest: Map<String, Value> = serde_json::from_str(&text)?;
    manifest.insert("version".into(), release.version.clone().into());
    let programs: Map<String, Value> =
        platforms.iter().map(|it| (scoped(it), release.version.clone().into())).collect();
    manifest.insert("optionalDependencies".into(), programs.into());
    let pages: Vec<Value> =
        release.shared.man_pages.iter().map(|(name, _)| format!("man/{name}").into()).collect();
    manifest.insert("man".into(), pages.into());

    let mut files = Files::default();
    files.file(format!("{TOP}/package.json"), format!("{:#}\n", Value::Object(manifest)));
    files.file(format!("{TOP}/README.md"), fs::read(package.join("README.md"))?);
    files.program(format!("{TOP}/bin/mcp.js"), fs::read(package.join("bin/mcp.js"))?);
    for entry in fs::read_dir(package.join("lib"))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        files.file(format!("{TOP}/lib/{name}"), fs::read(entry.path())?);
    }
    for (name, text) in &release.shared.man_pages {
        files.file(format!("{TOP}/man/{name}"), text.clone());
    }
    licences(release, &mut files);
    Ok((format!("{MAIN}-{}.tgz", release.version), files.tar_gz(release.epoch)?))
}

fn scoped(platform: &Platform) -> String {
    format!("@{MAIN}/{}", platform.node_name())
}

fn licences(release: &Release, files: &mut Files) {
    for name in ["LICENSE-MIT", "LICENSE-APACHE"] {
        files.file(format!("{TOP}/{name}"), release.shared.document(name));
    }
}
