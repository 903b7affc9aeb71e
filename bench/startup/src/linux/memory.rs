//! What stays resident while a sandboxed command runs: the processes and their memory.

use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use bench_common::launchers;
use serde_json::{Value, json};

use super::Result;

/// Long enough to look at, short enough to wait for its end instead of killing anything.
const SLEEP: [&str; 2] = ["/bin/sleep", "5"];

/// One process as /proc/PID/status shows it. Sizes in KiB.
#[derive(Debug, Clone, PartialEq)]
struct Process {
    pid: u32,
    parent: u32,
    name: String,
    resident: u64,
    /// Its own pages; the rest are pages of files, shared with every process that has the file open.
    anonymous: u64,
}

impl Process {
    fn parse(status: &str) -> Option<Self> {
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            Some(line.strip_prefix(':')?.trim())
        };
        let size = |name| field(name)?.trim_end_matches("kB").trim().parse().ok();
        Some(Self {
            pid: field("Pid")?.parse().ok()?,
            parent: field("PPid")?.parse().ok()?,
            name: field("Name")?.to_owned(),
            resident: size("VmRSS")?,
            anonymous: size("RssAnon")?,
        })
    }
}

/// The processes of one sandbox, the launcher first.
pub struct Tree {
    sandbox: &'static str,
    outcome: std::result::Result<Vec<Process>, String>,
}

pub fn of_sandboxes(launcher: &Path, peers: bool) -> Result<Vec<Tree>> {
    let sleep = || SLEEP.map(OsString::from);
    let mut trees = vec![
        Tree::of("bubblewrap", &launchers::bubblewrap(&[], sleep()))?,
        Tree::of("mcp", &launchers::mcp(launcher, sleep()))?,
    ];
    if peers {
        trees.push(Tree::of("firejail", &launchers::firejail(sleep()))?);
        trees.push(Tree::of("srt", &launchers::srt(sleep())?)?);
    }
    Ok(trees)
}

impl Tree {
    fn of(sandbox: &'static str, words: &[OsString]) -> Result<Self> {
        let (program, arguments) = words.split_first().ok_or("empty command line")?;
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null());
        let outcome = match command.spawn() {
            Err(error) => Err(format!("{}: {error}", program.display())),
            Ok(mut child) => {
                let found = settled(&mut child);
                child.wait()?;
                found?.ok_or_else(|| format!("{} was not seen inside", SLEEP[0]))
            }
        };
        Ok(Self { sandbox, outcome })
    }

    pub fn to_json(&self) -> Value {
        match &self.outcome {
            Err(why) => json!({ "name": self.sandbox, "skipped": why }),
            Ok(processes) => {
                let process = |it: &Process| json!({ "name": it.name, "rss_kib": it.resident, "anonymous_kib": it.anonymous });
                let list: Vec<_> = processes.iter().map(process).collect();
                json!({ "name": self.sandbox, "processes": list })
            }
        }
    }
}

/// The tree once the command itself runs; None when that never happens.
fn settled(child: &mut Child) -> Result<Option<Vec<Process>>> {
    let deadline = Instant::now() + Duration::from_millis(4500);
    while Instant::now() < deadline && child.try_wait()?.is_none() {
        let tree = descendants(child.id(), &processes());
        if tree.iter().any(|process| process.name == "sleep") {
            return Ok(Some(tree));
        }
        thread::sleep(Duration::from_millis(10));
    }
    Ok(None)
}

fn processes() -> Vec<Process> {
    let status = |entry: fs::DirEntry| fs::read_to_string(entry.path().join("status")).ok();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(status).filter_map(|text| Process::parse(&text)).collect()
}

fn descendants(root: u32, all: &[Process]) -> Vec<Process> {
    let mut tree: Vec<Process> = all.iter().filter(|it| it.pid == root).cloned().collect();
    let mut next = 0;
    while let Some(parent) = tree.get(next).map(|process| process.pid) {
        tree.extend(all.iter().filter(|it| it.parent == parent).cloned());
        next += 1;
    }
    tree
}

impl fmt::Display for Tree {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let processes = match &self.outcome {
            Err(why) => return writeln!(out, "memory of {}: skipped: {why}", self.sandbox),
            Ok(processes) => processes,
        };
        writeln!(out, "memory of {}: {} processes", self.sandbox, processes.len())?;
        for (index, process) in processes.iter().enumerate() {
            let role = match (index, process.name.as_str()) {
                (0, _) => "launcher",
                (_, "sleep") => "command",
                _ => "init",
            };
            let Process { resident, anonymous, .. } = process;
            writeln!(out, "  {role:<10}VmRSS {resident:>6} KiB   RssAnon {anonymous:>6} KiB")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: u32, parent: u32) -> Process {
        Process { pid, parent, name: "x".into(), resident: 1, anonymous: 1 }
    }

    #[test]
    fn status_is_parsed() {
        let status =
            "Name:\tmcp\nState:\tS\nPid:\t7\nPPid:\t1\nVmRSS:\t   1234 kB\nRssAnon:\t  56 kB\n";
        let expected =
            Process { pid: 7, parent: 1, name: "mcp".into(), resident: 1234, anonymous: 56 };
        assert_eq!(Process::parse(status), Some(expected));
    }

    #[test]
    fn a_kernel_thread_has_no_memory_and_is_left_out() {
        assert_eq!(Process::parse("Name:\tkthreadd\nPid:\t2\nPPid:\t0\n"), None);
    }

    #[test]
    fn the_tree_is_the_launcher_and_all_below_it() {
        let all = [process(1, 0), process(5, 1), process(6, 5), process(7, 6), process(8, 1)];
        let pids: Vec<_> = descendants(5, &all).iter().map(|it| it.pid).collect();
        assert_eq!(pids, [5, 6, 7]);
    }
}
