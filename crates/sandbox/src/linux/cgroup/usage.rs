//! Usage and end of a process tree, from the files of its cgroup. Pure.

#[cfg(target_os = "linux")]
use crate::core::report::Usage;

/// The number after a word at the start of a line, as in `cpu.stat` and `memory.events`.
pub fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

/// A file with one number. `max` is none.
pub fn number(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

/// What the files said, each where there was one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CgroupUsage {
    pub peak_memory: Option<u64>,
    pub peak_processes: Option<u64>,
    pub cpu_micros: Option<u64>,
    pub throttled_micros: Option<u64>,
    /// Processes killed because the memory limit was reached.
    pub oom_kills: u64,
    /// Processes and threads that were refused.
    pub refused_processes: u64,
}

impl CgroupUsage {
    /// `read` gives the text of a file of the cgroup. Older kernels have no peaks (`memory.peak`
    /// is there from 5.19 on, `pids.peak` from 6.1).
    pub fn read(read: impl Fn(&str) -> Option<String>) -> CgroupUsage {
        let one = |file: &str| read(file).as_deref().and_then(number);
        let cpu = read("cpu.stat").unwrap_or_default();
        let events = read("memory.events").unwrap_or_default();
        let refused = read("pids.events").unwrap_or_default();
        // A host that runs out of memory kills as well, without `oom`: that is no limit of ours.
        let at_limit = field(&events, "oom").is_some_and(|times| times > 0);
        let oom_kills = field(&events, "oom_kill").filter(|_| at_limit).unwrap_or(0);
        // Who was killed at the limit had all of it.
        let all_of_it = || if oom_kills > 0 { one("memory.max") } else { None };
        CgroupUsage {
            peak_memory: one("memory.peak").or_else(all_of_it),
            peak_processes: one("pids.peak"),
            cpu_micros: field(&cpu, "usage_usec"),
            throttled_micros: field(&cpu, "throttled_usec"),
            oom_kills,
            refused_processes: field(&refused, "max").unwrap_or(0),
        }
    }

    /// Puts it into a report's figures: it is over the tree, and exact.
    #[cfg(target_os = "linux")]
    pub fn add_to(&self, usage: &mut Usage, seen_memory: Option<u64>) {
        let seconds = |micros: u64| micros as f64 / 1e6;
        usage.max_tree_memory_bytes =
            self.peak_memory.or(seen_memory).or(usage.max_tree_memory_bytes);
        usage.cpu_seconds = self.cpu_micros.map_or(usage.cpu_seconds, seconds);
        usage.throttled_seconds = self.throttled_micros.map(seconds);
        // The sandbox's init is none of the command's.
        usage.max_processes = self.peak_processes.map(|count| count.saturating_sub(1));
        usage.refused_processes = self.refused_processes;
        usage.memory_kills = self.oom_kills;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_is_there() {
        let files = |name: &str| {
            let text = match name {
                "memory.peak" => "67108864\n",
                "cpu.stat" => {
                    "usage_usec 1500\nuser_usec 1000\nsystem_usec 500\nnr_throttled 2\n\
                     throttled_usec 70\n"
                }
                "memory.events" => "low 0\nhigh 0\nmax 31\noom 1\noom_kill 3\noom_group_kill 1\n",
                "pids.events" => "max 4\n",
                _ => return None,
            };
            Some(text.to_owned())
        };
        let used = CgroupUsage {
            peak_memory: Some(64 << 20),
            peak_processes: None,
            cpu_micros: Some(1500),
            throttled_micros: Some(70),
            oom_kills: 3,
            refused_processes: 4,
        };
        assert_eq!(CgroupUsage::read(files), used);
        assert_eq!(CgroupUsage::read(|_| None), CgroupUsage::default());
    }

    #[test]
    fn a_kill_at_the_limit_is_told_from_one_by_the_host() {
        let read = |events: &'static str| {
            CgroupUsage::read(move |name| match name {
                "memory.events" => Some(events.to_owned()),
                "memory.max" => Some("67108864\n".to_owned()),
                _ => None,
            })
        };
        let at_limit = read("max 31\noom 1\noom_kill 1\n");
        assert_eq!((at_limit.oom_kills, at_limit.peak_memory), (1, Some(64 << 20)));
        let by_the_host = read("max 0\noom 0\noom_kill 1\n");
        assert_eq!((by_the_host.oom_kills, by_the_host.peak_memory), (0, None));
    }

    #[test]
    fn a_name_is_a_whole_word() {
        assert_eq!(field("oom_kill_x 1\noom_kill 2\n", "oom_kill"), Some(2));
        assert_eq!(field("oom_kill\n", "oom_kill"), None);
        assert_eq!(number("max\n"), None);
    }
}
