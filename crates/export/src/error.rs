//! Why there is no export.

use thiserror::Error;

/// What cannot be exported, and what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{what}")]
#[non_exhaustive]
pub struct Error {
    /// What is wrong, and what to do about it.
    pub what: String,
}

impl Error {
    pub(crate) fn new(what: impl Into<String>) -> Error {
        Error { what: what.into() }
    }
}

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;
