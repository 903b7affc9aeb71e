//! Rules as data: what a command must look like, and what is said about it.
//!
//! The built-in ones are in `builtin.toml`; users add files of the same form. Every rule carries
//! examples that it must and must not match: those of users' files are tried when the file is read,
//! the built-in ones by the tests.

pub(crate) mod address;
mod flags;
mod load;
mod loopback;
mod matching;
mod patterns;
mod rule;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

pub use load::RulesError;
pub(crate) use load::{error, extend};
pub use matching::{Invocation, Words};
pub use rule::{Confined, Group, Rule, Unsure, When};

use crate::language::Shell;
use patterns::{Class, Entry};

/// Rules of the guard: the built-in ones, and those that were added.
#[derive(Debug, Clone)]
pub struct Rules {
    pub(crate) all: Vec<Rule>,
    /// Which rules could be about a command of this name.
    by_name: HashMap<String, Vec<usize>>,
    /// And of a name like this.
    by_pattern: Vec<(String, usize)>,
    /// Those about any command.
    about_all: Vec<usize>,
    classes: HashMap<String, Class>,
}

impl Rules {
    /// The rules this library comes with.
    pub fn built_in() -> Arc<Rules> {
        static RULES: OnceLock<Arc<Rules>> = OnceLock::new();
        let rules = RULES.get_or_init(|| {
            // A built-in file that cannot be read must not become a guard without rules; a test
            // shows that it can be read.
            Arc::new(load::parse_ready(BUILT_IN).unwrap_or_else(|_| Rules::refusing_everything()))
        });
        rules.clone()
    }

    /// Every rule.
    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.all.iter()
    }

    /// The rule of this name.
    pub fn get(&self, id: &str) -> Option<&Rule> {
        self.all.iter().find(|rule| rule.id == id)
    }

    fn refusing_everything() -> Rules {
        let rule = Rule::stub("broken-rules", crate::Decision::Refuse);
        Rules::new(vec![rule], HashMap::new())
    }

    fn new(all: Vec<Rule>, classes: HashMap<String, Vec<String>>) -> Rules {
        let classes = classes.into_iter().map(|(name, list)| (name, Class::new(list))).collect();
        let mut rules = Rules {
            all: Vec::new(),
            by_name: HashMap::new(),
            by_pattern: Vec::new(),
            about_all: Vec::new(),
            classes,
        };
        for (number, rule) in all.iter().enumerate().filter(|(_, rule)| !rule.raised_by_code) {
            if rule.command.is_empty() {
                rules.about_all.push(number);
            }
            for name in rules.names(&rule.command) {
                if name.contains(['*', '?']) {
                    rules.by_pattern.push((name, number));
                } else {
                    rules.by_name.entry(name).or_default().push(number);
                }
            }
        }
        rules.all = all;
        rules
    }

    /// Names with classes written out.
    fn names(&self, list: &[String]) -> Vec<String> {
        let written = |name: &String| match class_name(name).and_then(|c| self.classes.get(c)) {
            Some(class) => class.texts.clone(),
            None => vec![name.clone()],
        };
        list.iter().flat_map(written).collect()
    }

    /// Rules that could be about a command of this name in this shell, each once.
    pub(crate) fn about(&self, name: &str, shell: Shell) -> Vec<&Rule> {
        let mut numbers = self.by_name.get(name).cloned().unwrap_or_default();
        // On macOS and Windows `/bin/RM` is `/bin/rm`.
        let lower = name.to_ascii_lowercase();
        numbers.extend(self.by_name.get(&lower).into_iter().flatten());
        for (pattern, number) in &self.by_pattern {
            if crate::wildcard::matches(pattern, name) {
                numbers.push(*number);
            }
        }
        numbers.extend(&self.about_all);
        numbers.sort_unstable();
        numbers.dedup();
        let rules = numbers.into_iter().map(|number| &self.all[number]);
        rules.filter(|rule| rule.shell.contains(&shell)).collect()
    }

    /// What `@name` stands for.
    pub(crate) fn class(&self, pattern: &str) -> Option<&[Entry]> {
        class_name(pattern).map(|name| self.class_named(name))
    }

    fn class_named(&self, name: &str) -> &[Entry] {
        self.classes.get(name).map_or(&[][..], Class::entries)
    }

    fn class_texts(&self) -> HashMap<String, Vec<String>> {
        self.classes.iter().map(|(name, class)| (name.clone(), class.texts.clone())).collect()
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

/// The rules of `*.toml` without their examples, in a form that is read fast; a test compares them.
/// `UPDATE_RULES=1 cargo test -p mcp-guard --lib rules::` writes it anew.
const BUILT_IN: &str = include_str!("builtin.json");

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
    load::parse(SOURCES).unwrap_or_else(|_| Rules::refusing_everything())
}

#[cfg(test)]
mod tests;
