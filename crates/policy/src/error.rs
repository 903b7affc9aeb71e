//! Errors in a policy: the fault, its place, and the remedy.

use std::fmt;

use crate::excerpt::Excerpt;

/// A policy that cannot be used.
///
/// ```text
/// policy.toml:7:13: unknown unit "Q" in size
///    7 | memory = "64Q"
///      |             ^ use B, KiB, MiB, GiB, TiB (or K, M, G, T)
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error(Box<Details>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Details {
    file: Option<String>,
    position: Option<Position>,
    excerpt: Option<Excerpt>,
    message: String,
    hint: String,
}

/// Counted from one; columns are characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position {
    pub line: usize,
    pub column: usize,
}

impl Error {
    /// Wrong in no place of a file: flags, or layers that contradict one another.
    pub(crate) fn plain(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self(Box::new(Details {
            file: None,
            position: None,
            excerpt: None,
            message: message.into(),
            hint: hint.into(),
        }))
    }

    /// Wrong with a file as a whole.
    pub(crate) fn in_file(
        file: String,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        let mut error = Self::plain(message, hint);
        error.0.file = Some(file);
        error
    }

    pub(crate) fn at(mut self, position: Position, excerpt: Option<Excerpt>) -> Self {
        self.0.position = Some(position);
        self.0.excerpt = excerpt;
        self
    }

    /// What is wrong, without place and remedy.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// What to do about it; may be empty.
    pub fn hint(&self) -> &str {
        &self.0.hint
    }

    /// The file, as the user knows it.
    pub fn file(&self) -> Option<&str> {
        self.0.file.as_deref()
    }

    /// Counted from one.
    pub fn line(&self) -> Option<usize> {
        self.0.position.map(|position| position.line)
    }

    /// In characters, counted from one.
    pub fn column(&self) -> Option<usize> {
        self.0.position.map(|position| position.column)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Details { file, position, excerpt, message, hint } = &*self.0;
        if let Some(file) = file {
            write!(f, "{file}:")?;
            if let Some(Position { line, column }) = position {
                write!(f, "{line}:{column}:")?;
            }
            f.write_str(" ")?;
        }
        f.write_str(message)?;
        match (position, excerpt) {
            (Some(Position { line, .. }), Some(excerpt)) => {
                let margin = line.to_string().len().max(4);
                write!(f, "\n{line:>margin$} | {}", excerpt.line)?;
                write!(f, "\n{:>margin$} | {}", "", excerpt.carets(hint))
            }
            _ if !hint.is_empty() => write!(f, "; {hint}"),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for Error {}
