//! What an answer is matched by. Servers write an id anew, so that two spellings of one value are one id.

use std::fmt;
use std::ops::Range;

use crate::json;

/// The id of a request: a number or a string, compared by value.
///
/// ```
/// use mcp_protocol::Id;
/// assert_eq!(Id::read(b"7", 0..1), Id::read(b"7.0", 0..3));
/// assert_ne!(Id::read(b"7", 0..1), Id::read(b"\"7\"", 0..3));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Id {
    /// In its shortest spelling.
    Number(String),
    /// Without its escapes.
    String(String),
}

impl Id {
    /// The id at `span`; none for null and for what cannot be one.
    #[must_use]
    pub fn read(text: &[u8], span: Range<usize>) -> Option<Id> {
        if let Some(string) = json::string(text, span.clone()) {
            return Some(Id::String(string.into_owned()));
        }
        let number = std::str::from_utf8(text.get(span)?).ok()?;
        if !number.starts_with(|c: char| c == '-' || c.is_ascii_digit()) {
            return None;
        }
        if number.bytes().all(|byte| byte.is_ascii_digit()) {
            return Some(Id::Number(number.to_owned()));
        }
        let value: f64 = number.parse().ok()?;
        Some(Id::Number(format!("{}", if value == 0.0 { 0.0 } else { value })))
    }

    /// A number.
    #[must_use]
    pub fn number(value: u64) -> Id {
        Id::Number(value.to_string())
    }

    /// As it stands in a message.
    #[must_use]
    pub fn to_json(&self) -> String {
        match self {
            Id::Number(number) => number.clone(),
            Id::String(string) => json::quoted(string),
        }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_json())
    }
}
