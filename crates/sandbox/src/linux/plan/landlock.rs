//! What Landlock allows behind the mounts of a plan.

use crate::core::request::PlaceKind;
use crate::linux::landlock::{Allowed, Ports, Rule, USABLE_FROM};
use crate::linux::step::{Access, Step};

/// The step behind the mounts that these steps make, where this version of Landlock is of use.
pub fn step<'a>(abi: u32, steps: impl IntoIterator<Item = &'a Step>) -> Option<Step> {
    (abi >= USABLE_FROM).then(|| Step::Landlock { abi, rules: rules(steps), ports: Ports::Open })
}

/// One rule lets everything beneath the new root be read: nothing is there that the plan did not
/// put there, and nothing can be mounted there once Landlock is on. A rule for each
/// read-only place would say the same of the host's own inodes, also where they are reached by
/// another way.
fn rules<'a>(steps: impl IntoIterator<Item = &'a Step>) -> Vec<Rule> {
    let mut rules: Vec<Rule> = Vec::new();
    let mut add = |rule: Rule| {
        if !rules.contains(&rule) {
            rules.push(rule);
        }
    };
    for step in steps {
        match step {
            Step::NewRoot { .. } => add(Rule::beneath("/", Allowed::Read)),
            Step::Devices => add(Rule::beneath("/dev", Allowed::Devices)),
            Step::Scratch { places } => {
                places.iter().for_each(|(at, _)| add(Rule::beneath(at, Allowed::Write)));
            }
            Step::Bind { at, kind: PlaceKind::Socket, .. } => {
                add(Rule { path: at.clone(), kind: PlaceKind::Socket, allowed: Allowed::Socket })
            }
            Step::Bind { at, kind, access: Access::ReadWrite, .. } => {
                add(Rule { path: at.clone(), kind: *kind, allowed: Allowed::Write });
            }
            Step::Layer { at, access: Access::ReadWrite, .. } => {
                add(Rule::beneath(at, Allowed::Write));
            }
            _ => {}
        }
    }
    rules
}
