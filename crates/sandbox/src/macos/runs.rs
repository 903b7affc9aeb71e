//! Running sandboxes of this user: what each uses, and its end.
//!
//! A record names the first process by its number and by when it started. macOS has no handle on a process, so between
//! the comparison and the signal there are some microseconds in which the number could change its owner.

use std::io;

use crate::core::error::Error;
use crate::core::run_record::{Record, RunId, Stats};
use crate::macos::sys::{self, Process};
use crate::macos::tree::Tree;
use crate::unix::run_records::{self, First, HeldRecord, RecordFile};

/// Lists a run whose first process is this one.
pub fn list_run(root: i32, command: Vec<String>) -> Option<HeldRecord> {
    let process = sys::process(root)?;
    let first = First { pid: u32::try_from(root).ok()?, started: process.started };
    let listed = run_records::list_run(&RunId::random(), first, command, None)?;
    listed.sweep();
    Some(listed)
}

pub fn list() -> Result<Vec<(Record, RunHandle)>, Error> {
    let runs = run_records::list().into_iter();
    Ok(runs.map(|(record, file)| (record, RunHandle(file))).collect())
}

pub struct RunHandle(RecordFile);

impl RunHandle {
    pub fn stats(&self, record: &Record) -> Stats {
        let network = self.0.network();
        let Some(members) = members(record) else { return Stats { network, ..Stats::default() } };
        let used: Vec<_> = members.iter().filter_map(|process| sys::used(process.pid)).collect();
        Stats {
            memory_bytes: Some(used.iter().map(|used| used.footprint).sum()),
            cpu_seconds: Some(used.iter().map(|used| used.cpu.as_secs_f64()).sum()),
            processes: Some(members.len() as u64),
            network,
            ..Stats::default()
        }
    }

    /// The launcher sees the end of the first process, ends the others, which it knows better, and cleans up.
    pub fn kill(&self, record: &Record) -> io::Result<()> {
        if !self.0.is_launcher_alive() {
            return Ok(());
        }
        match first(record) {
            Some(process) => sys::send_signal(process.pid, libc::SIGKILL)?,
            None if sys::process(record.init.cast_signed()).is_some() => {
                return Err(io::Error::other("another process has its number now"));
            }
            None => {}
        }
        self.0.wait_for_end()
    }
}

/// The first process, if it still is the one that was written down.
fn first(record: &Record) -> Option<Process> {
    let process = sys::process(record.init.cast_signed())?;
    (process.started == record.init_started).then_some(process)
}

fn members(record: &Record) -> Option<Vec<Process>> {
    let root = first(record)?;
    Tree::new(root.pid, None)?.look()
}
