//! Bad input: a clear error or a correct run, never a panic, never something left behind.

use std::fs;
use std::os::unix::fs::symlink;

use crate::require;
use crate::support::{Preparation, Run, Scratch};

#[test]
fn missing_command() {
    require!("userns");
    for name in ["mcp-no-such-command", "/no/such/command"] {
        let finished = Run::new().command(&[name]).run();
        finished.has_no_panic().code_is(127);
        assert!(finished.stderr.contains(name), "{finished}");
    }
}

#[test]
fn command_that_cannot_be_executed() {
    require!("userns");
    let scratch = Scratch::new();
    let file = scratch.file("not-executable", "#!/bin/sh\necho ran\n");
    for path in [file.as_path(), scratch.path()] {
        let finished = Run::new().read(scratch.path()).command(&[path]).run();
        finished.has_no_panic().code_is(126);
        assert!(finished.stderr.contains(path.to_str().unwrap()), "{finished}");
    }
    let garbage = scratch.script("garbage", "\u{1}\u{2}not a program");
    Run::new().command(&[garbage]).run().has_no_panic().code_is(126);
}

#[test]
fn scripts() {
    require!("userns");
    let scratch = Scratch::new();
    for (name, line) in
        [("plain", "#!/bin/sh"), ("by-env", "#!/usr/bin/env sh"), ("flag", "#!/bin/sh -e")]
    {
        let script = scratch.script(name, &format!("{line}\necho ran \"$@\"\n"));
        let finished = Run::new().command(&[script.as_os_str(), "a b".as_ref()]).run();
        finished.code_is(0);
        assert_eq!(finished.text(), "ran a b\n", "{line}");
    }
    let orphan = scratch.script("no-interpreter", "#!/no/such/interpreter\n");
    let finished = Run::new().command(&[orphan]).run();
    finished.has_no_panic();
    assert!([126, 127].contains(&finished.code), "{finished}");
    assert!(finished.stderr.contains("/no/such/interpreter"), "{finished}");
}

#[test]
fn no_command_at_all() {
    let finished = Run::new().run();
    finished.is_clear_error().code_is(2);
}

#[test]
fn grant_that_does_not_exist() {
    require!("userns");
    let scratch = Scratch::new();
    let missing = scratch.join("no-such-file");
    let dangling = scratch.join("dangling");
    symlink("nowhere", &dangling).unwrap();
    for path in [missing, dangling] {
        for flag in ["--read", "--write"] {
            let finished = Run::new().flag(flag).arg(&path).probe(&["cwd"]).run();
            finished.is_clear_error();
            assert!(finished.stderr.contains(path.to_str().unwrap()), "{finished}");
            assert!(finished.outcomes.is_empty(), "it ran: {finished}");
        }
    }
}

#[test]
fn senseless_flags() {
    for flags in [
        &["--no-such-flag"][..],
        &["--max-memory", "64X"],
        &["--max-memory", "-1"],
        &["--max-memory", ""],
        &["--max-memory", "99999999999999999999"],
        &["--timeout", "soon"],
        &["--max-pids", "many"],
        &["--network", "some"],
        &["--fallback", "maybe"],
        &["--secret", "NAME"],
        &["--env", ""],
        &["--env", "=x"],
        &["--read", ""],
        &["--policy", "/no/such/policy.toml"],
    ] {
        let mut run = Run::new();
        for flag in flags {
            run = run.arg(flag);
        }
        let finished = run.probe(&["cwd"]).run();
        finished.is_clear_error();
        assert!(finished.outcomes.is_empty(), "{flags:?} ran: {finished}");
    }
}

#[test]
fn senseless_policies() {
    let scratch = Scratch::new();
    for (name, text, hint) in [
        ("key", "[filesystem]\nraed = [\"/usr\"]\n", "raed"),
        ("table", "[filesistem]\nread = []\n", "filesistem"),
        ("unit", "[limits]\n\nmemory = \"64 parsecs\"\n", "parsecs"),
        ("type", "[limits]\nprocesses = \"lots\"\n", "processes"),
        ("syntax", "[limits\n", "line 1"),
        ("zero", "a\0b = 1\n", "line 1"),
    ] {
        let file = scratch.file(name, text);
        let finished = Run::new().flag("--policy").arg(&file).probe(&["cwd"]).run();
        finished.is_clear_error();
        assert!(finished.outcomes.is_empty(), "{name} ran: {finished}");
        let named = finished.stderr.contains(file.to_str().unwrap());
        let hinted = finished.stderr.contains(hint) || finished.stderr.contains(":1:");
        assert!(named && hinted, "{name}: {finished}");
    }
    let binary = scratch.join("binary");
    fs::write(&binary, b"\xff\xfe\0\0").unwrap();
    Run::new().flag("--policy").arg(&binary).probe(&["cwd"]).run().is_clear_error();
    Run::new().flag("--policy").arg(scratch.path()).probe(&["cwd"]).run().is_clear_error();
}

#[test]
fn policy_of_ten_megabytes() {
    require!("userns");
    let scratch = Scratch::new();
    let file = scratch.file("file", "content");
    let mut text = format!("[filesystem]\nread = [{:?}]\n", file.to_str().unwrap());
    while text.len() < 10_000_000 {
        text.push_str("# a long explanation of why this rule is here\n");
    }
    let policy = scratch.file("policy.toml", &text);
    let run = Run::new().flag("--policy").arg(&policy);
    let finished = run.probe(&["read".as_ref(), file.as_os_str()]).run();
    finished.has_no_panic();
    match finished.code {
        0 => assert_eq!(finished.last("read").detail, "content", "{finished}"),
        _ => _ = finished.is_clear_error(),
    }
}

#[test]
fn thousands_of_grants() {
    require!("userns");
    let scratch = Scratch::new();
    // As a login gives them.
    let mut run = Run::new().prepare(Preparation::OpenFilesAtFirst(1024, 4096));
    let mut last = scratch.path().to_owned();
    for number in 0..3000 {
        last = scratch.file(format!("{number}/file"), "content");
        run = run.read(last.parent().unwrap());
    }
    let finished = run.probe(&["read".as_ref(), last.as_os_str()]).run();
    finished.has_no_panic().code_is(0);
    assert_eq!(finished.last("read").detail, "content");
}
