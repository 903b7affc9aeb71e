//! `mcp ps`, `stats` and `kill` on a Mac: a run is listed, measured and ended, and is gone afterwards.

use std::process::{Command, Output};

use serde_json::Value;

use crate::require;
use crate::support::{Run, Scratch, eventually, heart_beats, heart_stops, mcp_path, patience};

fn mcp(words: &[&str]) -> Output {
    Command::new(mcp_path()).args(words).output().unwrap()
}

/// The run with this launcher; others may run on this machine as well.
fn of(launcher: u32) -> Option<Value> {
    let listed = mcp(&["ps", "--json"]);
    assert!(listed.status.success(), "{listed:?}");
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    listed.as_array().unwrap().iter().find(|run| run["launcher"] == launcher).cloned()
}

#[test]
fn what_runs_is_listed_measured_and_killed() {
    require!("seatbelt");
    let scratch = Scratch::new();
    let beat = scratch.join("beat");
    let words = ["daemonize", "600", beat.to_str().unwrap(), "--then", "sleep", "600"];
    let live = Run::new().write(scratch.path()).probe(&words).spawn();
    heart_beats(&beat);
    eventually(patience(), || of(live.pid()).is_some());
    let run = of(live.pid()).unwrap();
    assert!(run["memory_bytes"].as_u64().unwrap() > 0, "{run}");
    assert!(run["processes"].as_u64().unwrap() >= 2, "{run}");
    let id = run["id"].as_str().unwrap();
    let stats = mcp(&["stats", id, "--json"]);
    let stats: Value = serde_json::from_slice(&stats.stdout).unwrap();
    assert_eq!(stats["id"], *id);
    let killed = mcp(&["kill", id]);
    assert!(killed.status.success(), "{killed:?}");
    heart_stops(&beat);
    live.wait();
    assert!(of(u32::try_from(run["launcher"].as_u64().unwrap()).unwrap()).is_none());
}
