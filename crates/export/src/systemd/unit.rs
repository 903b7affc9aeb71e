//! The text of a unit file.
//!
//! Stops: a value that becomes another directive, another word or a specifier. A `%` is doubled, a word with anything but plain
//! characters is quoted with its escapes written out, and what would end a line is refused.

use mcp_policy::text;

use crate::error::{Error, Result};

/// A unit file that is being written.
#[derive(Debug, Default)]
pub struct Unit(String);

impl Unit {
    pub fn section(&mut self, name: &str) {
        if !self.0.is_empty() {
            self.0.push('\n');
        }
        self.0.push_str(&format!("[{name}]\n"));
    }

    /// A directive with a value of our own words.
    pub fn set(&mut self, key: &str, value: impl AsRef<str>) {
        self.0.push_str(&format!("{key}={}\n", value.as_ref()));
    }

    /// A directive with words from outside.
    pub fn words(&mut self, key: &str, words: &[&str]) -> Result<()> {
        let quoted: Result<Vec<String>> = words.iter().map(|word| self::word(word)).collect();
        self.set(key, quoted?.join(" "));
        Ok(())
    }

    pub fn text(self) -> String {
        self.0
    }
}

/// One word of a directive.
pub fn word(word: &str) -> Result<String> {
    if word.is_empty() || word.chars().any(text::is_unseen) {
        return Err(Error::new(format!(
            "{:?} cannot stand in a unit file: it is empty or has characters that are not seen",
            text::word(word)
        )));
    }
    let plain = |c: char| c.is_alphanumeric() || "/._-+=@,~".contains(c);
    let mut out = String::new();
    for c in word.chars() {
        match c {
            '%' => out.push_str("%%"),
            '"' | '\\' => out.extend(['\\', c]),
            c => out.push(c),
        }
    }
    Ok(if word.chars().all(plain) { out } else { format!("\"{out}\"") })
}

/// A path for directives that divide their value at `:`.
pub fn path(path: &str) -> Result<&str> {
    match path.starts_with('/') && !path.contains(':') {
        true => Ok(path),
        false => Err(Error::new(format!(
            "{}: a unit file takes absolute paths without \":\" only",
            text::word(path)
        ))),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_word_stays_one_word() {
        for (text, written) in [
            ("/srv/notes", "/srv/notes"),
            ("/srv/my notes", "\"/srv/my notes\""),
            ("/srv/100%n", "\"/srv/100%%n\""),
            ("a\"b\\c", "\"a\\\"b\\\\c\""),
            ("$HOME", "\"$HOME\""),
            ("a;b", "\"a;b\""),
        ] {
            assert_eq!(word(text).unwrap(), written);
        }
        for refused in ["", "a\nExecStart=/bin/sh", "a\u{85}", "a\r"] {
            assert!(word(refused).is_err(), "{refused:?}");
        }
        assert!(path("/a:/b").is_err() && path("a").is_err() && path("/a").is_ok());
    }

    proptest! {
        /// Read as systemd reads it (systemd.syntax(7)): quotes, then escapes, then specifiers.
        #[test]
        fn what_is_written_is_read_back(text in any::<String>()) {
            let Ok(written) = word(&text) else { return Ok(()) };
            prop_assert!(!written.contains('\n'));
            let inner = match written.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
                Some(inner) => inner,
                None => {
                    prop_assert!(!written.contains([' ', '\'', '"', '\\', ';', '#', '$']));
                    &written
                }
            };
            let (mut read, mut chars) = (String::new(), inner.chars());
            while let Some(c) = chars.next() {
                match c {
                    '\\' => read.extend(chars.next()),
                    '"' => prop_assert!(false, "the quotes end early: {written}"),
                    '%' => {
                        prop_assert_eq!(chars.next(), Some('%'), "a specifier: {}", written);
                        read.push('%');
                    }
                    c => read.push(c),
                }
            }
            prop_assert_eq!(read, text);
        }
    }
}
