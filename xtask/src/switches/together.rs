//! Many switches by few builds: each is off twice, in two companies that share no other switch.
//!
//! The switches stand in a square; a row is off at once, then a column. One whose tests fail both times is caught: nothing
//! but itself was off both times. (Two others that break the same tests, one in its row and one in its column, would deceive
//! this; a run without `--together` does not ask for that much luck.) The rest is tried alone.

use std::collections::{BTreeMap, BTreeSet};

use super::suites::{Place, by_place};
use super::tree::Tree;
use super::trial::{Suite, Trial};
use super::{Outcome, Switch};
use crate::Result;

/// The tests that noticed each switch, where it was noticed in both companies.
pub fn caught(
    switches: &[&Switch],
    unsound: &[String],
    tree: &Tree,
    trial: &Trial,
) -> Result<Vec<Option<Outcome>>> {
    let is_able = |at: &usize| is_able(switches[*at], unsound);
    let able: Vec<usize> = (0..switches.len()).filter(is_able).collect();
    let side = (1..).find(|side| side * side >= able.len()).unwrap_or(1);
    let row = |line: usize| able.iter().skip(line * side).take(side).copied().collect::<Vec<_>>();
    let column = |line: usize| able.iter().skip(line).step_by(side).copied().collect::<Vec<_>>();
    let companies = (0..side).map(row).chain((0..side).map(column));
    let mut noticed: Vec<Vec<Vec<String>>> = vec![Vec::new(); switches.len()];
    for company in companies.filter(|company| !company.is_empty()) {
        for (at, tests) in tried(&company, switches, tree, trial) {
            noticed[at].push(tests);
        }
    }
    let outcome = |times: Vec<Vec<String>>| match &times[..] {
        [first, second] if !first.is_empty() && !second.is_empty() => {
            Some(Outcome::Caught(first.clone()))
        }
        _ => None,
    };
    Ok(noticed.into_iter().map(outcome).collect())
}

/// A virtual machine for each company would take longer than it saves, and what no test can notice alone is not looked for
/// in company.
fn is_able(switch: &Switch, unsound: &[String]) -> bool {
    let names: Vec<&str> = switch.tests.iter().map(String::as_str).collect();
    let is_here = |places: BTreeMap<Place, _>| {
        !places.is_empty() && !places.keys().any(|at| matches!(at, Place::Guest(_)))
    };
    switch.hidden.is_none()
        && !switch.tests.iter().any(|test| unsound.contains(test))
        && by_place(&names).is_ok_and(is_here)
}

/// Turns those off that can be off together, and says which tests of each failed.
fn tried(
    company: &[usize],
    switches: &[&Switch],
    tree: &Tree,
    trial: &Trial,
) -> Vec<(usize, Vec<String>)> {
    let mut edits = Vec::new();
    let mut off = Vec::new();
    let mut names = BTreeSet::new();
    for at in company {
        let switch = switches[*at];
        // Whose test failed must be plain.
        if switch.tests.iter().any(|test| names.contains(test.as_str())) {
            continue;
        }
        if let Ok(edited) = tree.edited(&switch.edit) {
            edits.push(edited);
            off.push(*at);
            names.extend(switch.tests.iter().map(String::as_str));
        }
    }
    let suite = Suite::Named(names.into_iter().collect());
    let results = trial.build(tree, &suite).and_then(|()| trial.results(tree, &suite));
    let failed = results.map(|results| results.failed).unwrap_or_else(|why| {
        println!("these cannot be off together: {why}");
        Vec::new()
    });
    // In the other order, or what one put back would be another's edit.
    while edits.pop().is_some() {}
    let of = |at: usize| {
        let own = switches[at].tests.iter().filter(|test| failed.contains(*test));
        (at, own.cloned().collect::<Vec<_>>())
    };
    let tried: Vec<_> = off.into_iter().map(of).collect();
    let missed = tried.iter().filter(|(_, tests)| tests.is_empty());
    let missed: Vec<_> = missed.map(|(at, _)| switches[*at].name.as_str()).collect();
    println!("{} of {} noticed together", tried.len() - missed.len(), tried.len());
    if !missed.is_empty() {
        println!("  to be tried alone: {}", missed.join(" "));
    }
    tried
}
