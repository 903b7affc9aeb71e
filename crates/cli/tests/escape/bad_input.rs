//! Bad input: a clear error or a correct run, never a panic, never something left behind.

use std::fs;
use std::os::unix::fs::symlink;

use crate::require;
use crate::support::{Preparation, Run, Scratch, allowed, mcp_path, probe_path};

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
        assert!(
            finished.stderr.contains(path.to_str().unwrap()),
            "{finished}"
        );
    }
    let garbage = scratch.script("garbage", "\u{1}\u{2}not a program");
    Run::new()
        .command(&[garbage])
        .run()
        .has_no_panic()
        .code_is(126);
}

#[test]
fn scripts() {
    require!("userns");
    let scratch = Scratch::new();
    for (name, line) in [
        ("plain", "#!/bin/sh"),
        ("by-env", "#!/usr/bin/env sh"),
        ("flag", "#!/bin/sh -e"),
    ] {
        let script = scratch.script(name, &format!("{line}\necho ran \"$@\"\n"));
        let finished = Run::new()
            .command(&[script.as_os_str(), "a b".as_ref()])
            .run();
        finished.code_is(0);
        assert_eq!(finished.text(), "ran a b\n", "{line}");
    }
    let orphan = scratch.script("no-interpreter", "#!/no/such/interpreter\n");
    let finished = Run::new().command(&[orphan]).run();
    finished.has_no_panic();
    assert!([126, 127].contains(&finished.code), "{finished}");
    assert!(
        finished.stderr.contains("/no/such/interpreter"),
        "{finished}"
    );
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
            assert!(
                finished.stderr.contains(path.to_str().unwrap()),
                "{finished}"
            );
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
    Run::new()
        .flag("--policy")
        .arg(&binary)
        .probe(&["cwd"])
        .run()
        .is_clear_error();
    Run::new()
        .flag("--policy")
        .arg(scratch.path())
        .probe(&["cwd"])
        .run()
        .is_clear_error();
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
    let mut run = Run::new();
    let mut last = scratch.path().to_owned();
    for number in 0..3000 {
        last = scratch.file(format!("{number}/file"), "content");
        run = run.read(last.parent().unwrap());
    }
    let finished = run.probe(&["read".as_ref(), last.as_os_str()]).run();
    finished.has_no_panic().code_is(0);
    assert_eq!(finished.last("read").detail, "content");
}

#[test]
fn closed_standard_streams() {
    require!("userns");
    let scratch = Scratch::new();
    for closed in [&[0][..], &[1], &[2], &[0, 1], &[0, 1, 2]] {
        let proof = scratch.dir(format!("{closed:?}")).join("ran");
        let mut run = Run::new().write(proof.parent().unwrap());
        for fd in closed {
            run = run.prepare(Preparation::Close(*fd));
        }
        let finished = run.probe(&["create".as_ref(), proof.as_os_str()]).run();
        finished.has_no_panic();
        assert!(
            [0, 125].contains(&finished.code),
            "closed {closed:?}: {finished}"
        );
        assert_eq!(
            proof.exists(),
            finished.code == 0,
            "closed {closed:?}: {finished}"
        );
    }
}

#[test]
fn no_home() {
    require!("userns");
    let run = || {
        let mut run = Run::new().without_env("HOME");
        for name in [
            "XDG_CONFIG_HOME",
            "XDG_CACHE_HOME",
            "XDG_DATA_HOME",
            "XDG_STATE_HOME",
        ] {
            run = run.without_env(name);
        }
        run
    };
    assert_eq!(
        allowed(run().probe(&["getenv", "HOME"])).detail,
        "/home/mcp"
    );
    for home in ["", "relative", "/no/such/home"] {
        allowed(run().env("HOME", home).probe(&["cwd"]));
    }
}

#[test]
fn no_environment_at_all() {
    require!("userns");
    let names: Vec<_> = std::env::vars_os().map(|(name, _)| name).collect();
    let mut run = Run::new();
    for name in &names {
        run = run.without_env(name.to_str().unwrap_or("PATH"));
    }
    allowed(run.without_env("PATH").probe(&["cwd"]));
}

#[test]
fn deleted_working_directory() {
    require!("userns");
    let scratch = Scratch::new();
    let dir = scratch.dir("gone");
    let run = Run::new().cwd(&dir).prepare(Preparation::remove_dir(&dir));
    let finished = run.probe(&["cwd"]).run();
    finished.has_no_panic();
    assert!(!dir.exists());
    match finished.code {
        0 => assert_eq!(finished.last("cwd").detail, "/home/mcp", "{finished}"),
        _ => _ = finished.is_clear_error(),
    }
}

#[test]
fn twenty_open_files() {
    require!("userns");
    let scratch = Scratch::new();
    let file = scratch.file("file", "content");
    let run = Run::new()
        .prepare(Preparation::OpenFiles(20))
        .read(&file)
        .write(scratch.path());
    let finished = run.probe(&["read".as_ref(), file.as_os_str()]).run();
    finished.has_no_panic();
    match finished.code {
        0 => assert_eq!(finished.last("read").detail, "content", "{finished}"),
        _ => _ = finished.is_clear_error(),
    }
}

/// Runs the launcher with a /tmp of the given kind, in a mount namespace of the test's own.
fn with_tmp(second: &[&str]) -> crate::support::Finished {
    // The binaries may live below /tmp, which the new mount hides.
    let scratch_bin = tempdir_outside_tmp();
    let copies = [mcp_path(), probe_path()].map(|path| {
        let copy = scratch_bin.join(path.file_name().unwrap());
        fs::copy(&path, &copy).unwrap();
        copy
    });
    let inner = [
        copies[0].as_os_str(),
        "run".as_ref(),
        "--".as_ref(),
        copies[1].as_os_str(),
    ];
    let mut run = Run::bare()
        .env("HOME", "/nonexistent")
        .env("TMPDIR", "/tmp");
    for name in [
        "XDG_CONFIG_HOME",
        "XDG_CACHE_HOME",
        "XDG_DATA_HOME",
        "XDG_STATE_HOME",
    ] {
        run = run.without_env(name);
    }
    let finished = run
        .probe(&["enter", "user,mnt"])
        .probe(&["mount", "/tmp", "65536"])
        .probe(second)
        .probe(&["exec"])
        .command(&inner)
        .command(&["create", "/tmp/works"])
        .run();
    fs::remove_dir_all(scratch_bin).unwrap();
    finished
}

fn tempdir_outside_tmp() -> std::path::PathBuf {
    let base = ["/var/tmp", "/dev/shm"]
        .into_iter()
        .find(|dir| fs::metadata(dir).is_ok())
        .unwrap();
    let number = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap();
    let dir = format!(
        "{base}/mcp-escape-{}-{:x}",
        std::process::id(),
        number.as_nanos()
    );
    fs::create_dir(&dir).unwrap();
    dir.into()
}

#[test]
fn full_tmp() {
    require!("userns");
    let finished = with_tmp(&["write-big", "/tmp/filler", "1000000"]);
    assert_eq!(finished.act("write-big").errno(), "ENOSPC", "{finished}");
    assert!(finished.act("create").ok, "{finished}");
}

#[test]
fn read_only_tmp() {
    require!("userns");
    let finished = with_tmp(&["remount-ro", "/tmp"]);
    assert!(finished.act("remount-ro").ok, "{finished}");
    assert!(finished.act("create").ok, "{finished}");
}
