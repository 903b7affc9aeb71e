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
mod known;
mod limits;
mod observe;
pub mod outcome;
mod package;
mod proof;
pub mod round;
mod trim;

use std::collections::{BTreeSet, VecDeque};
use std::path::Path;

use mcp_learn::{Draft, Grant, Peaks, Proposal, Proposals, Withheld};
use mcp_policy::{Defaults, glob};

use self::drive::{Answer, Status, are_as_good};
use self::host::{Host, OwnHome};
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
    if let Some(path) = &args.result.output {
        outcome::can_be_written(path)?;
    }
    let calls = calls::all(&args.subject.call, args.subject.calls.as_deref())?;
    let rounds = Rounds::new(&args.subject, calls, &given)?;
    let learner = Learner {
        given: draft.grants().cloned().collect(),
        draft,
        host: Host::new(paths::home(), own_home(&args)),
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

/// On Linux the command's own HOME has what is granted in the caller's.
fn own_home(args: &Learn) -> OwnHome {
    match (&args.subject.home, cfg!(target_os = "linux")) {
        (None, true) => OwnHome::Linked,
        _ => OwnHome::Apart,
    }
}

struct Learner<'a> {
    args: &'a Learn,
    draft: Draft,
    /// What the person gave: not ours to take out again.
    given: BTreeSet<Grant>,
    host: Host,
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
        if !are_as_good(&second.answers, &answers) {
            return self.prove(rounds, &answers);
        }
        if self.args.subject.package.yes {
            self.trim(&mut trim::Trimmer::new(rounds, &answers, &second));
        }
        self.prove(rounds, &second.answers)
    }

    /// Files that the command itself names need no round to be found.
    fn named_by_the_command(&mut self) -> Proposals {
        let paths = self.host.named_by(&self.args.subject.command);
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
        let seen = observe::observations(outcome, &granted, &self.host);
        self.notes.extend(seen.notes);
        self.proposals(&seen.observations)
    }

    fn proposals(&mut self, seen: &mcp_learn::Observations) -> Proposals {
        let granted: Vec<Grant> = self.draft.grants().cloned().collect();
        let scene = mcp_learn::Scene {
            home: self.host.home.as_deref(),
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
                true => {
                    ask::Answer::Grant(vec![(proposal.grant.clone(), proposal.evidence.clone())])
                }
                false => ask::about(proposal),
            };
            match answer {
                ask::Answer::Never => {
                    self.never.insert(proposal.grant.clone());
                }
                ask::Answer::Grant(grants) => {
                    for (grant, evidence) in grants {
                        if !self.args.subject.package.yes {
                            self.accepted.insert(grant.clone());
                        }
                        self.close_secrets_in(&grant);
                        self.draft.learn(grant, &evidence);
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
        let secrets = observe::secrets_below(path, &self.host.known);
        for secret in &secrets.found {
            self.draft.deny(&pattern(secret), "credentials in a granted directory");
            let what = secret.to_string_lossy().into_owned();
            self.withheld.insert(Withheld { what, why: "a place of credentials" });
        }
        if secrets.is_cut_off {
            self.notes.insert(format!(
                "{} holds too much to look through for credentials: read it before you use the policy",
                render::path(path)
            ));
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

/// A deny line for one place. A policy is UTF-8: what is not is any characters there.
fn pattern(place: &Path) -> String {
    let name = place.to_string_lossy();
    glob::literal(Path::new(&*name)).to_string_lossy().replace(char::REPLACEMENT_CHARACTER, "*")
}

/// Without a beginning there are no answers that could depend on a line.
fn has_begun(answers: &[Answer]) -> bool {
    answers.first().is_some_and(|answer| answer.status == Status::Answered)
}

fn told(Proposal { grant, evidence, .. }: &Proposal) -> String {
    let times =
        if evidence.times == 1 { "once".to_owned() } else { format!("{} times", evidence.times) };
    format!("{grant} ({times}, first by {})", evidence.first)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_deny_line_means_one_place() {
        use std::os::unix::ffi::OsStrExt;
        let place = |bytes: &[u8]| pattern(Path::new(std::ffi::OsStr::from_bytes(bytes)));
        assert_eq!(place(b"/srv/[a]*/.env"), "/srv/[[]a][*]/.env");
        assert_eq!(place(b"/srv/\xff/.env"), "/srv/*/.env");
    }
}
