//! The launcher's memory while connections come and go.

use std::fmt;
use std::fs;
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Result;
use super::client::Job;
use super::contenders::Contender;
use super::server::Ports;

/// Before this the launcher still fills its tables.
const SETTLING: Duration = Duration::from_secs(5);

/// Resident memory of the launcher, in KiB.
pub struct Memory {
    seconds: u64,
    connections: u32,
    settled: u64,
    largest: u64,
    last: u64,
}

pub fn watch(contender: &Contender, ports: Ports, limit: Duration) -> Result<Memory> {
    let seconds = u32::try_from(limit.as_secs())?;
    let mut child = contender.spawn(Job::Load, ports.echo, seconds)?;
    let start = Instant::now();
    let mut sizes = Vec::new();
    while child.try_wait()?.is_none() {
        if start.elapsed() >= SETTLING.min(limit / 2) {
            sizes.extend(resident(&child));
        }
        thread::sleep(Duration::from_millis(200));
    }
    let connections = contender.finish(child)?.good;
    // The last sample may be of a launcher that is already leaving.
    let last = sizes.iter().rev().nth(2).or(sizes.last()).copied();
    match (sizes.first(), sizes.iter().max(), last) {
        (Some(&settled), Some(&largest), Some(last)) => {
            Ok(Memory { seconds: limit.as_secs(), connections, settled, largest, last })
        }
        _ => Err("the launcher's memory was never seen".into()),
    }
}

fn resident(child: &Child) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().trim_end_matches("kB").trim().parse().ok()
}

impl Memory {
    pub fn to_json(&self) -> Value {
        let Self { seconds, connections, settled, largest, last } = self;
        json!({
            "seconds": seconds, "connections": connections,
            "settled_kib": settled, "largest_kib": largest, "last_kib": last,
        })
    }
}

impl fmt::Display for Memory {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seconds, connections, settled, largest, last } = self;
        write!(
            out,
            "mcp: {connections} connections in {seconds} s of load; launcher's VmRSS {settled} KiB \
             once settled, {last} at the end, {largest} at most"
        )
    }
}
