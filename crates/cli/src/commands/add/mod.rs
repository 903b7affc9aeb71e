//! `mcp add`: a new server in clients' files, behind `mcp run` from the start; `mcp add --remove`: out again.

mod line;

use std::path::Path;

use mcp_clients::journal::Replacement;
use mcp_clients::{Added, Bytes, Client, Document, Error, Found, NewServer, Original, Scope};
use mcp_package::{Reference, recipes};
use serde_json::{Value, json};

use crate::args::Variable;
use crate::args::wire::{Add, Selection, Unwire};
use crate::commands::wire::known::without_version;
use crate::commands::wire::survey::{self, WireContext};
use crate::commands::wire::{NOT_ASKED, apply, ask, shell_line, show};
use crate::failure::Failure;
use crate::render::to_json;
use crate::render::{self, Paint};

pub fn run(args: Add) -> Result<u8, Failure> {
    let args = &line::understood(args)?;
    let name = match &args.name {
        Some(name) => name.clone(),
        None => name_of(&args.reference),
    };
    if args.remove {
        return remove(args, name);
    }
    let server = server(args, name)?;
    let selection = Selection {
        client: args.client.clone(),
        server: Vec::new(),
        project: args.project.clone(),
    };
    let scene = WireContext::new(&selection, args.binary.as_deref())?;
    let server = NewServer { command: scene.own.text.clone(), ..server };
    let targets = targets(&scene, args)?;
    if targets.is_empty() {
        return Err(Failure::Usage(
            "no client with a file is here; name one with --client, and its file is made (mcp wire --status lists them)"
                .to_owned(),
        ));
    }
    if let Some(warning) = &scene.own.warning {
        render::say(&format!("warning: {warning}"));
    }
    add_to(&scene, args, &server, &targets)
}

fn add_to(
    scene: &WireContext,
    args: &Add,
    server: &NewServer,
    targets: &[Found],
) -> Result<u8, Failure> {
    let asks = args.client.is_empty() && !args.yes && !args.dry_run;
    if asks && (args.json || !ask::is_possible()) {
        let ids: Vec<&str> = targets.iter().map(|found| found.client.id.as_str()).collect();
        render::say(&format!(
            "nothing is written: there is no terminal to ask on; give --client, or --yes for all of: {}",
            ids.join(" ")
        ));
        return Ok(NOT_ASKED);
    }
    let mut words = vec![server.command.clone()];
    words.extend(server.args.iter().cloned());
    let (mut failed, mut reports, mut edits) = (false, Vec::new(), Vec::new());
    for found in targets {
        let shown = show::path(scene, &found.path);
        if asks {
            render::tell(&format!(
                "{} {shown}\n  {}\n",
                render::plain(&found.client.name),
                render::plain(&shell_line(&words))
            ));
            match ask::yes(&format!("add {} to it?", render::plain(&server.name))) {
                Some(true) => {}
                Some(false) => continue,
                None => break,
            }
        }
        match one(server, found) {
            Ok(PlannedAdd::Edit(edit)) if args.dry_run => show_edit(scene, server, &edit),
            Ok(PlannedAdd::Edit(edit)) => edits.push(*edit),
            Ok(PlannedAdd::ByHand { why, entry }) => {
                failed = true;
                render::say(&format!("{shown}: {why}:"));
                render::tell(&render::printable(&entry));
            }
            Err(failure) => {
                failed = true;
                render::say(&failure.to_string());
            }
        }
        reports.push(json!({"client": found.client.id, "path": found.path.to_string_lossy()}));
    }
    if !args.json {
        tell_recipe(args);
    }
    for (edit, result) in edits.iter().zip(write(scene, &edits)?) {
        match result {
            Ok(()) => render::say(&format!(
                "{} is in {}; restart {}",
                render::plain(&server.name),
                show::path(scene, &edit.found.path),
                render::plain(&edit.found.client.name)
            )),
            Err(failure) => {
                failed = true;
                render::say(&failure.to_string());
            }
        }
    }
    if args.json {
        let value: Value =
            json!({"name": server.name, "words": words, "files": reports, "failed": failed});
        render::print(&(to_json(&value) + "\n"));
    }
    Ok(u8::from(failed))
}

/// What the server usually needs and was not given: a proposal, which a person follows or not.
fn tell_recipe(args: &Add) {
    let Some(recipe) = recipes::find(without_version(&args.reference)) else { return };
    let has_host = |host: &str| args.allow_net.iter().any(|rule| rule.to_string().contains(host));
    let has_variable = |name: &str| {
        args.env.iter().any(|variable| match variable {
            Variable::Pass(pattern) => pattern.matches(name),
            Variable::Set(set, _) => set.as_str() == name,
        })
    };
    // A client's file holds the values, so a secret is a variable like any other here.
    let flags: Vec<String> = recipe
        .flags(has_host, has_variable)
        .into_iter()
        .map(|flag| match flag.strip_prefix("--secret ").and_then(|rest| rest.split_once('=')) {
            Some((name, _)) => format!("--env {name}=VALUE"),
            None => flag,
        })
        .collect();
    if !flags.is_empty() {
        render::say(&format!(
            "{} ({}) usually needs {}; give what you want it to have",
            recipe.package,
            recipe.does,
            flags.join(" ")
        ));
    }
}

/// The name that people would give it.
fn name_of(reference: &str) -> String {
    let reference = reference.trim_end_matches('/');
    let name = reference.rsplit(['/', '\\']).next().unwrap_or(reference);
    // A scheme before it, or a tag behind it.
    let name = match name.split_once(':') {
        Some(("npm" | "pypi", name)) => name,
        Some((name, _)) => name,
        None => name,
    };
    let name = name.strip_suffix(".mcpb").unwrap_or(name);
    name.split('@').next().filter(|name| !name.is_empty()).unwrap_or(reference).to_owned()
}

fn server(args: &Add, name: String) -> Result<NewServer, Failure> {
    let Ok(reference) = args.reference.parse::<Reference>() else {
        return Err(line::no_package(args));
    };
    let text = match &reference {
        Reference::Path(path) => absolute(path)?,
        _ => args.reference.clone(),
    };
    if !crate::args::is_package(&text) {
        return Err(line::no_package(args));
    }
    let mut words = vec!["run".to_owned()];
    let mut env = Vec::new();
    for variable in &args.env {
        let name = match variable {
            Variable::Pass(pattern) => pattern.to_string(),
            Variable::Set(name, value) => {
                env.push((name.as_str().to_owned(), value.clone()));
                name.as_str().to_owned()
            }
        };
        words.extend(["--env".to_owned(), name]);
    }
    for (flag, list) in [("--read", &args.read), ("--write", &args.write)] {
        for path in list {
            words.extend([flag.to_owned(), absolute(path)?]);
        }
    }
    for rule in &args.allow_net {
        words.extend(["--allow-net".to_owned(), rule.to_string()]);
    }
    if let Some(program) = &args.program {
        words.extend(["--bin".to_owned(), program.clone()]);
    }
    words.push(text);
    if !args.args.is_empty() {
        words.push("--".to_owned());
        words.extend(args.args.iter().cloned());
    }
    Ok(NewServer::new(name, String::new(), words, env))
}

/// A client starts it from wherever it likes.
fn absolute(path: &Path) -> Result<String, Failure> {
    let path = match (path.strip_prefix("~"), crate::paths::home()) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => std::path::absolute(path).map_err(|e| Failure::input(path, &e))?,
    };
    path.to_str().map(str::to_owned).ok_or_else(|| {
        Failure::Usage(format!(
            "{}: is not UTF-8, and cannot be written into a file",
            render::path(&path)
        ))
    })
}

/// The files: of the clients that were named, made where they lack; else of every client that has one.
fn targets(scene: &WireContext, args: &Add) -> Result<Vec<Found>, Failure> {
    let here = scene.surroundings();
    let mut targets: Vec<Found> = Vec::new();
    for client in survey::clients(&args.client)? {
        let found = match &scene.project {
            Some(project) => {
                let first = client.project.first().map(|path| project.join(path));
                mcp_clients::projects_files(client, project).into_iter().next().or_else(|| {
                    let path = first.filter(|path| !path.to_string_lossy().contains('*'))?;
                    Some(Found::new(client, path, Scope::Project(project.clone())))
                })
            }
            None => {
                let found = mcp_clients::user_files(client, &here).into_iter().next();
                found.or_else(|| mcp_clients::first_file(client, &here))
            }
        };
        match found {
            Some(found) if !args.client.is_empty() || found.path.is_file() => {
                if !targets.iter().any(|other| other.path == found.path) {
                    targets.push(found);
                }
            }
            Some(_) => {}
            None if args.client.is_empty() => {}
            None => return Err(no_file(client)),
        }
    }
    Ok(targets)
}

fn no_file(client: &Client) -> Failure {
    Failure::Usage(format!(
        "{} keeps its servers in no file here; add `mcp run` in its settings{}",
        client.name,
        if client.notes.is_empty() { String::new() } else { format!(" ({})", client.notes) }
    ))
}

/// One file with the new entry.
struct Edit<'a> {
    found: &'a Found,
    original: Original,
    after: Vec<u8>,
    added: Added,
}

impl Edit<'_> {
    fn replacement(&self) -> Replacement<'_> {
        let added = vec![self.added.clone()];
        Replacement { original: &self.original, after: &self.after, entries: Vec::new(), added }
    }
}

/// What is to become of one file.
enum PlannedAdd<'a> {
    Edit(Box<Edit<'a>>),
    /// No editor of ours keeps such a file whole: the entry is printed.
    ByHand {
        why: &'static str,
        entry: String,
    },
}

fn one<'a>(server: &NewServer, found: &'a Found) -> Result<PlannedAdd<'a>, Failure> {
    let original = match found.path.exists() {
        true => mcp_clients::read(&found.path).map_err(apply::failure)?,
        false => Original::missing(&found.path),
    };
    let text = Bytes::new(&original.bytes).ok_or_else(|| {
        Failure::Client(format!("{}: is not UTF-8 text", render::path(&found.path)))
    })?;
    let document = Document::parse(found.format(), text.text)
        .map_err(|fault| apply::failure(Error::Fault { path: found.path.clone(), fault }))?;
    let keys = found.servers.first().cloned().unwrap_or_default();
    let (edited, trail) = match document.add(found.client, &keys, server) {
        Ok(added) => added,
        Err(why) if why.contains("by hand") => {
            return Ok(PlannedAdd::ByHand {
                why,
                entry: mcp_clients::printed(found.client, server),
            });
        }
        Err(why) => {
            return Err(Failure::Client(format!("{}: {why}", render::path(&found.path))));
        }
    };
    let after = text.with(&edited.text);
    let added = Added::new(found.client, trail, original.is_missing());
    Ok(PlannedAdd::Edit(Box::new(Edit { found, original, after, added })))
}

fn show_edit(scene: &WireContext, server: &NewServer, edit: &Edit<'_>) {
    let title = show::path(scene, &edit.found.path);
    let values = server.env.iter().map(|(_, value)| value.clone());
    let hidden: Vec<String> = values.filter(|value| value.len() > 3).collect();
    render::print(&show::diff(&title, &edit.original.bytes, &edit.after, &hidden, Paint::stdout()));
}

fn write(scene: &WireContext, edits: &[Edit<'_>]) -> Result<Vec<Result<(), Failure>>, Failure> {
    if edits.is_empty() {
        return Ok(Vec::new());
    }
    apply::write(&apply::journal(scene)?, scene, edits.iter().map(Edit::replacement).collect())
}

/// What was added is taken back as `mcp unwire` does it.
fn remove(args: &Add, name: String) -> Result<u8, Failure> {
    super::unwire::run(&Unwire {
        selection: Selection {
            client: args.client.clone(),
            server: vec![name],
            project: args.project.clone(),
        },
        dry_run: args.dry_run,
        yes: args.yes,
        json: args.json,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for (reference, name) in [
            ("npm:@modelcontextprotocol/server-filesystem@1.2.3", "server-filesystem"),
            ("npm:some-server", "some-server"),
            ("pypi:mcp-server-time@1.0", "mcp-server-time"),
            ("acme/test@1.0.0", "test"),
            ("./bundles/x.mcpb", "x"),
            ("oci://host/team/test:1.0", "test"),
            ("io.github.user/server", "server"),
        ] {
            assert_eq!(name_of(reference), name, "{reference}");
        }
    }
}
