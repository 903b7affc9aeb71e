//! The value of a word, as far as the text determines it.

use std::borrow::Cow;

use crate::shell::Origin;
use crate::shell::ast::Span;

/// Longer values are not followed: `x=$x$x` doubles with every line.
pub const LONGEST: usize = 16 * 1024;

/// Programs in a row that are told apart.
const MOST_PROGRAMS: usize = 32;
const MORE: &str = "…";

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    Text(String),
    /// An unquoted pattern, as it is written.
    Glob(String),
    /// The user's home directory.
    Home,
    /// Not known, but a plain piece of a name: no slash, no blank, not empty.
    Name,
    /// Anything, within one word.
    Unknown,
    /// Anything, any number of words.
    Many,
    /// The same, and it came from the network.
    Fetched,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Value {
    pub pieces: Vec<Piece>,
}

/// A word after expansion, and where it stands.
#[derive(Debug, Clone)]
pub struct Field {
    pub value: Value,
    pub span: Span,
    /// A substituted process that the word is a file name for.
    pub feed: Option<Output>,
}

/// What a command writes, as far as the text tells.
#[derive(Debug, Clone, Default)]
pub struct Output {
    /// `None`: nothing is known about it.
    pub text: Option<Value>,
    /// The programs it went through.
    pub from: Vec<String>,
}

impl Value {
    pub fn text(text: impl Into<String>) -> Value {
        let mut value = Value::default();
        value.push_text(&text.into());
        value
    }

    pub fn of(piece: Piece) -> Value {
        Value { pieces: vec![piece] }
    }

    pub fn push_text(&mut self, text: &str) {
        match self.pieces.last_mut() {
            Some(Piece::Text(last)) => last.push_str(text),
            _ if text.is_empty() => {}
            _ => self.pieces.push(Piece::Text(text.to_owned())),
        }
    }

    pub fn push(&mut self, piece: Piece) {
        match piece {
            Piece::Text(text) => self.push_text(&text),
            // Two unknowns in a row are one.
            Piece::Unknown | Piece::Many | Piece::Fetched if self.pieces.last() == Some(&piece) => {
            }
            piece => self.pieces.push(piece),
        }
    }

    pub fn extend(&mut self, other: &Value) {
        other.pieces.iter().for_each(|piece| self.push(piece.clone()));
    }

    /// The text, if all of it is known.
    pub fn known(&self) -> Option<Cow<'_, str>> {
        match &self.pieces[..] {
            [] => Some(Cow::Borrowed("")),
            [Piece::Text(text)] => Some(Cow::Borrowed(text)),
            _ => None,
        }
    }

    /// The text with its unknown parts left out, as if they were empty.
    pub fn without_unknown(&self) -> String {
        let text = |piece: &Piece| match piece {
            Piece::Text(text) | Piece::Glob(text) => text.clone(),
            Piece::Home => "~".to_owned(),
            _ => String::new(),
        };
        self.pieces.iter().map(text).collect()
    }

    pub fn starts_with(&self, c: char) -> bool {
        matches!(self.pieces.first(), Some(Piece::Text(text)) if text.starts_with(c))
    }

    /// Could be more than one word.
    pub fn is_many(&self) -> bool {
        self.pieces.iter().any(|piece| matches!(piece, Piece::Many | Piece::Fetched))
    }

    pub fn length(&self) -> usize {
        let length = |piece: &Piece| match piece {
            Piece::Text(text) | Piece::Glob(text) => text.len(),
            _ => 1,
        };
        self.pieces.iter().map(length).sum()
    }

    /// Itself, or nothing known when it has grown too long to follow.
    pub fn bounded(self) -> Value {
        if self.length() > LONGEST { Value::of(Piece::Many) } else { self }
    }

    /// Newlines at the end, which substitutions lose.
    pub fn trimmed(mut self) -> Value {
        while let Some(Piece::Text(text)) = self.pieces.last_mut() {
            let length = text.trim_end_matches('\n').len();
            text.truncate(length);
            if length > 0 {
                break;
            }
            self.pieces.pop();
        }
        self
    }
}

impl Field {
    pub fn new(value: Value, span: Span) -> Field {
        Field { value, span, feed: None }
    }

    pub fn known(&self) -> Option<Cow<'_, str>> {
        self.value.known()
    }

    /// Where a text that the word holds is in the caller's text: byte for byte if the word is that
    /// text with nothing or one quote around it.
    pub fn origin(&self, text: &str) -> Origin {
        match self.span.len().checked_sub(text.len()) {
            Some(0) => Origin::At(self.span.start),
            Some(2) => Origin::At(self.span.start + 1),
            _ => Origin::Within(self.span.clone()),
        }
    }
}

impl Output {
    pub fn known(value: Value, from: &str) -> Output {
        Output { text: Some(value.bounded()), from: vec![from.to_owned()] }
    }

    pub fn unknown(from: &str) -> Output {
        Output { text: None, from: vec![from.to_owned()] }
    }

    /// One after the other.
    pub fn then(mut self, next: Output) -> Output {
        self.text = match (self.text, next.text) {
            (Some(mut first), Some(second)) => {
                first.extend(&second);
                Some(first.bounded())
            }
            _ => None,
        };
        self.passed(next.from);
        self
    }

    /// Adds programs it went through, each once.
    pub fn passed(&mut self, names: impl IntoIterator<Item = String>) {
        for name in names {
            if self.from.contains(&name) {
                continue;
            }
            // Past that we cannot say what came of it; no program has this name.
            let name = if self.from.len() < MOST_PROGRAMS { name } else { MORE.to_owned() };
            if !self.from.contains(&name) {
                self.from.push(name);
            }
        }
    }

    pub fn nothing() -> Output {
        Output { text: Some(Value::default()), from: Vec::new() }
    }
}
