//! Writes to what can only be read, where no word of the command names the file.
//!
//! The kernel tells such a refusal to the process alone. So this line comes after a failure that nothing else explains,
//! only where the program may have written there, and says "if". A package writes into a layer over its own files.

use super::facts::{Facts, PathState, Starts};
use super::{Hint, Runs, verbs};

/// A script, or a program of the user's own, in a directory that was granted by `--read`.
pub fn after(facts: &Facts) -> Option<Hint> {
    let program = facts.program.as_str();
    let may_write = verbs::INTERPRETERS.contains(&program) || !facts.is_of_system;
    let is_read_only = facts.starts == Starts::Here && facts.here_seen == PathState::ReadOnly;
    (facts.runs == Runs::Command && may_write && is_read_only).then(|| {
        Hint::new(
            "the current directory",
            format!(
                "{program} can read the current directory and not write there; if that was it: -w ."
            ),
        )
    })
}
