//! What can go wrong with a package. One sentence says what, on what and why; `hint` what to do.

use std::fmt;
use std::io;
use std::path::Path;

/// Why something with a package failed, and what to do about it.
#[derive(Debug)]
pub struct Error {
    kind: Kind,
    message: String,
    hint: String,
}

/// What a caller may want to tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// Something that a person wrote makes no sense.
    Usage,
    /// The package is broken or hostile.
    Package,
    /// What was asked for is not there.
    NotFound,
    /// A digest or signature does not match.
    Untrusted,
    /// A server could not be reached, or did not do as it should.
    Network,
    /// The registry wants other credentials.
    Denied,
    /// The machine: files, programs that are missing.
    Machine,
}

/// A result with this crate's error.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error of any kind.
    pub fn new(kind: Kind, message: impl Into<String>, hint: impl Into<String>) -> Error {
        Error { kind, message: message.into(), hint: hint.into() }
    }

    /// The user wrote something that cannot be meant.
    pub fn usage(message: impl Into<String>, hint: impl Into<String>) -> Error {
        Error::new(Kind::Usage, message, hint)
    }

    /// Something in a package that cannot be used.
    pub fn package(message: impl Into<String>) -> Error {
        Error::new(Kind::Package, message, "")
    }

    /// Something is not where the user said.
    pub fn not_found(message: impl Into<String>, hint: impl Into<String>) -> Error {
        Error::new(Kind::NotFound, message, hint)
    }

    /// A registry could not be reached, or answered with an error.
    pub fn network(message: impl Into<String>) -> Error {
        Error::new(Kind::Network, message, "")
    }

    /// The machine: a file, a program that is missing.
    pub fn machine(message: impl Into<String>, hint: impl Into<String>) -> Error {
        Error::new(Kind::Machine, message, hint)
    }

    /// A failed system call: what was being done, and on which path.
    #[must_use]
    pub fn io(doing: &str, path: &Path, error: &io::Error) -> Error {
        Error::machine(format!("{doing} {}: {error}", path.display()), "")
    }

    /// Both digests are shown: one of them is what a person trusted.
    pub fn digest(
        what: impl fmt::Display,
        expected: impl fmt::Display,
        found: impl fmt::Display,
    ) -> Error {
        Error::new(
            Kind::Untrusted,
            format!(
                "{what} is not what was asked for\n     expected {expected}\n     found    {found}"
            ),
            "it was changed or damaged on the way, so nothing of it is used",
        )
    }

    /// The same error with this hint.
    pub fn hinted(mut self, hint: impl Into<String>) -> Error {
        self.hint = hint.into();
        self
    }

    /// The same error with the place it happened in before it.
    pub fn within(mut self, place: impl fmt::Display) -> Error {
        self.message = format!("{place}: {}", self.message);
        self
    }

    /// The kind, which decides the exit code.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// What failed.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What the user can do; empty if nothing is known.
    #[must_use]
    pub fn hint(&self) -> &str {
        &self.hint
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match self.hint.as_str() {
            "" => Ok(()),
            hint => write!(f, "; {hint}"),
        }
    }
}

impl std::error::Error for Error {}
