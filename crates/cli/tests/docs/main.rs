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
mod names;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

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

/// These install the same packages, so one reader reads them one after the other. Every other document has a reader of its own.
const BY_ONE_READER: &[&str] = &["README.md", "PACKAGES.md"];

/// Readers at a time: their commands wait for registries and for servers rather than compute.
const AT_ONCE: usize = 4;

fn readers(documents: Vec<PathBuf>) -> Vec<Vec<PathBuf>> {
    let is_shared = |document: &PathBuf| BY_ONE_READER.iter().any(|name| document.ends_with(name));
    let (shared, own): (Vec<_>, Vec<_>) = documents.into_iter().partition(is_shared);
    assert_eq!(shared.len(), BY_ONE_READER.len(), "{shared:?}");
    std::iter::once(shared).chain(own.into_iter().map(|document| vec![document])).collect()
}

/// What fails in the documents of each reader, and how many commands were run. Each reader has a home of their own.
fn run_all(readers: &[Vec<PathBuf>]) -> (Vec<String>, usize) {
    let next = AtomicUsize::new(0);
    let work = || {
        let (mut failed, mut ran) = (Vec::new(), 0);
        while let Some(documents) = readers.get(next.fetch_add(1, Ordering::Relaxed)) {
            let home = Home::new();
            for document in documents {
                let started = Instant::now();
                failed.extend(failures(document, &home));
                println!("{}: {:.1?}", document.display(), started.elapsed());
            }
            ran += home.ran();
        }
        (failed, ran)
    };
    let parts: Vec<(Vec<String>, usize)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).collect()
    });
    let ran = parts.iter().map(|(_, ran)| ran).sum();
    (parts.into_iter().flat_map(|(failed, _)| failed).collect(), ran)
}

#[test]
fn every_command_in_the_documents_works() {
    require!("userns");
    let is_for_users = |document: &PathBuf| {
        let name = document.file_name().unwrap().to_str().unwrap();
        !FOR_CONTRIBUTORS.contains(&name)
    };
    let documents: Vec<PathBuf> = documents().into_iter().filter(is_for_users).collect();
    assert!(documents.len() > 5, "only {} documents were found", documents.len());
    let (failed, ran) = run_all(&readers(documents));
    assert!(failed.is_empty(), "{} of {ran} failed:\n{}", failed.len(), failed.join("\n\n"));
    assert!(ran > 30, "only {ran} commands were run: are the blocks still marked `sh`?");
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
