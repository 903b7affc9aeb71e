//! Files of this machine: which one a name stands for, what its one name is, where a path leads.

pub mod id;
pub mod names;
#[cfg(windows)]
pub(crate) mod sys;
#[cfg(unix)]
pub mod walk;
