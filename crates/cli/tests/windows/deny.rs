//! Deny rules and protected settings: what is left closed, read-only and in its place.

use std::path::Path;

use crate::container::{CONTAINER, entries};
use crate::support::{Run, Scratch, allowed, heart_beats, holds, missing, refused_by};

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn project(scratch: &Scratch) -> std::path::PathBuf {
    scratch.file(r"p\.env", "secret");
    scratch.file(r"p\src\deep\.ENV", "secret");
    scratch.file(r"p\src\lib.rs", "code");
    scratch.file(r"p\.git\HEAD", "ref: refs/heads/main");
    scratch.file(r"p\.git\config", "[core]");
    scratch.file(r"p\.git\hooks\pre-commit", "hook");
    scratch.join("p")
}

/// Where there is no container, a rule that nothing enforces stops the run; a warning names it.
#[test]
fn rules_that_cannot_be_kept_are_named() {
    if missing("container").is_none() {
        return;
    }
    let scratch = Scratch::new();
    let project = project(&scratch);
    let run = |run: Run| run.write(&project).flag("--deny").flag("**/.env").probe(&["exit", "3"]);
    let finished = run(Run::strict()).run();
    finished.code_is(125);
    assert!(finished.stderr.contains("deny"), "{finished:#?}");
    let warned = run(Run::new()).run();
    warned.code_is(3);
    assert!(warned.stderr.contains("deny cannot be enforced"), "{warned:#?}");
    let finished = Run::strict().write(&project).flag("--protect").probe(&["exit", "3"]).run();
    finished.code_is(125);
    assert!(finished.stderr.contains("protect"), "{finished:#?}");
}

#[test]
fn nonsense_and_what_the_program_needs() {
    let own = crate::support::probe();
    let finished = Run::new().flag("--deny").flag(&own).probe(&["exit", "3"]).run();
    finished.code_is(126);
    assert!(finished.stderr.contains("denied by --deny"), "{finished:#?}");
}

/// An act on something of a project that nobody has touched before.
fn fresh(act: &str, name: &str, with: &[&str]) -> (Scratch, Run) {
    let scratch = Scratch::new();
    let project = project(&scratch);
    std::fs::hard_link(project.join(".env"), project.join(r"src\alias")).unwrap();
    let (path, moved) = (project.join(name), project.join("moved"));
    let run = with.iter().fold(Run::new().write(&project), |run, word| run.flag(word));
    let run = match act {
        "rename" => run.probe(&[act, text(&path), text(&moved)]),
        _ => run.probe(&[act, text(&path)]),
    };
    (scratch, run)
}

fn is_blocked(act: &str, name: &str, with: &[&str]) {
    let (_scratch, attack) = fresh(act, name, with);
    let (_other, control) = fresh(act, name, &[]);
    refused_by("container", attack, control);
}

fn is_allowed(act: &str, name: &str, with: &[&str]) {
    let (_scratch, run) = fresh(act, name, with);
    allowed(run);
}

#[test]
fn denied_files_are_closed_by_every_name() {
    const DENIED: &[&str] = &["--deny", "**/.env"];
    for name in [".env", r"src\deep\.ENV", r"src\alias"] {
        for act in ["read", "write", "rename", "unlink"] {
            is_blocked(act, name, DENIED);
        }
    }
    is_blocked("rename", r"src\deep", DENIED);
    is_allowed("read", r"src\lib.rs", DENIED);
    is_allowed("create", r"src\deep\new", DENIED);
}

#[test]
fn protected_settings_are_read_and_not_changed() {
    const PROTECTED: &[&str] = &["--protect"];
    for name in [r".git\hooks\pre-commit", r".git\config"] {
        is_allowed("read", name, PROTECTED);
        is_blocked("write", name, PROTECTED);
        is_blocked("unlink", name, PROTECTED);
    }
    is_blocked("create", r".git\hooks\new", PROTECTED);
    is_blocked("rename", ".git", PROTECTED);
    is_allowed("create", r".git\index", PROTECTED);
}

/// Also after a launcher that was killed: the next run reads its journal.
#[test]
fn entries_around_what_is_denied_are_withdrawn() {
    if !holds("container") {
        return;
    }
    let scratch = Scratch::new();
    let project = project(&scratch);
    let looked = [project.clone(), project.join(".env"), project.join(r"src\lib.rs")];
    let before: Vec<String> = looked.iter().map(|path| entries(path)).collect();
    let heart = project.join("beat");
    let run = Run::new().write(&project).flag("--deny").flag("**/.env");
    let run = run.probe(&["loop-heartbeat", text(&heart), "20"]);
    let journals = run.home.path().join(r"LOCALAPPDATA\mcp\runs");
    let mut live = run.spawn();
    heart_beats(&heart);
    assert!(entries(&looked[2]).contains(CONTAINER), "the control: there is one");
    assert!(!entries(&looked[1]).contains(CONTAINER));
    live.child.kill().unwrap();
    let journal = live.wait_and_give(|| {
        let journal = std::fs::read_dir(&journals).unwrap().next().unwrap().unwrap().path();
        std::fs::read_to_string(journal).unwrap()
    });
    assert!(entries(&looked[2]).contains(CONTAINER), "the control: it was left");
    let next = Run::new().probe(&["exit", "0"]);
    std::fs::write(next.home.dir(r"LOCALAPPDATA\mcp\runs").join("x.journal"), journal).unwrap();
    next.run().code_is(0);
    let after: Vec<String> = looked.iter().map(|path| entries(path)).collect();
    assert_eq!(after, before);
}
