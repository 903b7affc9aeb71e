//! A value a person typed that makes no sense, and which part of it.

use std::fmt;
use std::ops::Range;

use crate::excerpt::Excerpt;

/// Says what is wrong with one value, where in it, and what to write instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValueError {
    /// What is wrong: lower case, no full stop.
    pub message: String,
    /// The bad part, in bytes of the value as it was given.
    pub span: Range<usize>,
    /// What to write instead; may be empty.
    pub hint: String,
}

impl ValueError {
    pub(crate) fn new(
        span: Range<usize>,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self { message: message.into(), span, hint: hint.into() }
    }

    /// Moves the span when the bad value is a part of a longer one.
    pub(crate) fn shifted(mut self, by: usize) -> Self {
        self.span = self.span.start + by..self.span.end + by;
        self
    }

    /// The value with a caret under the bad part and the remedy beside it: two lines.
    pub fn render(&self, value: &str) -> String {
        let excerpt = Excerpt::new(value, self.span.clone(), &[]);
        format!("  {}\n  {}", excerpt.line, excerpt.carets(&self.hint))
    }
}

impl fmt::Display for ValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if !self.hint.is_empty() {
            write!(f, "; {}", self.hint)?;
        }
        Ok(())
    }
}

impl std::error::Error for ValueError {}

#[cfg(test)]
mod tests {
    use crate::Bytes;

    #[test]
    fn caret_is_under_the_bad_part_only() {
        let value = "64Q";
        let error = value.parse::<Bytes>().unwrap_err();
        assert_eq!(error.render(value), "  64Q\n    ^ use B, KiB, MiB, GiB, TiB (or K, M, G, T)");
    }

    #[test]
    fn display_says_the_remedy_too() {
        let error = "64Q".parse::<Bytes>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "unknown unit \"Q\" in size; use B, KiB, MiB, GiB, TiB (or K, M, G, T)"
        );
    }
}
