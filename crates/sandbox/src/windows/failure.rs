//! How a launch fails, and how a task of the helper does.

use std::io;

use crate::windows::channel::Failed;
use crate::windows::win32;

/// Why a run came to no end of its own.
pub enum RunError {
    Step(Failed),
    Io(io::Error),
}

impl From<io::Error> for RunError {
    fn from(error: io::Error) -> RunError {
        RunError::Io(error)
    }
}

pub fn at_step(step: usize, error: &io::Error) -> RunError {
    let (errno, why) = match error.raw_os_error() {
        Some(errno) => (errno, String::new()),
        None => (win32::ERROR_NOT_SUPPORTED, error.to_string()),
    };
    RunError::Step(Failed { step, errno, why })
}

/// The error code of a task of the helper, and what is to be said of it.
pub type StepError = (i32, String);

pub fn number(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(win32::ERROR_NOT_SUPPORTED)
}
