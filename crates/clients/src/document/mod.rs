//! A configuration file as a tree in which every value knows its place, and edits as replacements of places.
//!
//! Keeps: everything outside of the places that are replaced, because it is never written again. What comes
//! out is parsed once more and compared with the tree that was meant; a difference is an error, and nothing
//! is written.

use std::fmt;
use std::ops::Range;

use crate::client::Format;
use crate::text;

mod json;
mod lists;
mod members;
mod quote;
mod splice;
mod toml;
mod yaml;

pub use quote::{key, list, quoted};
pub use splice::{Splice, apply};

/// Deeper files are no configuration.
const MOST_DEPTH: usize = 128;

/// A place in a file that cannot be understood. Lines and columns count from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fault {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
    /// What is wrong there.
    pub message: String,
}

impl Fault {
    /// A fault at a known line and column.
    pub fn new(line: usize, column: usize, message: impl Into<String>) -> Fault {
        Fault { line, column, message: message.into() }
    }

    pub(crate) fn at(text: &str, at: usize, message: impl Into<String>) -> Fault {
        let (line, column) = text::line_and_column(text, at);
        Fault { line, column, message: message.into() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)
    }
}

/// A value and its place.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Node {
    /// The bytes of the value in the file.
    pub span: Range<usize>,
    /// The value.
    pub value: Value,
}

/// A value of any of the formats.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Value {
    /// Keys with values, in the order of the file.
    Map(Vec<Member>),
    /// A list.
    List(Vec<Node>),
    /// A string, unescaped.
    Text(String),
    /// True or false.
    Bool(bool),
    /// Numbers, nulls, dates: as they are written.
    Other(String),
}

/// A key with its value.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Member {
    /// The key, unescaped.
    pub name: String,
    /// The bytes of the key in the file.
    pub key: Range<usize>,
    /// The value.
    pub node: Node,
}

/// The keys that lead to a value; in a list, the number of the element.
pub type Place = Vec<String>;

/// What an edit came to.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Edited {
    /// The new text of the file.
    pub text: String,
    /// The same, parsed.
    pub document: Document,
}

/// A parsed file.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Document {
    /// The format it was parsed as.
    pub format: Format,
    /// The text of the file.
    pub text: String,
    /// The outermost value.
    pub root: Node,
    /// Why it can be read and not be edited.
    pub fixed: Option<&'static str>,
}

impl Document {
    /// Parses a file. A file that repeats a key or nests too deeply is a fault.
    pub fn parse(format: Format, text: &str) -> Result<Document, Fault> {
        let mut fixed = None;
        let root = match format {
            Format::Json | Format::Jsonc => json::parse(text)?,
            Format::Toml => toml::parse(text)?,
            Format::Yaml => {
                let parsed = yaml::parse(text)?;
                fixed = parsed.fixed;
                parsed.root
            }
            Format::None => return Err(Fault::at(text, 0, "is no file that can be read")),
        };
        Ok(Document { format, text: text.to_owned(), root, fixed })
    }

    /// The value at a place.
    #[must_use]
    pub fn get(&self, place: &[String]) -> Option<&Node> {
        place.iter().try_fold(&self.root, |node, key| node.step(key))
    }

    pub(crate) fn fault(&self, at: usize, message: impl Into<String>) -> Fault {
        Fault::at(&self.text, at, message)
    }

    /// Carries out replacements, and holds the result against what was meant.
    pub(crate) fn edited(
        &self,
        splices: Vec<Splice>,
        expected: &Node,
    ) -> Result<Edited, &'static str> {
        if let Some(why) = self.fixed {
            return Err(why);
        }
        let text = splice::apply(&self.text, splices).ok_or("two edits meet in one place")?;
        let after =
            Document::parse(self.format, &text).map_err(|_| "the edited file would not parse")?;
        match after.root.is_same(expected) {
            true => Ok(Edited { text, document: after }),
            false => Err("the edit would change more than was meant"),
        }
    }
}

impl Node {
    fn step(&self, key: &str) -> Option<&Node> {
        match &self.value {
            Value::Map(members) => {
                members.iter().find(|member| member.name == key).map(|member| &member.node)
            }
            Value::List(nodes) => nodes.get(key.parse::<usize>().ok()?),
            _ => None,
        }
    }

    pub(crate) fn get_mut(&mut self, place: &[String]) -> Option<&mut Node> {
        let Some((key, rest)) = place.split_first() else {
            return Some(self);
        };
        let next = match &mut self.value {
            Value::Map(members) => &mut members.iter_mut().find(|member| member.name == *key)?.node,
            Value::List(nodes) => nodes.get_mut(key.parse::<usize>().ok()?)?,
            _ => return None,
        };
        next.get_mut(rest)
    }

    /// The members of a map; none for other values.
    #[must_use]
    pub fn members(&self) -> &[Member] {
        match &self.value {
            Value::Map(members) => members,
            _ => &[],
        }
    }

    /// The member of a map with this key.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<&Member> {
        self.members().iter().find(|member| member.name == name)
    }

    /// The value of the member with this key.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Node> {
        self.member(name).map(|member| &member.node)
    }

    /// The elements of a list; none for other values.
    #[must_use]
    pub fn elements(&self) -> &[Node] {
        match &self.value {
            Value::List(nodes) => nodes,
            _ => &[],
        }
    }

    /// The string, if the value is one.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A word of a command line, where clients take numbers for one as well.
    #[must_use]
    pub fn as_word(&self) -> Option<String> {
        match &self.value {
            Value::Text(text) | Value::Other(text) => Some(text.clone()),
            Value::Bool(value) => Some(value.to_string()),
            Value::Map(_) | Value::List(_) => None,
        }
    }

    /// The second place of a key that is there twice.
    pub(crate) fn twice(&self) -> Option<&Member> {
        let members = self.members();
        let is_again = |at: usize| members[..at].iter().any(|one| one.name == members[at].name);
        (1..members.len()).find(|at| is_again(*at)).map(|at| &members[at])
    }

    /// The same values under the same keys in the same order, wherever they are.
    #[must_use]
    pub fn is_same(&self, other: &Node) -> bool {
        match (&self.value, &other.value) {
            (Value::Map(one), Value::Map(two)) => {
                one.len() == two.len()
                    && one.iter().zip(two).all(|(a, b)| a.name == b.name && a.node.is_same(&b.node))
            }
            (Value::List(one), Value::List(two)) => {
                one.len() == two.len() && one.iter().zip(two).all(|(a, b)| a.is_same(b))
            }
            (Value::Text(one), Value::Text(two)) => one == two,
            (Value::Bool(one), Value::Bool(two)) => one == two,
            (Value::Other(one), Value::Other(two)) => one == two,
            _ => false,
        }
    }

    pub(crate) fn of_text(text: &str) -> Node {
        Node { span: 0..0, value: Value::Text(text.to_owned()) }
    }

    pub(crate) fn of_words(words: &[String]) -> Node {
        let nodes = words.iter().map(|word| Node::of_text(word)).collect();
        Node { span: 0..0, value: Value::List(nodes) }
    }
}
