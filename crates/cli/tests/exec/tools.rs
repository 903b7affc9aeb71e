//! Real tools in small projects: what people do all day works, as it does without a sandbox.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::require;
use crate::support::{Finished, Run, Scratch, has_program, patience};

/// Builds take their time on a loaded machine.
fn long() -> Duration {
    patience() * 3
}

/// With the user's own HOME: version managers find their programs by it.
fn exec(project: &Path, command: &str) -> Run {
    let run = Run::exec(project).limit(long());
    let run = match std::env::var_os("HOME") {
        Some(home) => run.env("HOME", home),
        None => run,
    };
    run.command(&[command])
}

#[track_caller]
fn works(project: &Path, command: &str) -> Finished {
    let finished = exec(project, command).run();
    finished.code_is(0);
    assert!(!finished.stderr.contains("mcp: removed"), "{finished}");
    finished
}

fn git(directory: &Path, words: &[&str]) {
    let status = Command::new("git")
        .args(["-c", "user.name=A", "-c", "user.email=a@example.org"])
        .args(words)
        .current_dir(directory)
        .output()
        .unwrap();
    assert!(status.status.success(), "{status:?}");
}

/// A repository with one commit, and a name to commit with.
fn repository(scratch: &Scratch) -> PathBuf {
    let project = scratch.dir("project");
    scratch.file("project/file", "one\n");
    git(&project, &["init", "-q", "-b", "main"]);
    git(&project, &["config", "user.name", "A"]);
    git(&project, &["config", "user.email", "a@example.org"]);
    git(&project, &["add", "."]);
    git(&project, &["commit", "-qm", "one"]);
    project
}

#[test]
fn git_works() {
    require!("userns");
    if !has_program("git") {
        return;
    }
    let scratch = Scratch::new();
    let project = repository(&scratch);
    let log = works(
        &project,
        "echo two >> file && git commit -qam two && git switch -qc side && git branch other && \
         echo three >> file && git stash -q && git stash pop -q && git commit -qam three && \
         git switch -q main && git rebase -q side && git merge -q other && git tag t && git gc -q && \
         git log --oneline | wc -l",
    );
    assert_eq!(log.text().trim(), "3", "{log}");
    works(
        &project,
        "git worktree add -q tree && cd tree && echo x > x && git add x && git commit -qm x",
    );
    // In the worktree alone, with the repository elsewhere.
    works(
        &project.join("tree"),
        "echo y > y && git add y && git commit -qm y && git log --oneline",
    );
    let hook = exec(&project.join("tree"), "echo x > ../.git/hooks/pre-commit").run();
    assert_ne!(hook.code, 0, "{hook}");
    // A new repository: what runs nothing stays.
    works(&project, "git init -q new && cd new && git status --short");
    assert!(project.join("new/.git/config").exists() && project.join("new/.git/hooks").exists());
}

#[test]
fn git_settings_are_told_how_to_be_changed() {
    require!("userns");
    if !has_program("git") {
        return;
    }
    let scratch = Scratch::new();
    let project = repository(&scratch);
    for command in ["git remote add origin https://github.com/a/a.git", "git branch -m main trunk"]
    {
        let finished = exec(&project, command).run();
        assert_ne!(finished.code, 0, "{command}\n{finished}");
        assert!(finished.stderr.contains("--unprotect .git/config"), "{command}\n{finished}");
    }
    let finished = exec(&project, "git remote add origin https://github.com/a/a.git")
        .flag("--allow-write")
        .arg(".git/config")
        .run();
    finished.code_is(0);
}

#[test]
fn a_name_to_commit_with_comes_along() {
    require!("userns");
    if !has_program("git") {
        return;
    }
    let scratch = Scratch::new();
    scratch.file(
        "home/.gitconfig",
        "[user]\n\tname = Ada Example\n\temail = ada@example.org\n[alias]\n\tx = !id\n",
    );
    let project = scratch.dir("home/project");
    git(&project, &["init", "-q"]);
    scratch.file("home/project/file", "one\n");
    let finished = Run::exec(&project)
        .env("HOME", scratch.join("home"))
        .command(&[
            "git add . && git commit -qm one && git log --format='%an <%ae>' && git config alias.x",
        ])
        .run();
    assert_eq!(finished.text(), "Ada Example <ada@example.org>\n", "{finished}");
}

#[test]
fn cargo_builds() {
    require!("userns");
    if !has_program("cargo") {
        return;
    }
    let scratch = Scratch::new();
    let project = scratch.dir("project");
    scratch.file(
        "project/Cargo.toml",
        "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
    );
    scratch.file("project/src/main.rs", "fn main() { println!(\"built\"); }\n#[test]\nfn t() {}\n");
    let finished = works(
        &project,
        "cargo build -q --offline && cargo test -q --offline && ./target/debug/small",
    );
    assert!(finished.text().contains("built"), "{finished}");
}

#[test]
fn npm_installs_from_a_cache() {
    require!("userns");
    if !has_program("npm") || !has_program("node") {
        return;
    }
    let scratch = Scratch::new();
    let project = scratch.dir("project");
    scratch.file("dependency/package.json", r#"{"name": "dependency", "version": "1.0.0"}"#);
    scratch.file("dependency/index.js", "module.exports = 'installed';\n");
    scratch.file("dependency/.vscode/settings.json", "{}");
    scratch.file("project/main.js", "console.log(require('dependency'));\n");
    scratch.file("project/package.json", r#"{"name": "small", "version": "1.0.0"}"#);
    // Outside, as a person would: fills the cache and writes the lock file.
    let npm = |directory: &Path, words: &[&str]| {
        let mut command = Command::new("npm");
        command
            .args(words)
            .args(["--offline", "--no-audit", "--cache"])
            .arg(project.join(".cache"));
        let output = command.current_dir(directory).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    npm(&scratch.join("dependency"), &["pack", "--pack-destination", "../project"]);
    npm(&project, &["install", "./dependency-1.0.0.tgz"]);
    let finished = works(&project, "npm ci --offline --no-audit --cache .cache && node main.js");
    assert!(finished.text().contains("installed"), "{finished}");
    works(
        &project,
        "rm -rf node_modules && npm install --offline --no-audit --cache .cache && node main.js",
    );
}

#[test]
fn pytest_runs() {
    require!("userns");
    if !has_program("pytest") {
        return;
    }
    let scratch = Scratch::new();
    let project = scratch.dir("project");
    scratch.file(
        "project/test_small.py",
        "def test_small(tmp_path):\n    (tmp_path / 'x').write_text('y')\n",
    );
    let finished = works(&project, "pytest -q");
    assert!(finished.text().contains("1 passed"), "{finished}");
}

#[test]
fn make_works_in_parallel() {
    require!("userns");
    if !has_program("make") || !has_program("cc") {
        return;
    }
    let scratch = Scratch::new();
    let project = scratch.dir("project");
    let names: Vec<String> = (0..8).map(|n| format!("f{n}")).collect();
    for name in &names {
        scratch.file(format!("project/{name}.c"), &format!("int {name}(void) {{ return 1; }}\n"));
    }
    scratch.file(
        "project/main.c",
        "#include <stdio.h>\nint main(void) { puts(\"made\"); return 0; }\n",
    );
    let objects: Vec<String> = names.iter().map(|name| format!("{name}.o")).collect();
    scratch.file(
        "project/Makefile",
        &format!("main: main.o {}\n\t$(CC) -o $@ $^\n", objects.join(" ")),
    );
    let finished = works(&project, "make -j8 && ./main");
    assert!(finished.text().contains("made"), "{finished}");
}
