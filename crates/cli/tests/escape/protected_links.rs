//! Links in protected directories: what they lead to is protected as they are, wherever in the project it lies, and whether
//! it is there or not. The real git runs the hooks; without protection it runs those that a command planted.

use std::fs;

use crate::protected_git::{COMMIT, Case, none_runs};
use crate::require;
use crate::support::{Run, Scratch};

const fn hook(name: &'static str, made: &'static str) -> Case {
    Case { name, made, act: "plant scripts/pc", planted: Some("project/scripts/pc"), after: COMMIT }
}

/// Settings of an editor, which takes what it finds.
const OPEN: &str = "cd project && ! grep -q RAN .vscode/tasks.json || : > \"$RAN\"";

const fn settings(name: &'static str, made: &'static str) -> Case {
    let planted = Some("project/shared/tasks");
    Case { name, made, act: "plant shared/tasks", planted, after: OPEN }
}

const CASES: &[Case] = &[
    hook("a hook", "fill; ln -s ../../scripts/pc .git/hooks/pre-commit"),
    hook("by the whole path", "fill; ln -s \"$PWD/scripts/pc\" .git/hooks/pre-commit"),
    hook(
        "by a link outside",
        "fill; ln -s project/scripts ../way; ln -s ../../../way/pc .git/hooks/pre-commit",
    ),
    hook(
        "a chain",
        "fill; ln -s first .git/hooks/pre-commit; ln -s ../../second .git/hooks/first
         ln -s scripts/pc second",
    ),
    hook(
        "a directory",
        "fill; mkdir .git/hooks/more; ln -s ../../../scripts .git/hooks/more/down
         ln -s more/down/pc .git/hooks/pre-commit",
    ),
    hook(
        "a directory that holds links",
        "fill; git config core.hooksPath .githooks; ln -s tools .githooks; mkdir tools
         ln -s ../scripts/pc tools/pre-commit",
    ),
    hook(
        "hooks outside of the project",
        "fill; mkdir ../hooks; git config --global core.hooksPath '~/hooks'
         ln -s ../project/scripts/pc ../hooks/pre-commit",
    ),
    hook(
        "templates outside of the project",
        "fill; mkdir -p ../t/hooks; git config --global init.templateDir '~/t'
         ln -s \"$PWD/scripts/pc\" ../t/hooks/pre-commit; ln -s \"$PWD/scripts/pc\" .git/hooks/pre-commit",
    ),
    Case {
        name: "a repository above",
        made: "git init -q .; mkdir project; ln -s ../../project/scripts/pc .git/hooks/pre-commit",
        act: "plant scripts/pc",
        planted: Some("project/scripts/pc"),
        after: "git commit -q --allow-empty -m second",
    },
    Case {
        name: "a submodule",
        made: "repo other; fill; git -c protocol.file.allow=always submodule --quiet add ../other sub
            ln -s ../../../../scripts/pc .git/modules/sub/hooks/pre-commit",
        act: "plant scripts/pc",
        planted: Some("project/scripts/pc"),
        after: "cd project/sub && git commit -q --allow-empty -m second",
    },
    Case {
        name: "a directory on the way that is moved",
        made: "fill; mkdir -p a/scripts; printf '#!/bin/sh\\n' > a/scripts/pc; chmod 755 a/scripts/pc
            ln -s ../../a/scripts/pc .git/hooks/pre-commit",
        act: "mv a b; plant a/scripts/pc; mv a/scripts a/c; plant a/scripts/pc",
        planted: None,
        after: COMMIT,
    },
    Case {
        name: "a directory on the way that becomes a link",
        made: "fill; mkdir scripts; ln -s ../../scripts/pc .git/hooks/pre-commit",
        act: "plant ../second/pc; rmdir scripts; ln -s ../second scripts",
        planted: None,
        after: COMMIT,
    },
    Case {
        name: "a link on the way that is replaced",
        made: "fill; mkdir v1 v2; ln -s v1 now; ln -s ../../now/pc .git/hooks/pre-commit",
        act: "plant v2/pc; rm now; ln -s v2 now; plant now/pc",
        planted: None,
        after: COMMIT,
    },
    Case {
        name: "a way up from what is not there",
        made: "fill; mkdir scripts; ln -s ../../none/../scripts/pc .git/hooks/pre-commit",
        act: "plant second/scripts/pc; mkdir second/x; ln -s second/x none",
        planted: None,
        after: COMMIT,
    },
    settings("settings", "fill; mkdir .vscode; ln -s ../shared/tasks .vscode/tasks.json"),
    settings(
        "settings in a directory",
        "fill; mkdir -p .vscode; ln -s ../shared .vscode/all; ln -s all/tasks .vscode/tasks.json",
    ),
    Case {
        name: "a new link with the name of a directory of settings",
        made: "fill",
        act: "plant elsewhere/config.toml; ln -s elsewhere .cargo",
        planted: None,
        after: "cd project && ! grep -q RAN .cargo/config.toml || : > \"$RAN\"",
    },
    Case {
        name: "an old link with the name of a directory of settings",
        made: "fill; mkdir -p deep/elsewhere; ln -s elsewhere deep/.cargo",
        act: "plant deep/elsewhere/config.toml",
        planted: Some("project/deep/elsewhere/config.toml"),
        after: "cd project && ! grep -q RAN deep/.cargo/config.toml || : > \"$RAN\"",
    },
    Case {
        name: "a link between two directories",
        made: "fill; mkdir .jj",
        act: "plant elsewhere/config.toml; ln -s ../elsewhere .jj/repo",
        planted: None,
        after: "cd project && ! grep -q RAN .jj/repo/config.toml || : > \"$RAN\"",
    },
    settings(
        "settings of a subdirectory",
        "fill; mkdir -p x/.vscode shared; ln -s ../../shared/tasks x/.vscode/y
         mkdir .vscode; ln -s ../x/.vscode/y .vscode/tasks.json",
    ),
];

#[test]
fn what_links_in_protected_directories_lead_to_is_protected() {
    require!("userns");
    none_runs(CASES);
}

/// A link may lead to what cannot be closed: the project itself, or all of the disk. The run starts, and in time.
#[test]
fn links_to_everything_stop_nothing() {
    require!("userns");
    let scratch = Scratch::new();
    scratch.file("project/.vscode/tasks.json", "{}");
    let project = scratch.join("project");
    for (name, to) in
        [("self", "."), ("top", ".."), ("above", "../.."), ("all", "/"), ("round", "round")]
    {
        std::os::unix::fs::symlink(to, project.join(".vscode").join(name)).unwrap();
    }
    let run = Run::new().flag("--protect").write(&project).cwd(&project);
    let finished = run.shell("echo x > new; echo y > .vscode/tasks.json").run();
    assert_eq!(fs::read_to_string(project.join("new")).unwrap(), "x\n", "{finished}");
    assert_eq!(fs::read_to_string(project.join(".vscode/tasks.json")).unwrap(), "{}", "{finished}");
}

/// What is to be written all the same is named.
#[test]
fn what_a_link_leads_to_can_be_excepted() {
    require!("userns");
    let scratch = Scratch::new();
    scratch.file("project/shared/tasks", "{}");
    scratch.dir("project/.vscode");
    let project = scratch.join("project");
    std::os::unix::fs::symlink("../shared/tasks", project.join(".vscode/tasks.json")).unwrap();
    let run = || Run::new().flag("--protect").write(&project).cwd(&project);
    let script = "echo x > shared/tasks";
    run().shell(script).run();
    assert_eq!(fs::read_to_string(project.join("shared/tasks")).unwrap(), "{}");
    run().flag("--unprotect").arg(project.join("shared/tasks")).shell(script).run().code_is(0);
    assert_eq!(fs::read_to_string(project.join("shared/tasks")).unwrap(), "x\n");
}
