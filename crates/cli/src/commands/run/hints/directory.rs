//! The directory that the command starts in: an empty HOME where the current one is not granted.

use mcp_sandbox::Report;

use super::facts::{Argument, Facts, Kind, Role, Starts, below_home};
use super::shown::typed;
use super::{Hint, Runs, verbs};

const ABOUT: &str = "the start in an empty HOME";

/// Told before the start where the program looks at its directory, or writes into it.
pub fn before(facts: &Facts) -> Option<Hint> {
    if !is_moved(facts) {
        return None;
    }
    let is_new_here = |argument: &&Argument| {
        argument.role == Role::Written
            && argument.kind == Kind::New
            && argument.path.parent() == Some(&facts.here)
    };
    if let Some(argument) = facts.arguments.iter().find(is_new_here) {
        return Some(Hint::new(
            ABOUT,
            format!(
                "{} is made in an empty HOME, which is gone after the run (add -w {} to write here)",
                argument.word,
                typed(&facts.here, facts)
            ),
        ));
    }
    let names_another = facts.arguments.iter().any(|argument| argument.role == Role::Path);
    let looks = verbs::LOOKERS.contains(&facts.program.as_str()) && !names_another;
    looks.then(|| empty(facts))
}

/// A command that failed may have looked for something there.
pub fn after(facts: &Facts) -> Option<Hint> {
    let program = facts.program.as_str();
    // A tool of the system that names no file here has failed for another reason.
    let looks = verbs::LOOKERS.contains(&program) || verbs::INTERPRETERS.contains(&program);
    (is_moved(facts) && (looks || !facts.is_of_system)).then(|| empty(facts))
}

/// What was written there is gone, however the command ended.
pub fn lost(facts: &Facts, report: &Report) -> Option<Hint> {
    if facts.starts != Starts::InEmptyHome {
        return lost_by_name(facts, report);
    }
    let first = report.lost.first()?;
    let more = if report.lost.len() > 1 { " and more" } else { "" };
    let were = if report.lost.len() > 1 { "were" } else { "was" };
    Some(Hint::new(
        ABOUT,
        format!(
            "{first}{more} {were} written into a HOME that is gone now (add -w {} to write here, or --home NAME to keep \
             HOME)",
            typed(&facts.here, facts)
        ),
    ))
}

/// A command that starts elsewhere writes all kinds of things into a HOME: what its text names was meant to stay.
fn lost_by_name(facts: &Facts, report: &Report) -> Option<Hint> {
    let written = facts.arguments.iter().filter(|argument| argument.role == Role::Written);
    let is_lost = |argument: &&Argument| {
        let first = below_home(&argument.word).and_then(|below| below.split('/').next());
        first.is_some_and(|first| report.lost.iter().any(|lost| lost == first))
    };
    let word = &written.filter(|argument| argument.kind == Kind::New).find(is_lost)?.word;
    Some(Hint::new(
        ABOUT,
        format!("{word} was written into a HOME that is gone now (add --home NAME to keep HOME)"),
    ))
}

fn is_moved(facts: &Facts) -> bool {
    facts.runs == Runs::Command && facts.starts == Starts::InEmptyHome
}

fn empty(facts: &Facts) -> Hint {
    Hint::new(
        ABOUT,
        format!(
            "{} starts in an empty HOME, because the current directory is not granted (add -r . to read it, -w . to \
             write)",
            facts.program
        ),
    )
}
