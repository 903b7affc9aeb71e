//! `mcp list`, `remove`, `gc`, `verify`: what is in the store.

use std::time::SystemTime;

use mcp_package::Reference;
use mcp_package::store::{Keep, Store, Stored};
use serde_json::json;

use crate::args::package::{Gc, List, Remove, Verify};
use crate::commands::policy::to_json;
use crate::failure::Failure;
use crate::packages::{fetch, open_store};
use crate::paths;
use crate::render::{self, Paint};

pub fn list(args: &List) -> Result<u8, Failure> {
    let store = open_store()?;
    let stored = store.list()?;
    if args.json {
        let list: Vec<_> = stored
            .iter()
            .map(|one| {
                json!({"reference": one.name, "digest": one.digest, "size": store.size(&one.digest),
                       "added": seconds(one.added), "source": one.source.as_ref().map(ToString::to_string), "signed": one.signature.is_some()})
            })
            .collect();
        render::print(&(to_json(&list) + "\n"));
        return Ok(0);
    }
    if stored.is_empty() {
        render::say("no packages yet; get one with mcp pull, or run one");
        return Ok(0);
    }
    let paint = Paint::stdout();
    let width = stored.iter().map(|one| one.name.chars().count()).max().unwrap_or(0);
    for one in &stored {
        let digest: String = one.digest.to_string().chars().take(19).collect();
        let size = render::rounded_bytes(store.size(&one.digest));
        let name = format!("{:<width$}", render::plain(&one.name));
        let lacks = match one.source {
            Some(_) => "",
            None => "  (from an older mcp, which did not note its source: pull it again)",
        };
        render::print(&format!(
            "{name}  {}  {size:>9}  {}{lacks}\n",
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
    let found =
        args.references.iter().map(|text| find(&store, text)).collect::<Result<Vec<_>, _>>()?;
    for stored in found {
        let collected = store.remove(&stored)?;
        let bytes = render::rounded_bytes(collected.bytes);
        render::print(&format!("removed {} ({bytes} freed)\n", render::plain(&stored.name)));
    }
    Ok(0)
}

pub fn gc(args: &Gc) -> Result<u8, Failure> {
    let keep = Keep {
        younger_than: args.older_than.map(mcp_policy::Duration::as_std),
        bytes: args.max_size.map(|size| size.0),
    };
    let collected = open_store()?.collect(keep)?;
    for one in &collected.removed {
        render::print(&format!("removed {}\n", render::plain(&one.name)));
    }
    for one in &collected.in_use {
        render::say(&format!("{} is running and was left", render::plain(&one.name)));
    }
    render::print(&format!("{} freed\n", render::rounded_bytes(collected.bytes)));
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
            Ok(()) => render::print(&format!("{} {name} {}\n", paint.good("[✓]"), stored.digest)),
            Err(failure) => {
                render::print(&format!("{} {name} {failure}\n", paint.bad("[⚠]")));
                code = 1;
            }
        }
    }
    Ok(code)
}
