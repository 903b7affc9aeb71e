//! Words as each format writes them.

use crate::client::Format;

/// A string literal. One spelling serves all: the double quotes of JSON, TOML and YAML agree where every
/// character that any of them does not take as it is stands as `\uXXXX`.
#[must_use]
pub fn quoted(format: Format, word: &str) -> String {
    let json = serde_json::Value::from(word).to_string();
    if format == Format::Json || format == Format::Jsonc {
        return json;
    }
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        let is_plain = c.is_ascii() && c != '\u{7f}' || c.is_alphanumeric();
        match u32::from(c) {
            _ if is_plain => out.push(c),
            code if code <= 0xffff => out.push_str(&format!("\\u{code:04x}")),
            code => out.push_str(&format!("\\U{code:08x}")),
        }
    }
    out
}

/// A key.
#[must_use]
pub fn key(format: Format, name: &str) -> String {
    let is_bare = !name.is_empty()
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
        && name.starts_with(|c: char| c.is_ascii_alphabetic());
    match format {
        Format::Toml | Format::Yaml if is_bare => name.to_owned(),
        _ => quoted(format, name),
    }
}

/// A list on one line.
#[must_use]
pub fn list(format: Format, words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| quoted(format, word)).collect();
    format!("[{}]", words.join(", "))
}
