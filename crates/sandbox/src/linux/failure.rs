//! How a launch fails: in a step of the plan, or between them.

use std::io;
use std::path::Path;

use crate::linux::channel::Failed;

/// A failure inside a step that has several parts.
pub struct StepFailure {
    pub part: String,
    pub error: io::Error,
}

impl StepFailure {
    pub fn at(path: &Path, error: io::Error) -> StepFailure {
        StepFailure { part: path.display().to_string(), error }
    }
}

impl From<io::Error> for StepFailure {
    fn from(error: io::Error) -> StepFailure {
        StepFailure { part: String::new(), error }
    }
}

impl From<rustix::io::Errno> for StepFailure {
    fn from(error: rustix::io::Errno) -> StepFailure {
        StepFailure::from(io::Error::from(error))
    }
}

/// Why a run came to no end of its own.
pub enum LaunchFailure {
    Step(Failed),
    /// What was to be run.
    Changed,
    Io(io::Error),
    /// The command was started, and is dead.
    Lost(io::Error),
}

impl From<io::Error> for LaunchFailure {
    fn from(error: io::Error) -> LaunchFailure {
        LaunchFailure::Io(error)
    }
}

/// A step of the launcher's own.
pub fn at_step(step: usize, error: &io::Error) -> LaunchFailure {
    let errno = error.raw_os_error().unwrap_or(libc::EIO);
    LaunchFailure::Step(Failed { step, errno, part: String::new() })
}
