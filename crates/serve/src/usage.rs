//! How much memory the servers use: the resident memory of the processes below each `mcp run`.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What is known is used for so long.
const FRESH: Duration = Duration::from_secs(1);

/// The sandboxes that live, and what they used at the last reading.
#[derive(Debug, Default)]
pub struct Usage {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    live: HashMap<u32, Owner>,
    looked: Option<Instant>,
    bytes: HashMap<u32, u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Owner {
    server: String,
    principal: Arc<str>,
}

impl Usage {
    pub fn began(&self, process: u32, server: &str, principal: &Arc<str>) {
        let owner = Owner { server: server.to_owned(), principal: Arc::clone(principal) };
        self.state.lock().unwrap_or_else(PoisonError::into_inner).live.insert(process, owner);
    }

    pub fn ended(&self, process: u32) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.live.remove(&process);
        state.bytes.remove(&process);
    }

    /// Looks again where what is known is old.
    pub async fn look(self: &Arc<Usage>) {
        {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            if state.live.is_empty() || state.looked.is_some_and(|at| at.elapsed() < FRESH) {
                return;
            }
            state.looked = Some(Instant::now());
        }
        let usage = Arc::clone(self);
        let _ = tokio::task::spawn_blocking(move || {
            let table = process_table();
            let mut state = usage.state.lock().unwrap_or_else(PoisonError::into_inner);
            let roots: HashSet<u32> = state.live.keys().copied().collect();
            state.bytes = by_root(&table, &roots);
        })
        .await;
    }

    /// Bytes by server.
    pub fn by_server(&self) -> Vec<(String, u64)> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
        for (process, owner) in &state.live {
            *sums.entry(&owner.server).or_default() += state.bytes.get(process).unwrap_or(&0);
        }
        sums.into_iter().map(|(server, bytes)| (server.to_owned(), bytes)).collect()
    }

    /// Bytes in all, and of one principal.
    pub fn sums(&self, principal: &str) -> (u64, u64) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let of = |process: &u32| state.bytes.get(process).copied().unwrap_or(0);
        let own = state.live.iter().filter(|(_, owner)| *owner.principal == *principal);
        (state.live.keys().map(of).sum(), own.map(|(process, _)| of(process)).sum())
    }
}

/// Of a process: its parent, and its resident bytes.
type Table = HashMap<u32, (u32, u64)>;

fn by_root(table: &Table, roots: &HashSet<u32>) -> HashMap<u32, u64> {
    let mut sums: HashMap<u32, u64> = HashMap::new();
    for (process, (_, bytes)) in table {
        let mut at = *process;
        // A chain of parents is short; one that changes while it is read could be a circle.
        for _ in 0..64 {
            if roots.contains(&at) {
                *sums.entry(at).or_default() += bytes;
                break;
            }
            match table.get(&at) {
                Some((parent, _)) if *parent != 0 => at = *parent,
                _ => break,
            }
        }
    }
    sums
}

#[cfg(target_os = "linux")]
fn process_table() -> Table {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Table::new() };
    let read = |entry: std::fs::DirEntry| {
        let process: u32 = entry.file_name().to_str()?.parse().ok()?;
        let status = std::fs::read_to_string(entry.path().join("status")).ok()?;
        let field = |name: &str| {
            let value = status.lines().find_map(|line| line.strip_prefix(name))?;
            value.split_whitespace().next()?.parse::<u64>().ok()
        };
        // A thread of the kernel has no memory of its own.
        let kibibytes = field("VmRSS:").unwrap_or(0);
        Some((process, (u32::try_from(field("PPid:")?).ok()?, kibibytes << 10)))
    };
    entries.flatten().filter_map(read).collect()
}

#[cfg(not(target_os = "linux"))]
fn process_table() -> Table {
    Table::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_below_a_launcher_is_its_own() {
        let table: Table = [
            (1, (0, 1_000)),
            (10, (1, 5)),
            (11, (10, 7)),
            (12, (11, 9)),
            (20, (1, 3)),
            (30, (1, 100)),
        ]
        .into();
        let sums = by_root(&table, &HashSet::from([10, 20]));
        assert_eq!(sums, HashMap::from([(10, 21), (20, 3)]));
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn this_process_uses_memory() {
        let usage = Arc::new(Usage::default());
        usage.began(std::process::id(), "one", &"alice".into());
        usage.look().await;
        let (total, own) = usage.sums("alice");
        assert!(total > 0 && own == total && usage.sums("bob") == (total, 0));
        assert_eq!(usage.by_server(), [("one".to_owned(), total)]);
    }
}
