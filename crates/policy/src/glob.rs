//! Globs of deny rules: `*`, `?`, `[…]` within a name, `**` for any number of directories,
//! `{a,b}` for alternatives.
//!
//! A rule that fails to match leaves a file open, so whatever is not a well-formed class or
//! group stands for itself, `*` matches leading dots as well, and a name need not be UTF-8. There
//! is no escape character: `[*]` is a star.

use std::path::{Path, PathBuf};

use crate::wildcard;

/// A pattern over the names of a path, below a directory that is meant literally.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob {
    /// Absolute; `..` and symlinks in it are for the host to resolve.
    pub head: PathBuf,
    /// What follows the plain directory, part by part.
    pub tail: Vec<Part>,
    /// Written without a directory, so it means every place.
    pub floating: bool,
}

/// What one name must be; `AnyDepth` stands for any number of names and is never the last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// `**`: any number of directories.
    AnyDepth,
    /// A name as it is written.
    Name(Vec<u8>),
    /// A name with wildcards.
    Shape(Shape),
}

/// A name with wildcards in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// The pieces, in order.
    pub tokens: Vec<Token>,
    /// What every match ends with: most names are turned away by it.
    suffix: Vec<u8>,
}

/// A piece of a name with wildcards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Token {
    /// This character.
    One(u32),
    /// `?`: any one character.
    AnyOne,
    /// `*`: any number of characters.
    AnyRun,
    /// `[a-z]`, `[!a-z]`: one character of a set.
    Class {
        /// Whether it is one that is not in the set.
        negated: bool,
        /// The set: first and last characters, both included.
        ranges: Vec<(u32, u32)>,
    },
}

/// More than anybody writes; groups multiply.
const MOST_ALTERNATIVES: usize = 256;

/// The longest path the kernel takes. Groups nest no deeper than that either.
const LONGEST: usize = 4096;

/// The globs that a deny entry stands for, or why it can stand for none.
pub fn parse(entry: &Path) -> Result<Vec<Glob>, &'static str> {
    if entry.as_os_str().len() > LONGEST {
        return Err("is longer than any path can be");
    }
    let mut alternatives = Vec::new();
    expand(Vec::new(), entry.as_os_str().as_encoded_bytes(), &mut alternatives)?;
    alternatives.iter().map(|pattern| Glob::parse(pattern)).collect()
}

impl Glob {
    fn parse(pattern: &[u8]) -> Result<Glob, &'static str> {
        let floating = !pattern.starts_with(b"/");
        let mut head = PathBuf::from("/");
        let mut tail = Vec::new();
        for name in pattern.split(|byte| *byte == b'/') {
            match (part(name), tail.is_empty() && !floating) {
                (Part::Name(name), _) if name.is_empty() || name == b"." => {}
                (Part::Name(name), true) => head.push(file_name(&name)),
                (Part::Name(name), false) if name == b".." => {
                    return Err("has .. behind a wildcard; write where it leads");
                }
                (Part::AnyDepth, _) if tail.last() == Some(&Part::AnyDepth) => {}
                (part, _) => tail.push(part),
            }
        }
        // As everywhere: `a/**` is all that is in a, and not a itself.
        if tail.last() == Some(&Part::AnyDepth) {
            tail.push(part(b"*"));
        }
        Ok(Glob { head, tail, floating })
    }
}

#[cfg(unix)]
fn file_name(name: &[u8]) -> &std::ffi::OsStr {
    std::os::unix::ffi::OsStrExt::from_bytes(name)
}

/// Elsewhere a name is text, and only foreign plans are made.
#[cfg(not(unix))]
fn file_name(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

impl Part {
    /// Whether a name has this shape.
    pub fn matches(&self, name: &[u8]) -> bool {
        match self {
            Part::AnyDepth => true,
            Part::Name(own) => own == name,
            Part::Shape(shape) => shape.matches(name),
        }
    }
}

impl Shape {
    fn matches(&self, name: &[u8]) -> bool {
        if !name.ends_with(&self.suffix) {
            return false;
        }
        wildcard::matches(
            self.tokens.iter(),
            Units(name),
            |token| matches!(token, Token::AnyRun),
            |token, unit| token.admits(*unit),
        )
    }
}

/// The characters of a name, one after the other; see [`first`].
#[derive(Clone)]
struct Units<'a>(&'a [u8]);

impl Iterator for Units<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        let (unit, length) = first(self.0)?;
        self.0 = self.0.get(length..).unwrap_or_default();
        Some(unit)
    }
}

impl Token {
    fn admits(&self, unit: u32) -> bool {
        match self {
            Token::One(own) => *own == unit,
            Token::AnyOne => true,
            Token::AnyRun => false,
            Token::Class { negated, ranges } => {
                ranges.iter().any(|(from, to)| (*from..=*to).contains(&unit)) != *negated
            }
        }
    }
}

/// Bytes that are no UTF-8 are units of their own, past every character.
const STRAY: u32 = 0x11_0000;

/// The first character of a name, or its first byte where there is none, and its length.
pub fn first(bytes: &[u8]) -> Option<(u32, usize)> {
    let byte = *bytes.first()?;
    if byte.is_ascii() {
        return Some((byte.into(), 1));
    }
    let length = match byte {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => 1,
    };
    let text = bytes.get(..length).and_then(|bytes| std::str::from_utf8(bytes).ok());
    match text.and_then(|text| text.chars().next()) {
        Some(character) => Some((character.into(), length)),
        None => Some((STRAY + u32::from(byte), 1)),
    }
}

fn encode(unit: u32, into: &mut Vec<u8>) {
    match char::from_u32(unit) {
        Some(character) => {
            into.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        }
        None => into.push((unit - STRAY) as u8),
    }
}

fn part(name: &[u8]) -> Part {
    if name == b"**" {
        return Part::AnyDepth;
    }
    let tokens = tokens(name);
    let mut suffix = Vec::new();
    let literal = tokens.iter().rposition(|token| !matches!(token, Token::One(_)));
    for token in &tokens[literal.map_or(0, |last| last + 1)..] {
        if let Token::One(unit) = token {
            encode(*unit, &mut suffix);
        }
    }
    match literal {
        None => Part::Name(suffix),
        Some(_) => Part::Shape(Shape { tokens, suffix }),
    }
}

fn tokens(mut name: &[u8]) -> Vec<Token> {
    let mut tokens = Vec::new();
    while let Some((unit, length)) = first(name) {
        let (token, length) = match name[0] {
            b'*' => (Token::AnyRun, 1),
            b'?' => (Token::AnyOne, 1),
            b'[' => class(name).unwrap_or((Token::One(unit), length)),
            _ => (Token::One(unit), length),
        };
        tokens.push(token);
        name = &name[length..];
    }
    tokens
}

/// A class at the start of `text` and how long it is; `None` when its end is missing.
fn class(text: &[u8]) -> Option<(Token, usize)> {
    let mut at = 1;
    let negated = matches!(text.get(at), Some(b'!' | b'^'));
    at += usize::from(negated);
    let mut ranges = Vec::new();
    // A bracket right at the start is one of the characters.
    while ranges.is_empty() || text.get(at) != Some(&b']') {
        let (from, length) = first(&text[at..])?;
        // A class is within one name.
        if from == u32::from(b'/') {
            return None;
        }
        at += length;
        let mut to = from;
        if text.get(at) == Some(&b'-') && text.get(at + 1).is_some_and(|end| *end != b']') {
            let (end, length) = first(&text[at + 1..])?;
            at += 1 + length;
            to = end;
        }
        ranges.push((from.min(to), from.max(to)));
    }
    let token = match ranges[..] {
        [(from, to)] if from == to && !negated => Token::One(from),
        _ => Token::Class { negated, ranges },
    };
    Some((token, at + 1))
}

/// Adds `done` followed by each reading of `rest` to `all`.
fn expand(done: Vec<u8>, rest: &[u8], all: &mut Vec<Vec<u8>>) -> Result<(), &'static str> {
    let mut at = 0;
    let group = loop {
        match rest.get(at) {
            None => break None,
            Some(b'[') => at += class(&rest[at..]).map_or(1, |(_, length)| length),
            Some(b'{') => match group(&rest[at..]) {
                Some(group) => break Some(group),
                None => at += 1,
            },
            Some(_) => at += 1,
        }
    };
    let Some((alternatives, length)) = group else {
        if all.len() >= MOST_ALTERNATIVES {
            return Err("has too many alternatives in braces");
        }
        all.push([&done, rest].concat());
        return Ok(());
    };
    let before = [&done, &rest[..at]].concat();
    let after = &rest[at + length..];
    // Nothing to choose from: perhaps a name with braces is meant.
    if let [only] = alternatives[..] {
        expand([&before, &b"[{]"[..], only, b"[}]"].concat(), after, all)?;
    }
    for alternative in alternatives {
        // What was chosen may hold groups itself.
        let mut inner = Vec::new();
        expand(Vec::new(), alternative, &mut inner)?;
        for choice in inner {
            expand([&before[..], &choice].concat(), after, all)?;
        }
    }
    Ok(())
}

/// The alternatives of the group at the start of `text`, and how long it is with its braces.
fn group(text: &[u8]) -> Option<(Vec<&[u8]>, usize)> {
    let (mut depth, mut start, mut alternatives) = (0, 1, Vec::new());
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        match byte {
            b'[' => at += class(&text[at..]).map_or(0, |(_, length)| length - 1),
            b'{' => depth += 1,
            b',' if depth == 1 => {
                alternatives.push(&text[start..at]);
                start = at + 1;
            }
            b'}' if depth == 1 => {
                alternatives.push(&text[start..at]);
                return Some((alternatives, at + 1));
            }
            b'}' => depth -= 1,
            _ => {}
        }
        at += 1;
    }
    None
}

/// The glob that matches this path alone: its glob characters are in classes of their own. So a project in `/home/me/[old]` is
/// still found by the globs written for it.
///
/// ```
/// let path = std::path::Path::new("/home/me/[old]");
/// assert_eq!(mcp_policy::glob::literal(path), std::path::Path::new("/home/me/[[]old]"));
/// ```
#[must_use]
pub fn literal(path: &Path) -> PathBuf {
    let mut escaped = Vec::new();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'*' | b'?' | b'[' | b'{' | b'}' => escaped.extend([b'[', *byte, b']']),
            byte => escaped.push(*byte),
        }
    }
    path_from(escaped).unwrap_or_else(|| path.to_owned())
}

#[cfg(unix)]
fn path_from(bytes: Vec<u8>) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStringExt;
    Some(std::ffi::OsString::from_vec(bytes).into())
}

/// Paths that are not UTF-8 cannot be put together here.
#[cfg(not(unix))]
fn path_from(bytes: Vec<u8>) -> Option<PathBuf> {
    String::from_utf8(bytes).ok().map(PathBuf::from)
}

#[cfg(test)]
mod tests;
