//! RFC 8259 by spans: is this text JSON, and where in it is a member? Nothing is copied, nothing recurses.

use std::borrow::Cow;
use std::ops::Range;

/// Deeper text is refused: no message needs it, and readers that recurse fall over it.
pub const MOST_DEEP: usize = 512;

/// Text that is no JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotJson {
    /// The byte at which it stops being JSON.
    pub at: usize,
}

/// An object has the same key twice, and readers disagree about which counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Duplicate;

/// Whether `text` is one JSON value with nothing but white space around it.
///
/// # Errors
/// Where it stops being JSON.
///
/// ```
/// assert!(mcp_protocol::json::check(br#" {"a": [1, true, "x"]} "#).is_ok());
/// assert!(mcp_protocol::json::check(b"[INFO] ready").is_err());
/// ```
pub fn check(text: &[u8]) -> Result<(), NotJson> {
    if let Err(error) = std::str::from_utf8(text) {
        return Err(NotJson { at: error.valid_up_to() });
    }
    let mut cursor = Cursor { text, at: 0 };
    cursor.value()?;
    cursor.space();
    if cursor.at == text.len() { Ok(()) } else { Err(cursor.wrong()) }
}

/// The members of the object at `object` in text that [`check`] has passed; nothing where it is no object.
#[must_use]
pub fn members(text: &[u8], object: Range<usize>) -> Members<'_> {
    Members(Items::new(text, object, b'{'))
}

/// The elements of the array at `array` in text that [`check`] has passed; nothing where it is no array.
#[must_use]
pub fn elements(text: &[u8], array: Range<usize>) -> Elements<'_> {
    Elements(Items::new(text, array, b'['))
}

/// The value of a key of the object at `object`.
///
/// # Errors
/// When the key is there twice.
pub fn member(
    text: &[u8],
    object: Range<usize>,
    key: &str,
) -> Result<Option<Range<usize>>, Duplicate> {
    let mut found = None;
    for (name, value) in members(text, object) {
        if string(text, name).is_some_and(|name| name == key) && found.replace(value).is_some() {
            return Err(Duplicate);
        }
    }
    Ok(found)
}

/// The text of the string at `span`, without its escapes; none where it is no string. A lone surrogate becomes U+FFFD.
#[must_use]
pub fn string(text: &[u8], span: Range<usize>) -> Option<Cow<'_, str>> {
    let inner = text.get(span)?.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    let inner = std::str::from_utf8(inner).ok()?;
    if inner.contains('\\') {
        Some(Cow::Owned(unescaped(inner)))
    } else {
        Some(Cow::Borrowed(inner))
    }
}

fn unescaped(inner: &str) -> String {
    let mut units: Vec<u16> = Vec::new();
    let mut plain = String::with_capacity(inner.len());
    let mut rest = inner.chars();
    while let Some(c) = rest.next() {
        if c == '\\' {
            let unit = match rest.next() {
                Some('u') => {
                    let digits: String = rest.by_ref().take(4).collect();
                    u16::from_str_radix(&digits, 16).unwrap_or(0xFFFD)
                }
                Some('b') => 8,
                Some('f') => 12,
                Some('n') => 10,
                Some('r') => 13,
                Some('t') => 9,
                Some(other) => u16::try_from(u32::from(other)).unwrap_or(0xFFFD),
                None => 0xFFFD,
            };
            units.push(unit);
        } else {
            plain.push_str(&String::from_utf16_lossy(&units));
            units.clear();
            plain.push(c);
        }
    }
    plain.push_str(&String::from_utf16_lossy(&units));
    plain
}

/// A JSON string with this text.
#[must_use]
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            c if u32::from(c) < 0x20 => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// See [`members`].
pub struct Members<'a>(Items<'a>);

impl Iterator for Members<'_> {
    type Item = (Range<usize>, Range<usize>);

    fn next(&mut self) -> Option<Self::Item> {
        let cursor = self.0.at_next()?;
        let name = cursor.range(Cursor::string)?;
        cursor.space();
        let _ = cursor.take(b':');
        cursor.space();
        Some((name, cursor.range(Cursor::value)?))
    }
}

/// See [`elements`].
pub struct Elements<'a>(Items<'a>);

impl Iterator for Elements<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.at_next()?.range(Cursor::value)
    }
}

/// What an object or an array contains, one after the other.
struct Items<'a> {
    cursor: Cursor<'a>,
    /// The value is a container of the kind that was asked for.
    is_open: bool,
}

impl<'a> Items<'a> {
    fn new(text: &'a [u8], container: Range<usize>, bracket: u8) -> Items<'a> {
        let mut cursor = Cursor { text: &text[..container.end], at: container.start };
        cursor.space();
        let is_open = cursor.take(bracket);
        Items { cursor, is_open }
    }

    /// Behind the comma, if there is one.
    fn at_next(&mut self) -> Option<&mut Cursor<'a>> {
        self.is_open.then(|| {
            self.cursor.space();
            let _ = self.cursor.take(b',');
            self.cursor.space();
            &mut self.cursor
        })
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Container {
    Object,
    Array,
}

struct Cursor<'a> {
    text: &'a [u8],
    at: usize,
}

impl Cursor<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn wrong(&self) -> NotJson {
        NotJson { at: self.at }
    }

    /// Where the thing that `read` passes stands.
    fn range(&mut self, read: fn(&mut Self) -> Result<(), NotJson>) -> Option<Range<usize>> {
        let start = self.at;
        read(self).ok()?;
        Some(start..self.at)
    }

    fn take(&mut self, byte: u8) -> bool {
        let is_there = self.peek() == Some(byte);
        self.at += usize::from(is_there);
        is_there
    }

    fn need(&mut self, byte: u8) -> Result<(), NotJson> {
        if self.take(byte) { Ok(()) } else { Err(self.wrong()) }
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    /// One value, however deep, with a stack of its own.
    fn value(&mut self) -> Result<(), NotJson> {
        let mut open: Vec<Container> = Vec::new();
        loop {
            self.space();
            let opened = match self.peek() {
                Some(b'{') => Some(Container::Object),
                Some(b'[') => Some(Container::Array),
                _ => None,
            };
            if let Some(container) = opened {
                if open.len() == MOST_DEEP {
                    return Err(self.wrong());
                }
                self.at += 1;
                open.push(container);
                self.space();
                if container == Container::Object && self.peek() != Some(b'}') {
                    self.name()?;
                    continue;
                }
                if container == Container::Array && self.peek() != Some(b']') {
                    continue;
                }
            } else {
                self.scalar()?;
            }
            if self.close(&mut open)? {
                return Ok(());
            }
        }
    }

    /// After a value: closes what ends here. True when nothing is open any more.
    fn close(&mut self, open: &mut Vec<Container>) -> Result<bool, NotJson> {
        while let Some(container) = open.last() {
            self.space();
            match (container, self.peek()) {
                (Container::Object, Some(b'}')) | (Container::Array, Some(b']')) => {
                    self.at += 1;
                    open.pop();
                }
                (Container::Object, Some(b',')) => {
                    self.at += 1;
                    self.space();
                    self.name()?;
                    return Ok(false);
                }
                (Container::Array, Some(b',')) => {
                    self.at += 1;
                    return Ok(false);
                }
                _ => return Err(self.wrong()),
            }
        }
        Ok(true)
    }

    fn name(&mut self) -> Result<(), NotJson> {
        self.string()?;
        self.space();
        self.need(b':')
    }

    fn scalar(&mut self) -> Result<(), NotJson> {
        match self.peek() {
            Some(b'"') => self.string(),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word(b"true"),
            Some(b'f') => self.word(b"false"),
            Some(b'n') => self.word(b"null"),
            _ => Err(self.wrong()),
        }
    }

    fn word(&mut self, word: &[u8]) -> Result<(), NotJson> {
        if !self.text[self.at..].starts_with(word) {
            return Err(self.wrong());
        }
        self.at += word.len();
        Ok(())
    }

    fn digits(&mut self) -> Result<(), NotJson> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        if self.at > start { Ok(()) } else { Err(self.wrong()) }
    }

    fn number(&mut self) -> Result<(), NotJson> {
        let _ = self.take(b'-');
        if !self.take(b'0') {
            self.digits()?;
        }
        if self.take(b'.') {
            self.digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            let _ = self.take(b'+') || self.take(b'-');
            self.digits()?;
        }
        Ok(())
    }

    fn string(&mut self) -> Result<(), NotJson> {
        self.need(b'"')?;
        loop {
            self.plain();
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => self.escape()?,
                _ => return Err(self.wrong()),
            }
        }
    }

    /// Goes to the next byte that means something inside a string; sixteen at a time, since results are mostly text.
    fn plain(&mut self) {
        let special = |byte: u8| byte < 0x20 || byte == b'"' || byte == b'\\';
        while let Some(block) = self.text[self.at..].first_chunk::<16>() {
            if block.iter().fold(false, |any, byte| any | special(*byte)) {
                break;
            }
            self.at += block.len();
        }
        while self.peek().is_some_and(|byte| !special(byte)) {
            self.at += 1;
        }
    }

    fn escape(&mut self) -> Result<(), NotJson> {
        self.at += 1;
        match self.peek() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 1,
            Some(b'u') => {
                self.at += 1;
                for _ in 0..4 {
                    if !self.peek().is_some_and(|byte| byte.is_ascii_hexdigit()) {
                        return Err(self.wrong());
                    }
                    self.at += 1;
                }
            }
            _ => return Err(self.wrong()),
        }
        Ok(())
    }
}
