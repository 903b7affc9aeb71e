//! The outcome of an act, and its line of JSON.

use std::fmt::Write;

use crate::spec::USAGE;

/// The answer of the system to one act.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    pub act: String,
    /// The arguments, joined by spaces.
    pub arg: String,
    pub ok: bool,
    /// The symbolic error (`EACCES`); none when the act worked.
    pub errno: Option<String>,
    /// What was seen: a file's content, a list with one item per line, a count, an error's text.
    pub detail: String,
}

impl Outcome {
    /// The outcome as one line of JSON, without the line's end.
    pub fn to_json(&self) -> String {
        let mut line = String::from("{\"act\":");
        push_quoted(&mut line, &self.act);
        line.push_str(",\"arg\":");
        push_quoted(&mut line, &self.arg);
        line.push_str(if self.ok { ",\"ok\":true" } else { ",\"ok\":false" });
        if let Some(errno) = &self.errno {
            line.push_str(",\"errno\":");
            push_quoted(&mut line, errno);
        }
        line.push_str(",\"detail\":");
        push_quoted(&mut line, &self.detail);
        line.push('}');
        line
    }

    /// Whether the act was never tried, because its arguments make no sense.
    pub fn is_usage_error(&self) -> bool {
        self.errno.as_deref() == Some(USAGE)
    }
}

fn push_quoted(line: &mut String, text: &str) {
    line.push('"');
    for character in text.chars() {
        match character {
            '"' => line.push_str("\\\""),
            '\\' => line.push_str("\\\\"),
            '\n' => line.push_str("\\n"),
            control if (control as u32) < 0x20 || control == '\u{7f}' => {
                let _ = write!(line, "\\u{:04x}", control as u32);
            }
            other => line.push(other),
        }
    }
    line.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_one_line_whatever_the_text() {
        let outcome = Outcome {
            act: "read".into(),
            arg: "a\"b\\c".into(),
            ok: false,
            errno: Some("EIO".into()),
            detail: "one\ntwo\u{1}".into(),
        };
        assert_eq!(
            outcome.to_json(),
            r#"{"act":"read","arg":"a\"b\\c","ok":false,"errno":"EIO","detail":"one\ntwo\u0001"}"#
        );
    }
}
