//! A program run instruction by instruction, and everything it starts, until that becomes another
//! program.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use super::sys::{self, Pid, Stop};
use crate::Result;

/// What was executed.
#[derive(Default)]
pub struct Trace {
    pub steps: u64,
    /// Distances from the start of the program, by process. Process numbers grow: the first is the first.
    pub processes: BTreeMap<Pid, BTreeSet<u64>>,
}

impl Trace {
    pub fn of(command: Command, program: &Path) -> Result<Trace> {
        let first = sys::spawn_stopped(command)?;
        let base = base(first, program)?;
        let mut seen: HashMap<Pid, HashSet<u64>> = HashMap::new();
        let mut trace = Trace::default();
        sys::step(first, None);
        while let Some((process, stop)) = sys::next_stop() {
            let signal = match stop {
                Stop::Ended => continue,
                Stop::AnotherProgram => {
                    sys::leave(process);
                    continue;
                }
                Stop::Step => {
                    trace.steps += 1;
                    let offset = sys::instruction(process).wrapping_sub(base);
                    seen.entry(process).or_default().insert(offset);
                    None
                }
                Stop::Started => None,
                Stop::Signal(signal) => Some(signal),
            };
            sys::step(process, signal);
        }
        trace.processes = seen
            .into_iter()
            .map(|(process, offsets)| (process, offsets.into_iter().collect()))
            .collect();
        Ok(trace)
    }
}

/// Where the program is mapped: what it starts without another exec has it at the same place.
fn base(process: Pid, program: &Path) -> Result<u64> {
    let maps = fs::read_to_string(format!("/proc/{process}/maps"))?;
    let name = program.display().to_string();
    let line =
        maps.lines().find(|line| line.ends_with(&name)).ok_or("the program is not mapped")?;
    let start = line.split_once('-').ok_or("a line of maps without a range")?.0;
    Ok(u64::from_str_radix(start, 16)?)
}
