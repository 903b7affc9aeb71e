//! Failures that end `mcp` with a message before anything runs.

use std::fmt;

use mcp_sandbox::exit_code;

use crate::render;

#[derive(Debug)]
pub enum Failure {
    /// The policy makes no sense: exit 2, as for any usage error.
    Policy(mcp_policy::Error),
    Sandbox(mcp_sandbox::Error),
    /// A package cannot be used: exit 125, or 2 where a person wrote nonsense.
    Package(mcp_package::Error),
    /// The sandbox could not be made as asked: exit 125.
    Refused(String),
    /// The guard would not have the command run: exit 126.
    Guarded(String),
    /// A file of ours could not be read or written.
    File {
        path: std::path::PathBuf,
        why: String,
    },
    /// A file that the user named cannot be read: exit 2.
    Input {
        path: std::path::PathBuf,
        why: String,
    },
    Usage(String),
    /// There is no such program: exit 127, as a shell answers.
    NotFound(String),
    /// A file of an MCP client was left alone: exit 1.
    Client(String),
    /// A sandbox that was named does not run: exit 1.
    NoSuchRun(String),
}

impl Failure {
    pub fn exit_code(&self) -> u8 {
        match self {
            Failure::Policy(_) | Failure::Usage(_) | Failure::Input { .. } => exit_code::USAGE,
            Failure::Sandbox(error) => error.exit_code(),
            Failure::Package(error) if error.kind() == mcp_package::Kind::Usage => exit_code::USAGE,
            Failure::Package(_) | Failure::Refused(_) | Failure::File { .. } => {
                exit_code::NOT_SET_UP
            }
            Failure::Guarded(_) => exit_code::NOT_EXECUTABLE,
            Failure::NoSuchRun(_) => exit_code::NO_SUCH_RUN,
            Failure::Client(_) => 1,
            Failure::NotFound(_) => 127,
        }
    }

    /// For the audit log: no part of a message, which may quote what people wrote.
    pub fn word(&self) -> &'static str {
        match self {
            Failure::Policy(_) => "policy",
            Failure::Sandbox(error) => match error {
                mcp_sandbox::Error::NotFound { .. } => "not_found",
                mcp_sandbox::Error::NotExecutable { .. } => "not_executable",
                mcp_sandbox::Error::Grant { .. } => "grant",
                mcp_sandbox::Error::Descriptor { .. } => "descriptor",
                mcp_sandbox::Error::Setup(_) => "setup",
                mcp_sandbox::Error::Changed => "changed",
                mcp_sandbox::Error::NotEnforced { .. } => "not_enforced",
                _ => "sandbox",
            },
            Failure::Package(_) => "package",
            Failure::Refused(_) => "refused",
            Failure::Guarded(_) => "guard",
            Failure::NoSuchRun(_) => "no_such_run",
            Failure::File { .. } => "file",
            Failure::Input { .. } => "input",
            Failure::Usage(_) => "usage",
            Failure::Client(_) => "client",
            Failure::NotFound(_) => "not_found",
        }
    }

    pub fn input(path: &std::path::Path, error: &std::io::Error) -> Failure {
        Failure::Input { path: path.to_owned(), why: error.to_string() }
    }

    /// A place for trials could not be made.
    pub fn temporary(path: &std::path::Path, error: &std::io::Error) -> Failure {
        let why = format!("{error}; set TMPDIR to a directory that can be written to");
        Failure::File { path: path.to_owned(), why }
    }

    pub fn file(path: &std::path::Path, error: &std::io::Error) -> Failure {
        Failure::File { path: path.to_owned(), why: error.to_string() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Policy(error) => f.write_str(&render::printable(&error.to_string())),
            Failure::Package(error) => f.write_str(&render::printable(&error.to_string())),
            Failure::Sandbox(error) => f.write_str(&render::plain(&error.to_string())),
            Failure::Refused(why) | Failure::Guarded(why) | Failure::NoSuchRun(why) => {
                f.write_str(&render::printable(why))
            }
            Failure::Usage(why) | Failure::Client(why) | Failure::NotFound(why) => {
                f.write_str(&render::plain(why))
            }
            Failure::File { path, why } | Failure::Input { path, why } => {
                write!(f, "{}: {}", render::path(path), render::printable(why))
            }
        }
    }
}

impl From<mcp_policy::Error> for Failure {
    fn from(error: mcp_policy::Error) -> Failure {
        Failure::Policy(error)
    }
}

impl From<mcp_package::Error> for Failure {
    fn from(error: mcp_package::Error) -> Failure {
        Failure::Package(error)
    }
}

impl From<mcp_sandbox::Error> for Failure {
    fn from(error: mcp_sandbox::Error) -> Failure {
        Failure::Sandbox(error)
    }
}
