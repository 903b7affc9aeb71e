//! npm packages.

use std::path::{Path, PathBuf};

use mcp_files::Links;
use mcp_package::install::{
    Index, check_lock, npm_index, npm_install_scripts, npm_manifest, npm_tarball_host,
    npm_version_needs, split_scope,
};
use mcp_package::manifest::suits;
use mcp_package::store::{Source, Under};
use mcp_package::{Digest, Package, Reference, Store};
use mcp_sandbox::Sandbox;

use super::{
    InstallDirectory, OWN_CACHE, allow, bounded, file_text, is_on_path, missing, names,
    refuse_signature, say, step, variable,
};
use crate::args::package::Fetching;
use crate::failure::Failure;
use crate::packages::fetch::{self, RegistryEntry};
use crate::{paths, progress, render};

const LARGEST_METADATA: u64 = 64 << 20;

/// Is in a package whose scripts were run, and names those that have some.
const SCRIPTS_RAN: &str = "install-scripts.txt";

pub fn npm(
    store: &Store,
    reference: &Reference,
    package: &Package,
    listed: Option<RegistryEntry<'_>>,
    how: &Fetching,
) -> Result<Digest, Failure> {
    refuse_signature(reference, how)?;
    if !is_on_path("npm") || !is_on_path("node") {
        return Err(missing(
            "npm",
            "it comes with Node.js: install nodejs and npm, or see nodejs.org",
        ));
    }
    let index = index(&package.name)?;
    let source = listed.map_or_else(|| Source::Npm(index.place()), |listed| listed.source.clone());
    let asked = [reference.to_string()];
    store.check_free(&Under::Names { names: &asked, source: &source }, None)?;
    let token = index.token.clone().unwrap_or_default();
    let metadata = metadata(&index, package)?;
    let files = npm_tarball_host(&metadata).map(|files| (files.host(), files.port()));
    let files: Vec<(String, u16)> = files.into_iter().collect();
    say(reference, "npm");
    let work = InstallDirectory::new(store)?.remembering("npm", &index);
    work.write("package.json", r#"{"name": "mcp-install", "version": "0.0.0", "private": true}"#)?;
    let mut install = work.sandbox("npm");
    allow(&mut install, &index, &files, &how.install_net);
    settings(&mut install, &work, &index, &package.name);
    install.args([
        "install",
        "--ignore-scripts",
        "--omit=dev",
        "--save-exact",
        "--package-lock",
        "--",
    ]);
    // Without a version npm takes the newest that this Node.js fits, as npx does; `latest` would be the newest of all.
    install.arg(match &package.version {
        Some(version) => format!("{}@{version}", package.name),
        None => package.name.clone(),
    });
    step("npm install", &work, &mut install, &[&token])?;
    work.remove(OWN_CACHE);
    let lock = work.read("package-lock.json")?;
    check_lock(&lock)?;
    let scripts = npm_install_scripts(&lock);
    if how.allow_scripts {
        rebuild(&work, how)?;
        work.write(SCRIPTS_RAN, &(scripts.join("\n") + "\n"))?;
    } else if !scripts.is_empty() {
        progress::note(&render::plain(&format!(
            "not run at installation: the scripts of {}; a server that needs what they make: mcp pull --allow-scripts {reference}",
            scripts.join(", ")
        )));
    }
    let installed = work.read(&format!("node_modules/{}/package.json", package.name))?;
    let (version, manifest) = npm_manifest(&package.name, &installed, &work.directory)?;
    tell_older(package, &version, &metadata);
    tell_unfit(package, &installed, &work)?;
    let names = names(reference, "npm", &package.name, &version);
    let under = Under::Names { names: &names, source: &source };
    work.keep(store, &manifest, under, listed.map(|listed| listed.server_json))
}

/// The newest version that the registry has under the name or tag that is asked for.
pub fn newest_on_npm(package: &Package) -> Result<Option<String>, Failure> {
    let metadata = metadata(&index(&package.name)?, package)?;
    Ok(npm_version_needs(&metadata).map(|(version, _)| version))
}

/// A package in the store whose scripts were not run, though it has some.
pub fn lacks_scripts(root: &Path) -> bool {
    let lock = mcp_files::read_text(&root.join("package-lock.json"), 64 << 20, Links::Refuse);
    let wants = lock.is_ok_and(|lock| !npm_install_scripts(&lock).is_empty());
    wants && !root.join(SCRIPTS_RAN).exists()
}

/// Whatever they do, they do it without token, and reach no host but those that a person named.
fn rebuild(work: &InstallDirectory, how: &Fetching) -> Result<(), Failure> {
    let mut rebuild = work.sandbox("npm");
    common(&mut rebuild, &work.path(OWN_CACHE));
    for rule in &how.install_net {
        rebuild.allow_net(rule.to_string());
    }
    if let Some(directory) = node_headers() {
        rebuild.env("npm_config_nodedir", &directory);
        if !directory.starts_with("/usr") {
            rebuild.read(directory);
        }
    }
    rebuild.args(["rebuild", "--foreground-scripts"]);
    step("npm rebuild", work, &mut rebuild, &[])?;
    work.remove(OWN_CACHE);
    Ok(())
}

/// The installation of the Node.js at hand, where it has the headers that native modules are built with.
fn node_headers() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let node = std::env::split_paths(&path).map(|at| at.join("node")).find(|at| at.is_file())?;
    let prefix = paths::real(&node).ok()?.parent()?.parent()?.to_owned();
    prefix.join("include/node/node_version.h").is_file().then_some(prefix)
}

/// Never another version than the newest without a word.
fn tell_older(package: &Package, version: &str, metadata: &[u8]) {
    let Some((newest, node)) = npm_version_needs(metadata) else { return };
    if package.version.is_none() && newest != version {
        let why = match node {
            Some(node) => format!("it needs Node.js {node}"),
            None => "npm chose so".to_owned(),
        };
        progress::note(&render::plain(&format!(
            "{} {version} was installed, not {newest}: {why}",
            package.name
        )));
    }
}

/// Where no version fits, or a person named one that does not, npm installs it as well.
fn tell_unfit(package: &Package, installed: &str, work: &InstallDirectory) -> Result<(), Failure> {
    let Some((version, Some(needed))) = npm_version_needs(installed.as_bytes()) else {
        return Ok(());
    };
    let ran = bounded::run(work, work.sandbox("node").arg("--version"))?;
    let node = String::from_utf8_lossy(&ran.stdout).trim().to_owned();
    if suits(&needed, &node) == Some(false) {
        progress::note(&render::plain(&format!(
            "{} {version} needs Node.js {needed}, and this one is {node}: it may not start; install that Node.js, \
             or name another version (@VERSION)",
            package.name
        )));
    }
    Ok(())
}

/// From npm's own configuration, read as npm would.
fn index(name: &str) -> Result<Index, Failure> {
    let user = variable("NPM_CONFIG_USERCONFIG")
        .or_else(|| variable("npm_config_userconfig"))
        .map(PathBuf::from);
    let user = user.or_else(|| paths::home().map(|home| home.join(".npmrc")));
    let global = ["/usr/local/etc/npmrc", "/etc/npmrc", "/usr/etc/npmrc"].map(PathBuf::from);
    let texts: Vec<Option<String>> =
        user.iter().chain(&global).map(|path| file_text(path)).collect::<Result<_, _>>()?;
    let texts: Vec<String> = texts.into_iter().flatten().collect();
    Ok(npm_index(&texts, name, &variable)?)
}

/// What the registry says of the version that is asked for, or of its newest.
fn metadata(index: &Index, package: &Package) -> Result<Vec<u8>, Failure> {
    let (name, wanted) = (&package.name, package.version.as_deref().unwrap_or("latest"));
    let authorization = index.token.as_ref().map(|token| format!("Bearer {token}"));
    let url = format!("{}{}/{wanted}", index.url, name.replace('/', "%2f"));
    fetch::http().page(&url, authorization, LARGEST_METADATA)?.ok_or_else(|| {
        Failure::Refused(format!(
            "npm:{name}@{wanted}: the registry has no such package or version; compare it with the server's README"
        ))
    })
}

fn common(sandbox: &mut Sandbox, cache: &Path) {
    for (name, value) in [
        ("npm_config_audit", "false"),
        ("npm_config_fund", "false"),
        ("npm_config_update_notifier", "false"),
        ("npm_config_progress", "false"),
        ("npm_config_loglevel", "error"),
        ("npm_config_userconfig", "/dev/null"),
        // A host that is refused stays refused.
        ("npm_config_fetch_retries", "1"),
        ("npm_config_fetch_retry_mintimeout", "1000"),
        ("npm_config_fetch_retry_maxtimeout", "5000"),
    ] {
        sandbox.env(name, value);
    }
    sandbox.env("npm_config_cache", cache);
}

/// By variables, so that no secret is written down.
fn settings(sandbox: &mut Sandbox, work: &InstallDirectory, index: &Index, name: &str) {
    let cache = work.cache(sandbox);
    common(sandbox, &cache);
    sandbox.env("npm_config_ignore_scripts", "true");
    sandbox.env("npm_config_registry", &index.url);
    if let Some(scope) = split_scope(name) {
        sandbox.env(format!("npm_config_{scope}:registry"), &index.url);
    }
    if let Some(token) = &index.token {
        sandbox.secret(format!("npm_config_{}:_authToken", index.npm_key()), token);
    }
}
