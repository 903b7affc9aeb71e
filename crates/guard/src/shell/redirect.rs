//! Redirections and here-documents.

use super::ast::{Redirect, Word};
use super::cursor::{Cursor, PendingHeredoc, Read};
use super::word::Parts;

impl Cursor<'_> {
    /// A redirection with its descriptor number, or nothing.
    pub fn redirect(&mut self) -> Read<Option<Redirect>> {
        let from = self.at;
        let mut at = self.at;
        if self.bytes[at..].first() == Some(&b'{') {
            // `{name}>file`
            let length = self.bytes[at..].iter().position(|byte| *byte == b'}');
            match length {
                Some(length)
                    if length > 1
                        && self.bytes[at + 1..at + length]
                            .iter()
                            .all(|byte| *byte == b'_' || byte.is_ascii_alphanumeric())
                        && matches!(self.bytes.get(at + length + 1), Some(b'<' | b'>')) =>
                {
                    at += length + 1;
                }
                _ => return Ok(None),
            }
        }
        while self.bytes.get(at).is_some_and(u8::is_ascii_digit) {
            at += 1;
        }
        let both = at == from && self.bytes[at..].starts_with(b"&>");
        let sign = self.bytes.get(at + usize::from(both)).copied();
        if !matches!(sign, Some(b'<' | b'>')) {
            return Ok(None);
        }
        // `<(…)` is a word.
        if at == from && matches!(self.bytes.get(at + 1), Some(b'(')) {
            return Ok(None);
        }
        self.at = at;
        self.redirect_kind().map(Some)
    }

    fn redirect_kind(&mut self) -> Read<Redirect> {
        let missing = "a redirection needs a file";
        for operator in ["&>>", "&>", ">>", ">|", "<>"] {
            if self.take(operator) {
                return Ok(Redirect::Write(self.some_word(missing)?));
            }
        }
        if self.take("<<<") {
            return Ok(Redirect::HereString(self.some_word("a here-string needs a word")?));
        }
        if self.starts("<<") {
            self.at += 2;
            return self.heredoc();
        }
        if self.take(">&") || self.take("<&") {
            let reading = self.bytes[self.at - 2] == b'<';
            let word = self.some_word(missing)?;
            let number = word
                .bare()
                .is_some_and(|text| text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-'));
            return Ok(match (number || reading, word) {
                (true, _) => Redirect::Duplicate,
                (false, word) => Redirect::Write(word),
            });
        }
        match self.take("<") {
            true => Ok(Redirect::Read(self.some_word(missing)?)),
            false => {
                self.expect(">", missing)?;
                Ok(Redirect::Write(self.some_word(missing)?))
            }
        }
    }

    fn heredoc(&mut self) -> Read<Redirect> {
        let strip_tabs = self.take("-");
        self.skip_blanks();
        let from = self.at;
        let word = self.some_word("a here-document needs a word that ends it")?;
        let raw = &self.text[from..self.at];
        let literal = raw.contains(['\'', '"', '\\']);
        let Some(delimiter) = plain_text(&word) else {
            return Err(self.trouble("the end of this here-document cannot be read"));
        };
        let number = self.first_heredoc + self.heredocs.len();
        self.heredocs.push(Word::default());
        self.pending.push(PendingHeredoc { number, delimiter, literal, strip_tabs });
        Ok(Redirect::HereDocument(number))
    }

    /// At the start of a line: the bodies of all here-documents announced before it.
    pub fn read_heredocs(&mut self) -> Read<()> {
        for pending in std::mem::take(&mut self.pending) {
            self.read_heredoc(&pending)?;
        }
        Ok(())
    }

    fn read_heredoc(&mut self, wanted: &PendingHeredoc) -> Read<()> {
        let from = self.at;
        let (mut end, mut next) = (self.bytes.len(), self.bytes.len());
        let mut line = self.at;
        while line < self.bytes.len() {
            self.step()?;
            let length = self.bytes[line..].iter().position(|byte| *byte == b'\n');
            let stop = length.map_or(self.bytes.len(), |length| line + length);
            let text = &self.text[line..stop];
            let text = if wanted.strip_tabs { text.trim_start_matches('\t') } else { text };
            if text == wanted.delimiter {
                (end, next) = (line, (stop + 1).min(self.bytes.len()));
                break;
            }
            line = stop + 1;
        }
        let mut parts = Parts::default();
        if wanted.literal {
            parts.literal(&self.text[from..end]);
        } else {
            // Expansions must not read past the end of the body.
            let (text, bytes) = (self.text, self.bytes);
            (self.text, self.bytes) = (&text[..end], &bytes[..end]);
            let mut read = Ok(());
            while read.is_ok() && self.at < end {
                read = self.step().and_then(|()| self.quoted_piece(&mut parts, 0));
            }
            (self.text, self.bytes) = (text, bytes);
            read?;
        }
        let number = wanted.number - self.first_heredoc;
        self.heredocs[number] = Word { parts: parts.0, span: self.origin.span(from, end) };
        self.at = next;
        Ok(())
    }
}

/// The text of a word whose quotes are taken away; expansions are not made in a delimiter.
fn plain_text(word: &Word) -> Option<String> {
    use super::ast::Part;
    let mut text = String::new();
    for part in &word.parts {
        match part {
            Part::Plain(piece) | Part::Literal(piece) => text.push_str(piece),
            _ => return None,
        }
    }
    Some(text)
}
