//! Hints: what a person most likely meant to grant, told in one line each with what to type.
//!
//! A hint is true or absent. Each is a pure function over [`Facts`], which are looked up once, and over the report.
//! Before the start: arguments that name files the command cannot see, a start in an empty HOME that the command
//! will look or write into. After a failure: limits, writes to what can only be read, variables that the server's own
//! files name and that were not passed on, services of the host's loopback, what the system's log says was refused. Nothing is told twice, nothing
//! where all is well, and nothing with `--quiet`.

mod arguments;
mod directory;
mod facts;
mod limits;
mod loopback;
mod misplaced;
mod read_only;
mod refused;
mod shown;
mod variables;
mod verbs;

use std::collections::BTreeSet;

use mcp_policy::Bytes;
use mcp_sandbox::session::CommandView;
use mcp_sandbox::{Ending, Report};
use serde::{Deserialize, Serialize};

use self::facts::Facts;
use self::limits::Evidence;
use crate::render;

/// How many lines a start or an end may bring: the rest would not be read.
const MOST: usize = 6;

/// One line, and what it is about: of two about the same thing the first is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hint {
    about: String,
    line: String,
}

impl Hint {
    fn new(about: impl Into<String>, line: impl Into<String>) -> Hint {
        Hint { about: about.into(), line: line.into() }
    }
}

/// Variables that the server's own files name, that the user's environment has, and that were not passed on.
pub fn unpassed(runs: Runs, scene: CommandView<'_>) -> Vec<String> {
    variables::named(&Facts::look(runs, scene).server).into_iter().collect()
}

/// What was told about one run.
pub struct Hints {
    facts: Option<Facts>,
    told: BTreeSet<String>,
    kinds: BTreeSet<&'static str>,
    listener: Listener,
}

/// Who hears the hints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Listener {
    Person,
    /// The lines are kept for it.
    Program(Vec<String>),
}

/// What one `mcp` tells another that puts it into JSON.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Collected {
    pub lines: Vec<String>,
    unseen_memory_limit: Option<u64>,
}

impl Collected {
    /// With what the command itself says of its memory: the kernel tells a refusal to the process alone.
    pub fn with_words_of_command(mut self, stderr: &str) -> Vec<String> {
        let limit = self.unseen_memory_limit.map(Bytes);
        let is_told = self.lines.iter().any(|line| line.contains("--max-memory"));
        if let Some(limit) = limit.filter(|_| !is_told) {
            self.lines.extend(limits::said(limit, stderr));
        }
        self.lines
    }
}

/// What kind of thing runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runs {
    Command,
    Package,
    /// A text for a shell, in a project that can be written.
    Agent,
}

impl Hints {
    /// Silent ones, for `--quiet`.
    pub fn none() -> Hints {
        let (told, kinds) = (BTreeSet::new(), BTreeSet::new());
        Hints { facts: None, told, kinds, listener: Listener::Person }
    }

    pub fn new(runs: Runs, view: CommandView<'_>, listener: Listener) -> Hints {
        Hints { facts: Some(Facts::look(runs, view)), listener, ..Hints::none() }
    }

    /// For the program that asked for them: the lines, and a memory limit whose refusals mcp does not see.
    pub fn collected(&self, report: &Report) -> Collected {
        let lines = match &self.listener {
            Listener::Person => Vec::new(),
            Listener::Program(lines) => lines.clone(),
        };
        let limits = self.facts.as_ref().map(|facts| &facts.limits);
        let limit = limits.and_then(|limits| limits::unseen_memory(limits, report));
        Collected { lines, unseen_memory_limit: limit.map(|limit| limit.0) }
    }

    /// What was told after a failure, each kind by one word of ours: for the log.
    pub fn about(&self) -> Vec<&'static str> {
        self.kinds.iter().copied().collect()
    }

    pub fn before(&mut self) {
        let Some(facts) = &self.facts else { return };
        let mut hints = of_kind("arguments", arguments::before(facts));
        hints.extend(of_kind("directory", directory::before(facts)));
        self.tell(hints);
    }

    pub fn after(&mut self, report: &Report) {
        let Some(facts) = &self.facts else { return };
        let mut hints = of_kind("limits", limits::after(&facts.limits, report));
        hints.extend(of_kind("directory", directory::lost(facts, report)));
        let failed = has_failed(facts, report);
        if failed {
            hints.extend(of_kind("refused", refused::after(facts, report)));
            hints.extend(of_kind("arguments", misplaced::after(facts)));
            hints.extend(of_kind("arguments", arguments::after(facts)));
            hints.extend(of_kind("variables", variables::after(facts)));
            hints.extend(of_kind("loopback", loopback::after(facts, report)));
        }
        // What is less sure is told where nothing else explains the failure.
        if hints.is_empty() && self.told.is_empty() {
            let evidence = if failed { Evidence::Failure } else { Evidence::Figures };
            hints.extend(of_kind("limits", limits::perhaps(&facts.limits, report, evidence)));
        }
        if failed && hints.is_empty() && self.told.is_empty() && !is_explained(report) {
            hints.extend(of_kind("directory", directory::after(facts)));
            if hints.is_empty() {
                hints.extend(of_kind("read-only", read_only::after(facts)));
            }
        }
        self.tell(hints);
        if !failed && report.ending == Ending::Exited(0) {
            self.kinds.clear();
        }
    }

    fn tell(&mut self, hints: Vec<(&'static str, Hint)>) {
        let is_new = |(_, hint): &(&str, Hint)| self.told.insert(hint.about.clone());
        let news: Vec<_> = hints.into_iter().filter(is_new).collect();
        for (kind, hint) in news.into_iter().take(MOST) {
            self.kinds.insert(kind);
            match &mut self.listener {
                Listener::Person => render::say(&render::plain(&hint.line)),
                Listener::Program(lines) => lines.push(render::plain(&hint.line)),
            }
        }
    }
}

fn of_kind(kind: &'static str, hints: impl IntoIterator<Item = Hint>) -> Vec<(&'static str, Hint)> {
    hints.into_iter().map(|hint| (kind, hint)).collect()
}

/// Whether the command ended as one that could not do its work. Some programs answer by their exit code, and a signal
/// that a client or a terminal sends is a way to end.
fn has_failed(facts: &Facts, report: &Report) -> bool {
    match report.ending {
        Ending::Exited(0) => false,
        Ending::Exited(1) => !verbs::ANSWERS.contains(&facts.program.as_str()),
        Ending::Exited(_) => true,
        Ending::Signaled(signal) => !ENDS.contains(&signal),
        _ => false,
    }
}

/// Whether another line has told of something that was refused: that is the likelier cause.
fn is_explained(report: &Report) -> bool {
    let is_blocked = report.network.as_ref().is_some_and(|network| !network.refused.is_empty());
    is_blocked
        || report.blocked_processes > 0
        || !report.kept.is_empty()
        || !report.undone.is_empty()
}

/// SIGHUP, SIGINT, SIGKILL, SIGPIPE and SIGTERM, by their numbers on every Unix.
const ENDS: [i32; 5] = [1, 2, 9, 13, 15];
