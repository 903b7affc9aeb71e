//! What one round comes to as observations: places, destinations, variables, limits.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use mcp_learn::{Concern, Evidence, Grant, HostSeen, Observations, VariableSeen, is_secret_name};
use mcp_sandbox::{Ending, HOME, Report};

use super::host::{Host, OwnHome};
use super::known::Known;
use super::round::Outcome;
use crate::render;

/// Lines about one kind of thing.
const MOST: usize = 5;
/// Entries of a granted directory that are looked through for credentials.
const MOST_ENTRIES: usize = 20_000;
const DEEPEST: usize = 8;

pub struct Seen {
    pub observations: Observations,
    /// What a person should know, and no line of a policy can say.
    pub notes: Vec<String>,
}

pub fn observations(outcome: &Outcome, granted: &[Grant], host: &Host) -> Seen {
    let Outcome { report, phases, .. } = outcome;
    let missing = report.watched.as_ref().map_or(&[][..], |watched| &watched.missing);
    let observations = Observations {
        paths: host.seen(missing, phases, granted),
        hosts: hosts(report),
        variables: variables(report),
        ..Observations::default()
    };
    let mut notes = notes(report, host.home.as_deref().filter(|_| host.own == OwnHome::Apart));
    notes.extend(host.made_in_home(missing).take(MOST).map(|path| {
        format!(
            "it makes {0} in your home, which is not proposed as a whole; make it first (mkdir or touch {0}), and learn again",
            render::path(&path)
        )
    }));
    Seen { observations, notes }
}

fn hosts(report: &Report) -> Vec<HostSeen> {
    let refused = report.network.iter().flat_map(|network| &network.refused);
    let host = |(to, refusal): (&String, &mcp_sandbox::RefusedDestination)| {
        // The flag names the address where the name is allowed and its address is not.
        let flag = refusal.flag.as_deref().and_then(|flag| flag.strip_prefix("--allow-net "));
        let destination = flag.map_or(to.as_str(), |rule| rule.trim_matches('\''));
        let evidence = Evidence { times: refusal.times, first: "a refused connection".to_owned() };
        HostSeen { destination: destination.to_owned(), evidence }
    };
    refused.map(host).collect()
}

fn variables(report: &Report) -> Vec<VariableSeen> {
    let variable = |name: &String| {
        let value = std::env::var(name).unwrap_or_default();
        let concern = mcp_guard::environment::judge(name, &value).map(|held| match held.concern {
            mcp_guard::environment::Concern::Injection => Concern::Injection,
            _ => Concern::Credential,
        });
        let evidence = Evidence { times: 1, first: "its own files".to_owned() };
        VariableSeen { name: name.clone(), concern, evidence }
    };
    report.unpassed.iter().map(variable).collect()
}

fn notes(report: &Report, home: Option<&Path>) -> Vec<String> {
    let mut notes = Vec::new();
    match &report.watched {
        Some(watched) => {
            notes.extend(watched.cut_off.clone());
            if watched.not_utf8 > 0 {
                notes.push(format!(
                    "{} missing places have names that are not UTF-8, which no policy can hold: give the directory that they lie in",
                    watched.not_utf8
                ));
            }
            notes.extend(in_its_home(watched, home));
        }
        None => notes.push(unwatched().to_owned()),
    }
    if report.blocked_processes > 0 {
        notes.push(format!(
            "{} new processes were refused, because --no-subprocess was given",
            report.blocked_processes
        ));
    }
    if report.ending == Ending::MemoryLimit || report.usage.memory_kills > 0 {
        notes.push("the memory limit ended it: give --max-memory more".to_owned());
    }
    if report.usage.refused_processes > 0 {
        notes.push("the limit of processes refused some: give --max-pids more".to_owned());
    }
    notes
}

fn unwatched() -> &'static str {
    if cfg!(target_os = "linux") {
        "files were not watched: another sandbox around this one listens already, or the kernel is too old; what is proposed \
         rests on the network, the limits and the exit"
    } else if cfg!(target_os = "macos") {
        "files were not watched: /usr/bin/log could not be started, or there is no Seatbelt for this run; what is proposed \
         rests on the network, the limits and the exit"
    } else {
        "files are not watched on this system; what is proposed rests on the network, the limits and the exit"
    }
}

/// Its HOME is empty and private: what the caller's home has there is not found, and no grant puts it there.
fn in_its_home(watched: &mcp_sandbox::Watched, home: Option<&Path>) -> Vec<String> {
    let Some(home) = home else { return Vec::new() };
    let own = watched.missing.iter().filter_map(|missing| {
        let below = Path::new(&missing.path).strip_prefix(HOME).ok()?;
        let there = home.join(below);
        (!below.as_os_str().is_empty() && there.symlink_metadata().is_ok()).then_some(there)
    });
    let note = |path: std::path::PathBuf| {
        format!(
            "it looked in its own HOME, which is kept apart, for what is in yours: {}; put it there, or give the place by an \
             option of the program",
            render::path(&path)
        )
    };
    own.take(MOST).map(note).collect()
}

/// Credentials in a granted directory.
#[derive(Debug, Default)]
pub struct SecretsBelow {
    pub found: Vec<PathBuf>,
    /// There was more than is looked through.
    pub is_cut_off: bool,
}

/// By their names and by what they are. The look is bounded, and goes from the top down.
pub fn secrets_below(directory: &Path, known: &Known) -> SecretsBelow {
    let mut secrets = SecretsBelow::default();
    let mut left = MOST_ENTRIES;
    let mut pending = VecDeque::from([(directory.to_owned(), 0)]);
    while let Some((directory, depth)) = pending.pop_front() {
        for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
            if left == 0 {
                secrets.is_cut_off = true;
                break;
            }
            left -= 1;
            if is_secret_name(&entry.file_name().to_string_lossy())
                || known.is_secret(&entry.path())
            {
                secrets.found.push(entry.path());
            } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                match depth < DEEPEST {
                    true => pending.push_back((entry.path(), depth + 1)),
                    false => secrets.is_cut_off = true,
                }
            }
        }
    }
    secrets.found.sort();
    secrets
}
