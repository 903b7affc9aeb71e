//! `cargo xtask switches`: does a test notice when a control is gone?
//!
//! switches.toml and those beside it list controls, each with the edit that turns it off and the
//! tests that must fail then. Each edit is made in a copy of the tree, built, and tried. A control
//! that no test misses is a hole in the tests. Takes about ten seconds each, so it is no part of
//! CI; that every edit still fits its source is.

mod guest;
mod suites;
mod together;
mod tree;
mod trial;

use std::process::ExitCode;

use serde::Deserialize;

use crate::Result;
use tree::Tree;
use trial::{Results, Suite, Trial};

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
    /// Turn many off at once, each in two companies that share no other switch, and only the rest alone: some five times as
    /// fast
    #[arg(long, conflicts_with = "discover")]
    together: bool,
    /// The tests are known to pass with nothing switched off: do not run them first
    #[arg(long)]
    sound: bool,
    /// Leave out tests that need a virtual machine
    #[arg(long)]
    here: bool,
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
#[derive(Debug)]
enum Outcome {
    Caught(Vec<String>),
    NotCaught,
    DoesNotBuild(String),
    /// All of its tests were left out, or fail with nothing switched off.
    NotTried,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let mut list = switches()?;
    if args.here {
        let is_elsewhere = |test: &String| test.starts_with("guest");
        list.iter_mut().for_each(|switch| switch.tests.retain(|test| !is_elsewhere(test)));
    }
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
    let before = match args.sound {
        true => Results::default(),
        false => trial.results(&tree, &suite(args, &named))?,
    };
    if !before.failed.is_empty() {
        println!("LEFT OUT, for they fail with nothing switched off: {}", before.failed.join(" "));
    }
    let is_absent = |name: &&&str| !before.run.iter().any(|run| run == **name);
    let named: Vec<&str> = named.iter().map(|name| name.as_str()).collect();
    let absent: Vec<&str> = named.iter().filter(is_absent).copied().collect();
    if !args.discover && !args.sound && !absent.is_empty() {
        return Err(format!("there are no such tests: {}", absent.join(" ")).into());
    }
    let mut caught = match args.together {
        true => together::caught(&chosen, &before.failed, &tree, &trial)?,
        false => chosen.iter().map(|_| None).collect(),
    };
    let mut holes = 0;
    for (at, switch) in chosen.iter().enumerate() {
        let outcome = match caught[at].take() {
            Some(outcome) => outcome,
            None => tried(switch, args, &before.failed, &tree, &trial)?,
        };
        let hidden = switch.hidden.as_deref();
        let text = match (&outcome, hidden) {
            (Outcome::Caught(tests), _) => format!("caught by {}", tests.join(" ")),
            (Outcome::NotCaught, Some(why)) => format!("hidden: {why}"),
            (Outcome::NotCaught, None) => "NOT CAUGHT".to_owned(),
            (Outcome::DoesNotBuild(why), _) => format!("DOES NOT BUILD: {why}"),
            (Outcome::NotTried, _) => "NOT TRIED".to_owned(),
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

fn tried(
    switch: &Switch,
    args: &Args,
    unsound: &[String],
    tree: &Tree,
    trial: &Trial,
) -> Result<Outcome> {
    let _edited = tree.edited(&switch.edit)?;
    let named: Vec<&String> = sound(switch, unsound).collect();
    if named.is_empty() && switch.hidden.is_none() && !args.discover {
        return Ok(Outcome::NotTried);
    }
    let suite = suite(args, &named);
    if let Err(why) = trial.build(tree, &suite) {
        return Ok(Outcome::DoesNotBuild(why.to_string()));
    }
    let mut failed = trial.results(tree, &suite)?.failed;
    failed.retain(|test| !unsound.contains(test));
    Ok(if failed.is_empty() { Outcome::NotCaught } else { Outcome::Caught(failed) })
}

/// Tests of a switch that tell something: they do not fail anyway.
fn sound<'a>(switch: &'a Switch, unsound: &'a [String]) -> impl Iterator<Item = &'a String> {
    switch.tests.iter().filter(|test| !unsound.contains(test))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

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

    /// Tests move; a name that leads nowhere would be seen only after an hour.
    #[test]
    fn every_test_is_where_its_name_says() {
        let top = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../"));
        let all = switches().unwrap();
        let names: Vec<&str> =
            all.iter().flat_map(|switch| &switch.tests).map(String::as_str).collect();
        for (place, tests) in suites::by_place(&names).unwrap() {
            let below = top.join(place.sources());
            let mut files = Vec::new();
            source_files(&below, &mut files);
            for test in tests {
                let (modules, function) = test.rsplit_once("::").unwrap_or(("", test));
                let above = modules.rsplit_once("::").map_or("", |(above, _)| above);
                let is_there = |file: &PathBuf| {
                    let own = file.strip_prefix(&below).unwrap().with_extension("");
                    let own: Vec<_> = own.iter().map(|name| name.to_string_lossy()).collect();
                    let own = own.join("::").replace("::mod", "");
                    let own = if ["lib", "main"].contains(&own.as_str()) { "" } else { &own };
                    // In a file of its own, or in a module at the end of the code; the tests of the guard are of several kinds.
                    let fits = own == modules || own == above || place.prefix() == "guard:";
                    // Some are of a list that several systems share.
                    fits && fs::read_to_string(file).unwrap().contains(function)
                };
                assert!(files.iter().any(is_there), "{place:?}: no such test: {test}");
            }
        }
    }

    fn source_files(below: &Path, files: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(below).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => source_files(&path, files),
                false => {
                    files.extend((path.extension().is_some_and(|e| e == "rs")).then_some(path))
                }
            }
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
