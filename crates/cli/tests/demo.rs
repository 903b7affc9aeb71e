//! `mcp demo` from the outside: everything works bare, nothing inside, and nothing is left.
#![cfg(target_os = "linux")]
// The functions beside the tests are tests, too.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

/// `MCP_BIN` chooses another binary, for example one that an ordinary user may read.
fn mcp() -> Command {
    Command::new(std::env::var_os("MCP_BIN").unwrap_or(env!("CARGO_BIN_EXE_mcp").into()))
}

/// A user's directories, all empty.
struct User(PathBuf);

impl User {
    fn new() -> User {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
        let root = std::env::temp_dir().join(format!("mcp-td-{}-{now:x}", std::process::id()));
        for name in ["home", "config", "data", "cache", "state", "tmp"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        User(root)
    }

    fn demo(&self, args: &[&str]) -> Command {
        let mut command = mcp();
        command.arg("demo").args(args).stdin(Stdio::null()).current_dir(&self.0);
        for (name, directory) in [
            ("HOME", "home"),
            ("XDG_CONFIG_HOME", "config"),
            ("XDG_DATA_HOME", "data"),
            ("XDG_CACHE_HOME", "cache"),
            ("XDG_STATE_HOME", "state"),
            ("TMPDIR", "tmp"),
        ] {
            command.env(name, self.0.join(directory));
        }
        command
    }

    #[track_caller]
    fn assert_untouched(&self) {
        let left: Vec<PathBuf> = entries(&self.0).iter().flat_map(|dir| entries(dir)).collect();
        assert_eq!(left, Vec::<PathBuf>::new());
        assert_eq!(entries(&self.0).len(), 6);
    }
}

impl Drop for User {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect()
}

fn shown(output: &Output) -> String {
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    format!("{}\n{out}\n{err}", output.status)
}

/// Without user namespaces there is no demo; `MCP_REQUIRE=userns` makes that a failure.
fn user_namespaces() -> bool {
    let acts = ["__guest", "unshare", "user,mnt,pid,net,ipc,uts,cgroup"];
    let output = mcp().args(acts).output().unwrap();
    let available = String::from_utf8_lossy(&output.stdout).contains("\"ok\":true");
    if !available {
        let required = std::env::var("MCP_REQUIRE").unwrap_or_default();
        assert!(!required.split(',').any(|name| name.trim() == "userns"), "{}", shown(&output));
        println!("SKIP: userns: {}", shown(&output));
    }
    available
}

#[test]
fn every_attempt_works_bare_and_is_stopped_inside() {
    if !user_namespaces() {
        return;
    }
    let user = User::new();
    let output = user.demo(&["--json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", shown(&output));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let attempts = report["attempts"].as_array().unwrap();
    assert!(attempts.len() >= 12, "{report:#}");
    for attempt in attempts {
        assert_eq!(attempt["without_sandbox"]["succeeded"], true, "{attempt:#}");
        assert_eq!(attempt["with_sandbox"]["succeeded"], false, "{attempt:#}");
        assert_eq!(attempt["verdict"], "stopped", "{attempt:#}");
        assert!(attempt["stopped_by"].is_string(), "{attempt:#}");
    }
    assert_eq!(report["stopped"], report["total"]);
    // Two seconds on an idle machine; other tests run beside this one.
    assert!(report["elapsed_ms"].as_u64().unwrap() < 10_000, "{report:#}");
    user.assert_untouched();
}

#[test]
fn the_table_fits_a_terminal_and_says_what_to_do_next() {
    if !user_namespaces() {
        return;
    }
    let user = User::new();
    let output = user.demo(&[]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", shown(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    for line in text.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
    for word in ["without sandbox", "stopped by", "attempts stopped", "mcp doctor", "mcp run --"] {
        assert!(text.contains(word), "no {word:?} in\n{text}");
    }
    user.assert_untouched();
}

#[test]
fn a_temporary_directory_that_is_not_there_is_named() {
    let user = User::new();
    let output = user.demo(&[]).env("TMPDIR", "/nonexistent/tmp").output().unwrap();
    assert_eq!(output.status.code(), Some(125), "{}", shown(&output));
    assert!(String::from_utf8_lossy(&output.stderr).contains("/nonexistent/tmp"));
    user.assert_untouched();
}
