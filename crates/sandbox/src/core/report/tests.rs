use super::*;
use crate::core::plan::{Intents, Planned};

const CONTROL: Control = Control::Privileges;

/// A step of no system.
struct Step(&'static str);

impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

impl Describe for Step {
    fn stage(&self) -> String {
        "launcher".to_owned()
    }
}

/// The status of one control with this intent, resting on the first two of three steps.
fn derived(intent: Intent, evidence: &[(usize, Answer)]) -> Status {
    let step = |step, for_controls| Planned { step, for_controls };
    let plan = Plan {
        controls: Intents::from_iter([(CONTROL, intent)]),
        steps: vec![
            step(Step("drop privileges"), vec![CONTROL]),
            step(Step("hide memory"), vec![Control::Environment, CONTROL]),
            step(Step("loopback"), vec![Control::Network]),
        ],
    };
    let evidence: Vec<_> = evidence
        .iter()
        .map(|(step, answer)| Evidence { step: *step, answer: answer.clone() })
        .collect();
    let report = Report::new(&plan, &evidence, vec![], Ending::Exited(0), 0, Usage::default());
    report.controls[&CONTROL].clone()
}

fn yes(text: &str) -> Answer {
    Answer::Confirmed(text.to_owned())
}

fn less(text: &str) -> Answer {
    Answer::Less(text.to_owned())
}

fn enforced(seen: &[&str]) -> Status {
    let seen = seen.iter().map(|text| (*text).to_owned()).collect();
    Status::Enforced { by: "x".to_owned(), seen }
}

fn partial(missing: &str, seen: &[&str]) -> Status {
    let seen = seen.iter().map(|text| (*text).to_owned()).collect();
    Status::Partial { by: "x".to_owned(), missing: missing.to_owned(), seen }
}

fn unavailable(why: &str) -> Status {
    Status::Unavailable { why: why.to_owned() }
}

#[test]
fn status_is_what_was_confirmed() {
    let enforce = || Intent::enforce("x");
    let gap = || Intent::partial("x", "gap");
    let first = "the step was not confirmed: drop privileges";
    let second = "the step was not confirmed: hide memory";
    let both = [(0, yes("a")), (1, yes("b"))];
    for (intent, evidence, status) in [
        (enforce(), &both[..], enforced(&["a", "b"])),
        (enforce(), &[(1, yes("")), (0, yes(""))], enforced(&[])),
        (enforce(), &[], unavailable(first)),
        (enforce(), &[(1, yes("b")), (2, yes("c"))], unavailable(first)),
        (enforce(), &[(0, yes("a"))], unavailable(second)),
        (enforce(), &[(0, less("lost")), (1, yes("b"))], partial("lost", &["b"])),
        (enforce(), &[(0, less("lost")), (1, less("too"))], partial("lost; too", &[])),
        (enforce(), &[(0, less("lost"))], unavailable(second)),
        // Of two answers to one step, the worse one counts, in either order.
        (enforce(), &[(0, less("lost")), (0, yes("a")), (1, yes(""))], partial("lost", &[])),
        (enforce(), &[(0, yes("a")), (0, less("lost")), (1, yes(""))], partial("lost", &[])),
        (enforce(), &[(0, yes("a")), (1, yes("b")), (9, less("?"))], enforced(&["a", "b"])),
        (gap(), &both, partial("gap", &["a", "b"])),
        (gap(), &[(0, less("lost")), (1, yes(""))], partial("gap; lost", &[])),
        (gap(), &[], unavailable(first)),
        (Intent::unavailable("why", "remedy"), &both, unavailable("why")),
        (Intent::NotRequested, &both, Status::NotRequested),
    ] {
        assert_eq!(derived(intent.clone(), evidence), status, "{intent:?} {evidence:?}");
    }
}

#[test]
fn a_control_without_a_step_is_not_enforced() {
    let controls = Intents::from_iter([(CONTROL, Intent::enforce("x"))]);
    let plan: Plan<Step> = Plan { controls, steps: vec![] };
    let report = Report::new(&plan, &[], vec![], Ending::Exited(0), 0, Usage::default());
    assert_eq!(report.controls[&CONTROL], unavailable("the plan has no step for it"));
}

#[test]
fn json_names_statuses_and_leaves_out_what_is_empty() {
    let json = |status: Status| serde_json::to_string(&status).unwrap();
    assert_eq!(json(enforced(&[])), r#"{"status":"enforced","by":"x"}"#);
    assert_eq!(
        json(partial("y", &["z"])),
        r#"{"status":"partial","by":"x","missing":"y","seen":["z"]}"#
    );
    assert_eq!(json(unavailable("z")), r#"{"status":"unavailable","why":"z"}"#);
    assert_eq!(json(Status::NotRequested), r#"{"status":"not_requested"}"#);
}
