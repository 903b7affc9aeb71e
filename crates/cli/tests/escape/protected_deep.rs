//! Protected places in large trees: thousands of directories deep, and thousands of them. What is new is gone all the
//! same, and told in a few lines.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::require;
use crate::support::{Finished, Run, Scratch};

/// How many directories are made at a time; the path of more would be too long for one call.
const LINKS: usize = 900;

fn chain() -> String {
    vec!["d"; LINKS].join("/")
}

fn project() -> (Scratch, PathBuf) {
    let scratch = Scratch::new();
    let project = scratch.dir("project");
    (scratch, project)
}

fn script(project: &Path, flags: &[&str], script: &str) -> Finished {
    let run = Run::new().write(project).cwd(project);
    flags.iter().fold(run, |run, flag| run.arg(flag)).shell(script).run()
}

/// Takes a tree apart that [`nested`] made, and gives the innermost part of it.
fn innermost(project: &Path) -> PathBuf {
    let top = project.join("a");
    while top.join(chain()).join("a").exists() {
        fs::rename(top.join(chain()).join("a"), project.join("inner")).unwrap();
        // The library's own way holds a descriptor for each level.
        assert!(Command::new("rm").arg("-rf").arg(&top).status().unwrap().success());
        fs::rename(project.join("inner"), &top).unwrap();
    }
    top.join(chain())
}

/// Makes something at the bottom of a tree of some thousand directories.
fn nested(make: &str) -> String {
    let chain = chain();
    format!(
        "mkdir -p a/{chain} && (cd -P a/{chain} && {make}) && \
         for n in 1 2 3; do mkdir -p b/{chain} && mv a b/{chain}/ && mv b a; done"
    )
}

#[test]
fn a_hook_thousands_of_directories_deep_is_gone() {
    require!("userns");
    let make = "mkdir -p .git/hooks && echo x > .git/hooks/pre-commit && echo x > file";
    for (flags, is_left) in [(["--protect"], false), (["--no-protect"], true)] {
        let (_scratch, project) = project();
        let finished = script(&project, &flags, &nested(make));
        finished.code_is(0);
        let inner = innermost(&project);
        assert!(inner.join("file").exists(), "{finished}");
        assert_eq!(inner.join(".git/hooks").exists(), is_left, "{finished}");
        assert!(!finished.stderr.contains("warning"), "{finished}");
    }
}

#[test]
fn a_hook_behind_closed_directories_is_gone() {
    require!("userns");
    let chain = chain();
    let make = format!(
        "mkdir -p a/{chain}/.git/hooks/x && echo x > a/{chain}/.git/hooks/x/y && \
         find a -depth -type d -exec chmod 0 {{}} +"
    );
    let opened = |project: &Path| {
        // By a command of its own: an ordinary user cannot look otherwise.
        let finished = script(project, &["--network=host"], "chmod -R u+rwx a");
        finished.code_is(0);
        project.join("a").join(self::chain()).join(".git/hooks").exists()
    };
    let (_scratch, project) = project();
    let finished = script(&project, &["--protect"], &make);
    finished.code_is(0);
    assert!(!opened(&project), "{finished}");
    let (_scratch, project) = self::project();
    script(&project, &[], &make).code_is(0);
    assert!(opened(&project));
}

/// A planted directory that is deep itself: it is renamed at once, and removed without recursion.
#[test]
fn a_deep_directory_of_settings_is_gone() {
    require!("userns");
    let (_scratch, project) = project();
    let finished =
        script(&project, &["--protect"], &format!("{} && mv a .vscode", nested("echo x > file")));
    finished.code_is(0);
    assert!(finished.stderr.contains("removed .vscode"), "{finished}");
    assert_eq!(fs::read_dir(&project).unwrap().count(), 0, "{finished}");
}

#[test]
fn what_was_there_stays_as_it_is_however_deep() {
    require!("userns");
    let chain = chain();
    let (_scratch, project) = project();
    let hooks = project.join("a").join(&chain).join(".git/hooks");
    fs::create_dir_all(&hooks).unwrap();
    fs::write(hooks.join("pre-commit"), "content").unwrap();
    let attack = format!("cd -P a/{chain}/.git && echo evil > hooks/pre-commit");
    let finished = script(&project, &["--protect"], &attack);
    assert_ne!(finished.code, 0, "{finished}");
    assert_eq!(fs::read_to_string(hooks.join("pre-commit")).unwrap(), "content");
    let moved = script(&project, &["--protect"], "mv a b");
    assert_ne!(moved.code, 0, "{moved}");
    script(&project, &[], &attack).code_is(0);
    assert_eq!(fs::read_to_string(hooks.join("pre-commit")).unwrap(), "evil\n");
}

#[test]
fn hundreds_of_repositories_are_told_in_a_few_lines() {
    require!("userns");
    let make = "i=0; while [ $i -lt 300 ]; do mkdir -p r/$i/.git/hooks; \
                echo x > r/$i/.git/hooks/pre-commit; i=$((i+1)); done";
    let (scratch, project) = project();
    let report = scratch.join("report.json");
    let finished = script(&project, &["--protect", "--report", report.to_str().unwrap()], make);
    finished.code_is(0);
    let left = (0..300).filter(|i| project.join(format!("r/{i}/.git/hooks")).exists());
    assert_eq!(left.count(), 0);
    assert!(project.join("r/299/.git").is_dir());
    let lines: Vec<&str> = finished.stderr.lines().collect();
    assert_eq!(lines.len(), 11, "{finished}");
    assert!(lines[10].ends_with("and 290 more that were new were removed"), "{finished}");
    let report: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(report).unwrap()).unwrap();
    assert_eq!(report["undone"].as_array().unwrap().len(), 100);
    assert_eq!(report["more_undone"]["removed"], 200);
    // The same, allowed.
    let (_scratch, project) = self::project();
    script(&project, &["--protect", "--allow-write", "r"], make).code_is(0);
    assert!(project.join("r/299/.git/hooks/pre-commit").exists());
}
