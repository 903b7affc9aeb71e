//! The verbs for packages.

mod grants;
mod inspect;
mod log;
mod login;
pub mod push;
mod search;
mod stored;
mod update;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use mcp_package::bundle;
use mcp_package::store::{Source, Stored, Under};
use mcp_package::{Reference, Store};
use serde_json::json;

use crate::args::package::{Pack, Package, Pull};
use crate::failure::Failure;
use crate::package_runner::{self, Meaning};
use crate::packages::{fetch, open_store};
use crate::render::to_json;
use crate::{paths, render};

pub fn run(verb: Package) -> Result<u8, Failure> {
    match verb {
        Package::Pack(args) => pack(&args),
        Package::Pull(args) => pull(&args),
        Package::Push(args) => push::run(&args),
        Package::List(args) => stored::list(&args),
        Package::Inspect(args) => inspect::run(&args),
        Package::Remove(args) => stored::remove(&args),
        Package::Gc(args) => stored::gc(&args),
        Package::Update(args) => update::run(&args),
        Package::Grants(args) => grants::run(&args),
        Package::Data(args) => crate::commands::data::run(&args),
        Package::Verify(args) => stored::verify(&args),
        Package::Search(args) => search::run(&args),
        Package::Login(args) => login::login(&args),
        Package::Logout(args) => login::logout(&args),
        Package::Schema => {
            render::print(&(to_json(&mcp_package::manifest::schema()) + "\n"));
            Ok(0)
        }
        Package::Log(args) => log::run(&args),
    }
}

fn pack(args: &Pack) -> Result<u8, Failure> {
    let directory =
        paths::real(&args.directory).map_err(|e| Failure::input(&args.directory, &e))?;
    let named = bundle::named(&mcp_package::store::read_manifests(&directory)?)?;
    let to = args.output.clone().unwrap_or_else(|| file_name(&named.name, &named.version));
    let (packed, bundle) = bundle::pack_to(&directory, &to)?;
    if args.json {
        let value = json!({
            "file": to.to_string_lossy(), "name": bundle.name, "version": bundle.version,
            "digest": bundle.digest, "size": bundle.size, "files": packed.files, "left_out": packed.left_out,
        });
        render::print(&(to_json(&value) + "\n"));
        return Ok(0);
    }
    if !packed.left_out.is_empty() {
        render::say(&render::plain(&format!("left out: {}", packed.left_out.join(", "))));
    }
    render::print(&render::printable(&format!(
        "{}  {} {}, {} files, {}\n{}\n",
        render::path(&to),
        bundle.name,
        bundle.version,
        packed.files,
        render::rounded_bytes(bundle.size),
        bundle.digest
    )));
    Ok(0)
}

/// `acme/test` 1.0.0 → `test-1.0.0.mcpb`, of plain characters only: the name is the package's word.
fn file_name(name: &str, version: &str) -> PathBuf {
    let last = name.rsplit('/').next().unwrap_or(name);
    let good = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
    let text: String = format!("{last}-{version}").chars().map(good).collect();
    PathBuf::from(format!("{}.mcpb", text.trim_start_matches('.')))
}

fn pull(args: &Pull) -> Result<u8, Failure> {
    let store = open_store()?;
    let mut pulled = Vec::new();
    for text in &args.references {
        let reference: Reference = text.parse().map_err(|error| unnamed(args, text, error))?;
        let before = store.list()?;
        let digest = match &reference {
            Reference::Path(path) => take_in(&store, path)?,
            _ => fetch::fetch(&store, &reference, &args.fetching)?,
        };
        tell_replaced(&before, &store.list()?);
        if args.json {
            pulled.push(json!({"reference": reference.to_string(), "digest": digest}));
        } else {
            render::print(&render::plain(&format!("{reference} {digest}")));
            render::print("\n");
        }
    }
    if args.json {
        render::print(&(to_json(&pulled) + "\n"));
    }
    Ok(0)
}

/// What was meant by a word that is no reference: a package runner's line, or a name without its registry.
fn unnamed(args: &Pull, text: &str, error: mcp_package::Error) -> Failure {
    let words: Vec<OsString> = args.references.iter().map(OsString::from).collect();
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.@".contains(c);
    let way = match package_runner::understand(&words) {
        Meaning::Package(line) => format!("type: mcp pull {}", line.reference),
        _ if text.starts_with('@') && text.contains('/') => format!("type: mcp pull npm:{text}"),
        _ if text.chars().all(is_name) => {
            format!("{text} is no reference; type: mcp pull npm:{text}, or mcp pull pypi:{text}")
        }
        _ => return error.into(),
    };
    Failure::Usage(render::plain(&way))
}

/// A name that means something else from now on: its source may say so, but not without a word.
fn tell_replaced(before: &[Stored], after: &[Stored]) {
    for now in after {
        let is_other = |old: &&Stored| old.name == now.name && old.digest != now.digest;
        if let Some(old) = before.iter().find(is_other) {
            render::say(&render::plain(&format!(
                "warning: {} was replaced: it was {} and is {}; what you allowed the old one is not allowed to it",
                now.name, old.digest, now.digest
            )));
        }
    }
}

/// A bundle file under its own name and version.
fn take_in(store: &Store, path: &Path) -> Result<mcp_package::Digest, Failure> {
    if path.is_dir() {
        return Err(Failure::Usage(format!(
            "{}: is a directory; pack it first, or run it as it is",
            render::path(path)
        )));
    }
    let bundle = bundle::look(path)?;
    let own = format!("{}@{}", bundle.name, bundle.version);
    let shown = path.display();
    match own.parse() {
        Ok(Reference::Named(_)) => {}
        Ok(Reference::Official(_)) => {
            return Err(Failure::Refused(render::plain(&format!(
                "{shown}: calls itself {own}, and names with a dot before the slash are the public MCP registry's; \
                 run it with mcp run {shown}, or get the registry's with mcp pull {own}",
            ))));
        }
        _ => {
            return Err(Failure::Usage(format!(
                "{}: its name \"{}\" has no namespace, so it cannot be stored under it; run it as {}",
                render::path(path),
                bundle.name,
                render::path(path)
            )));
        }
    }
    let real = paths::real(path).map_err(|e| Failure::input(path, &e))?;
    let under = Under::Names { names: &[own], source: &Source::file(&real) };
    Ok(store.add_bundle(path, under, None)?)
}
