//! Which lines are needed: without one, some call fails or answers otherwise, or what it writes goes elsewhere.

use mcp_learn::{Draft, Grant, Peaks};
use mcp_sandbox::UsedGrant;

use super::drive::{Answer, Status};
use super::outcome::{self, Headroom};
use super::round::{Outcome, Partner, Rounds};
use crate::failure::Failure;
use crate::render;

/// Knows what answers look like with the whole policy.
pub struct Trimmer<'a> {
    rounds: &'a Rounds<'a>,
    expected: Vec<Expected>,
    used: Vec<UsedGrant>,
}

/// A call that answers otherwise each time (a clock, a counter) is only expected to answer as well.
struct Expected {
    answer: Answer,
    is_steady: bool,
}

/// Limits from the peaks, each tried: a program may need more to start than it is seen to use. Gives the answers with them.
pub fn limited(
    rounds: &Rounds<'_>,
    draft: &mut Draft,
    peaks: &Peaks,
    first: &[Answer],
) -> Result<Option<Outcome>, Failure> {
    for headroom in [Headroom::Half, Headroom::Twice, Headroom::FourTimes] {
        let mut tried = draft.clone();
        outcome::limit(&mut tried, peaks, headroom);
        let outcome = rounds.run(&tried.to_toml(), Partner::Ourselves)?;
        if statuses(&outcome.answers) == statuses(first) {
            *draft = tried;
            return Ok(Some(outcome));
        }
    }
    render::say("no limits are proposed: with four times the peak it did not answer as before");
    Ok(None)
}

fn statuses(answers: &[Answer]) -> Vec<Status> {
    answers.iter().map(|answer| answer.status).collect()
}

impl<'a> Trimmer<'a> {
    /// `second` is another outcome with the same policy as `first`.
    pub fn new(rounds: &'a Rounds<'a>, first: &[Answer], second: &Outcome) -> Trimmer<'a> {
        let expected = second.answers.iter().cloned().enumerate().map(|(at, answer)| {
            let is_steady = first.get(at).is_some_and(|before| before.text == answer.text);
            Expected { answer, is_steady }
        });
        let used = used(second).to_vec();
        Trimmer { rounds, expected: expected.collect(), used }
    }

    /// Tries it. A command that does not even start without the line needs it.
    pub fn is_needed(&self, draft: &Draft, grant: &Grant) -> bool {
        if self.is_lost_without(grant) {
            return true;
        }
        let mut without = draft.clone();
        without.remove(grant);
        let Ok(outcome) = self.rounds.run(&without.to_toml(), Partner::Ourselves) else {
            return true;
        };
        let same = outcome.answers.len() == self.expected.len()
            && self.expected.iter().zip(&outcome.answers).all(|(expected, answer)| {
                expected.answer.status == answer.status
                    && (!expected.is_steady || expected.answer.text == answer.text)
            });
        !same || self.writes_elsewhere(grant, &outcome)
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
