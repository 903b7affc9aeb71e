//! The head of an HTTP/1 message: its first line and its fields, up to the empty line.
//!
//! Stricter than HTTP servers are: what two of them might read differently (folded lines, a
//! space before the colon, control characters) is broken here.

/// More than any server takes.
pub(crate) const MAX_HEAD: usize = 64 << 10;

/// Bytes of empty lines before the first line, which servers skip. A CR without its LF is no line end (RFC 9112, 2.2).
const MAX_SKIPPED: usize = 16;

pub(crate) const LONE_CR: &str = "a CR without its LF before the first line";

/// Collects a head from a stream, scanning each byte once.
#[derive(Debug, Default)]
pub(crate) struct Collector {
    bytes: Vec<u8>,
    skipped: usize,
    /// The last byte that was skipped is a CR.
    after_cr: bool,
    line_start: usize,
    first_line_end: Option<usize>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Collected {
    NeedMore,
    /// The head is complete; this many of the bytes just fed belong to it.
    Whole {
        used: usize,
    },
    TooLong,
    /// Before what may be the first line. Servers differ about where that begins.
    LoneCr,
}

impl Collector {
    pub fn feed(&mut self, bytes: &[u8]) -> Collected {
        for (at, byte) in bytes.iter().enumerate() {
            if self.bytes.is_empty() && matches!((self.after_cr, byte), (false, b'\r') | (_, b'\n'))
            {
                self.after_cr = *byte == b'\r';
                self.skipped += 1;
                if self.skipped > MAX_SKIPPED {
                    return Collected::TooLong;
                }
                continue;
            }
            if self.bytes.is_empty() && self.after_cr && (is_token(*byte) || *byte == b'\r') {
                return Collected::LoneCr;
            }
            if self.bytes.len() >= MAX_HEAD {
                return Collected::TooLong;
            }
            self.bytes.push(*byte);
            if *byte != b'\n' {
                continue;
            }
            let line = self.bytes.get(self.line_start..).unwrap_or_default();
            if matches!(line, b"\n" | b"\r\n") {
                return Collected::Whole { used: at + 1 };
            }
            self.line_start = self.bytes.len();
            self.first_line_end.get_or_insert(self.line_start);
        }
        Collected::NeedMore
    }

    /// From the first byte of the first line.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The first line, once all of it is there.
    pub fn first_line(&self) -> Option<&[u8]> {
        self.bytes.get(..self.first_line_end?).map(<[u8]>::trim_ascii_end)
    }
}

/// A whole head, in lines.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Lines<'a> {
    pub first: &'a str,
    pub fields: Vec<Field<'a>>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Field<'a> {
    pub name: &'a str,
    /// Without the spaces around it; of any encoding.
    pub value: &'a [u8],
}

impl Field<'_> {
    pub fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }
}

impl<'a> Lines<'a> {
    pub fn read(head: &'a [u8]) -> Result<Self, &'static str> {
        let mut lines =
            head.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
        let first = lines.next().and_then(clean).ok_or("control characters in the first line")?;
        let mut fields = Vec::new();
        for line in lines.take_while(|line| !line.is_empty()) {
            fields.push(read_field(line)?);
        }
        Ok(Self { first, fields })
    }

    /// The one value of this field; two are broken even when they are equal.
    pub fn only(&self, name: &str) -> Result<Option<&'a [u8]>, &'static str> {
        let mut found = self.fields.iter().filter(|field| field.is(name));
        let value = found.next().map(|field| field.value);
        match found.next() {
            Some(_) => Err("a header field twice that may be there once"),
            None => Ok(value),
        }
    }
}

fn read_field(line: &[u8]) -> Result<Field<'_>, &'static str> {
    const MALFORMED: &str = "a malformed header field";
    let colon = line.iter().position(|byte| *byte == b':').ok_or(MALFORMED)?;
    let (name, value) = line.split_at(colon);
    if name.is_empty() || !name.iter().copied().all(is_token) {
        return Err(MALFORMED);
    }
    let name = str::from_utf8(name).map_err(|_| MALFORMED)?;
    let value = value.get(1..).unwrap_or_default();
    // Before it is trimmed: a CR at the end is one too.
    if value.iter().any(|byte| byte.is_ascii_control() && *byte != b'\t') {
        return Err(MALFORMED);
    }
    Ok(Field { name, value: value.trim_ascii() })
}

fn clean(line: &[u8]) -> Option<&str> {
    let line = str::from_utf8(line).ok()?;
    (!line.bytes().any(|byte| byte < b' ' || byte == 0x7f)).then_some(line)
}

/// RFC 9110's tchar.
pub(crate) fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::{Collected, Collector, Lines};

    fn lines(bytes: &[u8]) -> Option<Result<String, &'static str>> {
        let mut collector = Collector::default();
        // In pieces: a CR and its LF may come apart.
        let end = bytes
            .iter()
            .map(|byte| collector.feed(std::slice::from_ref(byte)))
            .find(|collected| *collected != Collected::NeedMore);
        let whole = matches!(end, Some(Collected::Whole { .. }));
        whole.then(|| Lines::read(collector.bytes()).map(|lines| lines.first.to_owned()))
    }

    #[test]
    fn empty_lines_before_the_first_are_skipped_and_a_lone_cr_is_none() {
        let first = || Some(Ok("GET / HTTP/1.1".to_owned()));
        assert_eq!(lines(b"GET / HTTP/1.1\r\n\r\n"), first());
        assert_eq!(lines(b"\r\n\nGET / HTTP/1.1\r\n\r\n"), first());
        for broken in [&b"\rGET / HTTP/1.1\r\n\r\n"[..], b"\r\n\r\r\nGET / HTTP/1.1\r\n\r\n"] {
            assert!(!matches!(lines(broken), Some(Ok(_))), "{broken:?}");
        }
        assert_eq!(lines(&[&b"\r\n".repeat(9)[..], b"GET / HTTP/1.1\r\n\r\n"].concat()), None);
    }
}
