//! Proposals from the audit log: what ordinary runs were refused on the network, and the most that they used.
//!
//! The log holds no paths: an ordinary run does not watch files.

use std::collections::BTreeMap;

use mcp_learn::{Draft, Evidence, HostSeen, Observations, Peaks, Scene, propose};
use mcp_sandbox::Usage;

use super::limits::{self, Headroom};
use super::outcome::{self, Learned, Place};
use crate::args::learn::{Learn, Result as Wanted};
use crate::audit::{Entry, Event, names, reader};
use crate::failure::Failure;
use crate::{paths, render};

pub fn run(name: &str, args: &Learn) -> Result<u8, Failure> {
    let path = paths::audit_log().ok_or_else(|| {
        Failure::Usage("there is no audit log: set HOME or XDG_STATE_HOME".to_owned())
    })?;
    let read = reader::all(&path);
    let entries: Vec<Entry> = read.entries.into_iter().map(|(_, entry)| entry).collect();
    suggest(entries.iter().filter(|entry| names(entry, name)), &args.result, args.json)
}

/// What these runs would have needed.
pub fn suggest<'a>(
    entries: impl Iterator<Item = &'a Entry>,
    wanted: &Wanted,
    json: bool,
) -> Result<u8, Failure> {
    let mut runs = 0;
    let mut blocked: BTreeMap<&str, u64> = BTreeMap::new();
    let mut peaks = Peaks::default();
    for entry in entries {
        if let Event::End { blocked: refused, usage, .. } = &entry.event {
            runs += 1;
            peaks = peaks.max(peaks_of(usage));
            for (to, times) in refused {
                *blocked.entry(to).or_default() += times;
            }
        }
    }
    if runs == 0 {
        render::say("there is no run in the log that is meant");
        return Ok(1);
    }
    let first = "a run in the log".to_owned();
    let host = |(to, times): (&str, u64)| HostSeen {
        destination: to.to_owned(),
        evidence: Evidence { times, first: first.clone() },
    };
    let hosts = blocked.into_iter().map(host).collect();
    let seen = Observations { hosts, peaks, ..Observations::default() };
    let home = paths::home();
    let scene =
        Scene { home: home.as_deref(), sensitive: outcome::sensitive(wanted), granted: &[] };
    let proposals = propose(&seen, &scene);
    let mut draft = Draft::default();
    for proposal in &proposals.proposed {
        draft.learn(proposal.grant.clone(), &proposal.evidence);
    }
    limits::set(&mut draft, &peaks, Headroom::Half);
    let learned = Learned {
        draft,
        withheld: proposals.withheld,
        notes: vec![format!(
            "from {runs} {}; the log tells of the network and of limits, not of files (mcp learn -- COMMAND watches those)",
            if runs == 1 { "run" } else { "runs" }
        )],
    };
    outcome::deliver(&learned, wanted, json, Place::Stdout, outcome::Acceptance::Given)?;
    Ok(0)
}

/// The most that a run used.
pub fn peaks_of(usage: &Usage) -> Peaks {
    // What is looked at from time to time may have missed the peak of one process, or a short run as a whole. Where no
    // cgroup holds the tree, `RLIMIT_DATA` counts what a process has asked for, touched or not.
    let memory = usage
        .max_tree_memory_bytes
        .max(usage.seen_process_data_bytes)
        .unwrap_or(0)
        .max(usage.max_process_resident_bytes);
    Peaks {
        memory: Some(memory).filter(|bytes| *bytes > 0),
        processes: usage.max_processes.or(usage.seen_processes),
        temporary: usage.temporary_bytes.filter(|bytes| *bytes > 0),
    }
}
