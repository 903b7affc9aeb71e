//! What a gateway and the processes below it use.

use std::collections::HashMap;
use std::fs;

use super::Result;

/// Bytes.
#[derive(Debug, Default, Clone, Copy)]
pub struct Memory {
    /// Anonymous memory of the gateway's process.
    pub gateway: u64,
    /// Proportional set size of the gateway and all processes below it, without the servers.
    pub all_but_servers: u64,
    /// The same of the servers.
    pub server_bytes: u64,
    pub servers: usize,
}

pub fn look(gateway: u32) -> Result<Memory> {
    let mut parents = HashMap::new();
    for entry in fs::read_dir("/proc")? {
        let Some(process) = entry?.file_name().to_str().and_then(|it| it.parse::<u32>().ok())
        else {
            continue;
        };
        if let Some(parent) = field(process, "status", "PPid:") {
            parents.insert(process, parent as u32);
        }
    }
    let is_below = |mut process: u32| {
        for _ in 0..64 {
            if process == gateway {
                return true;
            }
            match parents.get(&process) {
                Some(parent) => process = *parent,
                None => return false,
            }
        }
        false
    };
    let mut memory = Memory::default();
    for process in parents.keys().copied().filter(|it| is_below(*it)) {
        let size = field(process, "smaps_rollup", "Pss:").unwrap_or(0) << 10;
        let words = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
        let mut words = words.split(|byte| *byte == 0);
        let is_server = words.next().is_some_and(|it| it.ends_with(b"bench-serve"));
        if is_server && words.next() == Some(b"server") {
            memory.servers += 1;
            memory.server_bytes += size;
        } else {
            memory.all_but_servers += size;
        }
    }
    memory.gateway = field(gateway, "status", "RssAnon:").ok_or("the gateway is gone")? << 10;
    Ok(memory)
}

fn field(process: u32, file: &str, name: &str) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/{file}")).ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix(name))?;
    value.split_whitespace().next()?.parse().ok()
}
