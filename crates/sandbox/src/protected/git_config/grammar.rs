//! The grammar of git's configuration files (git-config(1), "Syntax"), byte by byte as git's own parser takes it. Pure.
//!
//! Where the manual is silent, git's behaviour counts: a carriage return belongs to a line feed that follows it, blanks
//! are space, tab, line feed and carriage return alone, and the end of the text ends a line.

/// One setting, with its section and its last part in lower case, as git shows it: `core.hookspath`,
/// `remote.Origin.url`. Without `=` it has no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    pub key: Vec<u8>,
    pub value: Option<Vec<u8>>,
}

/// What a text holds. git stops at the first line that it does not understand; what came before counts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Parsed {
    pub settings: Vec<Setting>,
    /// The line, from 1, that git does not understand.
    pub bad_line: Option<usize>,
}

/// Reads a whole file.
pub fn parse(text: &[u8]) -> Parsed {
    let mut settings = Vec::new();
    let mut reader = Reader { text, at: 0, is_over: false };
    let bad_line = match reader.settings(&mut settings) {
        Some(()) => None,
        None => Some(reader.line()),
    };
    Parsed { settings, bad_line }
}

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
    is_over: bool,
}

/// `None`: git does not understand it.
impl Reader<'_> {
    /// The next character; the end reads as a line feed.
    fn next(&mut self) -> u8 {
        let Some(&first) = self.text.get(self.at) else {
            self.is_over = true;
            return b'\n';
        };
        self.at += 1;
        if first == b'\r' && self.text.get(self.at) == Some(&b'\n') {
            self.at += 1;
            return b'\n';
        }
        first
    }

    /// Of the character that was read last.
    fn line(&self) -> usize {
        let before = self.text.iter().take(self.at.saturating_sub(1));
        1 + before.filter(|c| **c == b'\n').count()
    }

    fn settings(&mut self, settings: &mut Vec<Setting>) -> Option<()> {
        // A part of the mark alone is an error, as any other character is that starts no line.
        if self.text.starts_with(BYTE_ORDER_MARK) {
            self.at = BYTE_ORDER_MARK.len();
        }
        // Settings before the first section have a name alone.
        let mut section: Vec<u8> = Vec::new();
        loop {
            match self.next() {
                b'\n' if self.is_over => return Some(()),
                c if is_blank(c) => {}
                b'#' | b';' => self.comment(),
                b'[' => section = self.section()?,
                c if c.is_ascii_alphabetic() => settings.push(self.setting(&section, c)?),
                _ => return None,
            }
        }
    }

    fn comment(&mut self) {
        while self.next() != b'\n' {}
        // The main loop is told of the end once more: reading behind it gives it again.
    }

    /// After `[`: the section with a dot at its end.
    fn section(&mut self) -> Option<Vec<u8>> {
        let mut name = Vec::new();
        loop {
            match self.next() {
                _ if self.is_over => return None,
                b']' => break,
                c if is_blank(c) => {
                    self.subsection(c, &mut name)?;
                    break;
                }
                c if is_of_key(c) || c == b'.' => name.push(c.to_ascii_lowercase()),
                _ => return None,
            }
        }
        if name.is_empty() {
            return None;
        }
        name.push(b'.');
        Some(name)
    }

    /// After a blank in a section: the rest, in quotes, which keeps its case.
    fn subsection(&mut self, first: u8, name: &mut Vec<u8>) -> Option<()> {
        let mut c = first;
        while is_blank(c) {
            if c == b'\n' {
                return None;
            }
            c = self.next();
        }
        if c != b'"' {
            return None;
        }
        name.push(b'.');
        loop {
            let mut c = self.next();
            match c {
                b'\n' => return None,
                b'"' => break,
                b'\\' => {
                    c = self.next();
                    if c == b'\n' {
                        return None;
                    }
                }
                _ => {}
            }
            name.push(c);
        }
        (self.next() == b']').then_some(())
    }

    fn setting(&mut self, section: &[u8], first: u8) -> Option<Setting> {
        let mut key = section.to_vec();
        key.push(first.to_ascii_lowercase());
        let mut c = self.next();
        while !self.is_over && is_of_key(c) {
            key.push(c.to_ascii_lowercase());
            c = self.next();
        }
        while c == b' ' || c == b'\t' {
            c = self.next();
        }
        let value = match c {
            b'\n' => None,
            b'=' => Some(until_nul(self.value()?)),
            _ => return None,
        };
        Some(Setting { key: until_nul(key), value })
    }

    /// After `=`: up to the end of the line, and of those that it continues.
    fn value(&mut self) -> Option<Vec<u8>> {
        let mut value: Vec<u8> = Vec::new();
        let mut is_quoted = false;
        // How much of it counts if nothing but blanks follows.
        let mut trimmed: usize = 0;
        loop {
            let c = self.next();
            match c {
                b'\n' if is_quoted => return None,
                b'\n' => break,
                c if is_blank(c) && !is_quoted => {
                    if trimmed == 0 {
                        trimmed = value.len();
                    }
                    if !value.is_empty() {
                        value.push(c);
                    }
                    continue;
                }
                b'#' | b';' if !is_quoted => {
                    self.comment();
                    break;
                }
                _ => trimmed = 0,
            }
            match c {
                b'"' => is_quoted = !is_quoted,
                b'\\' => match self.next() {
                    b'\n' => {}
                    b't' => value.push(b'\t'),
                    b'b' => value.push(b'\x08'),
                    b'n' => value.push(b'\n'),
                    c @ (b'\\' | b'"') => value.push(c),
                    _ => return None,
                },
                c => value.push(c),
            }
        }
        if trimmed > 0 {
            value.truncate(trimmed);
        }
        Some(value)
    }
}

/// Not the vertical tab and the form feed.
fn is_blank(c: u8) -> bool {
    matches!(c, b' ' | b'\t' | b'\n' | b'\r')
}

fn is_of_key(c: u8) -> bool {
    c.is_ascii_alphanumeric() || c == b'-'
}

/// git hands both on as strings of C.
fn until_nul(mut text: Vec<u8>) -> Vec<u8> {
    if let Some(end) = text.iter().position(|c| *c == 0) {
        text.truncate(end);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        let parsed = parse(text.as_bytes());
        assert_eq!(parsed.bad_line, None, "{text:?}");
        let show = |setting: &Setting| {
            let value = setting.value.as_deref().map(String::from_utf8_lossy);
            let value = value.map_or_else(|| "-".to_owned(), |value| format!("={value}"));
            format!("{}{value}", String::from_utf8_lossy(&setting.key))
        };
        parsed.settings.iter().map(show).collect()
    }

    #[test]
    fn values_end_where_git_ends_them() {
        for (text, value) in [
            ("a b", "=a b"),
            ("  a\t# c", "=a"),
            ("a;b", "=a"),
            ("\"a;#b\" # c", "=a;#b"),
            ("a\\\n  b", "=a  b"),
            ("a \\\n", "=a "),
            ("\\\"a\\\\\\t\\n\\b", "=\"a\\\t\n\x08"),
            ("\"a \" b \" c\" ", "=a  b  c"),
            ("a # b \\\n", "=a"),
            ("a\r\n", "=a"),
            ("a\rb", "=a\rb"),
            ("\x0ba", "=\x0ba"),
            ("", "="),
        ] {
            assert_eq!(shown(&format!("[core]x={text}")), [format!("core.x{value}")], "{text:?}");
        }
    }

    #[test]
    fn sections_have_several_forms() {
        assert_eq!(shown("[Core]HooksPath"), ["core.hookspath-"]);
        assert_eq!(shown("[a.B \"C.d\\\"\\e\"] F = 1"), ["a.b.C.d\"e.f=1"]);
        assert_eq!(shown("[a.B]\n F = 1 [c]\nd"), ["a.b.f=1 [c]", "a.b.d-"]);
        assert_eq!(shown("\u{feff}x = 1\n[a][b]c"), ["x=1", "b.c-"]);
    }

    #[test]
    fn what_git_does_not_understand_is_told_with_its_line() {
        for (text, line) in [
            ("[core", 1),
            ("[core]\nx y", 2),
            ("[core]\n\nx = \"a\nb\"", 3),
            ("x = \\q", 1),
            ("[a b]", 1),
            ("[a \"b\"c]", 1),
            ("[a\n\"b\"]", 1),
            ("\n=", 2),
            ("1 = 2", 1),
            ("[co_re]", 1),
            ("\u{feff}\u{feff}", 1),
        ] {
            assert_eq!(parse(text.as_bytes()).bad_line, Some(line), "{text:?}");
        }
        let parsed = parse(b"[a]b=1\n[");
        assert_eq!((parsed.settings.len(), parsed.bad_line), (1, Some(2)));
    }
}
