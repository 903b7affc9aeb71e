//! Sandboxes of this user that run now: listed, measured, killed, by programs that did not start
//! them.
//!
//! Each launcher keeps a record in the user's runtime directory and a lock on it as long as it
//! lives. So a record without a lock is stale, whatever process has its number now; only records
//! in a directory that is the user's alone are read.

use crate::core::error::Error;
pub use crate::core::run_record::{NetworkTotals, Record, RunId, Stats};
use crate::platform;

/// A run that is listed.
pub struct Run {
    /// What its launcher wrote down about it.
    pub record: Record,
    handle: platform::RunHandle,
}

impl Run {
    /// What it uses now.
    pub fn stats(&self) -> Stats {
        self.handle.stats(&self.record)
    }

    /// Kills everything in the sandbox, and waits until its launcher has cleaned up. No error
    /// when it has ended already.
    pub fn kill(&self) -> Result<(), Error> {
        self.handle
            .kill(&self.record)
            .map_err(|source| Error::Io { doing: format!("kill {}", self.record.id), source })
    }
}

/// All that run now, the oldest first.
pub fn list() -> Result<Vec<Run>, Error> {
    let runs = platform::list_runs()?.into_iter();
    let mut runs: Vec<Run> = runs.map(|(record, handle)| Run { record, handle }).collect();
    runs.sort_by(|a, b| (a.record.since, &a.record.id).cmp(&(b.record.since, &b.record.id)));
    Ok(runs)
}
