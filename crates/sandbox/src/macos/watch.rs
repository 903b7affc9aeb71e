//! Memory and number of a run's processes, looked at in intervals: macOS has nothing that would
//! hold them. A burst can pass the limit between two looks; the pause between them is what the
//! fastest hog would need to fill the rest.

use std::time::Duration;

use crate::macos::sys::{self, Process};

/// How fast memory can be filled, generously.
const BYTES_PER_SECOND: u64 = 2 << 30;
const SHORTEST: Duration = Duration::from_millis(5);
const LONGEST: Duration = Duration::from_millis(250);

#[derive(Debug, Default)]
pub struct Watch {
    pub memory: Option<u64>,
    pub processes: Option<u32>,
    pub peak_memory: u64,
    pub peak_processes: usize,
    pub looks: u64,
    /// Processes that were too many.
    pub ended: u64,
}

pub enum MemoryUse {
    Within { look_again: Duration },
    OverMemory,
}

impl Watch {
    pub fn look(&mut self, members: &[Process]) -> MemoryUse {
        self.looks += 1;
        self.peak_processes = self.peak_processes.max(members.len());
        if let Some(most) = self.processes {
            // The youngest are too many, the command itself is never among them.
            for process in members.iter().skip(most.max(1) as usize) {
                self.ended += 1;
                let _ = sys::send_signal(process.pid, libc::SIGKILL);
            }
        }
        let bytes: u64 = members
            .iter()
            .filter_map(|process| sys::used(process.pid))
            .map(|used| used.footprint)
            .sum();
        self.peak_memory = self.peak_memory.max(bytes);
        match self.memory {
            Some(limit) if bytes > limit => MemoryUse::OverMemory,
            Some(limit) => {
                let rest = (limit - bytes) as f64 / BYTES_PER_SECOND as f64;
                let look_again = Duration::from_secs_f64(rest).clamp(SHORTEST, LONGEST);
                MemoryUse::Within { look_again }
            }
            None => MemoryUse::Within { look_again: LONGEST },
        }
    }
}
