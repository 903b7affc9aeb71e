//! Which lines an answer depends on: without a line that is needed, some call fails or answers otherwise.

use mcp_learn::{Draft, Grant};

use super::drive::Answer;
use super::round::{Partner, Rounds};
use crate::failure::Failure;

/// Knows what answers look like with the whole policy.
pub struct Trimmer<'a> {
    rounds: &'a Rounds<'a>,
    expected: Vec<Expected>,
}

/// A call that answers otherwise each time (a clock, a counter) is only expected to answer as well.
struct Expected {
    answer: Answer,
    is_steady: bool,
}

impl<'a> Trimmer<'a> {
    pub fn new(
        rounds: &'a Rounds<'a>,
        draft: &Draft,
        first: &[Answer],
    ) -> Result<Trimmer<'a>, Failure> {
        let second = rounds.run(&draft.to_toml(), Partner::Ourselves)?.answers;
        let expected = second.into_iter().enumerate().map(|(at, answer)| {
            let is_steady = first.get(at).is_some_and(|before| before.text == answer.text);
            Expected { answer, is_steady }
        });
        Ok(Trimmer { rounds, expected: expected.collect() })
    }

    /// Tries it. A command that does not even start without the line needs it.
    pub fn is_needed(&mut self, draft: &Draft, grant: &Grant) -> Result<bool, Failure> {
        let mut without = draft.clone();
        without.remove(grant);
        let Ok(outcome) = self.rounds.run(&without.to_toml(), Partner::Ourselves) else {
            return Ok(true);
        };
        let same = outcome.answers.len() == self.expected.len()
            && self.expected.iter().zip(&outcome.answers).all(|(expected, answer)| {
                expected.answer.status == answer.status
                    && (!expected.is_steady || expected.answer.text == answer.text)
            });
        Ok(!same)
    }
}
