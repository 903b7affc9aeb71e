//! Limits from the peaks of the rounds.

use mcp_learn::{Draft, Peaks, bytes_with_headroom, count_with_headroom};
use mcp_policy::{Bytes, Defaults, Policy};

use crate::render;

/// How much more than the peak a limit is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Headroom {
    Half,
    Twice,
    FourTimes,
}

impl Headroom {
    /// What is tried where this was too little.
    pub fn more(self) -> Option<Headroom> {
        match self {
            Headroom::Half => Some(Headroom::Twice),
            Headroom::Twice => Some(Headroom::FourTimes),
            Headroom::FourTimes => None,
        }
    }
}

/// In the place of those that were set before. Temporary space is only known at the end, so it is no reason for less than the
/// default.
pub fn set(draft: &mut Draft, peaks: &Peaks, headroom: Headroom) {
    let mib = |bytes: u64| render::rounded_bytes(bytes);
    let (factor, why) = match headroom {
        Headroom::Half => (1, ""),
        Headroom::Twice => (2, "; with half of it something failed"),
        Headroom::FourTimes => (4, "; with half of it something failed"),
    };
    draft.without_limits();
    if let Some(memory) = peaks.memory {
        let note = format!("peak {}{why}", mib(memory));
        draft.limit_memory(bytes_with_headroom(memory.saturating_mul(factor)), &note);
    }
    if let Some(processes) = peaks.processes {
        let note = format!("peak {processes}{why}");
        draft.limit_processes(count_with_headroom(processes.saturating_mul(factor)), &note);
    }
    if let Some(temporary) = peaks.temporary.filter(|bytes| *bytes > default_tmp()) {
        let note = format!("{} at the end", mib(temporary));
        draft.limit_temporary(bytes_with_headroom(temporary), &note);
    }
}

/// What half as much again must exceed before a limit is worth a line.
fn default_tmp() -> u64 {
    let default = Policy::merge(&[], Defaults::run()).map(|policy| policy.limits.tmp_size.value);
    default.unwrap_or(Bytes::mib(256)).0 / 3 * 2
}
