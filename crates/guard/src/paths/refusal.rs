//! Why a path was not opened.

use std::fmt;
use std::io;

/// A path that is not opened, with the reason.
#[derive(Debug)]
#[non_exhaustive]
pub struct Refusal {
    /// As it was given, for a message; escaped when shown.
    pub path: String,
    /// The reason.
    pub why: Why,
}

/// Why a path is not opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum Why {
    /// The spelling itself is refused.
    Form(&'static str),
    /// It, or a link on the way, leads out of the roots.
    Outside,
    /// A deny rule matches it or a directory above it.
    Denied {
        /// The rule.
        rule: String,
    },
    /// More links than a kernel follows.
    TooManyLinks,
    /// Neither a file nor a directory.
    Special,
    /// It is there, but not what was asked for.
    NotA(&'static str),
    /// The system's own answer.
    System(io::Error),
}

impl Refusal {
    pub(super) fn new(path: &str, why: Why) -> Refusal {
        Refusal { path: path.to_owned(), why }
    }
}

impl From<io::Error> for Why {
    fn from(error: io::Error) -> Why {
        Why::System(error)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path: String = mcp_policy::text::word(&self.path).chars().take(200).collect();
        match &self.why {
            Why::Form(what) => write!(f, "{path}: {what}"),
            Why::Outside => write!(
                f,
                "{path}: leads out of the directories that may be used (add a root that holds it)"
            ),
            Why::Denied { rule } => write!(f, "{path}: closed by the deny rule {rule}"),
            Why::TooManyLinks => write!(f, "{path}: too many symbolic links"),
            Why::Special => write!(f, "{path}: is a device, a pipe or a socket, not a file"),
            Why::NotA(what) => write!(f, "{path}: is not {what}"),
            Why::System(error) => write!(f, "{path}: {error}"),
        }
    }
}

impl std::error::Error for Refusal {}
