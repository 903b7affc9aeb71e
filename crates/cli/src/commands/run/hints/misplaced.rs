//! Flags of ours after the command: they go to the command.
//!
//! A command may have a flag of the same name, so this is told after a failure only, of a short flag only where what
//! follows it is what ours takes, and not of programs of the system, which have short flags for everything.

use std::path::Path;

use mcp_policy::NetRule;

use super::facts::Facts;
use super::{Hint, Runs, verbs};
use crate::args::words_of_run;
use crate::commands::run::quoted;
use crate::commands::run::typed::line::run_with;

const LONG: &[&str] = &[
    "--allow-net",
    "--allow-unix",
    "--env",
    "--env-file",
    "--max-memory",
    "--read",
    "--secret",
    "--unprotect",
    "--write",
];

pub fn after(facts: &Facts) -> Option<Hint> {
    // As they were typed: `npx` where a package runs.
    let (_, typed) = words_of_run();
    let typed: Vec<String> = typed.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let (first, words) = typed.split_first()?;
    let at = (0..words.len()).find(|at| is_ours(words, *at, facts))?;
    let flag = &words[at];
    let value = words.get(at + 1).filter(|value| !value.starts_with('-'));
    // The value of a variable may be a secret.
    let value = value.map(|value| match value.split_once('=') {
        Some((name, _)) => format!(" {name}=…"),
        None => format!(" {}", quoted(value.as_ref())),
    });
    let run = run_with(&[format!("{flag}{}", value.unwrap_or_default())]);
    Some(Hint::new(
        flag,
        format!(
            "{flag} after the command goes to the command; if it was meant for mcp, it comes first: {run} {} …",
            quoted(first.as_ref())
        ),
    ))
}

fn is_ours(words: &[String], at: usize, facts: &Facts) -> bool {
    let flag = words[at].as_str();
    if LONG.contains(&flag) {
        return true;
    }
    let is_of_system = facts.runs == Runs::Command
        && (facts.is_of_system || verbs::INTERPRETERS.contains(&facts.program.as_str()));
    let Some(value) = words.get(at + 1).filter(|_| !is_of_system) else {
        return false;
    };
    match flag {
        "-r" | "-w" => Path::new(value).exists(),
        "-n" => value.contains('.') && value.parse::<NetRule>().is_ok(),
        _ => false,
    }
}
