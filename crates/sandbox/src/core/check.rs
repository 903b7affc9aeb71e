//! A last look at what is to be run.

/// Whether what is to be run is still what it was. Asked before the command starts: on Linux while the sandbox is made.
pub type Check<'a> = &'a dyn Fn() -> bool;
