//! npm packages.

use std::path::PathBuf;

use mcp_package::install::{
    Index, check_lock, npm_index, npm_manifest, npm_tarball_host, split_scope,
};
use mcp_package::store::{Source, Under};
use mcp_package::{Digest, Package, Reference, Store};
use mcp_sandbox::Sandbox;

use super::{
    Work, allow, file_text, is_on_path, missing, names, refuse_signature, say, step, variable,
};
use crate::args::package::Fetching;
use crate::failure::Failure;
use crate::packages::fetch::{self, Listed};
use crate::paths;

const LARGEST_METADATA: u64 = 64 << 20;

pub fn npm(
    store: &Store,
    reference: &Reference,
    package: &Package,
    listed: Option<Listed<'_>>,
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
    let wanted = package.version.clone().unwrap_or_else(|| "latest".to_owned());
    let token = index.token.clone().unwrap_or_default();
    let files = tarball_hosts(&index, &package.name, &wanted)?;
    say(reference, "npm");
    let work = Work::new(store)?;
    work.write("package.json", r#"{"name": "mcp-install", "version": "0.0.0", "private": true}"#)?;
    let mut install = work.sandbox("npm");
    allow(&mut install, &index, &files);
    settings(&mut install, &work, &index, &package.name);
    install.args([
        "install",
        "--ignore-scripts",
        "--omit=dev",
        "--save-exact",
        "--package-lock",
        "--",
    ]);
    install.arg(format!("{}@{wanted}", package.name));
    step("npm install", &work, &mut install, &[&token])?;
    check_lock(&work.read("package-lock.json")?)?;
    work.remove("cache");
    if how.allow_scripts {
        // Whatever they do, they do it without token and without network.
        let mut rebuild = work.sandbox("npm");
        common(&mut rebuild, &work);
        rebuild.args(["rebuild", "--foreground-scripts"]);
        step("npm rebuild", &work, &mut rebuild, &[])?;
        work.remove("cache");
    }
    let installed = work.read(&format!("node_modules/{}/package.json", package.name))?;
    let (version, manifest) = npm_manifest(&package.name, &installed, &work.directory)?;
    let names = names(reference, "npm", &package.name, &version);
    let under = Under::Names { names: &names, source: &source };
    work.keep(store, &manifest, under, listed.map(|listed| listed.server_json))
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

/// The host that the registry says the package's own files are on.
fn tarball_hosts(index: &Index, name: &str, wanted: &str) -> Result<Vec<(String, u16)>, Failure> {
    let authorization = index.token.as_ref().map(|token| format!("Bearer {token}"));
    let url = format!("{}{}/{wanted}", index.url, name.replace('/', "%2f"));
    let page = fetch::http().page(&url, authorization, LARGEST_METADATA)?;
    let page = page.ok_or_else(|| {
        Failure::Refused(format!(
            "npm:{name}@{wanted}: the registry has no such package or version"
        ))
    })?;
    Ok(npm_tarball_host(&page).map(|files| (files.host(), files.port())).into_iter().collect())
}

fn common(sandbox: &mut Sandbox, work: &Work) {
    for (name, value) in [
        ("npm_config_audit", "false"),
        ("npm_config_fund", "false"),
        ("npm_config_update_notifier", "false"),
        ("npm_config_progress", "false"),
        ("npm_config_loglevel", "error"),
        ("npm_config_userconfig", "/dev/null"),
    ] {
        sandbox.env(name, value);
    }
    sandbox.env("npm_config_cache", work.path("cache"));
}

/// By variables, so that no secret is written down.
fn settings(sandbox: &mut Sandbox, work: &Work, index: &Index, name: &str) {
    common(sandbox, work);
    sandbox.env("npm_config_ignore_scripts", "true");
    sandbox.env("npm_config_registry", &index.url);
    if let Some(scope) = split_scope(name) {
        sandbox.env(format!("npm_config_{scope}:registry"), &index.url);
    }
    if let Some(token) = &index.token {
        sandbox.secret(format!("npm_config_{}:_authToken", index.npm_key()), token);
    }
}
