//! `mcp doctor --full`: the machinery that volunteers run on systems that are not here.

use std::process::{Command, Stdio};

use serde_json::Value;

use crate::require;
use crate::support::{euid, mcp_path};

fn summary(only: &str) -> (Option<i32>, Value, String) {
    let output = Command::new(mcp_path())
        .args(["doctor", "--full", "--json", "--only", only])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.code(), serde_json::from_str(&text).unwrap_or_default(), text)
}

#[test]
fn boundaries_hold_and_programs_work() {
    require!("userns");
    for only in ["files.", "process.", "network.", "environment.", "ending.", "limits.t", "start."]
    {
        let (code, summary, text) = summary(only);
        assert_eq!(code, Some(0), "{text}");
        assert_eq!((&summary["failed"], &summary["skipped"]), (&0.into(), &0.into()), "{text}");
        assert!(summary["passed"].as_u64().unwrap() > 0, "{text}");
    }
}

/// What is pasted must not say who ran it, nor where.
#[test]
fn the_summary_names_no_user_and_no_path() {
    require!("userns");
    let (_, _, text) = summary("stdio.");
    let home = std::env::var("HOME").unwrap_or_default();
    let temporary = std::env::temp_dir().join("mcp-full").display().to_string();
    for name in [home.as_str(), &temporary, mcp_path().to_str().unwrap()] {
        assert!(name.len() < 3 || !text.contains(name), "{name}\n{text}");
    }
    // Root's pipes cannot be opened again by the user that the command becomes.
    let only_root = euid() == 0;
    assert!(
        text.contains("stdio.reopen") && (only_root || !text.contains("\"failed\": 1")),
        "{text}"
    );
}

/// A user whose name and home have blanks, quotes and other letters; and every check works there.
#[test]
fn the_summary_keeps_odd_names_to_itself() {
    require!("userns");
    let scratch = crate::support::Scratch::new();
    let home = scratch.join("Zoë O'Neil (x)");
    let temporary = home.join("tmp dir");
    std::fs::create_dir_all(&temporary).unwrap();
    let run = |only: &str| {
        let mut command = Command::new(mcp_path());
        command.args(["doctor", "--full", "--json", "--only", only]).stdin(Stdio::null());
        command.env("HOME", &home).env("TMPDIR", &temporary);
        command.env("USER", "zoë.o'neil").env("LOGNAME", "zoë.o'neil");
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    };
    for only in ["files.", "stdio.", "cc", "limits.p"] {
        let text = run(only);
        let summary: Value = serde_json::from_str(&text).unwrap();
        assert!(summary["passed"].as_u64().unwrap() > 0, "{text}");
        for name in ["Zo", "O'N", "o'n", "tmp dir", scratch.path().to_str().unwrap()] {
            assert!(!text.contains(name), "{name}\n{text}");
        }
        // A path that a shell took apart would not work outside either.
        assert!(!text.contains("Syntax error") && !text.contains("unexpected"), "{text}");
    }
}

#[test]
fn a_name_that_no_check_has_is_an_error() {
    let (code, _, text) = summary("no-such-check");
    assert_ne!(code, Some(0));
    assert!(text.is_empty(), "{text}");
}
