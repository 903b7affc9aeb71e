//! The end of learning: limits that hold, and a run with exactly the policy that comes out.

use super::drive::{Answer, Asked, Status, are_as_good};
use super::limits::{self, Headroom};
use super::outcome::{Acceptance, Merged};
use super::round::{Outcome, Partner, Rounds};
use super::{Learner, MOST_TOLD, NOT_PROVED, from_log, told};
use crate::failure::Failure;
use crate::render;

impl Learner<'_> {
    pub(super) fn limit(&mut self, headroom: Option<Headroom>) {
        self.headroom = headroom;
        match headroom {
            Some(headroom) => limits::set(&mut self.draft, &self.peaks, headroom),
            None => self.draft.without_limits(),
        }
    }

    /// Runs the policy. A program may need more than it was seen to use, and more in one run than in another: where it does not
    /// answer as well as before, it is run with more headroom, and at last without limits.
    pub(super) fn run_within_limits(
        &mut self,
        rounds: &Rounds<'_>,
        before: &[Answer],
    ) -> Result<Outcome, Failure> {
        let first = self.headroom;
        loop {
            let outcome = rounds.run(&self.policy()?, Partner::Ourselves)?;
            self.peaks = self.peaks.max(from_log::peaks_of(&outcome.report.usage));
            let is_as_good = are_as_good(&outcome.answers, before);
            match self.headroom {
                Some(headroom) if !is_as_good => self.limit(headroom.more()),
                None if !is_as_good => {
                    // It was not the limits.
                    self.limit(first);
                    return Ok(outcome);
                }
                now => {
                    if now.is_none() && first.is_some() {
                        render::say(
                            "no limits are proposed: with four times the peak it did not answer as before",
                        );
                    }
                    return Ok(outcome);
                }
            }
        }
    }

    /// What a later run is given.
    fn policy(&self) -> Result<String, Failure> {
        Ok(match &self.args.result.merge {
            Some(path) => Merged::new(path, &self.draft)?.draft.to_toml(),
            None => self.draft.to_toml(),
        })
    }

    /// One more round with exactly this policy. `before` are the answers without limits, where it began at all.
    pub(super) fn prove(mut self, rounds: &Rounds<'_>, before: &[Answer]) -> Result<u8, Failure> {
        let outcome = match before {
            [] => rounds.run(&self.policy()?, Partner::Ourselves)?,
            _ => self.run_within_limits(rounds, before)?,
        };
        let proposals = self.observe(&outcome);
        let failed = failed(&outcome.answers, before);
        tell_failed(&failed, &outcome.said);
        for proposal in proposals.proposed.iter().take(MOST_TOLD) {
            render::say(&format!("still missing: {}", render::plain(&told(proposal))));
        }
        self.deliver(Acceptance::Given)?;
        // What was not looked at may be missing.
        let is_cut_off = outcome.report.watched.is_some_and(|watched| watched.cut_off.is_some());
        let fault = if is_cut_off {
            "the command looked for too many places to watch them all"
        } else if !proposals.proposed.is_empty() {
            "something is still missing"
        } else if !failed.is_empty() || outcome.answers.is_empty() {
            "nothing was missing, and not everything was answered"
        } else {
            render::say("proved: with exactly this policy nothing was missing");
            return Ok(0);
        };
        render::say(&format!("not proved: {fault}"));
        Ok(NOT_PROVED)
    }
}

/// What fails with the policy. What was made up may fail, if it failed before.
fn failed<'a>(answers: &'a [Answer], before: &[Answer]) -> Vec<&'a Answer> {
    let is_failure = |(at, answer): &(usize, &Answer)| {
        let as_before = before.get(*at).is_some_and(|before| before.status == answer.status);
        answer.status != Status::Answered && !(answer.asked == Asked::Explored && as_before)
    };
    answers.iter().enumerate().filter(is_failure).map(|(_, answer)| answer).collect()
}

fn tell_failed(failed: &[&Answer], said: &str) {
    for answer in failed.iter().take(MOST_TOLD) {
        // A server that ends without an answer has told its reason elsewhere, in its last line.
        let last = || said.lines().rev().find(|line| !line.trim().is_empty());
        let text = if answer.text.is_empty() { last().unwrap_or_default() } else { &answer.text };
        let text: String = text.chars().take(200).collect();
        let (name, text) = (render::plain(&answer.name), render::plain(&text));
        render::say(&format!("{name} fails with this policy: {text}"));
    }
}
