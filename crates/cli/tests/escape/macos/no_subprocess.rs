//! `--no-subprocess`: no process and no other program; threads work.

use std::path::Path;

use crate::require;
use crate::support::{Run, Scratch, allowed, blocked, refused};

fn alone() -> Run {
    Run::new().flag("--no-subprocess")
}

#[test]
fn threads_work() {
    require!("seatbelt");
    allowed(alone().probe(&["threads", "16"]));
}

#[test]
fn processes_cannot_be_made() {
    require!("seatbelt");
    refused(alone().probe(&["fork", "1"]), Run::new().probe(&["fork", "1"]), &["EPERM"]);
}

/// Itself it may execute again, and nothing else.
#[test]
fn programs_cannot_be_executed() {
    require!("seatbelt");
    let exec = ["exec", "/bin/echo", "out"];
    blocked(alone().probe(&exec), &["EPERM", "EACCES"]);
    Run::new().probe(&exec).run().code_is(0);
}

#[test]
fn scripts_start_with_one_exec() {
    require!("seatbelt");
    let scratch = Scratch::new();
    for (name, text) in [
        ("shell", "#!/bin/sh\necho $1\n"),
        ("option", "#!/bin/sh -e\necho $1\n"),
        ("env", "#!/usr/bin/env sh\necho $1\n"),
    ] {
        let script = scratch.script(name, text);
        let dir: &Path = scratch.path();
        let run = alone().read(dir).command(&[script.as_os_str(), "word".as_ref()]).run();
        assert_eq!(run.text(), "word\n", "{name}: {run}");
    }
}
