//! `mcp ps`, `mcp stats` and `mcp kill`: runs of this user, told and ended by others.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::{Live, Run, Scratch, eventually, heart_beats, heart_stops, mcp};

/// Says something to `mcp` in the same home as a run.
fn mcp_in(home: &std::path::Path, words: &[&str]) -> (i32, String) {
    let mut command = Command::new(mcp());
    for name in ["USERPROFILE", "APPDATA", "LOCALAPPDATA"] {
        command.env(name, home.join(name));
    }
    let output = command.args(words).stdin(Stdio::null()).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8_lossy(&text).into_owned())
}

fn listed(home: &std::path::Path) -> Vec<Value> {
    let (code, text) = mcp_in(home, &["ps", "--json"]);
    assert_eq!(code, 0, "{text}");
    serde_json::from_str::<Value>(&text).unwrap().as_array().unwrap().clone()
}

struct Living {
    live: Live,
    home: std::path::PathBuf,
    heart: std::path::PathBuf,
    _scratch: Scratch,
}

fn living() -> Living {
    let scratch = Scratch::new();
    let heart = scratch.dir("grant").join("beat");
    let run = Run::new().write(&scratch.join("grant"));
    let home = run.home.path().to_owned();
    let live = run.probe(&["loop-heartbeat", heart.to_str().unwrap(), "20"]).spawn();
    heart_beats(&heart);
    Living { live, home, heart, _scratch: scratch }
}

#[test]
fn what_runs_is_listed_and_killed() {
    let other_home = Scratch::new();
    assert_eq!(listed(other_home.path()), Vec::<Value>::new());
    let Living { live, home, heart, _scratch } = living();
    let rows = listed(&home);
    assert_eq!(rows.len(), 1, "{rows:?}");
    let id = rows[0]["id"].as_str().unwrap().to_owned();
    assert!(rows[0]["command"].to_string().contains("mcp-probe"), "{rows:?}");
    assert_eq!(rows[0]["launcher"], live.child.id(), "{rows:?}");
    // The console is one, too.
    assert!((1..=2).contains(&rows[0]["processes"].as_u64().unwrap()), "{rows:?}");
    assert!(rows[0]["memory_bytes"].as_u64().unwrap() > 0, "{rows:?}");
    assert!(listed(other_home.path()).is_empty(), "another home, another list");
    let (code, text) = mcp_in(&home, &["ps"]);
    assert!(code == 0 && text.contains(&id), "{text}");
    let (code, text) = mcp_in(&home, &["stats", &id, "--json"]);
    assert_eq!(code, 0, "{text}");
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap()["id"], id.as_str(), "{text}");
    let (code, text) = mcp_in(&home, &["kill", "zzzz"]);
    assert_ne!(code, 0, "{text}");
    let (code, text) = mcp_in(&home, &["kill", &id]);
    assert_eq!(code, 0, "{text}");
    heart_stops(&heart);
    let rows = listed(&home);
    assert_eq!(rows, Vec::<Value>::new());
    live.wait().code_is(137);
}

/// A launcher that is killed leaves no record, and a file that no process holds is none.
#[test]
fn what_is_stale_is_not_listed() {
    let Living { mut live, home, heart, _scratch } = living();
    let forged = home.join("LOCALAPPDATA").join("mcp").join("runs").join("0badf00d.json");
    let rows = listed(&home);
    let mut record = rows[0].clone();
    record["id"] = "0badf00d".into();
    std::fs::write(&forged, record.to_string()).unwrap();
    assert_eq!(listed(&home).len(), 1);
    live.child.kill().unwrap();
    heart_stops(&heart);
    assert!(eventually(|| listed(&home).is_empty()));
    let _ = live.child.wait();
}
