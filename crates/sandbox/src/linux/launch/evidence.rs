//! The launcher's own evidence for the report, after the run has ended.

use crate::core::report::{Answer, Evidence, Usage};
use crate::core::request::Request;
use crate::linux::phases::LinuxPlan;
use crate::linux::step::{Numbered, Placed};

/// Why what was to be changed in a layer stayed read-only.
pub(super) fn unlayered(
    plan: &LinuxPlan,
    request: &Request,
    evidence: &[Evidence],
) -> Option<String> {
    request.layer.as_ref()?;
    let is_layer = |placed: &&Numbered<Placed>| matches!(placed.step, Placed::Layer { .. });
    let Some(layer) = plan.placed().iter().find(is_layer) else {
        return Some("there is none without a root of its own, or over other grants".to_owned());
    };
    evidence.iter().find(|answer| answer.step == layer.number).and_then(|one| match &one.answer {
        Answer::Less(why) => Some(why.clone()),
        Answer::Confirmed(_) => None,
    })
}

/// The steps that are the launcher's own: the clone succeeded, the clock and the watch ran. The
/// last step is confirmed by the command's start, which no message of the target can follow.
pub(super) fn own_evidence(plan: &LinuxPlan, usage: &Usage, carried: &Answer) -> Vec<Evidence> {
    let mut evidence = Vec::new();
    let mut add = |step, answer| evidence.push(Evidence { step, answer });
    if let Some(namespaces) = &plan.namespaces {
        add(namespaces.number, Answer::Confirmed(String::new()));
    }
    if let Some(Numbered { number, step, .. }) = &plan.watches.timeout {
        add(*number, Answer::Confirmed(format!("armed for {}", step.after)));
    }
    if let Some(memory) = &plan.watches.memory {
        let seen = match usage.max_tree_memory_bytes {
            Some(peak) => format!("peak seen {peak} bytes"),
            None => "ended before the first look".to_owned(),
        };
        add(memory.number, Answer::Confirmed(seen));
    }
    if let Some(connection_relay) = &plan.connection_relay {
        add(connection_relay.number, carried.clone());
    }
    add(plan.target.execute.number, Answer::Confirmed(String::new()));
    evidence
}
