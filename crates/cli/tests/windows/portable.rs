//! What has nothing to do with walls works here as well.

use std::process::{Command, Stdio};

use crate::support::{Run, Scratch, mcp};

fn said(words: &[&str]) -> (i32, String) {
    let home = Scratch::new();
    let mut command = Command::new(mcp());
    for name in ["USERPROFILE", "APPDATA", "LOCALAPPDATA"] {
        command.env(name, home.path());
    }
    let output = command.args(words).stdin(Stdio::null()).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn nonsense_is_a_usage_error() {
    for words in [
        &["run", "--max-memory", "many", "--", "x"][..],
        &["run", "--no-such-flag"],
        &["run"],
        &["run", "--read", "", "--", "x"],
    ] {
        let (code, text) = said(words);
        assert_eq!(code, 2, "{words:?}: {text}");
        assert!(!text.contains("panicked"), "{text}");
    }
}

#[test]
fn a_policy_file_with_a_mistake_is_pointed_at() {
    let scratch = Scratch::new();
    let path = scratch.file("policy.toml", "[limits]\nmemory = '12 elephants'\n");
    let (code, text) = said(&["run", "--policy", path.to_str().unwrap(), "--", "x"]);
    assert_eq!(code, 2, "{text}");
    assert!(text.contains("policy.toml:2") && text.contains("^"), "{text}");
}

#[test]
fn plans_for_every_system_can_be_read() {
    for platform in ["windows", "macos"] {
        let (code, text) =
            said(&["run", "--explain", "--steps", "--platform", platform, "--", "node"]);
        assert_eq!(code, 0, "{text}");
        assert!(text.contains("filesystem") && text.contains("Steps"), "{text}");
    }
}

#[test]
fn grants_that_mean_another_place_are_refused() {
    for path in
        [r"\\server\share", r"\\.\C:\Windows", r"C:\Windows\win.ini::$DATA", r"C:\nul", r"C:\"]
    {
        let finished = Run::new().flag("--read").flag(path).probe(&["exit", "0"]).run();
        finished.code_is(125);
        assert!(finished.stderr.contains("--read"), "{path}: {finished:#?}");
    }
}

#[test]
fn commands_are_judged() {
    let (code, text) = said(&["check", "--shell", "cmd", "--", "dir"]);
    assert_eq!(code, 0, "{text}");
}

#[test]
fn what_was_run_is_in_the_log() {
    let home = Scratch::new();
    let run = |words: &[&str]| {
        let mut command = Command::new(mcp());
        for name in ["USERPROFILE", "APPDATA", "LOCALAPPDATA"] {
            command.env(name, home.path());
        }
        command.args(words).stdin(Stdio::null()).output().unwrap()
    };
    run(&["run", "--fallback", "warn", "--", "cmd", "/c", "exit 3"]);
    let log = run(&["log"]);
    let text = String::from_utf8_lossy(&log.stdout).into_owned();
    assert!(text.contains("cmd"), "{text} {}", String::from_utf8_lossy(&log.stderr));
}
