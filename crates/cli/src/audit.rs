//! The audit log: one JSON line when a run starts, one when it ends or is refused.
//!
//! Mode 0600, in the state directory. What a line holds is made here from values that are no
//! secrets: names of variables and references of secrets are in the policy's hash only, never their
//! values, and of a command only the program and the file name of its script are told, since arguments may be anything. A log that
//! cannot be written, or for which no place is known, stops a run before it starts, unless `--no-log`
//! says otherwise. A line that a crash left half written is ended before the next one. At four
//! mebibytes it becomes `log.jsonl.1`, and the five last of those are kept.

mod entry;
mod file;
pub mod reader;

pub use entry::{Entry, Event, What, names, rules};
pub use file::AuditLog;
