//! `mcp list`, `remove`, `gc`, `verify`: what is in the store.

use std::time::SystemTime;

use mcp_package::store::{Keep, Store, Stored};
use mcp_package::{Kind, Reference};
use serde_json::json;

use crate::args::package::{Gc, List, Remove, Verify};
use crate::failure::Failure;
use crate::packages::kept::{self, OwnChanges};
use crate::packages::{fetch, open_store};
use crate::paths;
use crate::render::to_json;
use crate::render::{self, Paint};

/// A package, and all names that lead to it.
struct Listed {
    /// The most exact of its names.
    one: Stored,
    also: Vec<String>,
}

/// Each package once: names of one digest and source are names of one package.
fn packages(stored: Vec<Stored>) -> Vec<Listed> {
    let mut all: Vec<Listed> = Vec::new();
    for one in stored {
        let same = |listed: &&mut Listed| {
            listed.one.digest == one.digest && listed.one.source == one.source
        };
        match all.iter_mut().find(same) {
            // The names come in their order, so that the version follows the bare name.
            Some(listed) => {
                let is_exact = |name: &str| {
                    name.len() > 1 && name[1..].contains('@') && !name.ends_with("@latest")
                };
                let (name, other) = match is_exact(&one.name) && !is_exact(&listed.one.name) {
                    true => (one.name.clone(), std::mem::replace(&mut listed.one.name, one.name)),
                    false => (listed.one.name.clone(), one.name),
                };
                listed.one.name = name;
                listed.also.push(other);
            }
            None => all.push(Listed { one, also: Vec::new() }),
        }
    }
    all
}

pub fn list(args: &List) -> Result<u8, Failure> {
    let store = open_store()?;
    let packages = packages(store.list()?);
    if args.json {
        let list: Vec<_> = packages
            .iter()
            .map(|Listed { one, also }| {
                json!({"reference": one.name, "also": also, "digest": one.digest, "size": store.size(&one.digest),
                       "added": seconds(one.added), "source": one.source.as_ref().map(ToString::to_string), "signed": one.signature.is_some()})
            })
            .collect();
        render::print(&(to_json(&list) + "\n"));
        return Ok(0);
    }
    if packages.is_empty() {
        render::say("no packages yet; get one with mcp pull, or run one");
        return Ok(0);
    }
    let paint = Paint::stdout();
    let width = packages.iter().map(|listed| listed.one.name.chars().count()).max().unwrap_or(0);
    for Listed { one, also } in &packages {
        let digest: String = one.digest.to_string().chars().take(19).collect();
        let size = render::rounded_bytes(store.size(&one.digest));
        let name = format!("{:<width$}", render::plain(&one.name));
        let lacks = match one.source {
            Some(_) => "",
            None => "  (from an older mcp, which did not note its source: pull it again)",
        };
        let also = match also.is_empty() {
            true => String::new(),
            false => format!("  also {}", render::plain(&also.join(", "))),
        };
        render::print(&format!(
            "{name}  {}  {size:>9}  {}{also}{lacks}\n",
            paint.faint(&digest),
            age(one.added)
        ));
    }
    Ok(0)
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs()
}

fn age(time: SystemTime) -> String {
    let seconds = time.elapsed().unwrap_or_default().as_secs();
    match seconds {
        0..=59 => "just now".to_owned(),
        60..=3_599 => format!("{} min ago", seconds / 60),
        3_600..=86_399 => format!("{} h ago", seconds / 3_600),
        _ => format!("{} days ago", seconds / 86_400),
    }
}

/// What a reference means among the names, also a path of a bundle that was run.
pub fn find(store: &Store, text: &str) -> Result<Stored, Failure> {
    let reference: Reference = text.parse()?;
    if let Reference::Path(path) = &reference {
        let name =
            paths::real(path).unwrap_or_else(|_| path.clone()).to_string_lossy().into_owned();
        return store.list()?.into_iter().find(|one| one.name == name).ok_or_else(|| {
            Failure::Refused(format!("{} is not in the store", render::plain(text)))
        });
    }
    Ok(store.get(&reference)?)
}

pub fn remove(args: &Remove) -> Result<u8, Failure> {
    let store = open_store()?;
    // All of them, or none: a mistyped name must not be found out half-way.
    let found = |text: &String| {
        find(&store, text).map_err(|failure| match failure {
            // The usual hint says how to get a package: no help to one who removes it.
            Failure::Package(error) if error.kind() == Kind::NotFound => Failure::Refused(format!(
                "{} is not in the store; mcp list shows what is",
                render::plain(text)
            )),
            failure => failure,
        })
    };
    let found = args.references.iter().map(found).collect::<Result<Vec<_>, _>>()?;
    for stored in found {
        let collected = store.remove(&stored)?;
        // Another name of the same package was named before.
        if collected.removed.is_empty() {
            continue;
        }
        let bytes = render::rounded_bytes(collected.bytes);
        let names: Vec<&str> = collected.removed.iter().map(|one| one.name.as_str()).collect();
        render::print(&format!("removed {} ({bytes} freed)\n", render::plain(&names.join(", "))));
    }
    Ok(0)
}

pub fn gc(args: &Gc) -> Result<u8, Failure> {
    let keep = Keep {
        younger_than: args.older_than.map(mcp_policy::Duration::as_std),
        bytes: args.max_size.map(|size| size.0),
    };
    let collected = open_store()?.collect(keep)?;
    let shown = |listed: &Listed| {
        let names: Vec<&str> =
            std::iter::once(&listed.one.name).chain(&listed.also).map(String::as_str).collect();
        render::plain(&names.join(", "))
    };
    for listed in &packages(collected.removed.clone()) {
        render::print(&format!("removed {}\n", shown(listed)));
    }
    for listed in &packages(collected.in_use.clone()) {
        render::say(&format!("{} is running and was left", shown(listed)));
    }
    let downloads = crate::packages::install::downloads::forget();
    render::print(&format!("{} freed\n", render::rounded_bytes(collected.bytes + downloads)));
    Ok(0)
}

pub fn verify(args: &Verify) -> Result<u8, Failure> {
    let store = open_store()?;
    let found = match args.references.is_empty() {
        true => store.list()?,
        false => args.references.iter().map(|text| find(&store, text)).collect::<Result<_, _>>()?,
    };
    let mut code = 0;
    let paint = Paint::stdout();
    for stored in found {
        let signature = |()| match &stored.signature {
            Some(digest) => store.read_blob(digest, fetch::LARGEST_SIGNATURE).map(drop),
            None => Ok(()),
        };
        let whole = store.verify(&stored.digest).and_then(signature);
        let checked = whole.map_err(Failure::from).and_then(|()| match &args.require_signature {
            Some(key) => fetch::check_signature(&store, &stored, &stored.name.parse()?, key),
            None => Ok(()),
        });
        let name = render::plain(&stored.name);
        match checked {
            Ok(()) => {
                let own = match kept::own_changes(&stored.digest) {
                    OwnChanges { files: 0, is_cut: false } => String::new(),
                    OwnChanges { is_cut: true, .. } => format!(
                        "; what it wrote beside its files could not all be looked at: its runs may see changed ones (mcp data show {name})"
                    ),
                    OwnChanges { files, .. } => format!(
                        "; its runs see {files} of its files changed by itself (mcp data show {name})"
                    ),
                };
                render::print(&format!("{} {name} {}{own}\n", paint.good("[✓]"), stored.digest));
            }
            Err(failure) => {
                render::print(&format!("{} {name} {failure}\n", paint.bad("[⚠]")));
                code = 1;
            }
        }
    }
    Ok(code)
}
