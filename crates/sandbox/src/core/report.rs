//! The report of a run: what the kernel answered for each control. Never filled from intent.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::core::control::Control;
use crate::core::plan::{Describe, Intent, Plan};
use crate::core::watched::Watched;
use mcp_net::broker::NetworkUse;

/// Bumped when a field changes its meaning.
const VERSION: u32 = 1;

/// What became of one control.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Status {
    /// It was enforced, and the kernel confirmed it.
    Enforced {
        /// By which mechanism.
        by: String,
        /// What was read back from the kernel.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        seen: Vec<String>,
    },
    /// A part of it was enforced.
    Partial {
        /// By which mechanism.
        by: String,
        /// What was not.
        missing: String,
        /// What was read back from the kernel.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        seen: Vec<String>,
    },
    /// It was not enforced.
    Unavailable {
        /// Why not.
        why: String,
    },
    /// It was not asked for.
    NotRequested,
}

impl Status {
    /// Whether all of it was enforced.
    pub fn is_enforced(&self) -> bool {
        matches!(self, Status::Enforced { .. })
    }
}

/// The kernel's answer to one step of the plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// The number of the step in the plan.
    pub step: usize,
    /// The answer.
    pub answer: Answer,
}

/// What the kernel answered to a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Done and confirmed; the text is what was read back, if there was something to read.
    Confirmed(String),
    /// Done, but less than asked for; the text says what is missing.
    Less(String),
}

/// What the run used, from the kernel's accounting.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Usage {
    /// Time from the start of the command to its end.
    pub wall_seconds: f64,
    /// Processor time of all processes together.
    pub cpu_seconds: f64,
    /// Largest resident set of a single process.
    pub max_process_resident_bytes: u64,
    /// Largest sum over the tree: the kernel's, or what was seen where it keeps none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tree_memory_bytes: Option<u64>,
    /// Most data of a single process that was seen, touched or not, where its limit is `RLIMIT_DATA`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen_process_data_bytes: Option<u64>,
    /// Most processes and threads at once, where a cgroup counted them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_processes: Option<u64>,
    /// Most processes and threads that were seen at once, where no cgroup counted them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen_processes: Option<u64>,
    /// Temporary space that was taken when the last process had ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temporary_bytes: Option<u64>,
    /// Processes and threads that the limit refused, where a cgroup counted them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub refused_processes: u64,
    /// Processes that were killed because the memory limit was reached.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub memory_kills: u64,
    /// How long the processor limit made them wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttled_seconds: Option<f64>,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Ending {
    /// The command's own exit code.
    Exited(i32),
    /// The signal that ended the command, or that the launcher got and the command did not obey in time.
    Signaled(i32),
    /// Its time was up.
    Timeout,
    /// The memory limit was reached.
    MemoryLimit,
    /// The command ran, and was killed because the sandbox itself failed; the text says how.
    SandboxFailed(String),
    /// The command was never started.
    NotStarted(String),
}

/// What the guard said about a command before anything ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Judged {
    /// allow, unknown, ask or refuse
    pub decision: String,
    /// The rules that spoke, the heaviest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<String>,
    /// Rules that spoke and let it pass because the sandbox holds what they are about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub noted: Vec<String>,
    /// Why, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// Something new in a protected place, removed when the command had ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Undone {
    /// What was made.
    pub path: String,
    /// Why it must not stay.
    pub why: String,
    /// Why it is still there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// Where it is now, where it may be the user's: something was there before, and was replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aside: Option<String>,
}

/// How much more there was to undo than is named.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MoreUndone {
    /// Removed.
    pub removed: u64,
    /// Still there.
    pub left: u64,
}

impl MoreUndone {
    fn is_nothing(&self) -> bool {
        *self == MoreUndone::default()
    }
}

/// What was enforced, what was used, and how a run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Report {
    /// Of this format; a higher one has changed the meaning of a field.
    pub version: u32,
    /// The command and its arguments.
    pub command: Vec<String>,
    /// What became of each control.
    pub controls: BTreeMap<Control, Status>,
    /// How it ended.
    pub ending: Ending,
    /// The exit code of `mcp` for it; see [`exit_code`](crate::exit_code).
    pub exit_code: u8,
    /// What it used.
    pub usage: Usage,
    /// New processes and programs that were tried and refused, where `subprocess` is off.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub blocked_processes: u64,
    /// What the guard said, where it was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<Judged>,
    /// What the command made in protected places, and what became of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undone: Vec<Undone>,
    /// Why the command was ended, where it was no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
    /// How much more was undone than `undone` names.
    #[serde(default, skip_serializing_if = "MoreUndone::is_nothing")]
    pub more_undone: MoreUndone,
    /// Protected settings that were replaced while the command ran, by whom is not known. They were closed to the
    /// command again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replaced: Vec<String>,
    /// Protected files that a program got ready to replace, and that are what they were.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<String>,
    /// Names at the top of a HOME that was not kept: they are gone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<String>,
    /// Why what the command was to change in a layer of its own stayed read-only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unlayered: Option<String>,
    /// What was reached and refused, where there was anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkUse>,
    /// Variables that the command's own files name, that are set for the caller and were not passed on; in learning mode.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unpassed: Vec<String>,
    /// The browser that a person gave the command, and what that means, where one was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub browser: Option<String>,
    /// What the command looked for, in learning mode and where the host can tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watched: Option<Watched>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Report {
    /// Joins the plan with what the kernel confirmed. A control without all its evidence is
    /// not enforced, whatever the plan meant to do.
    pub fn new<S: Describe>(
        plan: &Plan<S>,
        evidence: &[Evidence],
        command: Vec<String>,
        ending: Ending,
        exit_code: u8,
        usage: Usage,
    ) -> Self {
        let mut answers: BTreeMap<usize, &Answer> = BTreeMap::new();
        for Evidence { step, answer } in evidence {
            let kept = answers.entry(*step).or_insert(answer);
            // Nothing that is said later makes up for what is missing.
            if !matches!(kept, Answer::Less(_)) {
                *kept = answer;
            }
        }
        let controls = plan
            .controls
            .iter()
            .map(|(control, intent)| (*control, status(plan, *control, intent, &answers)))
            .collect();
        Report {
            version: VERSION,
            command,
            controls,
            ending,
            exit_code,
            usage,
            blocked_processes: 0,
            guard: None,
            undone: Vec::new(),
            stopped: None,
            more_undone: MoreUndone::default(),
            replaced: Vec::new(),
            kept: Vec::new(),
            lost: Vec::new(),
            unlayered: None,
            network: None,
            unpassed: Vec::new(),
            browser: None,
            watched: None,
        }
    }

    /// Of a run that never came to a plan.
    pub fn unplanned(command: Vec<String>, why: String, exit_code: u8) -> Self {
        Report {
            version: VERSION,
            command,
            controls: BTreeMap::new(),
            ending: Ending::NotStarted(why),
            exit_code,
            usage: Usage::default(),
            blocked_processes: 0,
            guard: None,
            undone: Vec::new(),
            stopped: None,
            more_undone: MoreUndone::default(),
            replaced: Vec::new(),
            kept: Vec::new(),
            lost: Vec::new(),
            unlayered: None,
            network: None,
            unpassed: Vec::new(),
            browser: None,
            watched: None,
        }
    }
}

fn status<S: Describe>(
    plan: &Plan<S>,
    control: Control,
    intent: &Intent,
    answers: &BTreeMap<usize, &Answer>,
) -> Status {
    let (by, mut missing) = match intent {
        Intent::NotRequested => return Status::NotRequested,
        Intent::Unavailable { why, .. } => return Status::Unavailable { why: why.clone() },
        Intent::Enforce { by } => (by, Vec::new()),
        Intent::Partial { by, missing, .. } => (by, vec![missing.clone()]),
    };
    let mut seen = Vec::new();
    let mut rests = plan
        .steps
        .iter()
        .enumerate()
        .filter(|(_, planned)| planned.for_controls.contains(&control))
        .peekable();
    if rests.peek().is_none() {
        return Status::Unavailable { why: "the plan has no step for it".to_owned() };
    }
    for (index, planned) in rests {
        match answers.get(&index) {
            None => {
                return Status::Unavailable {
                    why: format!("the step was not confirmed: {}", planned.step),
                };
            }
            Some(Answer::Less(what)) => missing.push(what.clone()),
            Some(Answer::Confirmed(what)) if what.is_empty() => {}
            Some(Answer::Confirmed(what)) => seen.push(what.clone()),
        }
    }
    if missing.is_empty() {
        Status::Enforced { by: by.clone(), seen }
    } else {
        Status::Partial { by: by.clone(), missing: missing.join("; "), seen }
    }
}

#[cfg(test)]
mod tests;
