//! Many at once, and nothing left behind.

use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};

use mcp_sandbox::Sandbox;

use crate::support::{Check, Outcome, holds, same};

pub const ALL: &[(&str, Check)] = &[("five_hundred_from_eight_threads", five_hundred)];

const THREADS: usize = 8;
const RUNS: u32 = 500;

fn five_hundred() -> Outcome {
    let (descriptors, children) = (descriptors()?, children()?);
    let next = AtomicU32::new(0);
    let work = || -> Result<u32, String> {
        let mut done = 0;
        while next.fetch_add(1, Ordering::Relaxed) < RUNS {
            let outcome = Sandbox::new("/bin/true").status().map_err(|e| e.to_string())?;
            let is_enforced = outcome.report.as_ref().is_some_and(|report| report.exit_code == 0);
            if !outcome.success() || !is_enforced {
                return Err(format!("{outcome:?}"));
            }
            done += 1;
        }
        Ok(done)
    };
    let done = std::thread::scope(|scope| -> Result<u32, Box<dyn std::error::Error>> {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
        let mut done = 0;
        for thread in threads {
            done += thread.join().map_err(|_| "a thread panicked")??;
        }
        Ok(done)
    })?;
    same(done, RUNS)?;
    same(self::descriptors()?, descriptors)?;
    let left = self::children()?;
    holds(left == children, || format!("children left: {left:?}"))
}

fn descriptors() -> std::io::Result<usize> {
    Ok(fs::read_dir("/proc/self/fd")?.count())
}

/// Processes whose parent is this one, zombies among them.
fn children() -> std::io::Result<Vec<String>> {
    let own = std::process::id().to_string();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let Ok(stat) = fs::read_to_string(entry?.path().join("stat")) else { continue };
        // pid (name) state parent …, and the name may hold anything.
        let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        if after_name.split_whitespace().nth(1) == Some(&own) {
            found.push(stat);
        }
    }
    Ok(found)
}
