//! Rules that were read from a file, all of them at once.

use std::collections::HashMap;

use super::patterns::Class;
use super::{Rule, class_name};

/// Rules with an index by the names they are about.
#[derive(Debug, Clone)]
pub struct Read {
    pub all: Vec<Rule>,
    /// Which rules could be about a command of this name.
    by_name: HashMap<String, Vec<usize>>,
    /// And of a name like this.
    by_pattern: Vec<(String, usize)>,
    /// Those about any command.
    about_all: Vec<usize>,
    pub classes: HashMap<String, Class>,
}

impl Read {
    pub fn new(all: Vec<Rule>, classes: HashMap<String, Vec<String>>) -> Read {
        let classes = classes.into_iter().map(|(name, list)| (name, Class::new(list))).collect();
        let mut rules = Read {
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

    /// Numbers of the rules that could be about a command of the first of these names; the second is the same in lower
    /// case.
    pub fn about(&self, names: [&str; 2]) -> Vec<usize> {
        let exact = names.iter().filter_map(|name| self.by_name.get(*name)).flatten().copied();
        let is_like = |(pattern, _): &&(String, usize)| crate::wildcard::matches(pattern, names[0]);
        let like = self.by_pattern.iter().filter(is_like).map(|(_, number)| *number);
        exact.chain(like).chain(self.about_all.iter().copied()).collect()
    }
}
