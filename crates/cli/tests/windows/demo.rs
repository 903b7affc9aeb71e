//! `mcp demo` here: nothing is said to be stopped that was not, and nothing is left.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::{Scratch, mcp, missing};

#[test]
fn the_demo_says_what_holds_and_what_does_not() {
    let home = Scratch::new();
    let mut command = Command::new(mcp());
    for name in ["USERPROFILE", "APPDATA", "LOCALAPPDATA", "TEMP", "TMP"] {
        command.env(name, home.dir(name));
    }
    let output = command.args(["demo", "--json"]).stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let report: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {said}"));
    let attempts = report["attempts"].as_array().unwrap();
    assert!(attempts.len() >= 12, "{report:#}");
    for attempt in attempts {
        assert_eq!(attempt["without_sandbox"]["succeeded"], true, "{attempt:#}");
        assert_ne!(attempt["verdict"], "unclear", "{attempt:#} {said}");
        let is_stopped = attempt["verdict"] == "stopped";
        assert_eq!(is_stopped, attempt["with_sandbox"]["succeeded"] == false, "{attempt:#}");
    }
    let verdict = |name: &str| {
        let found = attempts.iter().find(|attempt| attempt["attempt"] == name);
        found.unwrap_or_else(|| panic!("no {name}: {report:#}"))["verdict"].clone()
    };
    // Jobs and environments are there everywhere.
    for name in ["outlive the timeout", "stay behind as a daemon", "leave the job"] {
        assert_eq!(verdict(name), "stopped", "{report:#}");
    }
    assert_eq!(verdict("read %GITHUB_TOKEN%"), "stopped", "{report:#}");
    match missing("container") {
        Some(_) => {
            assert!(said.contains("AppContainer") && said.contains("--fallback warn"), "{said}");
            assert_eq!(verdict(r"read ~\.ssh\id_ed25519"), "not-stopped", "{report:#}");
            assert_eq!(output.status.code(), Some(1), "{report:#}");
        }
        None => {
            assert_eq!(report["stopped"], report["total"], "{report:#}");
            assert_eq!(output.status.code(), Some(0), "{report:#}");
        }
    }
    let left: Vec<_> = std::fs::read_dir(home.join("TEMP")).unwrap().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}
