//! The launcher's steps on the run's cgroup, each answered by what the kernel says afterwards.

use std::os::fd::BorrowedFd;

use super::held::Held;
use super::limits::holds;
use super::mount::own_path;
use crate::linux::launch::at_step;
use crate::linux::step::Step;
use crate::linux::supervise::Trouble;
use crate::plan::Plan;
use crate::report::{Answer, Evidence};

/// Writes every limit before anything is in there.
pub fn set(plan: &Plan, cgroup: Option<&Held>) -> Result<Vec<Evidence>, Trouble> {
    let mut evidence = Vec::new();
    let Some(cgroup) = cgroup else {
        return Ok(evidence);
    };
    for (step, planned) in plan.steps.iter().enumerate() {
        let Step::SetCgroup { file, value } = &planned.step else {
            continue;
        };
        let answer = match cgroup.set(file, value) {
            Ok(found) if holds(file, value, &found) => {
                Answer::Confirmed(format!("{file} {}", found.trim().replace('\n', ", ")))
            }
            Ok(found) => Answer::Less(format!("{file} stayed {}", found.trim())),
            // A kernel that does not account for swap.
            Err(e) if *file == "memory.swap.max" => {
                Answer::Less(format!("what is swapped out is not counted ({e})"))
            }
            Err(e) => return Err(at_step(step, &e)),
        };
        evidence.push(Evidence { step, answer });
    }
    Ok(evidence)
}

/// The cgroup that the sandbox is cloned into.
pub fn target<'a>(plan: &Plan, cgroup: Option<&'a Held>) -> Option<BorrowedFd<'a>> {
    entering(plan)?;
    cgroup.map(Held::fd)
}

fn entering(plan: &Plan) -> Option<usize> {
    plan.steps.iter().position(|planned| matches!(planned.step, Step::EnterCgroup { .. }))
}

/// Where init is, by the kernel's account.
pub fn entered(plan: &Plan, cgroup: Option<&Held>, init: i32) -> Option<Evidence> {
    let (step, cgroup) = (entering(plan)?, cgroup?);
    let membership = std::fs::read(format!("/proc/{init}/cgroup")).ok()?;
    let found = own_path(&membership)?;
    // The names that are ours; what is above them the mount may show or not.
    let is_there = cgroup.run().path.ends_with(found.file_name()?);
    let shown = found.display();
    let answer = match is_there {
        true => Answer::Confirmed(format!("cgroup {shown}")),
        false => Answer::Less(format!("the sandbox is in cgroup {shown}")),
    };
    Some(Evidence { step, answer })
}
