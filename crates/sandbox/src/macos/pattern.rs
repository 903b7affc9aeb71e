//! Globs as the regular expressions of a Seatbelt profile. This is the only place where text of the
//! user's becomes one.
//!
//! A rule that fails to match leaves a file open, so where the two differ the expression
//! matches more: letters in either case, because APFS and HFS+ ignore it; any character that is not
//! ASCII for any other, with or without a letter before it, because one name has several
//! spellings there (composed, decomposed, upper, lower) and the matcher works on bytes.

use mcp_policy::glob::{Part, Shape, Token, first};

/// One character that is not ASCII, or several: a byte of it, or all of them.
const FOREIGN: &str = "[^ -~]";
/// What a name in another script, or with accents, may be spelt as.
const FOREIGN_RUN: &str = "([A-Za-z]?[^ -~]+)+";
/// One character, of one byte or of up to four.
const ANY_ONE: &str = "([^/]|[^ -~][^ -~][^ -~]?[^ -~]?)";

/// The expression of these parts below a directory: it starts with a slash, unless any depth comes
/// first, and has neither anchor.
pub fn below(parts: &[Part]) -> String {
    let mut text = String::new();
    for part in parts {
        match part {
            Part::AnyDepth => text += "(/[^/]+)*",
            Part::Name(name) => {
                text.push('/');
                text += &literal(name);
            }
            Part::Shape(shape) => {
                text.push('/');
                text += &shaped(shape);
            }
        }
    }
    text
}

/// The expression of a name that is meant as it stands.
pub fn literal(mut name: &[u8]) -> String {
    let mut pieces = Pieces::default();
    while let Some((unit, length)) = first(name) {
        pieces.unit(unit);
        name = &name[length..];
    }
    pieces.text()
}

fn shaped(shape: &Shape) -> String {
    let mut pieces = Pieces::default();
    for token in &shape.tokens {
        match token {
            Token::One(unit) => pieces.unit(*unit),
            Token::AnyOne => pieces.0.push(Piece::Other(ANY_ONE.to_owned())),
            Token::AnyRun => pieces.0.push(Piece::Other("[^/]*".to_owned())),
            Token::Class { negated, ranges } => {
                pieces.0.push(Piece::Other(class(*negated, ranges)));
            }
        }
    }
    pieces.text()
}

enum Piece {
    Letter(char),
    /// A combining mark may be meant for it, and both may be one character on the disk.
    Base(char),
    Other(String),
    Foreign,
}

#[derive(Default)]
struct Pieces(Vec<Piece>);

impl Pieces {
    fn unit(&mut self, unit: u32) {
        match char::from_u32(unit) {
            Some(letter) if letter.is_ascii_alphabetic() => self.0.push(Piece::Letter(letter)),
            Some(other) if other.is_ascii() => self.0.push(Piece::Other(quoted(other))),
            _ => {
                if let Some(last) = self.0.last_mut()
                    && let Piece::Letter(letter) = *last
                {
                    *last = Piece::Base(letter);
                }
                if !matches!(self.0.last(), Some(Piece::Foreign)) {
                    self.0.push(Piece::Foreign);
                }
            }
        }
    }

    fn text(self) -> String {
        let each = self.0.into_iter().map(|piece| match piece {
            Piece::Letter(letter) => either_case(letter),
            Piece::Base(letter) => format!("{}?", either_case(letter)),
            Piece::Other(text) => text,
            Piece::Foreign => FOREIGN_RUN.to_owned(),
        });
        each.collect()
    }
}

fn either_case(letter: char) -> String {
    format!("[{}{}]", letter.to_ascii_lowercase(), letter.to_ascii_uppercase())
}

/// An ASCII character outside a class, with nothing of it left to be read as syntax.
fn quoted(character: char) -> String {
    match character {
        '0'..='9' | 'a'..='z' | 'A'..='Z' | '_' | '-' | ' ' | '/' => character.to_string(),
        // A backslash before a control character could mean something else.
        control if control.is_control() => FOREIGN.to_owned(),
        other => format!("\\{other}"),
    }
}

/// A class, with letters in both cases. Where something else than printable ASCII is among its
/// members, any such character is.
fn class(negated: bool, ranges: &[(u32, u32)]) -> String {
    let is_in = |c: char| ranges.iter().any(|(from, to)| (*from..=*to).contains(&c.into()));
    let named = |c: char| is_in(c.to_ascii_lowercase()) || is_in(c.to_ascii_uppercase());
    let printable = (' '..='~').filter(|c| *c != '/' && named(*c) != negated);
    let mut choices: Vec<String> = printable.map(quoted).collect();
    let beyond = |(from, to): &(u32, u32)| *to > u32::from('~') || *from < u32::from(' ');
    if negated || ranges.iter().any(beyond) {
        choices.push(format!("{FOREIGN}{FOREIGN}?{FOREIGN}?{FOREIGN}?"));
    }
    match choices.is_empty() {
        // Nothing fits; an empty group might fit everything.
        true => "/".to_owned(),
        false => format!("({})", choices.join("|")),
    }
}
