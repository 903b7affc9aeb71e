//! The Landlock rules of a plan, behind its mounts.

use crate::core::request::PlaceKind;
use crate::linux::landlock::{Allowed, Ports, Rule, USABLE_FROM};
use crate::linux::step::{Access, Landlock, Numbered, Placed};

/// The restriction behind these mounts, where this version of Landlock is of use.
pub fn behind(abi: u32, placed: &[Numbered<Placed>]) -> Option<Landlock> {
    (abi >= USABLE_FROM).then(|| Landlock { abi, rules: rules(placed), ports: Ports::Open })
}

/// One rule lets everything beneath the new root be read: nothing is there that the plan did not
/// put there, and nothing can be mounted there once Landlock is on. A rule for each
/// read-only place would say the same of the host's own inodes, also where they are reached by
/// another way.
fn rules(placed: &[Numbered<Placed>]) -> Vec<Rule> {
    let mut rules = vec![Rule::beneath("/", Allowed::Read)];
    let mut add = |rule: Rule| {
        if !rules.contains(&rule) {
            rules.push(rule);
        }
    };
    for placed in placed {
        match &placed.step {
            Placed::Devices => add(Rule::beneath("/dev", Allowed::Devices)),
            Placed::Scratch { places } => {
                places.iter().for_each(|(at, _)| add(Rule::beneath(at, Allowed::Write)));
            }
            Placed::Bind { at, kind: PlaceKind::Socket, .. } => {
                add(Rule { path: at.clone(), kind: PlaceKind::Socket, allowed: Allowed::Socket })
            }
            Placed::Bind { at, kind, access: Access::ReadWrite, .. } => {
                add(Rule { path: at.clone(), kind: *kind, allowed: Allowed::Write });
            }
            Placed::Layer { at, access: Access::ReadWrite, .. } => {
                add(Rule::beneath(at, Allowed::Write));
            }
            _ => {}
        }
    }
    rules
}
