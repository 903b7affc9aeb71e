//! YAML, as little of it as manifests need.
//!
//! Stops: a value that a reader takes for another one. Every string is in double quotes (`no`, `1e3`, `0x10` and `~` stay
//! strings, and nothing in one can end it), or a literal block where it is lines of plain characters. Keys are bare only
//! where no reader takes them for anything but a string. A property test reads all of it back.

use std::fmt::Write;

use mcp_policy::text::is_unseen;
use serde_json::Value;

/// A document, in block style.
pub fn document(value: &Value) -> String {
    let mut out = String::new();
    block(&mut out, value, 0);
    out
}

/// Comment lines: no text in one can end it.
pub fn comments(lines: &[String]) -> String {
    lines.iter().map(|line| format!("# {}\n", mcp_policy::toml_text::comment(line))).collect()
}

fn block(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (at, (key, value)) in map.iter().enumerate() {
                if at > 0 {
                    pad(out, indent);
                }
                out.push_str(&self::key(key));
                out.push(':');
                nested(out, value, indent, Parent::Map);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    pad(out, indent);
                }
                out.push('-');
                nested(out, item, indent, Parent::List);
            }
        }
        scalar => {
            out.push_str(&flow(scalar));
            out.push('\n');
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Parent {
    Map,
    List,
}

/// What follows a key or a dash.
fn nested(out: &mut String, value: &Value, indent: usize, parent: Parent) {
    let deeper = indent + 2;
    match value {
        Value::Object(map) if !map.is_empty() => {
            if parent == Parent::Map {
                out.push('\n');
                pad(out, deeper);
            } else {
                out.push(' ');
            }
            block(out, value, deeper);
        }
        Value::Array(items) if !items.is_empty() => {
            out.push('\n');
            pad(out, deeper);
            block(out, value, deeper);
        }
        Value::String(text) if is_plain_lines(text) => {
            out.push_str(" |\n");
            for line in text.lines() {
                if !line.is_empty() {
                    pad(out, deeper);
                    out.push_str(line);
                }
                out.push('\n');
            }
        }
        scalar => {
            out.push(' ');
            out.push_str(&flow(scalar));
            out.push('\n');
        }
    }
}

fn pad(out: &mut String, indent: usize) {
    out.extend(std::iter::repeat_n(' ', indent));
}

fn flow(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(is) => is.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => quoted(text),
        // Others are in block style.
        Value::Array(_) => "[]".to_owned(),
        Value::Object(_) => "{}".to_owned(),
    }
}

/// Several lines of plain ASCII: what a literal block holds without any rule of its own. The first line is not empty and does
/// not begin with a space, so that the block's indentation is ours; it ends with one newline, which is what `|` keeps.
fn is_plain_lines(text: &str) -> bool {
    let is_plain = |c: char| c == '\n' || c == ' ' || c.is_ascii_graphic();
    text.chars().all(is_plain)
        && text.ends_with('\n')
        && !text.ends_with("\n\n")
        && text.len() > 1
        && !text.starts_with([' ', '\n'])
        && text.lines().all(|line| !line.ends_with(' '))
}

fn key(name: &str) -> String {
    // Words that some reader takes for a truth value or for nothing.
    const WORDS: [&str; 9] = ["y", "n", "yes", "no", "on", "off", "true", "false", "null"];
    let is_bare = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric())
        && !WORDS.contains(&name.to_ascii_lowercase().as_str());
    if is_bare { name.to_owned() } else { quoted(name) }
}

/// A string in double quotes.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if is_unseen(c) || !is_printable(c) => {
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

/// What YAML 1.2 lets stand as it is, without its byte order mark.
fn is_printable(c: char) -> bool {
    matches!(c, ' '..='~' | '\u{A0}'..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{10000}'..='\u{10FFFF}')
        && c != '\u{FEFF}'
        && !matches!(c, '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
pub(crate) mod tests;
