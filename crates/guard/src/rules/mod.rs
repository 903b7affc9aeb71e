//! Rules as data: what a command must look like, and what is said about it.
//!
//! The built-in ones are in `builtin.toml`; users add files of the same form. Every rule carries
//! examples that it must and must not match: those of users' files are tried when the file is read,
//! the built-in ones by the tests.

mod load;
mod matching;
mod rule;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

pub use load::RulesError;
pub use matching::{Invocation, Words};
pub use rule::{Group, Rule, Unsure, When};

use crate::context::Shell;

#[derive(Debug, Clone)]
pub struct Rules {
    pub(crate) all: Vec<Rule>,
    /// Which rules could match a command of this name.
    by_name: HashMap<String, Vec<usize>>,
    /// Those that no plain name leads to.
    by_pattern: Vec<usize>,
    classes: HashMap<String, Vec<String>>,
}

impl Rules {
    /// The rules this library comes with.
    pub fn built_in() -> Arc<Rules> {
        static RULES: OnceLock<Arc<Rules>> = OnceLock::new();
        let rules = RULES.get_or_init(|| {
            // A built-in file that cannot be read must not become a guard without rules; a test
            // shows that it can be read.
            Arc::new(load::parse(BUILT_IN).unwrap_or_else(|_| Rules::refusing_everything()))
        });
        rules.clone()
    }

    /// These rules and those of a user's file, which may also switch off some of them.
    pub fn with(&self, text: &str) -> Result<Rules, RulesError> {
        load::extend(self, text)
    }

    /// Tries all examples of all rules.
    pub fn verify(&self) -> Result<(), RulesError> {
        load::verify(self, &self.all)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.all.iter()
    }

    pub fn get(&self, id: &str) -> Option<&Rule> {
        self.all.iter().find(|rule| rule.id == id)
    }

    fn refusing_everything() -> Rules {
        let rule = Rule::stub("broken-rules", crate::Decision::Refuse);
        Rules::new(vec![rule], HashMap::new())
    }

    fn new(all: Vec<Rule>, classes: HashMap<String, Vec<String>>) -> Rules {
        let mut rules = Rules { all, by_name: HashMap::new(), by_pattern: Vec::new(), classes };
        for (number, rule) in rules.all.iter().enumerate() {
            if rule.raised_by_code {
                continue;
            }
            let names = rule.command.iter().flat_map(|name| match class_name(name) {
                Some(class) => rules.classes.get(class).cloned().unwrap_or_default(),
                None => vec![name.clone()],
            });
            let names: Vec<String> = names.collect();
            if names.is_empty() || names.iter().any(|name| name.contains(['*', '?'])) {
                rules.by_pattern.push(number);
                continue;
            }
            for name in names {
                rules.by_name.entry(name.to_lowercase()).or_default().push(number);
            }
        }
        rules
    }

    /// Rules that could be about a command of this name in this shell.
    pub(crate) fn about(&self, name: &str, shell: Shell) -> impl Iterator<Item = &Rule> {
        let named = self.by_name.get(&name.to_lowercase()).into_iter().flatten();
        let all = named.chain(&self.by_pattern).map(|number| &self.all[*number]);
        all.filter(move |rule| rule.shell.contains(&shell))
    }

    /// The places or words that `@name` stands for; a pattern stands for itself.
    pub(crate) fn class<'a>(&'a self, pattern: &'a str) -> &'a [String] {
        class_name(pattern)
            .and_then(|name| self.classes.get(name))
            .map_or(&[], |places| &places[..])
    }
}

/// The name in `@name`; `@*` is a pattern.
fn class_name(pattern: &str) -> Option<&str> {
    pattern
        .strip_prefix('@')
        .filter(|name| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'))
}

/// Compared as a place, not as a text.
fn is_place(pattern: &str) -> bool {
    pattern.starts_with(['/', '~']) || pattern.starts_with("./") || matches!(pattern, "." | "..")
}

const BUILT_IN: &str = include_str!("builtin.toml");

#[cfg(test)]
mod tests;
