//! Which files of a cgroup hold a limit, what is written to them, and whether what the kernel
//! then says is what was asked. Pure.
//!
//! `memory.high` is left alone: where nothing can be reclaimed (no swap, anonymous memory) it makes
//! a program that grows sleep longer and longer instead of ending it, and a hog under a limit of
//! 64 MiB takes minutes to reach it. `memory.max` reclaims before it kills as well.

use mcp_policy::{Bytes, Cores, Limits, Rate};

use crate::core::control::Control;

pub const MEMORY: &str = "memory";
pub const PIDS: &str = "pids";
pub const CPU: &str = "cpu";
pub const IO: &str = "io";

/// The kernel counts memory in pages, and rounds a limit down to one. No machine's are larger.
const LARGEST_PAGE: u64 = 64 << 10;
/// The kernel refuses a quota of less than a millisecond.
const SMALLEST_QUOTA: u64 = 1_000;
const PERIOD: u64 = 100_000;
const LONGEST_PERIOD: u64 = 1_000_000;

/// One file and its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CgroupFile {
    pub control: Control,
    pub file: &'static str,
    pub value: String,
}

/// The controllers that these limits need.
pub fn wanted(limits: &Limits) -> Vec<&'static str> {
    let mut wanted = Vec::new();
    if limits.memory.value.is_some() {
        wanted.push(MEMORY);
    }
    if limits.processes.value.is_some() {
        wanted.push(PIDS);
    }
    if limits.cpu.value.is_some() {
        wanted.push(CPU);
    }
    if limits.io.value.is_some() {
        wanted.push(IO);
    }
    wanted
}

/// What is written for these limits, where the cgroup has those controllers.
pub fn settings(limits: &Limits, controllers: &[String], disks: &[String]) -> Vec<CgroupFile> {
    let has = |name: &str| controllers.iter().any(|controller| controller == name);
    let mut settings = Vec::new();
    let mut set = |control, file, value| settings.push(CgroupFile { control, file, value });
    if let (Some(Bytes(limit)), true) = (limits.memory.value, has(MEMORY)) {
        // First: once the limit is there, what is over it could be moved to the swap.
        set(Control::Memory, "memory.swap.max", "0".to_owned());
        set(Control::Memory, "memory.max", limit.to_string());
        set(Control::Memory, "memory.oom.group", "1".to_owned());
    }
    if let (Some(count), true) = (limits.processes.value, has(PIDS)) {
        // The sandbox's init is counted as well.
        set(Control::Processes, "pids.max", (u64::from(count) + 1).to_string());
    }
    if let (Some(cores), true) = (limits.cpu.value, has(CPU)) {
        set(Control::Cpu, "cpu.max", quota(cores));
        set(Control::Cpu, "cpu.weight", weight(cores));
    }
    if let (Some(Rate(Bytes(rate))), true) = (limits.io.value, has(IO)) {
        for disk in disks {
            set(Control::Io, "io.max", format!("{disk} rbps={rate} wbps={rate}"));
        }
    }
    settings
}

/// `QUOTA PERIOD` in microseconds. A small share gets a longer period, or the kernel refuses it.
fn quota(cores: Cores) -> String {
    let millicores = u64::from(cores.millicores());
    let quota = millicores * PERIOD / 1000;
    if quota >= SMALLEST_QUOTA {
        format!("{quota} {PERIOD}")
    } else {
        format!("{} {LONGEST_PERIOD}", (millicores * LONGEST_PERIOD / 1000).max(SMALLEST_QUOTA))
    }
}

/// When the processor is short, by the share as well: a whole core is the kernel's usual 100.
fn weight(cores: Cores) -> String {
    (u64::from(cores.millicores()) / 10).clamp(1, 10_000).to_string()
}

/// Whether the file now says what was asked for, or something stricter.
pub fn holds(file: &str, asked: &str, found: &str) -> bool {
    let found = found.trim();
    match file {
        "memory.max" => match (asked.parse::<u64>(), found.parse::<u64>()) {
            (Ok(asked), Ok(found)) => found <= asked && asked - found < LARGEST_PAGE,
            _ => false,
        },
        "io.max" => {
            let mut words = asked.split(' ');
            let disk = words.next().unwrap_or_default();
            let line = found.lines().find(|line| line.split(' ').next() == Some(disk));
            line.is_some_and(|line| words.all(|word| line.split(' ').any(|found| found == word)))
        }
        _ => asked == found,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::plan::sample;

    fn all() -> Vec<String> {
        [MEMORY, PIDS, CPU, IO].map(str::to_owned).to_vec()
    }

    fn asked() -> Limits {
        sample::policy(|flags| {
            flags
                .memory(Some(Bytes::mib(64)))
                .processes(Some(20))
                .cpu(Some(Cores::from_millicores(100)))
                .io(Some(Rate(Bytes::mib(10))));
        })
        .limits
    }

    #[test]
    fn every_limit_has_its_file() {
        let disks = ["8:0".to_owned(), "253:1".to_owned()];
        let settings = settings(&asked(), &all(), &disks);
        let lines: Vec<_> =
            settings.iter().map(|setting| format!("{} {}", setting.file, setting.value)).collect();
        assert_eq!(
            lines,
            [
                "memory.swap.max 0",
                "memory.max 67108864",
                "memory.oom.group 1",
                "pids.max 21",
                "cpu.max 10000 100000",
                "cpu.weight 10",
                "io.max 8:0 rbps=10485760 wbps=10485760",
                "io.max 253:1 rbps=10485760 wbps=10485760",
            ]
        );
        assert_eq!(wanted(&asked()), [MEMORY, PIDS, CPU, IO]);
    }

    #[test]
    fn what_is_not_delegated_is_not_set() {
        let files = |controllers: &[&str]| -> Vec<&str> {
            let controllers: Vec<_> = controllers.iter().map(|c| (*c).to_owned()).collect();
            settings(&asked(), &controllers, &[]).iter().map(|setting| setting.file).collect()
        };
        assert_eq!(files(&["pids"]), ["pids.max"]);
        assert_eq!(files(&["cpuset", "cpu"]), ["cpu.max", "cpu.weight"]);
        assert!(files(&[]).is_empty());
        let nothing = sample::policy(|flags| {
            flags.memory(None).processes(None);
        });
        assert!(wanted(&nothing.limits).is_empty());
    }

    #[test]
    fn shares_of_the_processor() {
        for (millicores, quota_and_period, share) in [
            (1, "1000 1000000", "1"),
            (9, "9000 1000000", "1"),
            (10, "1000 100000", "1"),
            (100, "10000 100000", "10"),
            (1000, "100000 100000", "100"),
            (64_000, "6400000 100000", "6400"),
        ] {
            let cores = Cores::from_millicores(millicores);
            assert_eq!(quota(cores), quota_and_period);
            assert_eq!(weight(cores), share);
        }
    }

    #[test]
    fn only_what_was_asked_for_or_less_holds() {
        let disks = "8:16 rbps=max wbps=1 riops=max wiops=max\n\
                     8:0 rbps=10 wbps=10 riops=max wiops=max\n";
        for (file, asked, found, is_held) in [
            ("memory.max", "67108864", "67108864\n", true),
            ("memory.max", "67108870", "67108864\n", true),
            ("memory.max", "67108864", "max\n", false),
            ("memory.max", "67108864", "67112960\n", false),
            ("memory.max", "67108864", "4096\n", false),
            ("memory.swap.max", "0", "0\n", true),
            ("memory.swap.max", "0", "max\n", false),
            ("pids.max", "21", "21\n", true),
            ("pids.max", "21", "max\n", false),
            ("cpu.max", "10000 100000", "10000 100000\n", true),
            ("cpu.max", "10000 100000", "max 100000\n", false),
            ("io.max", "8:0 rbps=10 wbps=10", disks, true),
            ("io.max", "8:16 rbps=10 wbps=10", disks, false),
            ("io.max", "9:0 rbps=10 wbps=10", disks, false),
            ("io.max", "8:0 rbps=10 wbps=10", "", false),
        ] {
            assert_eq!(holds(file, asked, found), is_held, "{file} {asked} {found}");
        }
    }
}
