//! The built-in rules as `build.rs` packs them, each read when a command first asks for it.

use std::sync::OnceLock;

use serde::de::value::{Error, MapDeserializer, SeqDeserializer};
use serde::de::{Deserialize, Deserializer, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;

use super::Rule;
use super::patterns::Class;
use crate::language::Shell;
use crate::verdict::Decision;

include!(concat!(env!("OUT_DIR"), "/rules.rs"));

/// Between the fields of a rule: a name, and its values after `VALUE` each.
const FIELD: char = '\u{1e}';
const VALUE: char = '\u{1f}';

/// Texts one after the other, and where each ends.
struct Texts {
    text: &'static str,
    ends: &'static [u32],
}

impl Texts {
    fn get(&self, number: usize) -> &'static str {
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start as usize..self.ends[number] as usize]
    }

    fn all(&self) -> impl Iterator<Item = &'static str> {
        (0..self.ends.len()).map(|number| self.get(number))
    }

    /// Which it is, of texts in order.
    fn find(&self, wanted: &str) -> Option<usize> {
        find(self.ends.len(), wanted, |number| self.get(number))
    }
}

fn find(count: usize, wanted: &str, text: impl Fn(usize) -> &'static str) -> Option<usize> {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low.midpoint(high);
        match text(middle).cmp(wanted) {
            std::cmp::Ordering::Less => low = middle + 1,
            std::cmp::Ordering::Equal => return Some(middle),
            std::cmp::Ordering::Greater => high = middle,
        }
    }
    None
}

/// What was read of the tables so far.
#[derive(Debug, Clone)]
pub struct Packed {
    rules: Vec<OnceLock<Box<Rule>>>,
    classes: Vec<OnceLock<Class>>,
}

impl Packed {
    pub fn new() -> Packed {
        Packed {
            rules: vec![OnceLock::new(); RULES.ends.len()],
            classes: vec![OnceLock::new(); CLASSES.ends.len()],
        }
    }

    pub fn count(&self) -> usize {
        self.rules.len()
    }

    pub fn rule(&self, number: usize) -> &Rule {
        self.rules[number].get_or_init(|| {
            // A rule that cannot be read must not be one rule less; a test reads them all.
            Box::new(
                read(RULES.get(number))
                    .unwrap_or_else(|_| Rule::stub(id(RULES.get(number)), Decision::Refuse)),
            )
        })
    }

    #[cfg(test)]
    pub fn read_so_far(&self) -> usize {
        self.rules.iter().filter(|rule| rule.get().is_some()).count()
    }

    pub fn get(&self, wanted: &str) -> Option<&Rule> {
        let number = |at: usize| usize::from(BY_ID[at]);
        let at = find(BY_ID.len(), wanted, |at| id(RULES.get(number(at))))?;
        Some(self.rule(number(at)))
    }

    pub fn is_for(&self, number: usize, shell: Shell) -> bool {
        let bit = match shell {
            Shell::Bash => 0,
            Shell::PowerShell => 1,
            Shell::Cmd => 2,
        };
        SHELLS[number] & 1 << bit != 0
    }

    /// Numbers of the rules that could be about a command of the first of these names; the second is the same in lower
    /// case.
    pub fn about(&self, names: [&str; 2]) -> Vec<usize> {
        let exact = names.into_iter().flat_map(by_name);
        let is_like = |(pattern, _): &(&str, &u16)| crate::wildcard::matches(pattern, names[0]);
        let like = PATTERNS.all().zip(&PATTERN_RULES).filter(is_like).map(|(_, number)| number);
        exact.chain(like).chain(&ABOUT_ALL).copied().map(usize::from).collect()
    }

    pub fn class(&self, name: &str) -> Option<&Class> {
        CLASS_NAMES.find(name).map(|number| self.class_numbered(number))
    }

    pub fn classes(&self) -> impl Iterator<Item = (&str, &Class)> {
        CLASS_NAMES.all().enumerate().map(|(number, name)| (name, self.class_numbered(number)))
    }

    fn class_numbered(&self, number: usize) -> &Class {
        self.classes[number].get_or_init(|| {
            Class::new(CLASSES.get(number).split(VALUE).skip(1).map(str::to_owned).collect())
        })
    }
}

/// Rules about a command of exactly this name.
fn by_name(name: &str) -> &'static [u16] {
    NAMES.find(name).map_or(&[], |at| {
        let start = at.checked_sub(1).map_or(0, |before| NAME_ENDS[before]);
        &NAME_RULES[usize::from(start)..usize::from(NAME_ENDS[at])]
    })
}

/// The first field of a rule.
fn id(packed: &'static str) -> &'static str {
    let field = packed.split(FIELD).next().and_then(|field| field.split_once(VALUE));
    field.map_or("", |(_, id)| id)
}

/// The reader of rule files reads them, so that both mean the same.
fn read(packed: &'static str) -> Result<Rule, Error> {
    Rule::deserialize(MapDeserializer::new(packed.split(FIELD).map(|field| {
        let (name, values) = field.split_at(field.find(VALUE).unwrap_or(field.len()));
        (name, Values(values))
    })))
}

/// The values of a field, each after `VALUE`. A switch that is on has none.
struct Values<'de>(&'de str);

impl<'de> Values<'de> {
    fn iter(&self) -> impl Iterator<Item = &'de str> + use<'de> {
        self.0.split(VALUE).skip(1)
    }

    fn single(&self) -> &'de str {
        self.iter().next().unwrap_or_default()
    }
}

impl<'de> IntoDeserializer<'de> for Values<'de> {
    type Deserializer = Values<'de>;

    fn into_deserializer(self) -> Values<'de> {
        self
    }
}

impl<'de> Deserializer<'de> for Values<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_borrowed_str(self.single())
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_bool(true)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_seq(SeqDeserializer::new(self.iter()))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.single().into_deserializer().deserialize_enum(name, variants, visitor)
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct tuple tuple_struct map struct identifier ignored_any
    }
}
