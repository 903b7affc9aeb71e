//! For every server of every file: what it would become.

use std::ffi::OsString;

use mcp_clients::{
    Access, Document, Format, Kind, Line, Proposal, Stdio, Surroundings, Target, propose,
};

use super::known::known;
use super::survey::{Content, File, State, SurveyedServer, WireContext, is_project, variable};
use crate::package_runner::{self, Meaning};

/// What is to be done with one server.
pub enum Step {
    Change(Box<Proposal>),
    /// Stays as it is, and why.
    Stay(String),
    /// Nothing to say: wired already, or not a program.
    Nothing,
}

pub fn step(scene: &WireContext, file: &File, server: &SurveyedServer) -> Step {
    let Kind::Stdio(stdio) = &server.entry.kind else {
        return match &server.state {
            State::Odd(why) => Step::Stay((*why).to_owned()),
            _ => Step::Nothing,
        };
    };
    match &server.state {
        State::Elsewhere => {
            let mut proposal = Proposal::repointed(stdio, &scene.own.text);
            proposal.notes.push(format!("was behind {}, which is not this mcp", stdio.command));
            return Step::Change(Box::new(proposal));
        }
        State::Unwired => {}
        State::Open(wide) => {
            return Step::Stay(format!("is behind mcp run, which {} opens", wide.join(" ")));
        }
        _ => return Step::Nothing,
    }
    let target = Target {
        mcp: &scene.own.text,
        home: &scene.home,
        base: scene.project.as_deref().filter(|_| is_project(&file.found)),
        environment: server.client.environment,
        variable: &variable,
    };
    match propose(stdio, &understand, &known, &target) {
        Ok(proposal) => Step::Change(Box::new(proposal)),
        Err(refusal) => Step::Stay(refusal.why),
    }
}

/// The words of a line as `mcp run` takes them.
fn understand(words: &[String]) -> Line {
    let words: Vec<OsString> = words.iter().map(OsString::from).collect();
    let texts = |words: Vec<OsString>| -> Vec<String> {
        words.into_iter().filter_map(|word| word.into_string().ok()).collect()
    };
    match package_runner::understand(&words) {
        Meaning::Package(line) => match line.with.first() {
            Some(with) => Line::Unclear {
                why: format!(
                    "{} is wanted together with {with}, and mcp installs one package",
                    line.reference
                ),
            },
            None => Line::Package {
                reference: line.reference,
                program: line.program,
                arguments: texts(line.arguments),
            },
        },
        Meaning::Program { words, directory: None } => Line::Program { words: texts(words) },
        // `mcp run` understands the line itself, and shows the directory.
        Meaning::Program { directory: Some(_), .. } => Line::Original,
        Meaning::AsIs { note: None } => Line::Original,
        Meaning::AsIs { note: Some(why) } => Line::Unclear { why },
    }
}

/// Sets how open places are given: one letter for all, or one for each.
pub fn set_access(proposal: &mut Proposal, chosen: &[Access]) {
    let open = proposal.grants.iter_mut().filter(|grant| grant.is_open);
    for (at, grant) in open.enumerate() {
        if let Some(access) = chosen.get(at).or(chosen.last()) {
            grant.access = *access;
        }
    }
}

/// What comes before writing: lists that compare the command of a server.
pub fn allowlists(file: &File, here: &Surroundings<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    for client in &file.clients {
        for (path, format, keys) in mcp_clients::allowlist_files(client, here) {
            let Some(document) = parsed(&path, format) else {
                lines.push(format!(
                    "{} cannot be read; it may say which servers {} starts",
                    path.display(),
                    client.name
                ));
                continue;
            };
            let named: Vec<&str> = keys
                .iter()
                .filter(|key| document.root.field(key).is_some())
                .map(String::as_str)
                .collect();
            if !named.is_empty() {
                lines.push(format!(
                    "{} has {}: where it compares commands, {} refuses the wired ones until they are listed there",
                    path.display(),
                    named.join(" and "),
                    client.name
                ));
            }
        }
    }
    lines
}

fn parsed(path: &std::path::Path, format: Format) -> Option<Document> {
    let original = mcp_clients::read(path).ok()?;
    Document::parse(format, mcp_clients::Bytes::new(&original.bytes)?.text).ok()
}

/// The words before, as people type them.
pub fn line_of(stdio: &Stdio) -> String {
    shell_line(&stdio.words())
}

pub fn shell_line(words: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "@%+=:,./_-${}~*\\".contains(c);
    let one = |word: &String| match !word.is_empty() && word.chars().all(plain) {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    };
    words.iter().map(one).collect::<Vec<_>>().join(" ")
}

/// Values of variables and addresses with keys in them, which have no business on a screen.
pub fn secrets(content: &Content) -> Vec<String> {
    let mut values = Vec::new();
    for server in &content.servers {
        match &server.entry.kind {
            Kind::Stdio(stdio) => {
                values.extend(stdio.env.iter().filter_map(|(_, value)| value.clone()))
            }
            Kind::Remote { url } => values.push(url.clone()),
            _ => {}
        }
    }
    values.retain(|value| value.len() > 3 && !value.starts_with("${"));
    values
}
