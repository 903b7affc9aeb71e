//! Everything that can keep a run from starting.

use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::core::exit_code;
use crate::core::gap::Gap;
use crate::core::wire;

/// A step of the set-up that the system refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SetupFailure {
    /// What was done.
    pub step: String,
    /// On what; may be empty.
    pub target: String,
    /// The system's error number.
    pub errno: i32,
    /// What to do about it; may be empty.
    pub hint: String,
}

impl SetupFailure {
    /// Whether something ran out for the moment: that says nothing of what the host can do, and
    /// must not lead to fewer walls.
    pub fn is_shortage(&self) -> bool {
        // EAGAIN, ENOMEM, ENFILE, EMFILE by their numbers on Linux; handles, memory, resources and commitment
        // by those of Windows.
        const SHORTAGES: [i32; 4] = [11, 12, 23, 24];
        const OF_WINDOWS: [i32; 5] = [4, 8, 14, 1450, 1455];
        let known: &[i32] = if cfg!(windows) { &OF_WINDOWS } else { &SHORTAGES };
        known.contains(&self.errno)
    }
}

impl std::fmt::Display for SetupFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.step)?;
        if !self.target.is_empty() {
            write!(f, " {}", self.target)?;
        }
        write!(f, ": {}", io::Error::from_raw_os_error(self.errno))?;
        if !self.hint.is_empty() {
            write!(f, " ({})", self.hint)?;
        }
        Ok(())
    }
}

/// Serializable because it may have happened in the helper of a [`crate::Sandbox`].
#[derive(Debug, thiserror::Error, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Error {
    /// There is no such program.
    #[error("{command}: command not found")]
    NotFound {
        /// As it was given.
        command: String,
    },
    /// The program is there, and cannot be executed.
    #[error("{path}: {why}", path = path.display())]
    NotExecutable {
        /// The program.
        #[serde(with = "wire::path")]
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// A granted path cannot be given.
    #[error("{flag} {path}: {why}", path = path.display())]
    Grant {
        /// The grant.
        flag: String,
        /// The path.
        #[serde(with = "wire::path")]
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// Something that the caller said makes no sense.
    #[error("{what}: {why}")]
    Input {
        /// The value's name.
        what: String,
        /// What is wrong with it.
        why: String,
    },
    /// A standard descriptor would be a way out.
    #[error("file descriptor {fd} is {kind}, which would be a way out of the sandbox; {remedy}")]
    Descriptor {
        /// 0, 1 or 2.
        fd: i32,
        /// What it is.
        kind: String,
        /// What to do instead.
        remedy: String,
    },
    /// The system refused a step of the set-up.
    #[error("could not set up the sandbox: {0}")]
    Setup(SetupFailure),
    /// The [`Check`](crate::core::check::Check) said no.
    #[error("the program was changed after mcp had examined it")]
    Changed,
    /// This host enforces less than what was asked for; see [`Fallback`](crate::Fallback).
    #[error("not started: {}", joined(gaps))]
    NotEnforced {
        /// What is missing; never empty.
        gaps: Vec<Gap>,
    },
    /// The guard leaves part of the command to the sandbox, and this host does not enforce all of it.
    #[error(
        "not started: the guard leaves part of the command to the sandbox ({}), and the sandbox is not fully enforced here",
        rules.join(", ")
    )]
    Guarded {
        /// The guard's rules that spoke.
        rules: Vec<String>,
    },
    /// The program that asked for the run stopped it before it began.
    #[error("{0}")]
    Stopped(String),
    /// This system, or this version, has no such thing.
    #[error("{0}")]
    Unsupported(String),
    /// The system refused something beside the set-up.
    #[error("{doing}: {source}")]
    Io {
        /// What was done.
        doing: String,
        /// The system's answer.
        #[serde(with = "wire::io_error")]
        source: io::Error,
    },
}

impl Error {
    /// The exit code of `mcp` for this error.
    pub fn exit_code(&self) -> u8 {
        match self {
            Error::NotFound { .. } => exit_code::NOT_FOUND,
            Error::NotExecutable { .. } | Error::Guarded { .. } => exit_code::NOT_EXECUTABLE,
            _ => exit_code::NOT_SET_UP,
        }
    }
}

fn joined(gaps: &[Gap]) -> String {
    gaps.iter().map(Gap::to_string).collect::<Vec<_>>().join("; ")
}
