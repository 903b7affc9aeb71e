//! `mcp data`: what packages keep between their runs.

use serde_json::json;

use crate::args::package::{Data, DataCommand};
use crate::failure::Failure;
use crate::packages::kept::{self, KeptDirectory, Written, size_of};
use crate::packages::reference_name;
use crate::render::to_json;
use crate::render::{self, Paint};

pub fn run(args: &Data) -> Result<u8, Failure> {
    match &args.command {
        None => list(args),
        Some(DataCommand::Show { package }) => show(&find(package)?, args),
        Some(DataCommand::Remove { packages, all }) => remove(packages, *all, args),
    }
}

fn list(args: &Data) -> Result<u8, Failure> {
    let all = kept::all()?;
    if args.json {
        render::print(&(to_json(&all.iter().map(as_json).collect::<Vec<_>>()) + "\n"));
        return Ok(0);
    }
    if all.is_empty() {
        render::say("no package keeps anything yet");
        return Ok(0);
    }
    let paint = Paint::stdout();
    let width = all.iter().map(|one| one.about.package.chars().count()).max().unwrap_or(0);
    for one in &all {
        let name = format!("{:<width$}", render::plain(&one.about.package));
        let size = render::rounded_bytes(size_of(&one.directory));
        let from = paint.faint(&render::plain(&one.about.source));
        render::print(&format!("{}  {size:>9}  {from}\n", paint.strong(&name)));
    }
    Ok(0)
}

fn show(found: &[KeptDirectory], args: &Data) -> Result<u8, Failure> {
    if args.json {
        render::print(&(to_json(&found.iter().map(as_json).collect::<Vec<_>>()) + "\n"));
        return Ok(0);
    }
    for one in found {
        let home = one.directory.join("home");
        let size = render::rounded_bytes(size_of(&home));
        render::print(&format!(
            "{} from {}\n  HOME {size} in {}\n",
            render::plain(&one.about.package),
            render::plain(&one.about.source),
            render::path(&home)
        ));
        for layer in &one.layers {
            let written = Written::look(&layer.kept);
            let digest: String = layer.digest.chars().take(12).collect();
            let upper = layer.kept.kept_in.join("upper");
            render::print(&format!(
                "  beside its files, version sha256:{digest}: {} in {}\n",
                counted(&written),
                render::path(&upper)
            ));
            for (what, names) in
                [("changed", &written.first_changed), ("new", &written.first_added)]
            {
                for name in names {
                    render::print(&format!("    {what} {}\n", render::plain(name)));
                }
            }
        }
    }
    Ok(0)
}

fn counted(written: &Written) -> String {
    let more = if written.is_cut { "more than " } else { "" };
    let files = if written.entries == 1 { "file" } else { "files" };
    let changed = match written.changed {
        0 => String::new(),
        count => format!(", {count} in the place of its own"),
    };
    let size = render::rounded_bytes(written.bytes);
    format!("{more}{} {files} ({size}{changed})", written.entries)
}

fn as_json(one: &KeptDirectory) -> serde_json::Value {
    let layers: Vec<_> = one
        .layers
        .iter()
        .map(|layer| {
            let written = Written::look(&layer.kept);
            json!({"digest": format!("sha256:{}", layer.digest), "files": written.entries, "bytes": written.bytes,
                   "changed": written.changed, "path": layer.kept.kept_in.join("upper").to_string_lossy()})
        })
        .collect();
    let home = one.directory.join("home");
    json!({"package": one.about.package, "source": one.about.source, "home": home.to_string_lossy(),
           "home_bytes": size_of(&home), "layers": layers})
}

/// All that is kept under a name, of every source.
fn find(package: &str) -> Result<Vec<KeptDirectory>, Failure> {
    let name = reference_name(package);
    let found: Vec<KeptDirectory> =
        kept::all()?.into_iter().filter(|one| one.about.package == name).collect();
    match found.is_empty() {
        true => Err(Failure::NoSuchRun(format!(
            "nothing is kept for {}; mcp data lists what is",
            render::plain(package)
        ))),
        false => Ok(found),
    }
}

fn remove(packages: &[String], all: bool, args: &Data) -> Result<u8, Failure> {
    // All of them, or none: a mistyped name must not be found out half-way.
    let found = match all {
        true => kept::all()?,
        false => {
            let each = packages.iter().map(|name| find(name)).collect::<Result<Vec<_>, _>>()?;
            each.into_iter().flatten().collect()
        }
    };
    let mut removed = Vec::new();
    for one in &found {
        let bytes = size_of(&one.directory);
        one.remove()?;
        removed.push(json!({"package": one.about.package, "bytes": bytes}));
        if !args.json {
            let (name, size) = (render::plain(&one.about.package), render::rounded_bytes(bytes));
            render::print(&format!("removed what {name} kept ({size} freed)\n"));
        }
    }
    if args.json {
        render::print(&(to_json(&removed) + "\n"));
    }
    Ok(0)
}
