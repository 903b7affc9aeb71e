//! Patterns of classes and conditions, made ready for comparing when they are first asked for.
//!
//! A process judges one command and meets few of the rules; reading all of their patterns would cost it more than the judging.

use std::sync::OnceLock;

use super::{Rule, class_name, is_place};
use crate::place::Pattern;

/// An entry of a class or a condition: a place, or a pattern of words.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub text: String,
    pub place: Option<Pattern>,
    /// Written `!entry`: what it names is not of the class.
    pub except: bool,
}

impl Entry {
    pub fn new(text: &str) -> Entry {
        let (text, except) = match text.strip_prefix('!') {
            Some(text) if is_place(text) => (text, true),
            _ => (text, false),
        };
        let place = is_place(text).then(|| Pattern::parse(text));
        Entry { text: text.to_owned(), place, except }
    }

    /// In a class `!` always begins an exception; in a rule it may be part of a pattern of words.
    fn of_class(text: &str) -> Entry {
        match text.strip_prefix('!') {
            Some(excepted) => Entry { except: true, ..Entry::new(excepted) },
            None => Entry::new(text),
        }
    }
}

/// A named list.
#[derive(Debug, Clone)]
pub(super) struct Class {
    pub texts: Vec<String>,
    entries: OnceLock<Vec<Entry>>,
}

impl Class {
    pub fn new(texts: Vec<String>) -> Class {
        Class { texts, entries: OnceLock::new() }
    }

    pub fn entries(&self) -> &[Entry] {
        self.entries.get_or_init(|| self.texts.iter().map(|text| Entry::of_class(text)).collect())
    }
}

/// One pattern of a condition.
#[derive(Debug, Clone)]
pub(super) enum Item {
    /// `@name`.
    Class(String),
    Own(Entry),
}

/// Where a condition looks.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Among {
    Operands,
    LastOperand,
    All,
    Writes,
    Reads,
}

/// The conditions of a rule that are given, in the order they are tried.
#[derive(Debug, Clone, Default)]
pub struct Conditions(OnceLock<Vec<(usize, Vec<Item>)>>);

const ORDER: [Among; 6] =
    [Among::Operands, Among::LastOperand, Among::All, Among::All, Among::Writes, Among::Reads];

impl Rule {
    pub(super) fn conditions(&self) -> impl Iterator<Item = (Among, &[Item])> {
        let lists = self.ready.0.get_or_init(|| self.read_conditions());
        lists.iter().map(|(at, items)| (ORDER[*at], &items[..]))
    }

    fn read_conditions(&self) -> Vec<(usize, Vec<Item>)> {
        let lists =
            [&self.operand, &self.last, &self.argument, &self.also, &self.redirect, &self.reads];
        let item = |text: &String| match class_name(text) {
            Some(name) => Item::Class(name.to_owned()),
            None if self.ignore_case && !is_place(text) => {
                Item::Own(Entry::new(&text.to_lowercase()))
            }
            None => Item::Own(Entry::new(text)),
        };
        let given = lists.into_iter().enumerate().filter(|(_, list)| !list.is_empty());
        given.map(|(at, list)| (at, list.iter().map(item).collect())).collect()
    }
}
