//! Limits that a command met, or may have died of.
//!
//! A cgroup counts what it refuses, and a signal or a full file system are seen. What an rlimit refuses is told to
//! the process alone; of that only "perhaps" can be said, after a failure that looks like it.

use mcp_policy::{Bytes, Limits, Origin};
use mcp_sandbox::{Control, Ending, Report, Status};

use super::Hint;
use crate::render;

/// SIGXCPU and SIGXFSZ on Linux and macOS; signals that a runtime without memory or threads dies of.
const XCPU: i32 = 24;
const XFSZ: i32 = 25;
const ABORTS: [i32; 5] = [4, 5, 6, 7, 11];

/// What ordinary programs may need at once.
const SMALL: Bytes = Bytes::mib(256);
const FEW: u32 = 32;
const FEW_FILES: u32 = 256;

/// What is certain.
pub fn after(limits: &Limits, report: &Report) -> Vec<Hint> {
    let mut hints = Vec::new();
    let usage = &report.usage;
    if let Some(limit) = limits.memory.value {
        let killed = usage.memory_kills;
        let peak = usage.max_tree_memory_bytes.unwrap_or_default();
        if report.ending == Ending::MemoryLimit {
            let peak = render::rounded_bytes(peak);
            hints.push(Hint::new(
                "memory",
                format!(
                    "killed: memory limit {limit} reached (peak {peak}) — raise with --max-memory {}",
                    more(limit)
                ),
            ));
        } else if killed > 0 {
            let processes = if killed == 1 { "process was" } else { "processes were" };
            hints.push(Hint::new(
                "memory",
                format!(
                    "{killed} {processes} killed at the memory limit {limit} — raise with --max-memory {}",
                    more(limit)
                ),
            ));
        }
    }
    if let (Some(limit), 1..) = (limits.processes.value, usage.refused_processes) {
        let count = usage.refused_processes;
        hints.push(Hint::new(
            "processes",
            format!(
                "process limit {limit} reached ({count} refused) — raise with --max-pids {}",
                limit.saturating_mul(4)
            ),
        ));
    }
    if let (Some(limit), Some(signal)) = (limits.file_size.value, signal(report))
        && signal == XFSZ
    {
        hints.push(Hint::new(
            "file size",
            format!(
                "a file reached the limit {limit} — raise with --max-file-size {}",
                more(limit)
            ),
        ));
    }
    if let (Some(limit), Some(signal)) = (limits.cpu_time.value, signal(report))
        && signal == XCPU
    {
        hints.push(Hint::new(
            "processor time",
            format!(
                "a process used {limit} of processor time, its limit — raise with --max-cpu-time"
            ),
        ));
    }
    hints.extend(full(limits, report));
    hints
}

/// The temporary space is full at the end of a command that did not end well.
fn full(limits: &Limits, report: &Report) -> Option<Hint> {
    let limit = limits.tmp_size.value;
    let used = report.usage.temporary_bytes?;
    let is_full = used >= limit.0.saturating_sub(limit.0 / 50);
    (is_full && report.exit_code != 0).then(|| {
        Hint::new(
            "temporary space",
            format!(
                "the temporary space of {limit} (/tmp and HOME) is full — raise with --max-tmp {}",
                more(limit)
            ),
        )
    })
}

/// What a "perhaps" may rest on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evidence {
    /// The command failed: a limit that a person set is reason enough to name it.
    Failure,
    /// It was ended from outside, as a server that hangs is: only figures near a limit count.
    Figures,
}

/// What may have been, where nothing else explains the end. One line, with what was limited.
pub fn perhaps(limits: &Limits, report: &Report, evidence: Evidence) -> Option<Hint> {
    let failed = match report.ending {
        // A runtime that gets no memory for its threads waits for ever.
        Ending::Timeout => true,
        Ending::Exited(_) | Ending::Signaled(_) if report.exit_code != 0 => {
            evidence == Evidence::Failure
        }
        _ => return None,
    };
    let has_aborted = failed && signal(report).is_some_and(|signal| ABORTS.contains(&signal));
    let mut words = Vec::new();
    let mut flags = Vec::new();
    // Of less than a MiB a warning was told before the start.
    let is_told = |limit: &Bytes| *limit < Bytes::mib(1);
    let memory = limits.memory.value.filter(|limit| !is_told(limit));
    if let Some(limit) = memory.filter(|_| is_unseen(report, Control::Memory)) {
        let peak = report.usage.max_tree_memory_bytes.unwrap_or_default();
        let data = report.usage.seen_process_data_bytes.unwrap_or_default();
        let peak = peak.max(report.usage.max_process_resident_bytes).max(data);
        let is_near = peak >= limit.0 / 2;
        // A small limit that a person set may refuse one allocation at once, long before the peak is near it.
        let is_small = limits.memory.origin != Origin::Default && limit <= SMALL;
        if has_aborted || is_near || failed && is_small {
            let near = match is_near {
                true => format!(" (it had {})", render::rounded_bytes(peak)),
                false => String::new(),
            };
            words.push(format!("{limit} of memory{near}"));
            flags.push(format!("--max-memory {}", more(limit)));
        }
    }
    if let Some(limit) = limits.processes.value.filter(|_| is_unseen(report, Control::Processes)) {
        let is_met = report.usage.seen_processes.is_some_and(|seen| seen >= u64::from(limit));
        let is_set = limits.processes.origin != Origin::Default;
        // A run that ends between two looks was never counted.
        let is_small = failed && is_set && (has_aborted || limit <= FEW);
        if is_met || is_small {
            words.push(format!("{limit} processes and threads"));
            flags.push(format!("--max-pids {}", limit.saturating_mul(4)));
        }
    }
    // A program may take no signal for its file size, and the kernel tells no figure of either. A limit that a person
    // set this low is reason enough to name it.
    let is_own = |origin: &Origin| failed && *origin != Origin::Default;
    let small_file = |limit: &Bytes| *limit <= SMALL && is_own(&limits.file_size.origin);
    if let Some(limit) = limits.file_size.value.filter(small_file) {
        words.push(format!("{limit} for each file"));
        flags.push(format!("--max-file-size {}", more(limit)));
    }
    let is_few = |limit: &u32| *limit <= FEW_FILES && is_own(&limits.open_files.origin);
    if let Some(limit) = limits.open_files.value.filter(is_few) {
        words.push(format!("{limit} open files for each process"));
        flags.push(format!("--max-fds {}", limit.saturating_mul(4)));
    }
    (!words.is_empty()).then(|| {
        Hint::new(
            "limits",
            format!(
                "its limit was {}, and the kernel refuses more without telling mcp; if that was it: {}",
                words.join(" and "),
                flags.join(" ")
            ),
        )
    })
}

/// The memory limit, where no figure tells that it was met.
pub fn unseen_memory(limits: &Limits, report: &Report) -> Option<Bytes> {
    limits.memory.value.filter(|_| is_unseen(report, Control::Memory))
}

/// What runtimes say when they get no memory.
const NO_MEMORY: [&str; 7] = [
    "MemoryError",
    "Cannot allocate memory",
    "bad_alloc",
    "OutOfMemoryError",
    "out of memory",
    "Out of memory",
    "memory allocation of ",
];

/// From the words of a command that failed.
pub fn said(limit: Bytes, stderr: &str) -> Option<String> {
    let word = NO_MEMORY.iter().find(|word| stderr.contains(**word))?;
    let word = word.trim_end();
    Some(format!(
        "the command says \"{word}\", and its limit was {limit} of memory; if that was it: --max-memory {}",
        more(limit)
    ))
}

/// Enforced by something that counts nothing.
fn is_unseen(report: &Report, control: Control) -> bool {
    match report.controls.get(&control) {
        Some(Status::Enforced { by, .. } | Status::Partial { by, .. }) => by.contains("RLIMIT"),
        _ => false,
    }
}

/// The signal that ended the command, be it by way of a shell that tells it by its exit code.
fn signal(report: &Report) -> Option<i32> {
    match report.ending {
        Ending::Signaled(signal) => Some(signal),
        Ending::Exited(code @ 129..=160) => Some(code - 128),
        _ => None,
    }
}

/// Four times as much, in a form that the flag takes.
fn more(limit: Bytes) -> String {
    let wanted = Bytes(limit.0.saturating_mul(4).next_multiple_of(1 << 20));
    wanted.to_string().replace(' ', "")
}
