//! The record of a run on disk, and the figures of one that is running.

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};

pub use mcp_net::broker::NetworkTotals;
use serde::{Deserialize, Serialize};

/// The name of a run: eight hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RunId(String);

impl RunId {
    /// A name that nothing else has, as good as surely; a user who makes something of that name
    /// checks.
    pub fn random() -> RunId {
        let random = RandomState::new().build_hasher().finish();
        RunId(format!("{:08x}", random as u32))
    }

    /// `None` for what cannot be one.
    pub fn parse(text: &str) -> Option<RunId> {
        let is_digit = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        (text.len() == 8 && text.bytes().all(is_digit)).then(|| RunId(text.to_owned()))
    }

    /// The eight digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// What a launcher writes down about its run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Record {
    /// Its name.
    pub id: RunId,
    /// The command and its arguments.
    pub command: Vec<String>,
    /// Seconds since 1970.
    pub since: u64,
    /// The launcher's process id.
    pub launcher: u32,
    /// Pid 1 of the sandbox, by its number outside …
    pub init: u32,
    /// … and when it started, by the kernel's clock: the next owner of the number started later.
    pub init_started: u64,
    /// The directory with the limits of the whole tree, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<String>,
}

/// What a run uses now. What is not known is absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Stats {
    /// Memory of all processes now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// The most that it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_memory_bytes: Option<u64>,
    /// The limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_limit_bytes: Option<u64>,
    /// Processor time so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_seconds: Option<f64>,
    /// How long the processor limit made them wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throttled_seconds: Option<f64>,
    /// Threads count as well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
    /// The most that they were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_processes: Option<u64>,
    /// The limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub process_limit: Option<u64>,
    /// Absent without an allowlist. A second old at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<NetworkTotals>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_they_look_like() {
        let id = RunId::random();
        assert_eq!(RunId::parse(id.as_str()), Some(id.clone()));
        assert_ne!(id, RunId::random());
        for text in ["", "123", "0123456g", "../../ab", "01234567 ", "0123456789", "ABCDEF01"] {
            assert_eq!(RunId::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_record_reads_back_and_what_is_unknown_is_absent() {
        let record = Record {
            id: RunId::random(),
            command: vec!["a b".to_owned(), "\n\"".to_owned()],
            since: 1,
            launcher: 2,
            init: 3,
            init_started: 4,
            cgroup: None,
        };
        let text = serde_json::to_string(&record).unwrap();
        assert_eq!(serde_json::from_str::<Record>(&text).unwrap(), record);
        assert!(!text.contains("cgroup"));
        assert_eq!(serde_json::to_string(&Stats::default()).unwrap(), "{}");
    }
}
