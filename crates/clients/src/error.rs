//! Errors of reading and writing a client's file.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::document::Fault;

/// A file that was left alone, and why.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// It does not parse, or means two things.
    Fault {
        /// The file.
        path: PathBuf,
        /// The place and the reason.
        fault: Fault,
    },
    /// It cannot be read or written.
    File {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// Another program wrote to it between our reading and our writing.
    Changed {
        /// The file.
        path: PathBuf,
    },
}

impl Error {
    pub(crate) fn file(path: &Path, error: &io::Error) -> Error {
        Error::File { path: path.to_owned(), why: error.to_string() }
    }

    pub(crate) fn why(path: &Path, why: impl Into<String>) -> Error {
        Error::File { path: path.to_owned(), why: why.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Fault { path, fault } => {
                let Fault { line, column, message } = fault;
                write!(f, "{}:{line}:{column}: {message}; the file is left alone", path.display())
            }
            Error::File { path, why } => write!(f, "{}: {why}", path.display()),
            Error::Changed { path } => write!(
                f,
                "{}: another program changed the file meanwhile; nothing is written, type the command again",
                path.display()
            ),
        }
    }
}

impl std::error::Error for Error {}
