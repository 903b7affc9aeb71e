//! git's configuration, read as git reads it: which settings a file holds, which other files it includes, and which
//! programs and directories of programs the values name.
//!
//! [`grammar`] is pure. Every reader of the same text by another grammar is a hole: a comment that only we see hides a
//! setting from us and not from git. A property test compares the list of settings with that of the real git.
//!
//! Where git knows several readings (a condition of an `includeIf`, values that a later one replaces), all of them
//! count: the condition may hold tomorrow.

pub mod grammar;
pub mod pathname;
pub mod programs;
pub mod source;

#[cfg(test)]
#[cfg(unix)]
mod against_git;
