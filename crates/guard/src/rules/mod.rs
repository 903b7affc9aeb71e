//! Rules as data: what a command must look like, and what is said about it.
//!
//! The built-in ones are in `builtin.toml` and the files beside it; users add files of the same form. Every rule
//! carries examples that it must and must not match: those of users' files are tried when the file is read, the
//! built-in ones by the tests.

pub(crate) mod address;
mod flags;
mod load;
mod loopback;
mod matching;
mod packed;
mod patterns;
mod read;
mod rule;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

pub use load::RulesError;
pub(crate) use load::{error, extend};
pub use matching::{Invocation, Words};
pub use rule::{Confined, Group, Rule, Unsure, When};

use crate::language::Shell;
use packed::Packed;
use patterns::{Class, Entry};
use read::Read;

/// Rules of the guard: the built-in ones, and those that were added.
#[derive(Debug, Clone)]
pub struct Rules {
    store: Store,
}

#[derive(Debug, Clone)]
enum Store {
    /// The built-in ones alone.
    Packed(Packed),
    /// Those of a file.
    Read(Read),
}

impl Rules {
    /// The rules this library comes with.
    pub fn built_in() -> Arc<Rules> {
        static RULES: OnceLock<Arc<Rules>> = OnceLock::new();
        RULES.get_or_init(|| Arc::new(Rules { store: Store::Packed(Packed::new()) })).clone()
    }

    fn new(all: Vec<Rule>, classes: HashMap<String, Vec<String>>) -> Rules {
        Rules { store: Store::Read(Read::new(all, classes)) }
    }

    /// Every rule.
    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        (0..self.count()).map(|number| self.rule(number))
    }

    fn count(&self) -> usize {
        match &self.store {
            Store::Packed(packed) => packed.count(),
            Store::Read(read) => read.all.len(),
        }
    }

    fn rule(&self, number: usize) -> &Rule {
        match &self.store {
            Store::Packed(packed) => packed.rule(number),
            Store::Read(read) => &read.all[number],
        }
    }

    /// The rule of this name.
    pub fn get(&self, id: &str) -> Option<&Rule> {
        match &self.store {
            Store::Packed(packed) => packed.get(id),
            Store::Read(read) => read.all.iter().find(|rule| rule.id == id),
        }
    }

    /// Rules that could be about a command of this name in this shell, each once.
    pub(crate) fn about(&self, name: &str, shell: Shell) -> Vec<&Rule> {
        // On macOS and Windows `/bin/RM` is `/bin/rm`.
        let lower = name.to_ascii_lowercase();
        let mut numbers = match &self.store {
            Store::Packed(packed) => packed.about([name, &lower]),
            Store::Read(read) => read.about([name, &lower]),
        };
        numbers.sort_unstable();
        numbers.dedup();
        let is_for = |number: &usize| match &self.store {
            Store::Packed(packed) => packed.is_for(*number, shell),
            Store::Read(read) => read.all[*number].shell.contains(&shell),
        };
        numbers.into_iter().filter(is_for).map(|number| self.rule(number)).collect()
    }

    /// What `@name` stands for.
    pub(crate) fn class(&self, pattern: &str) -> Option<&[Entry]> {
        class_name(pattern).map(|name| self.class_named(name))
    }

    fn class_named(&self, name: &str) -> &[Entry] {
        let class = match &self.store {
            Store::Packed(packed) => packed.class(name),
            Store::Read(read) => read.classes.get(name),
        };
        class.map_or(&[][..], Class::entries)
    }

    fn class_texts(&self) -> HashMap<String, Vec<String>> {
        match &self.store {
            Store::Packed(packed) => packed
                .classes()
                .map(|(name, class)| (name.to_owned(), class.texts.clone()))
                .collect(),
            Store::Read(read) => read
                .classes
                .iter()
                .map(|(name, class)| (name.clone(), class.texts.clone()))
                .collect(),
        }
    }
}

/// The name in `@name`; `@*` is a pattern.
fn class_name(pattern: &str) -> Option<&str> {
    pattern
        .strip_prefix('@')
        .filter(|name| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'))
}

/// Compared as a place, not as a text. `/etc:*` is a mount of a container.
fn is_place(pattern: &str) -> bool {
    let starts = pattern.starts_with(['/', '~']) || pattern.starts_with("./");
    starts && !pattern.contains(':') || matches!(pattern, "." | "..")
}

/// One file per concern; the classes are in the first.
#[cfg(test)]
pub(crate) const SOURCES: &str = concat!(
    include_str!("builtin.toml"),
    include_str!("sources.toml"),
    include_str!("credentials.toml"),
    include_str!("services.toml"),
    include_str!("persistence.toml"),
    include_str!("windows.toml"),
);

/// The built-in rules with their examples.
#[cfg(test)]
pub(crate) fn with_examples() -> Rules {
    load::parse(SOURCES).unwrap_or_else(|_| Rules::new(Vec::new(), HashMap::new()))
}

#[cfg(test)]
mod tests;
