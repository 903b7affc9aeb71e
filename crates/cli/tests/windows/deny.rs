//! Deny rules and protected settings: what is left closed, read-only and in its place.

use std::path::Path;

use crate::container::{CONTAINER, entries};
use crate::support::{Run, Scratch, allowed, blocked, heart_beats, holds, missing, refused};

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

#[test]
fn denied_files_are_closed_by_every_name() {
    if !holds("container") {
        return;
    }
    let scratch = Scratch::new();
    let project = project(&scratch);
    let alias = project.join(r"src\alias");
    std::fs::hard_link(project.join(".env"), &alias).unwrap();
    let denied = || Run::new().write(&project).flag("--deny").flag("**/.env");
    let open = || Run::new().write(&project);
    for file in [project.join(".env"), project.join(r"src\deep\.ENV"), alias] {
        refused(denied().probe(&["read", text(&file)]), open().probe(&["read", text(&file)]));
        blocked(denied().probe(&["write", text(&file)]));
        blocked(denied().probe(&["rename", text(&file), text(&project.join("moved"))]));
        blocked(denied().probe(&["unlink", text(&file)]));
    }
    let way = project.join(r"src\deep");
    blocked(denied().probe(&["rename", text(&way), text(&project.join("moved"))]));
    allowed(denied().probe(&["read", text(&project.join(r"src\lib.rs"))]));
    allowed(denied().probe(&["create", text(&project.join(r"src\deep\new"))]));
}

#[test]
fn protected_settings_are_read_and_not_changed() {
    if !holds("container") {
        return;
    }
    let scratch = Scratch::new();
    let project = project(&scratch);
    let kept = || Run::new().write(&project).flag("--protect");
    let hook = project.join(r".git\hooks\pre-commit");
    allowed(kept().probe(&["read", text(&hook)]));
    for file in [hook, project.join(r".git\config")] {
        blocked(kept().probe(&["write", text(&file)]));
        blocked(kept().probe(&["unlink", text(&file)]));
    }
    blocked(kept().probe(&["create", text(&project.join(r".git\hooks\new"))]));
    blocked(kept().probe(&["rename", text(&project.join(".git")), text(&project.join("x"))]));
    allowed(kept().probe(&["create", text(&project.join(r".git\index"))]));
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
