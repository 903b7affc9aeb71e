//! npm: its configuration, its lock file, a package's own entry point.

use std::io::Read;
use std::path::Path;

use serde_json::{Value, json};

use super::Index;
use crate::archive::EntryPath;
use crate::error::{Error, Result};

const DEFAULT: &str = "https://registry.npmjs.org/";

/// `@scope/name` → its scope.
#[must_use]
pub fn split_scope(name: &str) -> Option<&str> {
    name.starts_with('@').then(|| name.split('/').next().unwrap_or(name))
}

/// The registry for a package, from the text of npmrc files (the first counts most) and npm's
/// variables. `variable` also serves `${NAME}` in the files.
pub fn npm_index(
    files: &[String],
    name: &str,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Index> {
    let lines: Vec<(String, String)> =
        files.iter().flat_map(|text| settings(text, variable)).collect();
    let find =
        |key: &str| lines.iter().find(|(found, _)| found == key).map(|(_, value)| value.clone());
    let scoped = split_scope(name).and_then(|scope| find(&format!("{scope}:registry")));
    let general = || {
        variable("npm_config_registry")
            .or_else(|| variable("NPM_CONFIG_REGISTRY"))
            .or_else(|| find("registry"))
    };
    let mut index = Index::new(&scoped.or_else(general).unwrap_or_else(|| DEFAULT.to_owned()))?;
    // The longest path that the registry is below, as npm does it.
    let key = index.npm_key();
    let mut place = key.as_str();
    while place.len() > 2 {
        let token = find(&format!("{place}:_authToken"))
            .or_else(|| find(&format!("{}:_authToken", place.trim_end_matches('/'))));
        if token.is_some() {
            index.token = token;
            break;
        }
        place = match place.trim_end_matches('/').rsplit_once('/') {
            Some((parent, _)) if parent.len() > 1 => &key[..=parent.len()],
            _ => break,
        };
    }
    Ok(index)
}

fn settings(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Vec<(String, String)> {
    text.lines()
        .map(str::trim)
        .filter(|line| !line.starts_with(['#', ';']))
        .filter_map(|line| line.split_once('='))
        .map(|(key, value)| {
            (key.trim().to_owned(), expanded(value.trim().trim_matches('"'), variable))
        })
        .collect()
}

fn expanded(value: &str, variable: &dyn Fn(&str) -> Option<String>) -> String {
    let mut out = String::new();
    let mut rest = value;
    while let Some((before, after)) = rest.split_once("${") {
        out += before;
        match after.split_once('}') {
            Some((name, after)) => {
                out += &variable(name).unwrap_or_default();
                rest = after;
            }
            None => return out + "${" + after,
        }
    }
    out + rest
}

/// Packages of a lock file that want to run something at installation, by name, each once.
#[must_use]
pub fn npm_install_scripts(lock: &str) -> Vec<String> {
    let lock: Value = serde_json::from_str(lock).unwrap_or_default();
    let packages = lock["packages"].as_object().into_iter().flatten();
    let wanting =
        packages.filter(|(path, package)| !path.is_empty() && package["hasInstallScript"] == true);
    let name = |path: &String| path.rsplit("node_modules/").next().map(str::to_owned);
    let mut names: Vec<String> = wanting.filter_map(|(path, _)| name(path)).collect();
    names.sort();
    names.dedup();
    names
}

/// Of a version, from the registry's metadata of it: its number, and the Node.js it says it needs.
pub fn npm_version_needs(metadata: &[u8]) -> Option<(String, Option<String>)> {
    let value: Value = serde_json::from_slice(metadata).ok()?;
    let node = value["engines"]["node"].as_str().map(str::to_owned);
    Some((value["version"].as_str()?.to_owned(), node))
}

/// Where a version's tarball is, from the registry's metadata of it.
#[must_use]
pub fn npm_tarball_host(metadata: &[u8]) -> Option<Index> {
    let value: Value = serde_json::from_slice(metadata).ok()?;
    Index::new(value["dist"]["tarball"].as_str()?).ok()
}

/// Everything in the lock came from a registry, and has a digest that npm has checked.
pub fn check_lock(text: &str) -> Result<()> {
    let wrong = |why: String| Error::package(format!("package-lock.json: {why}"));
    let lock: Value = serde_json::from_str(text).map_err(|e| wrong(e.to_string()))?;
    let packages =
        lock["packages"].as_object().ok_or_else(|| wrong("has no packages".to_owned()))?;
    if packages.len() < 2 {
        return Err(wrong("nothing was installed".to_owned()));
    }
    for (path, package) in packages.iter().filter(|(path, _)| !path.is_empty()) {
        let bundled = package["inBundle"] == true;
        let strong = |text: &str| {
            text.starts_with("sha512-")
                || text.starts_with("sha384-")
                || text.starts_with("sha256-")
        };
        let has_digest =
            package["integrity"].as_str().is_some_and(|text| text.split(' ').any(strong));
        let resolved = package["resolved"].as_str().unwrap_or("https:");
        if package["link"] == true || !(has_digest || bundled) || !resolved.starts_with("http") {
            return Err(wrong(format!("{path} is not from a registry with a digest ({resolved})")));
        }
    }
    Ok(())
}

/// A bundle's `manifest.json` for an installed package: its version, and that manifest's text.
pub fn npm_manifest(name: &str, package_json: &str, root: &Path) -> Result<(String, String)> {
    let wrong = |why: String| Error::package(format!("{name}: {why}"));
    let package: Value =
        serde_json::from_str(package_json).map_err(|e| wrong(format!("package.json: {e}")))?;
    let version = package["version"]
        .as_str()
        .ok_or_else(|| wrong("package.json has no version".to_owned()))?;
    let programs = programs(name, &package);
    let (_, bin) = usual_program(name, &programs)
        .ok_or_else(|| wrong("has no program to run (no \"bin\" in package.json)".to_owned()))?;
    let bin = format!("node_modules/{name}/{}", bin.trim_start_matches("./"));
    let entry = EntryPath::parse(bin.as_bytes())?;
    let file = root.join(entry.as_str());
    // A script of the package may have left anything in its place.
    let mut start = Vec::new();
    mcp_files::open(&file, mcp_files::Links::Refuse)
        .and_then(|file| file.take(200).read_to_end(&mut start))
        .map_err(|e| Error::io("read", &file, &e))?;
    let first = String::from_utf8_lossy(&start).lines().next().unwrap_or("").to_owned();
    if first.starts_with("#!") && !first.contains("node") {
        return Err(wrong(format!(
            "its program is not for node: {}",
            mcp_policy::text::word(&first)
        )));
    }
    let manifest = json!({
        "manifest_version": "0.3",
        "name": name,
        "version": version,
        "description": package["description"].as_str().unwrap_or_default(),
        "author": {"name": "npm"},
        "server": {
            "type": "node",
            "entry_point": bin,
            "mcp_config": {"command": "node", "args": [format!("${{__dirname}}/{bin}")], "env": {}},
        },
    });
    Ok((version.to_owned(), manifest.to_string()))
}

/// The programs of an installed package by their names, each with its path in the package.
pub fn npm_programs(name: &str, directory: &Path) -> Result<Vec<(String, String)>> {
    let file = directory.join("package.json");
    let text = std::fs::read_to_string(&file).map_err(|e| Error::io("read", &file, &e))?;
    let package: Value = serde_json::from_str(&text)
        .map_err(|e| Error::package(format!("{name}: package.json: {e}")))?;
    let mut programs = programs(name, &package);
    for (_, path) in &mut programs {
        *path = EntryPath::parse(path.trim_start_matches("./").as_bytes())?.as_str().to_owned();
    }
    Ok(programs)
}

fn programs(name: &str, package: &Value) -> Vec<(String, String)> {
    let short = name.rsplit('/').next().unwrap_or(name);
    match &package["bin"] {
        Value::String(path) => vec![(short.to_owned(), path.clone())],
        Value::Object(map) => map
            .iter()
            .filter_map(|(name, path)| Some((name.clone(), path.as_str()?.to_owned())))
            .collect(),
        _ => Vec::new(),
    }
}

/// The one that npx would start: named like the package, or the only one. Else the one whose name says that it is a
/// server; `--bin` chooses another.
fn usual_program<'a>(name: &str, programs: &'a [(String, String)]) -> Option<&'a (String, String)> {
    let short = name.rsplit('/').next().unwrap_or(name);
    let called = |wanted: &dyn Fn(&str) -> bool| programs.iter().find(|(name, _)| wanted(name));
    called(&|name| name == short)
        .or_else(|| called(&|name| name.contains("mcp") && name.contains("server")))
        .or_else(|| called(&|name| name.contains("mcp")))
        .or_else(|| called(&|name| name.contains("server")))
        .or_else(|| programs.first())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn the_configured_registry_and_its_token() {
        let files = [
            "registry=https://npm.example/api/npm/\n; comment\n//npm.example/api/npm/:_authToken=${TOKEN}\n".to_owned(),
            "@acme:registry=https://acme.example/\n//acme.example/:_authToken=\"a\"\nregistry=https://last.example".to_owned(),
        ];
        let variable = |name: &str| (name == "TOKEN").then(|| "t".to_owned());
        let index = npm_index(&files, "x", &variable).unwrap();
        assert_eq!(
            (index.url.as_str(), index.token.as_deref()),
            ("https://npm.example/api/npm/", Some("t"))
        );
        let scoped = npm_index(&files, "@acme/x", &variable).unwrap();
        assert_eq!(
            (scoped.url.as_str(), scoped.token.as_deref()),
            ("https://acme.example/", Some("a"))
        );
        let none = npm_index(&[], "x", &|_| None).unwrap();
        assert_eq!((none.url.as_str(), none.token), (DEFAULT, None));
        // Another registry's token is not given away.
        let other = npm_index(&["//npm.example/:_authToken=t".to_owned()], "x", &|_| None).unwrap();
        assert_eq!(other.token, None);
        let above = npm_index(
            &["registry=https://h.example/a/b/\n//h.example/:_authToken=t".to_owned()],
            "x",
            &|_| None,
        )
        .unwrap();
        assert_eq!(above.token.as_deref(), Some("t"));
    }

    #[test]
    fn a_lock_without_digests_is_refused() {
        let lock =
            |entry: &str| format!(r#"{{"packages": {{"": {{}}, "node_modules/a": {entry}}}}}"#);
        check_lock(&lock(
            r#"{"version": "1.0.0", "resolved": "https://x/a.tgz", "integrity": "sha512-x"}"#,
        ))
        .unwrap();
        for entry in [
            r#"{"version": "1.0.0", "resolved": "https://x/a.tgz"}"#,
            r#"{"version": "1.0.0", "resolved": "git+ssh://git@h/a.git#1", "integrity": "sha512-x"}"#,
            r#"{"version": "1.0.0", "resolved": "file:../a", "link": true}"#,
            r#"{"version": "1.0.0", "resolved": "https://x/a.tgz", "integrity": "sha1-x"}"#,
        ] {
            assert!(check_lock(&lock(entry)).is_err(), "{entry}");
        }
        assert!(check_lock("{}").is_err());
    }

    #[test]
    fn what_a_lock_and_metadata_say_of_scripts_and_node() {
        let lock = r#"{"packages": {"": {"hasInstallScript": true},
            "node_modules/@a/b": {"hasInstallScript": true}, "node_modules/c": {},
            "node_modules/c/node_modules/sharp": {"hasInstallScript": true},
            "node_modules/sharp": {"hasInstallScript": true}}}"#;
        assert_eq!(npm_install_scripts(lock), ["@a/b", "sharp"]);
        assert_eq!(npm_install_scripts("nonsense"), [""; 0]);
        let needs = |text: &str| npm_version_needs(text.as_bytes());
        let told = needs(r#"{"version": "2.0.0", "engines": {"node": ">=22"}}"#);
        assert_eq!(told, Some(("2.0.0".to_owned(), Some(">=22".to_owned()))));
        assert_eq!(needs(r#"{"version": "1.0.0"}"#), Some(("1.0.0".to_owned(), None)));
        assert_eq!(needs("[]"), None);
    }

    #[test]
    fn the_program_of_a_package() {
        let scratch = Scratch::new();
        scratch.file("node_modules/@a/b/dist/index.js", b"#!/usr/bin/env node\n");
        scratch.file("node_modules/@a/b/run.sh", b"#!/bin/sh\n");
        let manifest = |bin: &str| {
            npm_manifest(
                "@a/b",
                &format!(r#"{{"version": "1.2.3", "bin": {bin}}}"#),
                scratch.path(),
            )
        };
        for bin in [
            r#""dist/index.js""#,
            r#"{"x": "./dist/index.js"}"#,
            r#"{"b": "dist/index.js", "c": "run.sh"}"#,
            // None of its own name: what says that it is a server, else the first.
            r#"{"a-tool": "run.sh", "the-mcp-server": "dist/index.js"}"#,
            r#"{"x": "dist/index.js", "y": "run.sh"}"#,
        ] {
            let (version, text) = manifest(bin).unwrap();
            assert_eq!(version, "1.2.3");
            assert!(text.contains("${__dirname}/node_modules/@a/b/dist/index.js"), "{text}");
        }
        for bin in [
            "null",
            r#"{"x": "run.sh", "y": "dist/index.js"}"#,
            r#""../../../etc/passwd""#,
            r#""run.sh""#,
        ] {
            assert!(manifest(bin).is_err(), "{bin}");
        }
    }
}
