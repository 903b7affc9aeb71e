//! Why the gateway does not start.

use std::path::{Path, PathBuf};

/// What ends `mcp serve`, or keeps it from starting.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The configuration makes no sense, or asks for what is not safe.
    #[error("{0}")]
    Config(String),
    /// A file cannot be read.
    #[error("{path}: {why}")]
    File {
        /// Which one.
        path: PathBuf,
        /// What the system says.
        why: String,
    },
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {why}")]
    Listen {
        /// Which one.
        address: std::net::SocketAddr,
        /// What the system says.
        why: String,
    },
}

impl Error {
    pub(crate) fn file(path: &Path, why: impl ToString) -> Error {
        Error::File { path: path.to_owned(), why: why.to_string() }
    }
}
