//! The line by which a server is started, as its README has it.

use super::list::{Entry, Kind};
use super::place::Place;
use crate::Result;

/// `npx -y NAME@VERSION ARGUMENTS…` or `uvx NAME@VERSION ARGUMENTS…`.
pub fn line(entry: &Entry, newest: bool, place: &Place) -> Result<Vec<String>> {
    let (kind, name) = entry.split()?;
    let version = &entry.version;
    let mut words: Vec<String> = Vec::new();
    let mut say = |word: &str| words.push(word.to_owned());
    match kind {
        Kind::Npm => {
            let package = if newest { name.to_owned() } else { format!("{name}@{version}") };
            say("npx");
            say("-y");
            match &entry.program {
                None => say(&package),
                Some(program) => {
                    say("--package");
                    say(&package);
                    say(program);
                }
            }
        }
        Kind::Pypi => {
            say("uvx");
            for requirement in &entry.with {
                say("--with");
                say(requirement);
            }
            match (&entry.program, newest) {
                (None, true) => say(name),
                (None, false) => say(&format!("{name}@{version}")),
                (Some(program), _) => {
                    say("--from");
                    say(&if newest { name.to_owned() } else { format!("{name}=={version}") });
                    say(program);
                }
            }
        }
    }
    words.extend(arguments(entry, place));
    Ok(words)
}

pub fn arguments(entry: &Entry, place: &Place) -> Vec<String> {
    entry.arguments.iter().map(|word| place.filled(word)).collect()
}

/// What comes before the line: `run`, the grants and the variables.
pub fn grants(entry: &Entry, place: &Place) -> Vec<String> {
    let mut words = vec!["run".to_owned()];
    words.extend(entry.flags.iter().map(|word| place.filled(word)));
    for (name, value) in &entry.variables {
        words.push("--env".into());
        words.push(format!("{name}={}", place.filled(value)));
    }
    words
}
