//! Words: quotes, escapes and what is between them.

use super::ast::{Direction, Part, Quoting, Word};
use super::cursor::{Cursor, Read};

/// What ends a bare word.
pub(super) fn ends_word(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'<' | b'>' | b'(' | b')')
}

/// Collects parts, joining neighbours.
#[derive(Default)]
pub(super) struct Parts(pub Vec<Part>);

impl Parts {
    pub fn plain(&mut self, text: &str) {
        match self.0.last_mut() {
            Some(Part::Plain(last)) => last.push_str(text),
            _ => self.0.push(Part::Plain(text.to_owned())),
        }
    }

    pub fn literal(&mut self, text: &str) {
        match self.0.last_mut() {
            Some(Part::Literal(last)) => last.push_str(text),
            _ => self.0.push(Part::Literal(text.to_owned())),
        }
    }
}

impl Cursor<'_> {
    /// A word, or nothing where none begins.
    pub fn word(&mut self) -> Read<Option<Word>> {
        let from = self.at;
        let mut parts = Parts::default();
        while let Some(byte) = self.peek() {
            let process = matches!(byte, b'<' | b'>') && self.peek_at(1) == Some(b'(');
            if process {
                self.at += 2;
                let list = self.nested(|cursor| cursor.list_until_parenthesis())?;
                let direction = if byte == b'<' { Direction::From } else { Direction::To };
                parts.0.push(Part::Process(list, direction));
                continue;
            }
            if ends_word(byte) {
                break;
            }
            self.bare_piece(&mut parts)?;
        }
        if self.at == from {
            return Ok(None);
        }
        Ok(Some(Word { parts: parts.0, span: self.span_from(from) }))
    }

    /// A word where one must be.
    pub fn some_word(&mut self, else_say: &'static str) -> Read<Word> {
        self.skip_blanks();
        let word = self.word()?;
        word.ok_or_else(|| self.trouble(else_say))
    }

    /// One piece of unquoted text; the byte at the cursor does not end a word.
    pub fn bare_piece(&mut self, parts: &mut Parts) -> Read<()> {
        self.step()?;
        match self.peek() {
            Some(b'\'') => self.single_quoted(parts),
            Some(b'"') => {
                self.at += 1;
                self.double_quoted(parts, b'"')
            }
            Some(b'\\') => {
                self.at += 1;
                self.escaped(parts);
                Ok(())
            }
            Some(b'$') => self.dollar(parts, Quoting::Bare),
            Some(b'`') => self.backticks(parts, Quoting::Bare),
            Some(b'?' | b'*' | b'+' | b'@' | b'!') if self.peek_at(1) == Some(b'(') => {
                self.at += 2;
                let inner = self.nested(|cursor| cursor.pattern_group())?;
                parts.0.push(Part::Pattern(inner));
                Ok(())
            }
            _ => {
                self.plain_run(parts);
                Ok(())
            }
        }
    }

    /// At least one byte of text without any meaning to the reader.
    fn plain_run(&mut self, parts: &mut Parts) {
        let special = |byte: u8| {
            ends_word(byte)
                || matches!(
                    byte,
                    b'\'' | b'"' | b'\\' | b'$' | b'`' | b'?' | b'*' | b'+' | b'@' | b'!'
                )
        };
        let length = self.rest().iter().skip(1).position(|byte| special(*byte));
        let end = length.map_or(self.bytes.len(), |length| self.at + 1 + length);
        parts.plain(&self.text[self.at..end]);
        self.at = end;
    }

    fn escaped(&mut self, parts: &mut Parts) {
        match self.text[self.at..].chars().next() {
            None => parts.literal("\\"),
            Some('\n') => self.at += 1,
            Some(c) => {
                self.at += c.len_utf8();
                parts.literal(c.encode_utf8(&mut [0; 4]));
            }
        }
    }

    fn single_quoted(&mut self, parts: &mut Parts) -> Read<()> {
        let body = &self.text[self.at + 1..];
        let Some(end) = body.find('\'') else {
            return Err(self.trouble("this quote is never closed"));
        };
        parts.literal(&body[..end]);
        self.at += end + 2;
        Ok(())
    }

    /// After the opening quote, up to and with the closing one.
    pub fn double_quoted(&mut self, parts: &mut Parts, end: u8) -> Read<()> {
        let open = self.at.saturating_sub(1);
        parts.literal("");
        loop {
            self.step()?;
            match self.peek() {
                None => {
                    self.at = open;
                    return Err(self.trouble("this quote is never closed"));
                }
                Some(byte) if byte == end => {
                    self.at += 1;
                    return Ok(());
                }
                Some(_) => self.quoted_piece(parts, end)?,
            }
        }
    }

    /// One piece of text inside double quotes or a here-document.
    pub fn quoted_piece(&mut self, parts: &mut Parts, end: u8) -> Read<()> {
        match self.peek() {
            Some(b'\\') => {
                match self.peek_at(1) {
                    Some(b'\n') => {}
                    Some(next @ (b'$' | b'`' | b'\\')) => {
                        parts.literal(char::from(next).encode_utf8(&mut [0; 4]));
                    }
                    Some(b'"') if end == b'"' => parts.literal("\""),
                    _ => {
                        parts.literal("\\");
                        self.at += 1;
                        return Ok(());
                    }
                }
                self.at += 2;
                Ok(())
            }
            Some(b'$') => self.dollar(parts, Quoting::Quoted),
            Some(b'`') => self.backticks(parts, Quoting::Quoted),
            _ => {
                let special = |byte: u8| matches!(byte, b'\\' | b'$' | b'`') || byte == end;
                let length = self.rest().iter().skip(1).position(|byte| special(*byte));
                let stop = length.map_or(self.bytes.len(), |length| self.at + 1 + length);
                parts.literal(&self.text[self.at..stop]);
                self.at = stop;
                Ok(())
            }
        }
    }

    /// After `@(`: up to the parenthesis that closes it.
    fn pattern_group(&mut self) -> Read<Vec<Part>> {
        let mut depth = 1;
        let mut inner = Parts::default();
        while let Some(byte) = self.peek() {
            match byte {
                b'(' => depth += 1,
                b')' => depth -= 1,
                b'\n' => break,
                b'\'' | b'"' | b'\\' | b'$' | b'`' => {
                    self.bare_piece(&mut inner)?;
                    continue;
                }
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return Ok(inner.0);
            }
            self.step()?;
        }
        Err(self.trouble("this pattern is never closed"))
    }
}
