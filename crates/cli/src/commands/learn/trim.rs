//! Which lines are needed: without one, some call fails or answers otherwise, or what it writes goes elsewhere.

use mcp_learn::{Draft, Grant};
use mcp_sandbox::UsedGrant;

use super::drive::{Answer, statuses};
use super::round::{Outcome, Partner, Rounds};

/// Knows what answers look like with the whole policy.
pub struct Trimmer<'a> {
    rounds: &'a Rounds<'a>,
    expected: Vec<Answer>,
    /// For each answer, what callers depend on. `None` where it is another each time (a clock, a counter): such a call is
    /// only expected to answer as well.
    steady: Vec<Option<String>>,
    used: Vec<UsedGrant>,
}

impl<'a> Trimmer<'a> {
    /// `second` is another outcome with the same policy as `first`.
    pub fn new(rounds: &'a Rounds<'a>, first: &[Answer], second: &Outcome) -> Trimmer<'a> {
        let mut trimmer = Trimmer {
            rounds,
            expected: second.answers.clone(),
            steady: second.answers.iter().map(|answer| Some(answer.substance())).collect(),
            used: used(second).to_vec(),
        };
        trimmer.forget_what_changes(first);
        trimmer
    }

    /// Tries it. A command that does not even start without the line needs it.
    pub fn is_needed(&mut self, draft: &Draft, grant: &Grant) -> bool {
        if self.is_lost_without(grant) {
            return true;
        }
        let mut without = draft.clone();
        without.remove(grant);
        let Ok(outcome) = self.rounds.run(&without.to_toml(), Partner::Ourselves) else {
            return true;
        };
        if statuses(&outcome.answers) != statuses(&self.expected)
            || self.writes_elsewhere(grant, &outcome)
        {
            return true;
        }
        if self.is_as_expected(&outcome.answers) {
            return false;
        }
        // The control: with the line it may answer otherwise as well, by now.
        let Ok(control) = self.rounds.run(&draft.to_toml(), Partner::Ourselves) else {
            return true;
        };
        self.forget_what_changes(&control.answers);
        !self.is_as_expected(&outcome.answers)
    }

    fn is_as_expected(&self, answers: &[Answer]) -> bool {
        let as_before = |(steady, answer): (&Option<String>, &Answer)| {
            steady.as_ref().is_none_or(|substance| *substance == answer.substance())
        };
        self.steady.iter().zip(answers).all(as_before)
    }

    fn forget_what_changes(&mut self, answers: &[Answer]) {
        for (at, steady) in self.steady.iter_mut().enumerate() {
            if steady.is_some() && *steady != answers.get(at).map(Answer::substance) {
                *steady = None;
            }
        }
    }

    /// A variable may say where a server keeps its data: without it the answers are the same, and the data is somewhere else.
    fn writes_elsewhere(&self, without: &Grant, outcome: &Outcome) -> bool {
        let is_written = |path: &str| used(outcome).iter().any(|u| u.written && u.path == path);
        let itself = match without {
            Grant::Write(path) => path.to_str(),
            _ => None,
        };
        let before = self.used.iter().filter(|used| used.written);
        before.map(|used| used.path.as_str()).any(|path| Some(path) != itself && !is_written(path))
    }

    /// Without a grant in the host's temporary space the command writes into its own, answers the same, and it is gone.
    fn is_lost_without(&self, grant: &Grant) -> bool {
        let Grant::Write(path) = grant else { return false };
        let is_temporary = ["/tmp", "/var/tmp"].iter().any(|place| path.starts_with(place));
        let is_written = |used: &UsedGrant| used.written && path.to_str() == Some(&used.path);
        is_temporary && self.used.iter().any(is_written)
    }
}

fn used(outcome: &Outcome) -> &[UsedGrant] {
    outcome.report.watched.as_ref().map_or(&[], |watched| &watched.used)
}
