//! `mcp wire --status`, `--check` and `--leave`.

use std::path::PathBuf;

use mcp_clients::{Format, Kind};
use serde_json::{Value, json};

use super::survey::{File, State, WireContext, windows_side};
use super::{apply, plan, show};
use crate::args::wire::Selection;
use crate::failure::Failure;
use crate::render::to_json;
use crate::render::{self, Paint};

/// Every client, file and server.
pub fn table(scene: &WireContext, files: &[File], selection: &Selection, as_json: bool) -> u8 {
    if as_json {
        let files_json: Vec<Value> = files.iter().map(file_json).collect();
        let clients: Vec<Value> = mcp_clients::all()
            .iter()
            .map(|client| {
                json!({"id": client.id, "name": client.name, "tier": client.tier, "grade": client.grade,
                       "format": client.format, "found": files.iter().any(|file| file.clients.contains(&client))})
            })
            .collect();
        let value = json!({"mcp": scene.own.text, "warning": scene.own.warning, "files": files_json,
                           "not_covered": not_covered_json(scene, files), "clients": clients});
        render::print(&(to_json(&value) + "\n"));
        return u8::from(files.iter().any(|file| file.content.is_err()));
    }
    let paint = Paint::stdout();
    let mut text = String::new();
    for file in files {
        text += &(show::heading(scene, file, paint) + "\n");
        match &file.content {
            Ok(content) if content.servers.is_empty() => text += "  no servers\n",
            Ok(content) => {
                for server in &content.servers {
                    text += &(show::status(server, paint) + "\n");
                }
            }
            Err(error) => text += &format!("  {}\n", paint.bad(&render::plain(&error.to_string()))),
        }
    }
    for line in not_covered(scene, files) {
        text += &(line + "\n");
    }
    if selection.client.is_empty() && scene.project.is_none() {
        text += &absent(files, paint);
    }
    render::print(&text);
    if let Some(warning) = &scene.own.warning {
        render::say(&format!("warning: {warning}"));
    }
    u8::from(files.iter().any(|file| file.content.is_err()))
}

/// Clients without a file here, and those that keep their servers to themselves.
fn absent(files: &[File], paint: Paint) -> String {
    let is_here =
        |id: &str| files.iter().any(|file| file.clients.iter().any(|client| client.id == id));
    let clients = mcp_clients::all().iter().filter(|client| !is_here(&client.id));
    let (own, others): (Vec<_>, Vec<_>) = clients.partition(|client| client.format == Format::None);
    let ids = |clients: &[&mcp_clients::Client]| {
        clients.iter().map(|client| client.id.as_str()).collect::<Vec<_>>().join(" ")
    };
    format!(
        "{} {}\n{} {}\n",
        paint.strong("known, and without a file here:"),
        ids(&others),
        paint.strong("never covered, because they keep servers in no file (type `mcp run` into their settings):"),
        ids(&own)
    )
}

fn file_json(file: &File) -> Value {
    let servers = file
        .content
        .as_ref()
        .map(|content| content.servers.iter().map(show::server_json).collect());
    show::file_json(file, servers.unwrap_or_default())
}

/// One line for each server that is not wired. Nothing where all are.
pub fn check(scene: &WireContext, files: &[File], as_json: bool) -> u8 {
    let mut lines = Vec::new();
    for file in files {
        let shown = show::path(scene, &file.found.path);
        match &file.content {
            Err(error) => lines.push(render::plain(&error.to_string())),
            Ok(content) => {
                for server in content.servers.iter().filter(|server| server.state.is_trouble()) {
                    let what = match (&server.state, &server.entry.kind) {
                        (State::Open(wide), _) => {
                            format!("wired, but opened by {}", wide.join(" "))
                        }
                        (State::Elsewhere, Kind::Stdio(stdio)) => {
                            format!("wired to {}", stdio.command)
                        }
                        (State::Odd(why), _) => format!("not wired: {why}"),
                        (_, Kind::Stdio(stdio)) => format!("not wired: {}", plan::line_of(stdio)),
                        _ => "not wired".to_owned(),
                    };
                    lines.push(format!(
                        "{shown}:{}: {} ({}): {}",
                        server.entry.line,
                        render::plain(&server.entry.name),
                        server.client.id,
                        render::plain(&what)
                    ));
                }
            }
        }
    }
    if as_json {
        let files: Vec<Value> = files.iter().map(file_json).collect();
        render::print(&(to_json(&json!({"wired": lines.is_empty(), "files": files})) + "\n"));
    } else {
        render::print(&lines.iter().map(|line| format!("{line}\n")).collect::<String>());
    }
    u8::from(!lines.is_empty())
}

/// Remembers that servers stay as they are.
pub fn leave(scene: &WireContext, files: &[File]) -> Result<u8, Failure> {
    let journal = apply::journal(scene)?;
    let mut count = 0;
    for content in files.iter().filter_map(|file| file.content.as_ref().ok()) {
        for server in content.servers.iter().filter(|server| server.state == State::Unwired) {
            if let Kind::Stdio(stdio) = &server.entry.kind {
                journal
                    .left(&content.original.real, &server.entry.trail, &stdio.words())
                    .map_err(|error| Failure::file(&scene.journal, &error))?;
                count += 1;
            }
        }
    }
    render::say(&match count {
        0 => "nothing to remember: no server of that name is unwired".to_owned(),
        _ => format!(
            "{} left as they are; mcp wire --check speaks up when a command changes",
            super::servers(count)
        ),
    });
    Ok(0)
}

/// What is there and not reached.
fn uncovered(scene: &WireContext, files: &[File]) -> Vec<(String, String, Option<PathBuf>)> {
    let here = scene.surroundings();
    let mut found = Vec::new();
    if scene.project.is_some() {
        return found;
    }
    let mut seen: Vec<&str> = Vec::new();
    for client in files.iter().flat_map(|file| &file.clients) {
        if !seen.contains(&client.id.as_str()) {
            seen.push(&client.id);
            for (what, path) in mcp_clients::not_covered(client, &here) {
                found.push((client.name.clone(), what, path));
            }
        }
    }
    // Plugins may be all that there is of a client.
    for client in mcp_clients::all().iter().filter(|client| !seen.contains(&client.id.as_str())) {
        for (what, path) in mcp_clients::not_covered(client, &here) {
            if path.is_some() {
                found.push((client.name.clone(), what, path));
            }
        }
    }
    let windows = "a client of Windows; run mcp there";
    found.extend(
        windows_side().into_iter().map(|path| ("WSL".to_owned(), windows.to_owned(), Some(path))),
    );
    found
}

pub fn not_covered(scene: &WireContext, files: &[File]) -> Vec<String> {
    let mut lines = Vec::new();
    for (client, what, path) in uncovered(scene, files) {
        let at = path.map(|path| format!("{} ", show::path(scene, &path))).unwrap_or_default();
        lines.push(format!(
            "not covered: {}: {at}{}",
            render::plain(&client),
            render::plain(&what)
        ));
    }
    for file in files {
        let Ok(content) = &file.content else {
            continue;
        };
        for server in &content.servers {
            let why = match &server.state {
                State::Remote(_) => "is remote: it runs on another machine, or a port",
                State::NoCommand => {
                    "has no command: the client or an extension starts it by itself"
                }
                _ => continue,
            };
            lines.push(format!(
                "not covered: {}: {} {why}",
                render::plain(&server.client.name),
                render::plain(&server.entry.name)
            ));
        }
    }
    lines
}

pub fn not_covered_json(scene: &WireContext, files: &[File]) -> Vec<Value> {
    let one = |(client, what, path): (String, String, Option<PathBuf>)| json!({"client": client, "what": what, "path": path.map(|path| path.to_string_lossy().into_owned())});
    uncovered(scene, files).into_iter().map(one).collect()
}
