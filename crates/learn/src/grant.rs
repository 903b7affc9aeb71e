//! One line of a policy that gives something.

use std::fmt;
use std::path::{Path, PathBuf};

use mcp_policy::{EnvName, NetRule};

/// What a line gives. The order is the order of the lines.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Grant {
    /// A file or directory to read.
    Read(PathBuf),
    /// A file or directory to read and write.
    Write(PathBuf),
    /// A destination of the network.
    Net(NetRule),
    /// A unix socket of the host.
    Unix(PathBuf),
    /// A variable of the caller's environment.
    Variable(EnvName),
    /// A variable that holds a credential, by reference.
    Secret(EnvName),
}

impl Grant {
    /// The table and the key of a policy file.
    pub fn key(&self) -> (&'static str, &'static str) {
        match self {
            Grant::Read(_) => ("filesystem", "read"),
            Grant::Write(_) => ("filesystem", "write"),
            Grant::Net(_) => ("network", "allow"),
            Grant::Unix(_) => ("network", "unix"),
            Grant::Variable(_) => ("env", "allow"),
            Grant::Secret(_) => ("env", "secrets"),
        }
    }

    /// The value as text; `None` for a path that is not UTF-8, which TOML cannot hold.
    pub fn value(&self) -> Option<String> {
        match self {
            Grant::Read(path) | Grant::Write(path) | Grant::Unix(path) => {
                path.to_str().map(str::to_owned)
            }
            Grant::Net(rule) => Some(rule.to_string()),
            Grant::Variable(name) | Grant::Secret(name) => Some(name.as_str().to_owned()),
        }
    }

    /// Whether this one gives all that `other` gives.
    pub fn covers(&self, other: &Grant) -> bool {
        let holds = |outer: &Path, inner: &Path| inner.starts_with(outer);
        match (self, other) {
            (Grant::Read(outer), Grant::Read(inner))
            | (Grant::Write(outer), Grant::Read(inner) | Grant::Write(inner)) => {
                holds(outer, inner)
            }
            (one, two) => one == two,
        }
    }
}

/// As a person reads it: `read /srv/notes`.
impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Grant::Read(path) => write!(f, "read {}", path.display()),
            Grant::Write(path) => write!(f, "write {}", path.display()),
            Grant::Net(rule) => write!(f, "connect to {rule}"),
            Grant::Unix(path) => write!(f, "use the socket {}", path.display()),
            Grant::Variable(name) => write!(f, "pass the variable {name}"),
            Grant::Secret(name) => write!(f, "pass the secret {name}"),
        }
    }
}
