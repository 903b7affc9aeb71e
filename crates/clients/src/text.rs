//! The text of a file: without its byte order mark, and with where lines end.

/// What is before the text.
const BOM: &str = "\u{feff}";

/// A file's text, split from the byte order mark that Windows programs put before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bytes<'a> {
    /// Whether the text begins with a byte order mark.
    pub has_mark: bool,
    /// The text without the mark.
    pub text: &'a str,
}

impl<'a> Bytes<'a> {
    /// `None` for what is not UTF-8.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Option<Bytes<'a>> {
        let text = std::str::from_utf8(bytes).ok()?;
        Some(match text.strip_prefix(BOM) {
            Some(text) => Bytes { has_mark: true, text },
            None => Bytes { has_mark: false, text },
        })
    }

    /// Another text in this one's place.
    #[must_use]
    pub fn with(&self, text: &str) -> Vec<u8> {
        let mark = if self.has_mark { BOM } else { "" };
        [mark, text].concat().into_bytes()
    }
}

/// Line and column of a place, both from 1; columns count characters.
pub fn line_and_column(text: &str, at: usize) -> (usize, usize) {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    let before = &text[..at];
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (before.matches('\n').count() + 1, before[start..].chars().count() + 1)
}

/// What ends lines here.
pub fn newline(text: &str) -> &'static str {
    match text.find('\n') {
        Some(at) if text[..at].ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

/// The blanks that a line begins with, for the line that a place is in.
pub fn indent(text: &str, at: usize) -> &str {
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    let line = &text[start..];
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}
