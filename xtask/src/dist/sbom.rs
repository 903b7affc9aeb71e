//! A CycloneDX list of what the program is made from, by cargo's own metadata.
//!
//! Not by cargo-cyclonedx: it names packages of a workspace by their paths on this machine and writes a file into each
//! of them; a release must not tell where it was made. No time, no serial number: the same lock file gives the same bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs;
use std::process::{Command, Stdio};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::Result;

const PROGRAM: &str = "mcp-cli";

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    description: Option<String>,
    repository: Option<String>,
    source: Option<String>,
}

impl Package {
    fn reference(&self) -> String {
        format!("pkg:cargo/{}@{}", self.name, self.version)
    }
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    pkg: String,
    dep_kinds: Vec<DependencyKind>,
}

#[derive(Deserialize)]
struct DependencyKind {
    /// None: the program's own; `build` or `dev`.
    kind: Option<String>,
}

impl Dependency {
    fn is(&self, wanted: Option<&str>) -> bool {
        self.dep_kinds.iter().any(|it| it.kind.as_deref() == wanted)
    }
}

/// Packages with the digests that the lock file has of them.
#[derive(Deserialize)]
struct Lock {
    package: Vec<Locked>,
}

#[derive(Deserialize)]
struct Locked {
    name: String,
    version: String,
    checksum: Option<String>,
}

pub fn make(version: &str) -> Result<Vec<u8>> {
    let workspace = crate::workspace();
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(&workspace)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()?;
    if !output.status.success() {
        return Err("cargo metadata failed".into());
    }
    let metadata: Metadata = serde_json::from_slice(&output.stdout)?;
    let lock: Lock = toml::from_str(&fs::read_to_string(workspace.join("Cargo.lock"))?)?;
    let bom = document(&metadata, &lock, version)?;
    Ok(format!("{bom:#}\n").into_bytes())
}

fn document(metadata: &Metadata, lock: &Lock, version: &str) -> Result<Value> {
    let packages: BTreeMap<&str, &Package> =
        metadata.packages.iter().map(|it| (it.id.as_str(), it)).collect();
    let nodes: BTreeMap<&str, &Node> =
        metadata.resolve.nodes.iter().map(|it| (it.id.as_str(), it)).collect();
    let digests: BTreeMap<(&str, &str), &str> = lock
        .package
        .iter()
        .filter_map(|it| Some(((it.name.as_str(), it.version.as_str()), it.checksum.as_deref()?)))
        .collect();
    let program = metadata.packages.iter().find(|it| it.name == PROGRAM);
    let program = program.ok_or("the workspace has no package mcp-cli")?;

    let linked = reached(&program.id, &nodes, |it| it.is(None));
    let used = reached(&program.id, &nodes, |it| it.is(None) || it.is(Some("build")));
    let mut components = Vec::new();
    let mut dependencies = Vec::new();
    for id in &used {
        let (Some(package), Some(node)) = (packages.get(id), nodes.get(id)) else { continue };
        let below: BTreeSet<String> = node
            .deps
            .iter()
            .filter(|it| it.is(None) || it.is(Some("build")))
            .filter_map(|it| packages.get(it.pkg.as_str()))
            .map(|it| it.reference())
            .collect();
        dependencies.push(json!({ "ref": package.reference(), "dependsOn": below }));
        if package.id != program.id {
            let digest = digests.get(&(package.name.as_str(), package.version.as_str()));
            components.push(component(package, digest.copied(), linked.contains(id)));
        }
    }
    let by = |key: &'static str| move |it: &Value| it[key].as_str().unwrap_or_default().to_owned();
    components.sort_by_key(by("bom-ref"));
    dependencies.sort_by_key(by("ref"));
    Ok(json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": program.reference(),
                "name": "mcp",
                "version": version,
                "purl": program.reference(),
                "licenses": [{ "expression": program.license.as_deref().map(expression) }],
            },
        },
        "components": components,
        "dependencies": dependencies,
    }))
}

fn reached<'a>(
    from: &'a str,
    nodes: &BTreeMap<&str, &'a Node>,
    follows: impl Fn(&Dependency) -> bool,
) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::from([from]);
    let mut waiting = vec![from];
    while let Some(node) = waiting.pop().and_then(|id| nodes.get(id)) {
        for dependency in node.deps.iter().filter(|it| follows(it)) {
            if seen.insert(dependency.pkg.as_str()) {
                waiting.push(&dependency.pkg);
            }
        }
    }
    seen
}

/// `linked`: part of the program, on one platform or another; the others only help to build it.
fn component(package: &Package, digest: Option<&str>, linked: bool) -> Value {
    let mut component = json!({
        "type": "library",
        "bom-ref": package.reference(),
        "name": package.name,
        "version": package.version,
        "scope": if linked { "required" } else { "excluded" },
        "purl": package.reference(),
    });
    let mut add = |key: &str, value: Value| component[key] = value;
    if let Some(text) = &package.description {
        add("description", text.trim().into());
    }
    if let Some(license) = &package.license {
        add("licenses", json!([{ "expression": expression(license) }]));
    }
    if let Some(digest) = digest {
        add("hashes", json!([{ "alg": "SHA-256", "content": digest }]));
    }
    if let (Some(url), Some(_)) = (&package.repository, &package.source) {
        add("externalReferences", json!([{ "type": "vcs", "url": url }]));
    }
    component
}

/// Old manifests write a slash for OR.
fn expression(license: &str) -> String {
    license.split('/').map(str::trim).collect::<Vec<_>>().join(" OR ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str) -> Value {
        json!({ "id": name, "name": name, "version": "1.0.0", "license": "MIT/Apache-2.0",
                "description": null, "repository": null, "source": "registry" })
    }

    fn node(id: &str, deps: &[(&str, Option<&str>)]) -> Value {
        let dep = |(pkg, kind): &(&str, Option<&str>)| json!({ "pkg": pkg, "dep_kinds": [{ "kind": kind }] });
        json!({ "id": id, "deps": deps.iter().map(dep).collect::<Vec<_>>() })
    }

    #[test]
    fn what_only_tests_use_is_left_out_and_what_only_builds_is_marked() {
        let packages = ["mcp-cli", "linked", "deeper", "built", "tested"].map(package);
        let metadata = json!({
            "packages": packages,
            "resolve": { "nodes": [
                node("mcp-cli", &[("linked", None), ("built", Some("build")), ("tested", Some("dev"))]),
                node("linked", &[("deeper", None)]),
                node("deeper", &[]), node("built", &[]), node("tested", &[]),
            ] },
        });
        let lock = Lock {
            package: vec![Locked {
                name: "deeper".into(),
                version: "1.0.0".into(),
                checksum: Some("ab".into()),
            }],
        };
        let metadata: Metadata = serde_json::from_value(metadata).unwrap();
        let bom = document(&metadata, &lock, "1.0.0").unwrap();
        let components: Vec<_> = bom["components"].as_array().unwrap().iter().collect();
        let seen: Vec<_> = components.iter().map(|it| (&it["name"], &it["scope"])).collect();
        assert_eq!(
            json!(seen),
            json!([["built", "excluded"], ["deeper", "required"], ["linked", "required"]])
        );
        assert_eq!(components[1]["hashes"][0]["content"], "ab");
        assert_eq!(components[1]["licenses"][0]["expression"], "MIT OR Apache-2.0");
        assert_eq!(bom["dependencies"].as_array().unwrap().len(), 4);
    }
}
