//! `mcp inspect`: what a package is, what it runs, what it asks for.

use mcp_package::manifest::{Given, LaunchContext, Manifest};
use mcp_package::{Ask, Reference, asks};
use serde_json::json;

use super::stored;
use crate::args::package::Inspect;
use crate::failure::Failure;
use crate::packages::files::{self, PackageFiles};
use crate::packages::{fetch, open_store};
use crate::render::to_json;
use crate::render::{self, Paint};

pub fn run(args: &Inspect) -> Result<u8, Failure> {
    let reference: Reference = args.reference.parse()?;
    if args.tags {
        let tags = fetch::tags(&reference, &args.fetching)?;
        let text = if args.json { to_json(&tags) } else { tags.join("\n") };
        render::print(&(render::printable(&text) + "\n"));
        return Ok(0);
    }
    let located = match &reference {
        Reference::Path(path) => files::on_disk(path)?,
        _ => {
            let store = open_store()?;
            // Of another source than the one that was asked for there is nothing to be shown.
            if let Some(source) = fetch::source(&reference, &args.fetching)? {
                store.find(&reference, Some(&source))?;
            }
            let found = stored::find(&store, &args.reference)?;
            files::from_store(&reference.name(), &found, store.ready(&found.digest)?)?
        }
    };
    show(&located, args)
}

/// What a package says of itself, and what it asks for.
pub fn wishes(located: &PackageFiles) -> Result<(Manifest, Vec<Ask>), Failure> {
    let (manifest, places) = files::read(located)?;
    let cwd = std::env::current_dir().unwrap_or_else(|_| located.root.clone());
    let given = Given::default();
    // A setting that is required and not given is no reason not to be shown the rest.
    let launch = manifest.launch(&LaunchContext { places: &places, given: &given, cwd: &cwd });
    let wishes = match &launch {
        Ok(launch) => asks(&launch.asks),
        Err(_) => asks(manifest.asks.as_slice()),
    };
    Ok((manifest, wishes))
}

fn show(located: &PackageFiles, args: &Inspect) -> Result<u8, Failure> {
    let (manifest, wishes) = wishes(located)?;
    let settings: Vec<_> = manifest
        .settings
        .iter()
        .map(|(key, setting)| {
            json!({"key": key, "title": setting.title, "required": setting.is_required,
                   "sensitive": setting.is_sensitive, "default": setting.default})
        })
        .collect();
    if args.json {
        let value = json!({
            "name": manifest.name, "version": manifest.version, "description": manifest.description,
            "reference": located.identity.reference, "digest": located.identity.digest,
            "source": located.source.as_ref().map(ToString::to_string),
            "root": located.root.to_string_lossy(),
            "command": manifest.server.command, "args": manifest.server.args,
            "asks": wishes.iter().map(|ask| json!({"what": ask.text, "flag": ask.flag})).collect::<Vec<_>>(),
            "settings": settings, "runtimes": manifest.runtimes, "warnings": manifest.warnings,
        });
        render::print(&(to_json(&value) + "\n"));
        return Ok(0);
    }
    let paint = Paint::stdout();
    let mut text = format!(
        "{} {}\n",
        paint.strong(&render::plain(&manifest.name)),
        render::plain(&manifest.version)
    );
    let mut line =
        |key: &str, value: &str| text += &format!("  {key:<10} {}\n", render::plain(value));
    line("about", &manifest.description);
    line("digest", &located.identity.digest.to_string());
    if let Some(source) = &located.source {
        line("from", &source.to_string());
    }
    line("files", &located.root.to_string_lossy());
    line(
        "starts",
        &std::iter::once(&manifest.server.command)
            .chain(&manifest.server.args)
            .cloned()
            .collect::<Vec<_>>()
            .join(" "),
    );
    for (name, range) in &manifest.runtimes {
        line("needs", &format!("{name} {range}"));
    }
    for (key, setting) in &manifest.settings {
        let mut words = vec![key.clone()];
        words.extend(setting.is_required.then(|| "(required)".to_owned()));
        words.extend(setting.is_sensitive.then(|| "(secret)".to_owned()));
        words.push(setting.title.clone());
        line("setting", &words.join(" "));
    }
    for ask in &wishes {
        line("asks to", &ask.text);
    }
    for warning in &manifest.warnings {
        line("warning", warning);
    }
    render::print(&text);
    Ok(0)
}
