//! `mcp check` as people meet it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::Write;
use std::process::{Command, Output, Stdio};

fn check(args: &[&str], input: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_mcp"))
        .arg("check")
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn code(args: &[&str]) -> i32 {
    check(args, "").status.code().unwrap()
}

#[test]
fn exit_codes_tell_the_verdict() {
    assert_eq!(code(&["ls -la"]), 0);
    assert_eq!(code(&["rm -rf /"]), 1);
    assert_eq!(code(&["$CMD x"]), 3);
    assert_eq!(code(&["git push --force"]), 4);
    assert_eq!(code(&["curl https://example.com"]), 1);
    assert_eq!(code(&["--network", "curl https://example.com"]), 0);
    assert_eq!(code(&["--shell", "powershell", r"rm -r C:\"]), 1);
    assert_eq!(code(&["--shell", "cmd", r"rd /s /q C:\"]), 1);
    assert_eq!(code(&["--shell", "klingon", "ls"]), 2);
    assert_eq!(code(&[]), 2);
}

#[test]
fn the_part_is_underlined() {
    let output = check(&["ls && rm -rf /"], "");
    let text = String::from_utf8(output.stdout).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("refused: delete-everything"));
    assert_eq!(lines.next(), Some("    ls && rm -rf /"));
    assert_eq!(lines.next(), Some("          ^^^^^^^^"));
    assert!(!text.contains('\u{1b}'), "no colours into a pipe");
}

#[test]
fn commands_come_from_standard_input_too() {
    let output = check(&["--json", "-"], "echo hi\nrm -rf ~\n");
    assert_eq!(output.status.code(), Some(1));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["decision"], "refuse");
    assert_eq!(json["findings"][0]["rule"], "delete-everything");
    assert_eq!(json["findings"][0]["span"]["start"], 8);
}

#[test]
fn what_is_shown_obeys_no_escape_sequence() {
    let output = check(&["ls \u{1b}]0;title\u{7}"], "");
    assert_eq!(output.status.code(), Some(1));
    assert!(!output.stdout.contains(&0x1b));
}

#[test]
fn own_rules_are_added_and_their_examples_tried() {
    let file = std::env::temp_dir().join(format!("mcp-check-{}.toml", std::process::id()));
    let rule = |example: &str| {
        format!(
            "allow = ['interpreter']\n[[rule]]\nid = 'no-deploy'\ncommand = ['deploy']\n\
             model = 'Ask.'\nhuman = 'Deploys.'\nmatches = ['{example}']\n"
        )
    };
    let path = file.to_str().unwrap();
    std::fs::write(&file, rule("deploy prod")).unwrap();
    assert_eq!(code(&["--rules", path, "deploy prod"]), 1);
    assert_eq!(code(&["--strict", "--rules", path, "python3 -c pass"]), 0);
    assert_eq!(code(&["--strict", "python3 -c pass"]), 1);
    assert_eq!(code(&["python3 -c pass"]), 0);
    std::fs::write(&file, rule("ls")).unwrap();
    let output = check(&["--rules", path, "ls"], "");
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("no-deploy") && said.contains("does not match its example"), "{said}");
    std::fs::remove_file(&file).unwrap();
}
