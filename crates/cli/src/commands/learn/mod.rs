//! `mcp learn`: from what a confined program asked for to the policy that it needs, without opening a wall.
//!
//! ```text
//! given flags ─▶ Draft ─▶ round: mcp run --policy DRAFT, driven and watched ─▶ Observations ─▶ proposals ─▶ accepted ─╮
//!                  ▲────────────────────────────────────────────────────────────────────────────────────────────────╯
//!                  ╰▶ lines that no answer depends on are taken out ─▶ proof: one more round with exactly this policy
//! ```
//!
//! Every round is `mcp run` as it is; what is watched is never judged by it. Leaves open: a program may name paths to have them
//! proposed. So nothing sensitive is proposed, and without `--yes` a person decides about each line.

mod ask;
pub mod calls;
mod client;
pub mod drive;
pub mod from_log;
mod host;
mod limits;
mod observe;
pub mod outcome;
mod package;
pub mod round;
mod trim;

use std::collections::{BTreeSet, VecDeque};
use std::path::PathBuf;

use mcp_learn::{Draft, Grant, Peaks, Proposal, Proposals, Withheld};
use mcp_policy::Defaults;

use self::drive::{Answer, Asked, Status, statuses};
use self::limits::Headroom;
use self::outcome::{Acceptance, Learned, Merged};
use self::round::{Outcome, Partner, Rounds};
use crate::args::learn::Learn;
use crate::failure::Failure;
use crate::{layers, paths, render};

/// There are proposals that were not accepted.
const UNDECIDED: u8 = 3;
/// With the policy something is still missing.
const NOT_PROVED: u8 = 1;
const MOST_TOLD: usize = 20;

pub fn run(args: Learn) -> Result<u8, Failure> {
    if let Some(name) = &args.from_log {
        return from_log::run(name, &args);
    }
    if args.subject.reference.is_none() && args.subject.command.is_empty() {
        return Err(Failure::Usage(
            "nothing to learn from; give a command or a package: mcp learn -- node server.js, or --from-log NAME"
                .to_owned(),
        ));
    }
    let given = layers::effective(&args.permissions, Defaults::run())?;
    let draft = Draft::of(&given).map_err(Failure::Usage)?;
    if let Some(path) = &args.result.merge {
        Merged::new(path, &draft)?;
    }
    let calls = calls::all(&args.subject.call, args.subject.calls.as_deref())?;
    let rounds = Rounds::new(&args.subject, calls)?;
    let learner = Learner {
        given: draft.grants().cloned().collect(),
        draft,
        home: paths::home(),
        never: BTreeSet::new(),
        accepted: BTreeSet::new(),
        withheld: BTreeSet::new(),
        peaks: Peaks::default(),
        headroom: None,
        notes: BTreeSet::new(),
        args: &args,
    };
    learner.learn(&rounds)
}

struct Learner<'a> {
    args: &'a Learn,
    draft: Draft,
    /// What the person gave: not ours to take out again.
    given: BTreeSet<Grant>,
    home: Option<PathBuf>,
    /// What the person refused, or no answer depends on.
    never: BTreeSet<Grant>,
    /// What a person accepted, line by line.
    accepted: BTreeSet<Grant>,
    withheld: BTreeSet<Withheld>,
    peaks: Peaks,
    /// Of the learned limits, where there are any.
    headroom: Option<Headroom>,
    notes: BTreeSet<String>,
}

/// What became of the proposals of a round.
enum Decided {
    Some,
    Nothing,
    /// There is no terminal to ask on.
    CannotAsk,
}

impl Learner<'_> {
    fn learn(mut self, rounds: &Rounds<'_>) -> Result<u8, Failure> {
        if self.args.client {
            return self.with_client(rounds);
        }
        let named = self.named_by_the_command();
        if self.args.subject.package.yes || ask::is_possible() {
            self.decide(&named);
        }
        let mut last = None;
        for number in 1..=self.args.rounds {
            let outcome = rounds.run(&self.draft.to_toml(), Partner::Ourselves)?;
            let mut proposals = self.observe(&outcome);
            self.tell_round(number, &outcome.answers, &proposals);
            last = Some(outcome.answers);
            match self.decide(&proposals) {
                Decided::Some => {}
                Decided::Nothing => break,
                Decided::CannotAsk => {
                    proposals.proposed.extend(named.proposed);
                    return self.undecided(proposals);
                }
            }
        }
        let Some(answers) = last.filter(|answers| has_begun(answers)) else {
            return self.prove(rounds, &[]);
        };
        // A merge leaves the limits of the file as they are.
        if self.args.result.merge.is_none() {
            self.limit(Some(Headroom::Half));
        }
        let second = self.run_within_limits(rounds, &answers)?;
        if self.args.subject.package.yes && statuses(&second.answers) == statuses(&answers) {
            self.trim(&mut trim::Trimmer::new(rounds, &answers, &second));
        }
        self.prove(rounds, &answers)
    }

    fn limit(&mut self, headroom: Option<Headroom>) {
        self.headroom = headroom;
        match headroom {
            Some(headroom) => limits::set(&mut self.draft, &self.peaks, headroom),
            None => self.draft.without_limits(),
        }
    }

    /// Runs the policy. A program may need more than it was seen to use, and more in one run than in another: where it does not
    /// answer as before, it is run with more headroom, and at last without limits.
    fn run_within_limits(
        &mut self,
        rounds: &Rounds<'_>,
        before: &[Answer],
    ) -> Result<Outcome, Failure> {
        let first = self.headroom;
        loop {
            let outcome = rounds.run(&self.policy()?, Partner::Ourselves)?;
            self.peaks = self.peaks.max(from_log::peaks_of(&outcome.report.usage));
            let is_as_before = statuses(&outcome.answers) == statuses(before);
            match self.headroom {
                Some(headroom) if !is_as_before => self.limit(headroom.more()),
                None if !is_as_before => {
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

    /// Files that the command itself names need no round to be found.
    fn named_by_the_command(&mut self) -> Proposals {
        let paths = host::named_by(&self.args.subject.command, self.home.as_deref());
        self.proposals(&mcp_learn::Observations { paths, ..Default::default() })
    }

    /// One session of an ordinary client. It cannot be repeated, so there are no further rounds.
    fn with_client(mut self, rounds: &Rounds<'_>) -> Result<u8, Failure> {
        let outcome = rounds.run(&self.draft.to_toml(), Partner::Client)?;
        let proposals = self.observe(&outcome);
        self.limit(Some(Headroom::Half));
        if !self.args.subject.package.yes {
            return self.undecided(proposals);
        }
        for proposal in &proposals.proposed {
            self.draft.learn(proposal.grant.clone(), &proposal.evidence);
        }
        self.notes.insert(
            "from one session of a client; the policy was not tried: run another session with it"
                .to_owned(),
        );
        self.deliver(Acceptance::Given)?;
        Ok(0)
    }

    fn observe(&mut self, outcome: &Outcome) -> Proposals {
        self.peaks = self.peaks.max(from_log::peaks_of(&outcome.report.usage));
        let granted: Vec<Grant> = self.draft.grants().cloned().collect();
        let own = match (&self.args.subject.home, cfg!(target_os = "linux")) {
            (None, true) => host::OwnHome::Linked,
            _ => host::OwnHome::Apart,
        };
        let seen = observe::observations(outcome, &granted, self.home.as_deref(), own);
        self.notes.extend(seen.notes);
        self.proposals(&seen.observations)
    }

    fn proposals(&mut self, seen: &mcp_learn::Observations) -> Proposals {
        let granted: Vec<Grant> = self.draft.grants().cloned().collect();
        let scene = mcp_learn::Scene {
            home: self.home.as_deref(),
            sensitive: outcome::sensitive(&self.args.result),
            granted: &granted,
        };
        let mut proposals = mcp_learn::propose(seen, &scene);
        proposals.proposed.retain(|proposal| !self.never.contains(&proposal.grant));
        self.withheld.extend(proposals.withheld.iter().cloned());
        proposals
    }

    fn tell_round(&self, number: u32, answers: &[Answer], proposals: &Proposals) {
        let failed: Vec<&str> = answers
            .iter()
            .filter(|answer| answer.status != Status::Answered)
            .map(|answer| answer.name.as_str())
            .take(MOST_TOLD)
            .collect();
        let answered =
            answers.len() - answers.iter().filter(|a| a.status != Status::Answered).count();
        let failed = match failed.is_empty() {
            true => String::new(),
            false => format!(", failed: {}", render::plain(&failed.join(", "))),
        };
        render::say(&format!(
            "round {number}: {answered} of {} answered{failed}; {} missing",
            answers.len(),
            proposals.proposed.len()
        ));
        for proposal in proposals.proposed.iter().take(MOST_TOLD) {
            render::say(&format!("  {}", render::plain(&told(proposal))));
        }
    }

    fn decide(&mut self, proposals: &Proposals) -> Decided {
        if proposals.proposed.is_empty() {
            return Decided::Nothing;
        }
        if !self.args.subject.package.yes && !ask::is_possible() {
            return Decided::CannotAsk;
        }
        let mut changed = false;
        for proposal in &proposals.proposed {
            let answer = match self.args.subject.package.yes {
                true => ask::Answer::Grant(vec![proposal.grant.clone()]),
                false => ask::about(proposal, self.home.as_deref()),
            };
            match answer {
                ask::Answer::Never => {
                    self.never.insert(proposal.grant.clone());
                }
                ask::Answer::Grant(grants) => {
                    for grant in grants {
                        if !self.args.subject.package.yes {
                            self.accepted.insert(grant.clone());
                        }
                        self.close_secrets_in(&grant);
                        self.draft.learn(grant, &proposal.evidence);
                        changed = true;
                    }
                }
            }
        }
        if changed { Decided::Some } else { Decided::Nothing }
    }

    /// A directory that is granted may hold credentials. They stay closed.
    fn close_secrets_in(&mut self, grant: &Grant) {
        let (Grant::Read(path) | Grant::Write(path)) = grant else { return };
        if self.args.result.sensitive {
            return;
        }
        for secret in observe::secrets_below(path) {
            self.draft.deny(&secret, "credentials in a granted directory");
            self.withheld.insert(Withheld { what: secret, why: "a place of credentials" });
        }
    }

    /// Takes out what nothing depends on, one line at a time. A line may have been needed only by one that is gone since, so
    /// those that were tried before a removal are tried again.
    fn trim(&mut self, trimmer: &mut trim::Trimmer<'_>) {
        let is_ours =
            |grant: &&Grant| !self.given.contains(grant) && !self.accepted.contains(grant);
        let mut pending: VecDeque<Grant> = self.draft.grants().filter(is_ours).cloned().collect();
        let mut needed = Vec::new();
        while let Some(grant) = pending.pop_front() {
            if trimmer.is_needed(&self.draft, &grant) {
                needed.push(grant);
                continue;
            }
            render::say(&format!(
                "not needed: {} (everything is the same without it)",
                render::plain(&grant.to_string())
            ));
            self.draft.remove(&grant);
            self.never.insert(grant);
            pending.extend(needed.drain(..));
        }
    }

    /// One more round with exactly this policy. `before` are the answers without limits, where it began at all.
    fn prove(mut self, rounds: &Rounds<'_>, before: &[Answer]) -> Result<u8, Failure> {
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

    /// Without a terminal the proposals are written, and nothing is granted.
    fn undecided(mut self, proposals: Proposals) -> Result<u8, Failure> {
        for proposal in &proposals.proposed {
            self.draft.learn(proposal.grant.clone(), &proposal.evidence);
        }
        let is_empty = proposals.proposed.is_empty();
        if !is_empty {
            self.notes.insert(
                "these are proposals after one round, and they were not accepted: --yes accepts them and goes on, a terminal asks"
                    .to_owned(),
            );
        }
        self.deliver(Acceptance::Open)?;
        Ok(if is_empty { 0 } else { UNDECIDED })
    }

    fn deliver(&mut self, acceptance: Acceptance) -> Result<(), Failure> {
        let learned = Learned {
            draft: self.draft.clone(),
            withheld: std::mem::take(&mut self.withheld).into_iter().collect(),
            notes: std::mem::take(&mut self.notes).into_iter().collect(),
        };
        // Standard output is the client's.
        let place = if self.args.client { outcome::Place::Stderr } else { outcome::Place::Stdout };
        outcome::deliver(&learned, &self.args.result, self.args.json, place, acceptance)
    }
}

/// Without a beginning there are no answers that could depend on a line.
fn has_begun(answers: &[Answer]) -> bool {
    answers.first().is_some_and(|answer| answer.status == Status::Answered)
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

fn told(Proposal { grant, evidence, .. }: &Proposal) -> String {
    let times =
        if evidence.times == 1 { "once".to_owned() } else { format!("{} times", evidence.times) };
    format!("{grant} ({times}, first by {})", evidence.first)
}
