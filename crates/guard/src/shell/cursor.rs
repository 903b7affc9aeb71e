//! Where the reader is in the text, how it stops, and what bounds it.

use super::ast::{List, Script, Span, Trouble, Word};

/// Nested constructs; beyond it a text is not read. People write five.
const DEEPEST: u16 = 48;

/// Steps allowed per byte: reading is linear, and going back for `$((` multiplies.
const STEPS_PER_BYTE: usize = 12;

/// Where the bytes of a text are in the text that the caller knows.
#[derive(Debug, Clone)]
pub enum Origin {
    /// Byte for byte, from here on.
    At(usize),
    /// Unescaped or put together: all of it stands for this.
    Within(Span),
}

impl Origin {
    pub fn span(&self, from: usize, to: usize) -> Span {
        match self {
            Origin::At(base) => base + from..base + to,
            Origin::Within(span) => span.clone(),
        }
    }

    pub fn inner(&self, from: usize) -> Origin {
        match self {
            Origin::At(base) => Origin::At(base + from),
            Origin::Within(span) => Origin::Within(span.clone()),
        }
    }
}

pub(super) struct PendingHeredoc {
    pub number: usize,
    pub delimiter: String,
    /// Quoted delimiter: the body is plain text.
    pub literal: bool,
    /// `<<-`
    pub strip_tabs: bool,
}

pub(super) struct Cursor<'a> {
    pub text: &'a str,
    pub bytes: &'a [u8],
    pub at: usize,
    pub origin: Origin,
    pub depth: u16,
    pub steps: usize,
    /// Numbered from `first_heredoc` on.
    pub heredocs: Vec<Word>,
    pub first_heredoc: usize,
    pub pending: Vec<PendingHeredoc>,
}

pub(super) type Read<T> = Result<T, Trouble>;

/// Reads a whole text.
pub fn parse(text: &str, origin: Origin) -> Script {
    let mut list = List::new();
    let (heredocs, trouble) = read_into(&mut list, text, origin, 0, 0);
    Script { list, heredocs: heredocs.into(), trouble }
}

/// A text within a text: it counts depth and here-documents on from there.
pub(super) fn read_part(
    text: &str,
    origin: Origin,
    depth: u16,
    first_heredoc: usize,
) -> Read<(List, Vec<Word>)> {
    let mut list = List::new();
    let (heredocs, trouble) = read_into(&mut list, text, origin, depth, first_heredoc);
    trouble.map_or(Ok((list, heredocs)), Err)
}

fn read_into(
    list: &mut List,
    text: &str,
    origin: Origin,
    depth: u16,
    first_heredoc: usize,
) -> (Vec<Word>, Option<Trouble>) {
    let mut cursor = Cursor {
        text,
        bytes: text.as_bytes(),
        at: 0,
        origin,
        depth,
        steps: text.len() * STEPS_PER_BYTE + 4096,
        heredocs: Vec::new(),
        first_heredoc,
        pending: Vec::new(),
    };
    let mut trouble = cursor.list_into(list, &[]).err();
    if trouble.is_none() && cursor.at < text.len() {
        trouble = Some(cursor.trouble("this cannot stand here"));
    }
    if trouble.is_none() {
        // Bash takes the end of the text for the end of a document.
        trouble = cursor.read_heredocs().err();
    }
    (cursor.heredocs, trouble)
}

impl Cursor<'_> {
    pub fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    pub fn peek_at(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    pub fn rest(&self) -> &[u8] {
        &self.bytes[self.at..]
    }

    pub fn starts(&self, with: &str) -> bool {
        self.rest().starts_with(with.as_bytes())
    }

    /// Goes past `what` if it is there.
    pub fn take(&mut self, what: &str) -> bool {
        let there = self.starts(what);
        if there {
            self.at += what.len();
        }
        there
    }

    pub fn span_from(&self, from: usize) -> Span {
        self.origin.span(from, self.at)
    }

    pub fn trouble(&self, what: &'static str) -> Trouble {
        let end = self.text[self.at..].chars().next().map_or(self.at, |c| self.at + c.len_utf8());
        Trouble { span: self.origin.span(self.at, end), what, fatal: false }
    }

    pub fn expect(&mut self, what: &str, else_say: &'static str) -> Read<()> {
        if self.take(what) { Ok(()) } else { Err(self.trouble(else_say)) }
    }

    pub fn step(&mut self) -> Read<()> {
        match self.steps.checked_sub(1) {
            Some(left) => {
                self.steps = left;
                Ok(())
            }
            None => Err(Trouble { fatal: true, ..self.trouble("this is too tangled to read") }),
        }
    }

    /// Reads one level further in.
    pub fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Read<T>) -> Read<T> {
        if self.depth >= DEEPEST {
            let trouble = self.trouble("this is nested too deeply to read");
            return Err(Trouble { fatal: true, ..trouble });
        }
        self.depth += 1;
        let result = self.step().and_then(|()| read(self));
        self.depth -= 1;
        result
    }

    /// Blanks, line continuations and comments.
    pub fn skip_blanks(&mut self) {
        loop {
            match self.peek() {
                Some(b' ' | b'\t') => self.at += 1,
                Some(b'\\') if self.peek_at(1) == Some(b'\n') => self.at += 2,
                Some(b'#') => {
                    let end = self.rest().iter().position(|byte| *byte == b'\n');
                    self.at += end.unwrap_or(self.bytes.len() - self.at);
                }
                _ => return,
            }
        }
    }

    /// Blanks and newlines; here-documents that were announced on the line are read here.
    pub fn skip_lines(&mut self) -> Read<()> {
        loop {
            self.skip_blanks();
            if self.peek() != Some(b'\n') {
                return Ok(());
            }
            self.at += 1;
            self.read_heredocs()?;
        }
    }
}
