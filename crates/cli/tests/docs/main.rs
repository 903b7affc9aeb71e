//! Every command that README.md and docs/ show is run as it stands, in a home of its own.
//!
//! A line of an `sh` block is a command and succeeds; a JSON block with a `command` is an entry of a client's configuration,
//! and the server it starts answers. What another check runs (cargo, packages of the release) is listed in `ELSEWHERE`.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../support/mod.rs"]
mod support;

mod blocks;
mod flags;
mod home;

use std::path::{Path, PathBuf};

use blocks::{Block, Language, blocks};
use home::Home;

/// Commands that are not run here, and what runs them.
const ELSEWHERE: &[(&str, &str)] = &[
    ("cargo ", ".ci/run: build, tests, xtasks"),
    (".ci/run", "itself"),
    ("tools/cross ", ".ci/run"),
];

/// Documents for contributors, whose commands are those of `.ci/run` and of machines with other kernels.
const FOR_CONTRIBUTORS: &[&str] = &["CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"];

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// README.md and every page below docs/.
fn documents() -> Vec<PathBuf> {
    let mut found = vec![top().join("README.md")];
    let mut pending = vec![top().join("docs")];
    while let Some(directory) = pending.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn is_run_elsewhere(command: &str) -> bool {
    ELSEWHERE.iter().any(|(prefix, _)| command.starts_with(prefix))
}

/// What fails in one document, with the place of each command.
fn failures(document: &Path, home: &Home) -> Vec<String> {
    let text = std::fs::read_to_string(document).unwrap();
    let mut failures = Vec::new();
    for Block { language, line, text } in blocks(&text) {
        let place = |offset: usize| format!("{}:{}", document.display(), line + offset);
        match language {
            Language::Shell => {
                for line in blocks::commands(&text) {
                    if !is_run_elsewhere(line.command)
                        && let Err(why) = home.shell(line.command, line.exit)
                    {
                        failures.push(format!("{}: {}\n{why}", place(line.number), line.command));
                    }
                }
            }
            Language::Json => {
                if let Some(entry) = blocks::client_entry(&text)
                    && entry.command == "mcp"
                    && let Err(why) = home.server(&entry)
                {
                    failures.push(format!("{}: {text}\n{why}", place(0)));
                }
            }
            Language::Toml => {
                let is_servers = text.contains("[servers.");
                let checked = if is_servers { home.servers(&text) } else { home.policy(&text) };
                if let Err(why) = checked {
                    failures.push(format!("{}: {text}\n{why}", place(0)));
                }
            }
            Language::Other => {}
        }
    }
    failures
}

#[test]
fn every_command_in_the_documents_works() {
    require!("userns");
    let home = Home::new();
    let mut failed = Vec::new();
    let mut seen = 0;
    for document in documents() {
        let name = document.file_name().unwrap().to_str().unwrap().to_owned();
        if FOR_CONTRIBUTORS.contains(&name.as_str()) {
            continue;
        }
        failed.extend(failures(&document, &home));
        seen += 1;
    }
    assert!(seen > 5, "only {seen} documents were found");
    assert!(
        failed.is_empty(),
        "{} of {} failed:\n{}",
        failed.len(),
        home.ran(),
        failed.join("\n\n")
    );
    assert!(
        home.ran() > 30,
        "only {} commands were run: are the blocks still marked `sh`?",
        home.ran()
    );
}

#[test]
fn links_between_documents_lead_somewhere() {
    let mut broken = Vec::new();
    for document in documents().into_iter().chain([top().join("CONTRIBUTING.md")]) {
        let text = std::fs::read_to_string(&document).unwrap();
        for link in blocks::links(&text) {
            let path = link.split('#').next().unwrap();
            if path.is_empty() || path.contains("://") {
                continue;
            }
            if !document.parent().unwrap().join(path).exists() {
                broken.push(format!("{}: {link}", document.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{broken:#?}");
}
