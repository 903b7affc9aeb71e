//! How proposals, diffs and tables look.

use std::path::Path;

use mcp_clients::{Grade, Kind, Proposal, Stdio};
use serde_json::{Value, json};
use similar::{ChangeTag, TextDiff};

use super::plan::{line_of, shell_line};
use super::survey::{File, State, SurveyedServer, WireContext};
use crate::render::{self, Paint};

/// A path as people write it.
pub fn path(scene: &WireContext, path: &Path) -> String {
    match path.strip_prefix(&scene.home) {
        Ok(rest) => render::plain(&format!("~{}{}", std::path::MAIN_SEPARATOR, rest.display())),
        Err(_) => render::path(path),
    }
}

/// The line above the servers of a file.
pub fn heading(scene: &WireContext, file: &File, paint: Paint) -> String {
    let names: Vec<&str> = file.clients.iter().map(|client| client.name.as_str()).collect();
    let note = file.found.note.as_ref().map(|note| format!(", {note}")).unwrap_or_default();
    format!(
        "{} {}{}",
        paint.strong(&render::plain(&names.join(", "))),
        path(scene, &file.found.path),
        paint.faint(&format!("{}{note}", grade(file.found.client.grade)))
    )
}

/// Only where the table is less than sure.
pub fn grade(grade: Grade) -> &'static str {
    match grade {
        Grade::Primary => "  (place: read in its source or documentation)",
        Grade::Secondary => "  (place: from tables of other tools)",
        Grade::Conflict => "  (place: sources disagree)",
        _ => "  (place: a guess)",
    }
}

/// One server, before and after.
pub fn proposal(
    server: &SurveyedServer,
    stdio: &Stdio,
    proposal: &Proposal,
    paint: Paint,
) -> String {
    let mut text = format!("  {}\n", paint.strong(&render::plain(&server.entry.name)));
    let mut line = |key: &str, value: String| text += &format!("    {key:<8} {value}\n");
    line("before", paint.bad(&render::plain(&line_of(stdio))));
    line("after", paint.good(&render::plain(&shell_line(&proposal.words(stdio)))));
    if !is_repointed(proposal) {
        line("network", network(proposal, stdio));
    }
    for (name, value) in &proposal.add_env {
        line(
            "env",
            render::plain(&format!(
                "{name}={value} is added, because this client passes on little else"
            )),
        );
    }
    for note in &proposal.notes {
        line("note", paint.warn(&render::plain(note)));
    }
    text
}

fn is_repointed(proposal: &Proposal) -> bool {
    proposal.body.is_empty()
}

/// What is known of the network, or how to find out.
pub fn network(proposal: &Proposal, stdio: &Stdio) -> String {
    let source = proposal.network_source.as_deref().unwrap_or_default();
    match (&proposal.policy, proposal.network.is_empty()) {
        (Some(_), _) => render::plain(&format!("by the policy {source}")),
        (None, false) => render::plain(&format!("{} ({source})", proposal.network.join(", "))),
        (None, true) => {
            let words = proposal.words(stdio);
            format!(
                "none; to find out what it needs: mcp {}  (each refused host is told with the flag for it)",
                render::plain(&shell_line(&words[1..]))
            )
        }
    }
}

/// A diff of two texts; values of variables are not shown.
pub fn diff(title: &str, before: &[u8], after: &[u8], hidden: &[String], paint: Paint) -> String {
    let (before, after) = (String::from_utf8_lossy(before), String::from_utf8_lossy(after));
    let hide = |line: &str| {
        let mut line = line.trim_end_matches(['\r', '\n']).to_owned();
        for value in hidden {
            line = line.replace(value.as_str(), "…");
        }
        render::plain(&line.replace('\t', "    "))
    };
    let diff = TextDiff::from_lines(before.as_ref(), after.as_ref());
    let mut text = format!("{}\n", paint.strong(&format!("--- {title}")));
    for group in diff.grouped_ops(2) {
        let first = group.first().map_or(0, |op| op.old_range().start);
        text += &format!("{}\n", paint.faint(&format!("@@ line {} @@", first + 1)));
        for op in &group {
            for change in diff.iter_changes(op) {
                let line = hide(change.value());
                text += &match change.tag() {
                    ChangeTag::Delete => paint.bad(&format!("-{line}")),
                    ChangeTag::Insert => paint.good(&format!("+{line}")),
                    ChangeTag::Equal => format!(" {line}"),
                };
                text.push('\n');
            }
        }
    }
    text
}

/// One server in the table of `--status`.
pub fn status(server: &SurveyedServer, paint: Paint) -> String {
    let what = match &server.state {
        State::Wired => paint.good("wired"),
        State::Open(wide) => {
            paint.bad(&format!("wired, but opened by {}", render::plain(&wide.join(" "))))
        }
        State::Elsewhere => paint.warn("wired to an mcp that is not this one"),
        State::Unwired => paint.warn("not wired"),
        State::Left => "stays as it is, as you said".to_owned(),
        State::Remote(url) => format!("remote, not covered: {}", render::plain(&host(url))),
        State::NoCommand => {
            "not covered: the client or an extension starts it by itself".to_owned()
        }
        State::Odd(why) => paint.warn(&format!("not covered: {why}")),
    };
    let off = if server.entry.is_off { " (switched off)" } else { "" };
    format!("  {:<24} {what}{off}", render::plain(&server.entry.name))
}

/// Addresses may hold keys: the host is enough.
fn host(url: &str) -> String {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    host.rsplit('@').next().unwrap_or_default().to_owned()
}

/// A server for `--json`.
pub fn server_json(server: &SurveyedServer) -> Value {
    let mut value = json!({
        "name": server.entry.name,
        "keys": server.entry.trail.container,
        "client": server.client.id,
        "line": server.entry.line,
        "state": server.state.word(),
        "off": server.entry.is_off,
    });
    if let Kind::Stdio(stdio) = &server.entry.kind {
        value["before"] = json!(stdio.words());
    }
    match &server.state {
        State::Remote(url) => value["host"] = json!(host(url)),
        State::Open(wide) => value["opened_by"] = json!(wide),
        State::Odd(why) => value["why"] = json!(why),
        _ => {}
    }
    value
}

/// A file for `--json`.
pub fn file_json(file: &File, servers: Vec<Value>) -> Value {
    let clients: Vec<&str> = file.clients.iter().map(|client| client.id.as_str()).collect();
    let mut value = json!({
        "clients": clients,
        "path": file.found.path.to_string_lossy(),
        "grade": file.found.client.grade,
        "servers": servers,
    });
    if let Err(error) = &file.content {
        value["error"] = json!(error.to_string());
    }
    value
}
