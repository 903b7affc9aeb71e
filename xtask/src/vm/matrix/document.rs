//! The matrix as it stands in docs/security/hosts.md.
//!
//! Hosts on which every control comes out alike share a letter, so that one table has a line per host
//! and another a line per control.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::Cell;
use super::cell::{Controls, Doctor, Tried};
use super::host::HostKind;
use crate::Result;
use crate::vm::document::Marks;
use crate::vm::guest::User;
use crate::vm::kernel::Kernel;

const MARKS: Marks = Marks {
    begin: "<!-- host-matrix:begin (cargo xtask vm matrix --write) -->",
    end: "<!-- host-matrix:end -->",
};

const HOSTS: &str = "| Linux | host | as a user | tests as a user | as root | tests as root |";
const CONTROLS: &str = "| control |";

const LETTERS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// What a run came to, apart from the tests.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct CellOutcome {
    controls: Controls,
    default: i32,
}

pub fn render(known: &[(Cell, Tried)]) -> String {
    let mut outcomes: Vec<CellOutcome> = Vec::new();
    let mut letters: BTreeMap<Cell, usize> = BTreeMap::new();
    for (cell, tried) in known {
        let outcome = CellOutcome { controls: tried.controls.clone(), default: tried.default };
        let place = outcomes.iter().position(|it| *it == outcome).unwrap_or_else(|| {
            outcomes.push(outcome);
            outcomes.len() - 1
        });
        letters.insert(*cell, place);
    }
    hosts(known, &letters) + "\n" + &controls(&outcomes) + "\n" + &commits(known)
}

/// What was tried is not always of today.
fn commits(known: &[(Cell, Tried)]) -> String {
    let mut commits: Vec<&str> = known.iter().map(|(_, tried)| tried.commit.as_str()).collect();
    commits.sort_unstable();
    commits.dedup();
    format!("The letters are of the commits {}.\n", commits.join(", "))
}

fn letter(place: usize) -> &'static str {
    LETTERS.get(place..=place).unwrap_or("?")
}

fn hosts(known: &[(Cell, Tried)], letters: &BTreeMap<Cell, usize>) -> String {
    let mut text = format!("{HOSTS}\n|---|---|---|---|---|---|\n");
    for kernel in Kernel::ALL {
        for kind in HostKind::ALL {
            let cell = |user| Cell { kernel, kind, user };
            let find = |user| known.iter().find(|(it, _)| *it == cell(user));
            let found = [find(User::Ordinary), find(User::Root)];
            let release = found.iter().flatten().map(|(_, tried)| tried.release.as_str()).next();
            let _ = write!(text, "| {} | {} |", release.unwrap_or(kernel.name()), kind.describe());
            for entry in found {
                let _ = match entry {
                    Some((cell, tried)) => {
                        let place = letters.get(cell).copied().unwrap_or(usize::MAX);
                        write!(text, " {}{} | {} |", letter(place), doubt(tried), tried.told())
                    }
                    None => write!(text, " not tried | – |"),
                };
            }
            text.push('\n');
        }
    }
    text
}

/// What `doctor` counts as enforced or not.
const BOUNDARIES: [&str; 4] = ["filesystem", "network", "process_isolation", "privileges"];

/// Where `doctor` and a run do not agree. A run may start with boundaries that are partly enforced.
fn doubt(tried: &Tried) -> &'static str {
    let is_less = match &tried.controls {
        Controls::Refused(_) => true,
        Controls::Reported(controls) => {
            BOUNDARIES.iter().any(|name| controls.get(*name).is_some_and(|it| it != "enforced"))
        }
    };
    match (tried.doctor, tried.default) {
        (Doctor::Enforced, 0) | (Doctor::NotEnforced, 125) => "",
        (Doctor::NotEnforced, 0) if is_less => "",
        (Doctor::NotEnforced, 0) => " (doctor: not enforced)",
        (Doctor::Enforced, _) => " (doctor: enforced)",
        (Doctor::Silent | Doctor::NotEnforced, _) => " (doctor: no answer)",
    }
}

fn controls(outcomes: &[CellOutcome]) -> String {
    let mut text = CONTROLS.to_owned();
    for place in 0..outcomes.len() {
        let _ = write!(text, " {} |", letter(place));
    }
    text += "\n|---|";
    text += &"---|".repeat(outcomes.len());
    text += "\n| *with the default policy* |";
    for outcome in outcomes {
        let _ = match outcome.default {
            0 => write!(text, " runs |"),
            code => write!(text, " exit {code} |"),
        };
    }
    text.push('\n');
    let mut names: Vec<&String> = Vec::new();
    for outcome in outcomes {
        if let Controls::Reported(controls) = &outcome.controls {
            names.extend(controls.keys().filter(|name| !names.contains(name)).collect::<Vec<_>>());
        }
    }
    for name in names {
        let _ = write!(text, "| {} |", name.replace('_', " "));
        for outcome in outcomes {
            let status = match &outcome.controls {
                Controls::Refused(_) => "–",
                Controls::Reported(controls) => {
                    controls.get(name).map_or("–", |status| match status.as_str() {
                        "not_requested" => "–",
                        "unavailable" => "no",
                        other => other,
                    })
                }
            };
            let _ = write!(text, " {status} |");
        }
        text.push('\n');
    }
    for (place, outcome) in outcomes.iter().enumerate() {
        if let Controls::Refused(why) = &outcome.controls {
            let why = why.trim_start_matches("mcp: ").replace('|', "\\|");
            let _ =
                write!(text, "\n{}: nothing is run, whatever is asked for: {why}\n", letter(place));
        }
    }
    text
}

pub fn replaced(document: &str, table: &str) -> Result<String> {
    MARKS.replaced(document, table)
}

/// Whether what stands between the marks can have been made by [`render`]: every kind of host on
/// every kernel, and every letter explained.
pub fn check(document: &str) -> Result<()> {
    let inside = MARKS.between(document)?;
    let rows = |head: &str| -> Vec<Vec<&str>> {
        let lines = inside.lines().skip_while(|line| !line.starts_with(head));
        lines.take_while(|line| line.starts_with('|')).map(fields).collect()
    };
    let (hosts, controls) = (rows(HOSTS), rows(CONTROLS));
    let expected = 2 + Kernel::ALL.len() * HostKind::ALL.len();
    if hosts.len() != expected || hosts.iter().any(|row| row.len() != 6) {
        return Err(format!("{} lines of hosts, {expected} are expected", hosts.len()).into());
    }
    let Some(letters) = controls.first().map(|head| &head[1..]) else {
        return Err("no table of controls".into());
    };
    if let Some(row) = controls.iter().find(|row| row.len() != letters.len() + 1) {
        return Err(format!("{row:?}: {} columns are expected", letters.len() + 1).into());
    }
    for row in &hosts[2..] {
        for outcome in [row[2], row[4]] {
            let letter = outcome.split_whitespace().next().unwrap_or_default();
            if outcome != "not tried" && !letters.contains(&letter) {
                return Err(format!("{row:?}: {letter} is not explained").into());
            }
        }
    }
    Ok(())
}

fn fields(line: &str) -> Vec<&str> {
    line.trim_matches('|').split('|').map(str::trim).collect()
}

#[cfg(test)]
mod tests {
    use super::super::suite::{MatrixSuite, Suites};
    use super::*;

    fn tried(controls: Controls, default: i32) -> Tried {
        let suite = MatrixSuite { passed: 9, skipped: 1, failed: Vec::new() };
        let results = BTreeMap::from([("exec".to_owned(), suite)]);
        Tried {
            stage: "x".to_owned(),
            commit: "abc".to_owned(),
            release: "6.1.0".to_owned(),
            default,
            controls,
            doctor: if default == 0 { Doctor::Enforced } else { Doctor::NotEnforced },
            suites: Some(Suites { commit: "abc".to_owned(), repeated: None, results }),
        }
    }

    fn known() -> Vec<(Cell, Tried)> {
        let status = |name: &str, status: &str| (name.to_owned(), status.to_owned());
        let reported = Controls::Reported(BTreeMap::from([
            status("filesystem", "enforced"),
            status("cpu", "unavailable"),
        ]));
        let refused = Controls::Refused("mcp: no user namespaces | sorry".to_owned());
        let cell = |kind, user| Cell { kernel: Kernel::V6_1, kind, user };
        vec![
            (cell(HostKind::Plain, User::Ordinary), tried(reported.clone(), 0)),
            (cell(HostKind::Plain, User::Root), tried(reported, 0)),
            (cell(HostKind::NoUserNamespaces, User::Ordinary), tried(refused, 125)),
        ]
    }

    #[test]
    fn like_hosts_share_a_letter() {
        let table = render(&known());
        let told = "exec: 8 passed, 1 skipped; at abc";
        let line = format!("| 6.1.0 | as it comes | A | {told} | A | {told} |");
        assert!(table.contains(&line), "{table}");
        assert!(table.contains(&format!("| B | {told} | not tried | – |")), "{table}");
        assert!(table.contains("| filesystem | enforced | – |"), "{table}");
        assert!(table.contains("| cpu | no | – |"), "{table}");
        assert!(table.contains("B: nothing is run, whatever is asked for: no user namespaces \\|"));
    }

    #[test]
    fn what_was_written_passes_the_check_and_damage_does_not() {
        let document = format!("before\n{}\nold\n{}\nafter\n", MARKS.begin, MARKS.end);
        assert!(check(&document).is_err());
        let written = replaced(&document, &render(&known())).unwrap();
        check(&written).unwrap();
        assert!(written.starts_with("before\n") && written.ends_with("\nafter\n"));
        assert!(check(&written.replace("comes | A |", "comes | Z |")).is_err());
        assert!(check(&written.replace("| as it comes |", "|")).is_err());
        assert!(replaced("no marks", "").is_err());
    }
}
