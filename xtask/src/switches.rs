//! `cargo xtask switches`: does a test notice when a control is gone?
//!
//! switches.toml and those beside it list controls, each with the edit that turns it off and the
//! tests that must fail then. Each edit is made in a copy of the tree, built, and tried. A control
//! that no test misses is a hole in the tests. Takes about ten seconds each, so it is no part of
//! CI; that every edit still fits its source is.

mod guest;
mod suites;
mod tree;
mod trial;

use std::process::ExitCode;

use serde::Deserialize;

use crate::Result;
use tree::Tree;
use trial::{Suite, Trial};

const LISTS: [&str; 5] = [
    include_str!("../switches.toml"),
    include_str!("../switches-host.toml"),
    include_str!("../switches-network.toml"),
    include_str!("../switches-packages.toml"),
    include_str!("../switches-plain.toml"),
];

/// Turn controls off one by one and see which tests notice
#[derive(clap::Args)]
pub struct Args {
    /// Only switches whose name contains this
    #[arg(value_name = "PART")]
    only: Vec<String>,
    /// Run every escape test, not only those that are named
    #[arg(long)]
    discover: bool,
    /// Print the list and stop
    #[arg(long)]
    list: bool,
}

#[derive(Deserialize)]
struct List {
    switch: Vec<Switch>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Switch {
    name: String,
    /// What is off then.
    off: String,
    /// Tests that fail then, with the word in front that says where they are (see [`suites`]).
    #[serde(default)]
    tests: Vec<String>,
    /// Why no test can notice this one alone.
    hidden: Option<String>,
    edit: Vec<Edit>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Edit {
    file: String,
    find: String,
    replace: String,
}

impl Edit {
    /// The text with the edit made; None when the text to find is not there, or not only once.
    fn made(&self, text: &str) -> Option<String> {
        (text.matches(&self.find).count() == 1).then(|| text.replacen(&self.find, &self.replace, 1))
    }
}

/// What came of one switch.
enum Outcome {
    Caught(Vec<String>),
    NotCaught,
    DoesNotBuild(String),
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let list = switches()?;
    let is_chosen = |switch: &&Switch| {
        args.only.is_empty() || args.only.iter().any(|part| switch.name.contains(part))
    };
    let chosen: Vec<&Switch> = list.iter().filter(is_chosen).collect();
    if args.list {
        chosen.iter().for_each(|switch| println!("{:<30} {}", switch.name, switch.off));
        return Ok(ExitCode::SUCCESS);
    }
    let tree = Tree::copy(&crate::workspace(), &crate::target_directory().join("switches"))?;
    let trial = Trial::prepare(&tree)?;
    let mut named: Vec<&String> = chosen.iter().flat_map(|switch| &switch.tests).collect();
    named.sort();
    named.dedup();
    let before = trial.results(&tree, &suite(args, &named))?;
    if !before.failed.is_empty() {
        return Err(format!("fail with nothing switched off: {}", before.failed.join(" ")).into());
    }
    let is_absent = |name: &&&str| !before.run.iter().any(|run| run == **name);
    let named: Vec<&str> = named.iter().map(|name| name.as_str()).collect();
    let absent: Vec<&str> = named.iter().filter(is_absent).copied().collect();
    if !args.discover && !absent.is_empty() {
        return Err(format!("there are no such tests: {}", absent.join(" ")).into());
    }
    let mut holes = 0;
    for switch in &chosen {
        let outcome = tried(switch, args, &tree, &trial)?;
        let hidden = switch.hidden.as_deref();
        let text = match (&outcome, hidden) {
            (Outcome::Caught(tests), _) => format!("caught by {}", tests.join(" ")),
            (Outcome::NotCaught, Some(why)) => format!("hidden: {why}"),
            (Outcome::NotCaught, None) => "NOT CAUGHT".to_owned(),
            (Outcome::DoesNotBuild(why), _) => format!("DOES NOT BUILD: {why}"),
        };
        holes += usize::from(!matches!(outcome, Outcome::Caught(_)) && hidden.is_none());
        println!("{:<30} {text}", switch.name);
    }
    println!("\n{} switches, {holes} not caught", chosen.len());
    Ok(if holes == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn switches() -> Result<Vec<Switch>> {
    let mut switches = Vec::new();
    for list in LISTS {
        switches.extend(toml::from_str::<List>(list)?.switch);
    }
    Ok(switches)
}

fn suite<'a>(args: &Args, named: &[&'a String]) -> Suite<'a> {
    match args.discover {
        true => Suite::All,
        false => Suite::Named(named.iter().map(|name| name.as_str()).collect()),
    }
}

fn tried(switch: &Switch, args: &Args, tree: &Tree, trial: &Trial) -> Result<Outcome> {
    let _edited = tree.edited(&switch.edit)?;
    let named: Vec<&String> = switch.tests.iter().collect();
    let suite = suite(args, &named);
    if let Err(why) = trial.build(tree, &suite) {
        return Ok(Outcome::DoesNotBuild(why.to_string()));
    }
    let failed = trial.results(tree, &suite)?.failed;
    Ok(if failed.is_empty() { Outcome::NotCaught } else { Outcome::Caught(failed) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The list must not rot: each edit still fits, and changes something.
    #[test]
    fn every_edit_fits_its_source() {
        let top = concat!(env!("CARGO_MANIFEST_DIR"), "/../");
        for switch in switches().unwrap() {
            for edit in &switch.edit {
                let text = std::fs::read_to_string(format!("{top}{}", edit.file)).unwrap();
                let made = edit.made(&text);
                assert!(
                    made.is_some(),
                    "{}: {} has not once: {}",
                    switch.name,
                    edit.file,
                    edit.find
                );
                assert_ne!(made.unwrap(), text, "{}", switch.name);
            }
        }
    }

    #[test]
    fn every_test_is_of_a_suite_that_there_is() {
        for switch in switches().unwrap() {
            let names: Vec<&str> = switch.tests.iter().map(String::as_str).collect();
            assert!(suites::by_place(&names).is_ok(), "{}", switch.name);
        }
    }

    #[test]
    fn every_switch_has_a_name_of_its_own_and_is_caught_or_hidden() {
        let mut names = std::collections::BTreeSet::new();
        for switch in switches().unwrap() {
            assert!(!switch.tests.is_empty() || switch.hidden.is_some(), "{}", switch.name);
            assert!(names.insert(switch.name.clone()), "{} twice", switch.name);
        }
    }

    #[test]
    fn an_edit_needs_its_text_exactly_once() {
        let edit = Edit { file: String::new(), find: "a".into(), replace: "b".into() };
        assert_eq!(edit.made("xay").as_deref(), Some("xby"));
        assert_eq!(edit.made("xyz"), None);
        assert_eq!(edit.made("aa"), None);
    }
}
