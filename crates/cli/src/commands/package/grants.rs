//! `mcp grants`: what was granted to packages and is remembered.

use std::collections::BTreeSet;

use mcp_package::store::Granted;
use serde_json::json;

use crate::args::package::{Grants, GrantsCommand};
use crate::failure::Failure;
use crate::packages::{open_store, reference_name};
use crate::render::to_json;
use crate::render::{self, Paint};

pub fn run(args: &Grants) -> Result<u8, Failure> {
    match &args.command {
        None => list(args),
        Some(GrantsCommand::Revoke { package, wishes, all }) => {
            revoke(package.as_deref().filter(|_| !all), wishes, args)
        }
    }
}

fn list(args: &Grants) -> Result<u8, Failure> {
    let all = open_store()?.grants().all()?;
    if args.json {
        render::print(&(to_json(&all.iter().map(as_json).collect::<Vec<_>>()) + "\n"));
        return Ok(0);
    }
    if all.is_empty() {
        render::say("nothing was granted to a package and remembered");
        return Ok(0);
    }
    let paint = Paint::stdout();
    for one in &all {
        let from = if one.source.ends_with(&one.package) {
            String::new()
        } else {
            format!(" from {}", one.source)
        };
        let digest: String = one.digest.to_string().chars().take(19).collect();
        render::print(&format!(
            "{}{}  {}\n",
            paint.strong(&render::plain(&one.package)),
            render::plain(&from),
            paint.faint(&digest)
        ));
        for wish in &one.wishes {
            render::print(&format!("  {}\n", render::plain(wish)));
        }
    }
    Ok(0)
}

fn as_json(one: &Granted) -> serde_json::Value {
    json!({"package": one.package, "source": one.source, "digest": one.digest, "granted": one.wishes})
}

fn revoke(package: Option<&str>, wishes: &[String], args: &Grants) -> Result<u8, Failure> {
    let store = open_store()?;
    let name = package.map(reference_name);
    let wanted: BTreeSet<&str> = wishes.iter().map(String::as_str).collect();
    let is_meant = |package: &str, wish: &str| {
        name.as_deref().is_none_or(|name| name == package)
            && (wanted.is_empty() || wanted.contains(wish))
    };
    let all = store.grants().all()?;
    let is_known = |one: &Granted| one.wishes.iter().any(|wish| is_meant(&one.package, wish));
    if !all.iter().any(is_known) {
        let what = package.map_or_else(|| "any package".to_owned(), render::plain);
        return Err(Failure::NoSuchRun(match wanted.is_empty() {
            true => format!("nothing is remembered for {what}; mcp grants lists what is"),
            false => format!("no such grant is remembered for {what}; mcp grants lists them"),
        }));
    }
    let revoked = store.grants().revoke(is_meant)?;
    if args.json {
        render::print(&(to_json(&revoked.iter().map(as_json).collect::<Vec<_>>()) + "\n"));
        return Ok(0);
    }
    for one in &revoked {
        for wish in &one.wishes {
            render::print(&render::printable(&format!("revoked from {}: {wish}\n", one.package)));
        }
    }
    Ok(0)
}
