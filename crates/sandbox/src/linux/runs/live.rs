//! The usage of a running sandbox: from its cgroup, or else from the list of its processes.

use std::fs;
use std::path::Path;

use crate::core::run_record::Stats;
use crate::linux::cgroup::usage::{CgroupUsage, number};

/// In which /proc counts time; the same on every Linux.
const TICKS_PER_SECOND: f64 = 100.0;
/// A tree with more processes is told in part.
const MOST: usize = 10_000;

/// When a process started, in ticks since the machine did.
pub fn started(pid: u32) -> Option<u64> {
    stat(pid)?.get(19)?.parse().ok()
}

/// The fields of /proc/PID/stat from the state on; the name before it may hold anything.
fn stat(pid: u32) -> Option<Vec<String>> {
    let file = fs::File::open(format!("/proc/{pid}/stat")).ok()?;
    let mut text = [0; 1024];
    let length = rustix::io::read(&file, &mut text).ok()?;
    let text = String::from_utf8_lossy(&text[..length]);
    let (_, fields) = text.rsplit_once(") ")?;
    Some(fields.split_whitespace().map(str::to_owned).collect())
}

pub fn of_cgroup(directory: &str) -> Option<Stats> {
    let directory = Path::new(directory);
    let read = |file: &str| fs::read_to_string(directory.join(file)).ok();
    let one = |file: &str| read(file).as_deref().and_then(number);
    read("cgroup.procs")?;
    let used = CgroupUsage::read(read);
    let seconds = |micros: u64| micros as f64 / 1e6;
    Some(Stats {
        memory_bytes: one("memory.current"),
        max_memory_bytes: used.peak_memory,
        memory_limit_bytes: one("memory.max"),
        cpu_seconds: used.cpu_micros.map(seconds),
        throttled_seconds: used.throttled_micros.map(seconds),
        // Its init is none of the command's.
        processes: one("pids.current").map(|count| count.saturating_sub(1)),
        max_processes: used.peak_processes.map(|count| count.saturating_sub(1)),
        process_limit: one("pids.max").map(|count| count.saturating_sub(1)),
        network: None,
    })
}

/// The tree below init, without init.
pub fn of_tree(init: u32) -> Stats {
    let (mut memory, mut ticks, mut threads) = (0, 0, 0);
    let mut pending = vec![init];
    let mut seen = 0;
    while let Some(pid) = pending.pop().filter(|_| seen < MOST) {
        seen += 1;
        pending.extend(children(pid));
        let Some(stat) = stat(pid) else {
            continue;
        };
        let value = |index: usize| stat.get(index).and_then(|text| text.parse().ok()).unwrap_or(0);
        // Its own, and that of the children it has collected.
        ticks += (11..=14).map(value).sum::<u64>();
        if pid != init {
            memory += resident(pid);
            threads += value(17);
        }
    }
    Stats {
        memory_bytes: Some(memory),
        cpu_seconds: Some(ticks as f64 / TICKS_PER_SECOND),
        processes: Some(threads),
        ..Stats::default()
    }
}

fn children(pid: u32) -> Vec<u32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    let lists =
        threads.filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("children")).ok());
    lists
        .flat_map(|list| {
            list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()
        })
        .collect()
}

fn resident(pid: u32) -> u64 {
    let status = fs::read(format!("/proc/{pid}/status")).unwrap_or_default();
    let status = String::from_utf8_lossy(&status);
    let kibibytes = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok())
    };
    let sum = ["RssAnon:", "RssShmem:"].into_iter().filter_map(kibibytes).sum::<u64>();
    sum * 1024
}
