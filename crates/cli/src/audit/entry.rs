//! One line of the log.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;

use mcp_package::Digest;
use mcp_policy::Policy;
use mcp_sandbox::{Ending, Report, Status, Usage};
use serde::{Deserialize, Serialize};

/// What was run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct What {
    /// A package's reference; none for a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// The program of a command alone: arguments may hold anything.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub program: String,
    /// Of the effective policy in its one spelling; secrets are references there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Digest>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    Start,
    End {
        exit_code: u8,
        /// `exited`, `signaled`, `timeout`, `memory_limit`.
        how: String,
        usage: Usage,
        /// How many controls are enforced, partly enforced, missing; and which are not enforced.
        controls: BTreeMap<String, u64>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        gaps: Vec<String>,
    },
    Refused {
        exit_code: u8,
        /// A word for the reason: messages may quote what people wrote.
        why: String,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Seconds since 1970, UTC.
    pub time: f64,
    pub pid: u32,
    #[serde(flatten)]
    pub what: What,
    #[serde(flatten)]
    pub event: Event,
}

impl What {
    /// Of what somebody typed: a package, or else the first word of a command.
    pub fn new(reference: Option<&OsStr>, program: Option<&OsStr>) -> What {
        let short = |text: &OsStr| text.to_string_lossy().chars().take(300).collect::<String>();
        let name = |program: &OsStr| short(Path::new(program).file_name().unwrap_or(program));
        What {
            reference: reference.map(short),
            digest: None,
            program: program.filter(|_| reference.is_none()).map(name).unwrap_or_default(),
            policy: None,
        }
    }

    pub fn policy(&mut self, policy: &Policy) {
        let text = serde_json::to_vec(policy).unwrap_or_default();
        self.policy = Some(Digest::of(&text));
    }
}

impl Event {
    pub fn end(report: &Report) -> Event {
        let how = match &report.ending {
            Ending::NotStarted(_) => {
                return Event::Refused { exit_code: report.exit_code, why: "not_started".into() };
            }
            ending => word(ending),
        };
        let mut controls = BTreeMap::new();
        let mut gaps = Vec::new();
        for (control, status) in &report.controls {
            let word = match status {
                Status::Enforced { .. } => "enforced",
                Status::Partial { .. } => "partial",
                Status::Unavailable { .. } => "unavailable",
                Status::NotRequested => "not_requested",
            };
            *controls.entry(word.to_owned()).or_insert(0) += 1;
            if matches!(status, Status::Partial { .. } | Status::Unavailable { .. }) {
                gaps.push(control.to_string());
            }
        }
        Event::End { exit_code: report.exit_code, how, usage: report.usage.clone(), controls, gaps }
    }
}

/// The ending's name in the report's JSON, without its number.
fn word(ending: &Ending) -> String {
    match serde_json::to_value(ending) {
        Ok(serde_json::Value::String(word)) => word,
        Ok(serde_json::Value::Object(map)) => map.keys().next().cloned().unwrap_or_default(),
        _ => String::new(),
    }
}
