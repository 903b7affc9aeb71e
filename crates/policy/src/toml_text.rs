//! Strings, keys and comments as TOML spells them.

use std::fmt::Write;

use crate::text::is_unseen;

/// A basic string. What a terminal would obey is escaped.
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if is_unseen(c) => {
                // Writing to a String cannot fail.
                let _ = match u32::from(c) {
                    code @ ..=0xFFFF => write!(out, "\\u{code:04X}"),
                    code => write!(out, "\\U{code:08X}"),
                };
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// One line, whatever is in it: a comment must not end early and become policy.
pub fn comment(text: &str) -> String {
    text.chars().map(|c| if is_unseen(c) { '\u{FFFD}' } else { c }).collect()
}

/// A key, quoted where it has to be.
pub fn key(name: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.chars().all(is_bare) { name.to_owned() } else { quoted(name) }
}
