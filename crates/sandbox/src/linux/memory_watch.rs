//! Watches the memory of the whole tree, where no cgroup can hold it.
//!
//! Counts what each process has resident and not backed by a file, private and shared, what of that is swapped out (a
//! program can ask for it: `MADV_PAGEOUT`), its huge pages and the page tables that the kernel keeps for it: a byte in
//! every two mebibytes of a terabyte is 2 GiB of them. It samples, so a burst can pass the limit between two looks; the
//! pause between them is what the fastest hog would need to fill the rest. Leaves open: memory that no process maps
//! (unmapped memfds, pipe and socket buffers), and shared memory that is swapped out.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::fs::{Dir, Mode, OFlags};

use crate::linux::process_tree;

/// How fast memory can be filled, generously: touching fresh pages costs the kernel more.
const BYTES_PER_SECOND: u64 = 2 << 30;
const RESIDENT: &str = "RssAnon:";
/// Pages in `status` that are in no file, in memory and in the swap.
const PAGES: [&str; 3] = [RESIDENT, "RssShmem:", "VmSwap:"];
/// The same in `smaps_rollup`, each divided among those who share it.
const SHARE_OF_PAGES: [&str; 3] = ["Pss_Anon:", "Pss_Shmem:", "SwapPss:"];
/// More than `status` or `smaps_rollup` ever are.
const LARGEST_TEXT: usize = 8192;
const SHORTEST: Duration = Duration::from_millis(4);
const LONGEST: Duration = Duration::from_millis(250);

/// How long one look may take: the same loop keeps the timeout and passes signals on. A tree of
/// thousands of processes that share their memory is counted in several.
const AT_ONCE: Duration = Duration::from_millis(5);
/// How the processes of a run are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessTree {
    /// All that its own /proc lists, but for init.
    OfNamespace,
    /// All below this one.
    Below(i32),
}

pub struct MemoryWatch {
    proc: OwnedFd,
    tree: ProcessTree,
    pub limit: u64,
    pub peak: u64,
    /// Most processes and threads in one count.
    pub most_tasks: u64,
    /// Most data of one process, touched or not: what `RLIMIT_DATA` counts.
    pub most_data: u64,
    /// How often it has looked.
    pub looks: u64,
    round: Round,
}

/// A count of the tree that is under way.
#[derive(Default)]
struct Round {
    /// Those that are still to be counted …
    pending: Vec<String>,
    /// … and those that were, for a second and precise count.
    counted: Vec<String>,
    bytes: u64,
    tasks: u64,
    is_precise: bool,
}

/// One process.
#[derive(Default)]
struct ProcessFigures {
    bytes: u64,
    tasks: u64,
    data: u64,
}

/// What a look at the tree found.
pub enum TreeMemory {
    Within { look_again: Duration },
    Over,
}

impl MemoryWatch {
    /// `proc` is a /proc that shows the processes of the tree.
    pub fn new(proc: OwnedFd, tree: ProcessTree, limit: u64) -> MemoryWatch {
        MemoryWatch {
            proc,
            tree,
            limit,
            peak: 0,
            most_tasks: 0,
            most_data: 0,
            looks: 0,
            round: Round::default(),
        }
    }

    /// Nothing can have passed the limit before this.
    pub fn first_pause(&self) -> Duration {
        pause(self.limit)
    }

    pub fn look(&mut self) -> TreeMemory {
        self.looks += 1;
        let begun = Instant::now();
        let mut round = std::mem::take(&mut self.round);
        if round.pending.is_empty() {
            round.pending = self.processes();
        }
        while let Some(pid) = round.pending.pop() {
            let counted = match round.is_precise {
                true => ProcessFigures { bytes: self.share(&pid), ..ProcessFigures::default() },
                false => self.resident(&pid),
            };
            round.bytes += counted.bytes;
            round.tasks += counted.tasks;
            self.most_data = self.most_data.max(counted.data);
            round.counted.push(pid);
            if round.is_precise && round.bytes > self.limit {
                break;
            }
            if begun.elapsed() >= AT_ONCE && !round.pending.is_empty() {
                self.round = round;
                // As long as it took: half of a processor is enough for a watch.
                return TreeMemory::Within { look_again: begun.elapsed() };
            }
        }
        self.most_tasks = self.most_tasks.max(round.tasks);
        if round.bytes > self.limit && !round.is_precise {
            // Pages shared between processes were counted once for each; now precisely.
            let pending = round.counted;
            self.round = Round { pending, is_precise: true, ..Round::default() };
            return match begun.elapsed() >= AT_ONCE {
                true => TreeMemory::Within { look_again: begun.elapsed() },
                false => self.look(),
            };
        }
        self.peak = self.peak.max(round.bytes);
        if round.bytes > self.limit {
            return TreeMemory::Over;
        }
        TreeMemory::Within { look_again: pause(self.limit - round.bytes) }
    }

    /// Every process but init.
    fn processes(&self) -> Vec<String> {
        match self.tree {
            ProcessTree::OfNamespace => {
                let mut names = self.names(".");
                names.retain(|name| name != "1");
                names
            }
            ProcessTree::Below(top) => {
                process_tree::below(top).iter().map(ToString::to_string).collect()
            }
        }
    }

    /// The numbers in a directory of /proc.
    fn names(&self, directory: &str) -> Vec<String> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(&self.proc, directory, flags, Mode::empty());
        let Ok(entries) = opened.and_then(Dir::new) else {
            return Vec::new();
        };
        entries
            .filter_map(|entry| entry.ok()?.file_name().to_str().ok().map(str::to_owned))
            .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
            .collect()
    }

    /// An upper bound of a process's own memory. A process that has just ended has none; one
    /// whose first thread has ended shows its memory through the others. And its threads.
    fn resident(&self, pid: &str) -> ProcessFigures {
        let Some(status) = self.status(pid) else {
            return ProcessFigures::default();
        };
        ProcessFigures {
            bytes: sum(&status, &PAGES).saturating_add(beside(&status)),
            tasks: number(&status, "Threads:"),
            data: kibibytes(&status, "VmData:"),
        }
    }

    /// Its memory with shared pages divided among those who share them.
    fn share(&self, pid: &str) -> u64 {
        match self.read(pid, "smaps_rollup") {
            Some(rollup) if rollup.contains("Pss_Shmem:") => {
                let status = self.status(pid).unwrap_or_default();
                sum(&rollup, &SHARE_OF_PAGES).saturating_add(beside(&status))
            }
            // Unreadable (not dumpable) or an older kernel: the bound must do.
            _ => self.resident(pid).bytes,
        }
    }

    fn status(&self, pid: &str) -> Option<String> {
        let tells = |status: &String| status.contains(RESIDENT);
        self.read(pid, "status").filter(tells).or_else(|| {
            let threads = self.names(&format!("{pid}/task"));
            let mut told = threads.iter().filter_map(|thread| {
                self.read(pid, &format!("task/{thread}/status")).filter(tells)
            });
            told.next()
        })
    }

    fn read(&self, pid: &str, name: &str) -> Option<String> {
        let path = format!("{pid}/{name}");
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.proc, path, flags, Mode::empty()).ok()?;
        let mut text = vec![0; LARGEST_TEXT];
        let mut length = 0;
        loop {
            match rustix::io::read(&file, &mut text[length..]) {
                Ok(0) => break,
                Ok(count) => length += count,
                Err(_) => return None,
            }
        }
        text.truncate(length);
        // A process may call itself anything, in any bytes.
        Some(String::from_utf8_lossy(&text).into_owned())
    }
}

/// How long the fastest hog would need for this much.
fn pause(bytes: u64) -> Duration {
    Duration::from_secs_f64(bytes as f64 / BYTES_PER_SECOND as f64).clamp(SHORTEST, LONGEST)
}

/// What a process has beside its pages: page tables, and huge pages of hugetlbfs, which are in no other figure. Of
/// those that several processes share, each is counted with all.
fn beside(status: &str) -> u64 {
    sum(status, &["VmPTE:", "HugetlbPages:"])
}

fn sum(text: &str, fields: &[&str]) -> u64 {
    fields.iter().map(|field| kibibytes(text, field)).fold(0, u64::saturating_add)
}

fn kibibytes(text: &str, field: &str) -> u64 {
    number(text, field).saturating_mul(1024)
}

fn number(text: &str, field: &str) -> u64 {
    text.lines()
        .find_map(|line| line.strip_prefix(field))
        .and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_field_in_kibibytes() {
        let text = "VmRSS:\t  900 kB\nRssAnon:\t     512 kB\nRssShmem:\t       4 kB\n";
        assert_eq!(kibibytes(text, "RssAnon:"), 512 * 1024);
        assert_eq!(kibibytes(text, "RssShmem:"), 4 * 1024);
        assert_eq!(kibibytes(text, "RssFile:"), 0);
    }

    #[test]
    fn what_is_swapped_out_counts() {
        let status = "RssAnon:\t 8 kB\nRssFile:\t 100 kB\nRssShmem:\t 4 kB\nVmSwap:\t 2048 kB\n";
        assert_eq!(sum(status, &PAGES), 2060 * 1024);
        let rollup = "Pss_Anon:  4 kB\nPss_Shmem:  2 kB\nSwap: 2048 kB\nSwapPss: 1024 kB\n";
        assert_eq!(sum(rollup, &SHARE_OF_PAGES), 1030 * 1024);
    }

    #[test]
    fn page_tables_and_huge_pages_count() {
        let text = "RssAnon:\t 8 kB\nVmPTE:\t  100 kB\nHugetlbPages:\t    2048 kB\n";
        assert_eq!(beside(text), 2148 * 1024);
        assert_eq!(beside("VmPTE:\t 99999999999999999999 kB\n"), 0);
        assert_eq!(beside("VmPTE:\t 18446744073709551615 kB\n"), u64::MAX);
    }
}
