//! Deny rules: what they match inside a grant stays closed, whatever is tried from inside.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::require;
use crate::support::{ABSENT, Run, Scratch, allowed, blocked, euid, has_program};

/// What opening something masked answers, and making something in it.
pub const CLOSED: &[&str] = &["EACCES"];
/// What changing a mask itself answers.
pub const FIXED: &[&str] = &["EROFS", "EACCES"];
/// What removing or renaming a mask, or a directory above it, answers.
pub const HELD: &[&str] = &["EBUSY"];

pub fn act(run: Run, words: &[&dyn AsRef<OsStr>]) -> Run {
    let words: Vec<OsString> = words.iter().map(|word| word.as_ref().to_owned()).collect();
    run.probe(&words)
}

/// A project with secrets in it.
pub fn project() -> (Scratch, PathBuf) {
    let scratch = Scratch::new();
    scratch.file("project/.env", "canary");
    scratch.file("project/src/app/.env", "canary");
    scratch.file("project/src/app/main", "content");
    scratch.file("project/.git/hooks/pre-commit", "canary");
    scratch.file("project/.git/config", "content");
    let project = scratch.join("project");
    (scratch, project)
}

/// Asserts that an act is refused with `rules`, by read and by write grant, and that it works
/// in a copy of the project without them.
#[track_caller]
pub fn denied(rules: &[&str], words: &[&str], errnos: &[&str]) {
    let in_project = |project: &Path, word: &&str| match word.strip_prefix("./") {
        Some(below) => project.join(below).into_os_string(),
        None => OsString::from(word),
    };
    let run = |project: &Path, run: Run, rules: &[&str]| {
        let words: Vec<_> = words.iter().map(|word| in_project(project, word)).collect();
        rules.iter().fold(run, |run, rule| run.deny(in_project(project, rule))).probe(&words)
    };
    let (_scratch, project) = self::project();
    blocked(run(&project, Run::new().write(&project), rules), errnos);
    allowed(run(&project, Run::new().write(&project), &[]));
}

#[test]
fn literal_file() {
    require!("userns");
    denied(&["./.env"], &["read", "./.env"], CLOSED);
    denied(&["./.env"], &["write", "./.env"], FIXED);
    denied(&["./src/app/.env"], &["read", "./src/app/.env"], CLOSED);
}

#[test]
fn literal_directory() {
    require!("userns");
    denied(&["./.git/hooks"], &["list", "./.git/hooks"], CLOSED);
    denied(&["./.git/hooks"], &["read", "./.git/hooks/pre-commit"], CLOSED);
    denied(&["./.git/hooks"], &["stat", "./.git/hooks/pre-commit"], CLOSED);
    denied(&["./.git/hooks"], &["create", "./.git/hooks/post-commit"], FIXED);
    denied(&["./src"], &["read", "./src/app/main"], CLOSED);
}

#[test]
fn globs() {
    require!("userns");
    for rule in ["**/.env", "**/*env", "./**/.env", "**/app/.e??", "./src/*/.env", "**/.{env,x}"] {
        denied(&[rule], &["read", "./src/app/.env"], CLOSED);
    }
    denied(&["**/.git/hooks"], &["list", "./.git/hooks"], CLOSED);
    denied(&["**/.git/**"], &["read", "./.git/config"], CLOSED);
    denied(&["./src/[a-c]*"], &["list", "./src/app"], CLOSED);
}

#[test]
fn glob_relative_to_where_one_stands() {
    require!("userns");
    let scratch = Scratch::new();
    let key = scratch.file("[dir]/x.pem", "canary");
    let neighbour = scratch.file("[dir]/x.txt", "content");
    let run = || Run::new().cwd(scratch.join("[dir]")).read(".").deny("*.pem");
    blocked(act(run(), &[&"read", &key]), CLOSED);
    allowed(act(run(), &[&"read", &neighbour]));
}

#[test]
fn in_a_read_grant() {
    require!("userns");
    let (_scratch, project) = project();
    for (rule, path) in [
        ("**/.env", ".env"),
        ("**/.env", "src/app/.env"),
        ("**/.git/hooks", ".git/hooks/pre-commit"),
    ] {
        let read = |run: Run| act(run, &[&"read", &project.join(path)]);
        blocked(read(Run::new().read(&project).deny(rule)), CLOSED);
        allowed(read(Run::new().read(&project)));
    }
    let run = Run::new().read(&project).deny("**/.env");
    allowed(act(run, &[&"read", &project.join("src/app/main")]));
}

#[test]
fn whole_grant() {
    require!("userns");
    let (scratch, project) = project();
    let file = project.join("src/app/main");
    for rule in [scratch.path().to_owned(), scratch.join("pro*"), "**/project".into()] {
        for run in [Run::new().read(&project), Run::new().write(&project)] {
            blocked(act(run.deny(&rule), &[&"read", &file]), ABSENT);
        }
    }
    let run = Run::new().read(&project).deny(scratch.path()).flag("--explain").shell("true").run();
    let told = format!("grants withdrawn: {}", project.display());
    assert!(run.code_is(0).text().contains(&told), "{run}");
    // A narrower grant does not bring it back.
    let both = Run::new().read(scratch.path()).write(&project).deny(&*project.join("src"));
    blocked(act(both.read(project.join("src/app")), &[&"read", &file]), CLOSED);
    allowed(act(Run::new().read(&project), &[&"read", &file]));
}

#[test]
fn file_grant() {
    require!("userns");
    let (_scratch, project) = project();
    let file = project.join(".env");
    allowed(act(Run::new().read(&file), &[&"read", &file]));
    for run in [Run::new().read(&file), Run::new().write(&file)] {
        blocked(act(run.deny("**/.env"), &[&"read", &file]), ABSENT);
    }
}

#[test]
fn odd_names() {
    require!("userns");
    let odd = [
        &b"with space"[..],
        b"new\nline",
        b"\xff\xfe",
        b"*",
        b"[x]",
        b"?",
        b"{a,b}",
        b"**",
        b"-dash",
        b"back\\slash",
        "üñí".as_bytes(),
    ];
    for name in odd {
        let scratch = Scratch::new();
        let name = OsString::from_vec(name.to_vec());
        let file = scratch.file(Path::new("dir").join(&name), "canary");
        let below = scratch.file(Path::new("grant").join(&name).join("below"), "canary");
        let run = || Run::new().write(scratch.join("grant")).write(scratch.join("dir"));
        for (rule, path) in [(&file, &file), (&scratch.join("grant").join(&name), &below)] {
            allowed(act(run(), &[&"read", path]));
            blocked(act(run().deny(rule), &[&"read", path]), CLOSED);
        }
    }
}

#[test]
fn characters_of_globs_match_no_more_than_they_say() {
    require!("userns");
    let scratch = Scratch::new();
    let (x, y) = (scratch.file("dir/x", "content"), scratch.file("dir/y", "content"));
    let run = || Run::new().read(scratch.join("dir")).deny(scratch.join("dir/[x]"));
    blocked(act(run(), &[&"read", &x]), CLOSED);
    allowed(act(run(), &[&"read", &y]));
}

#[test]
fn rule_that_matches_nothing() {
    require!("userns");
    let (_scratch, project) = project();
    for rule in [project.join("missing"), "/nowhere/at/all".into(), "**/no-such-name".into()] {
        let run = || Run::new().write(&project).deny(&rule);
        allowed(act(run(), &[&"read", &project.join(".env")]));
        assert_eq!(report(run())["status"], "enforced");
    }
}

#[test]
fn nothing_is_made_on_the_host() {
    require!("userns");
    let (scratch, project) = project();
    let before = scratch.tree();
    let modes = |tree: &[PathBuf]| -> Vec<u32> {
        tree.iter().map(|path| fs::symlink_metadata(path).unwrap().mode()).collect()
    };
    let modes_before = modes(&before);
    let run = Run::new().write(&project).deny("**/.env").deny("**/hooks").deny(project.join("no"));
    run.shell("true").run().code_is(0);
    assert_eq!(scratch.tree(), before);
    assert_eq!(modes(&before), modes_before);
    assert_eq!(fs::read_to_string(project.join(".env")).unwrap(), "canary");
}

#[test]
fn the_rest_of_the_grant_works() {
    require!("userns");
    let (_scratch, project) = project();
    let run = || Run::new().write(&project).deny("**/.env").deny("**/.git/hooks");
    let new = project.join("src/app/new");
    allowed(act(run(), &[&"create", &new]));
    let owner = fs::metadata(&new).unwrap();
    assert_eq!(owner.uid(), euid());
    allowed(act(run(), &[&"rename", &new, &project.join("src/app/renamed")]));
    allowed(act(run(), &[&"write", &project.join(".git/config")]));
    allowed(act(run(), &[&"hardlink", &project.join("src/app/main"), &project.join("src/app/m")]));
    allowed(act(run(), &[&"unlink", &project.join("src/app/renamed")]));
    allowed(act(run(), &[&"mkdir", &project.join("src/app/dir")]));
    allowed(act(run(), &[&"rename", &project.join("src/app/dir"), &project.join("src/app/d2")]));
    allowed(act(run(), &[&"rmdir", &project.join("src/app/d2")]));
    // The price of holding directories: between them a rename is one between file systems,
    // which mv knows how to do.
    blocked(
        act(run(), &[&"rename", &project.join("src/app/main"), &project.join("main")]),
        &["EXDEV"],
    );
    run().cwd(&project).shell("mv src/app/main main").run().code_is(0);
    assert_eq!(fs::read_to_string(project.join("main")).unwrap(), "content");
}

#[test]
fn git_commits_without_its_hooks() {
    require!("userns");
    let scratch = Scratch::new();
    let project = scratch.dir("project");
    let git = |run: Run, script: &str| run.cwd(&project).shell(script).run();
    if !has_program("git") {
        return;
    }
    let settle = "git init -q . && git config user.name x && git config user.email x@x";
    git(Run::bare(), settle).code_is(0);
    let hook = scratch.script("project/.git/hooks/pre-commit", "#!/bin/sh\nexit 1\n");
    let commit = "echo x >> file && git add file && git commit -q -m x && git log --oneline";
    let run = || Run::new().write(&project);
    assert_ne!(git(run(), commit).code, 0, "the hook refuses");
    git(run().deny("**/.git/hooks"), commit).code_is(0);
    let replace = "echo '#!/bin/sh' > .git/hooks/pre-commit";
    assert_ne!(git(run().deny("**/.git/hooks"), replace).code, 0);
    assert!(fs::read_to_string(&hook).unwrap().contains("exit 1"));
    git(run(), replace).code_is(0);
}

#[test]
fn overlapping_rules() {
    require!("userns");
    let (_scratch, project) = project();
    let run = || {
        let run = Run::new().write(&project).read(project.join("src/app/main"));
        run.deny("**/.env").deny(project.join("src")).deny("**/app").deny(project.join("src/app"))
    };
    blocked(act(run(), &[&"read", &project.join("src/app/main")]), CLOSED);
    blocked(act(run(), &[&"read", &project.join(".env")]), CLOSED);
    allowed(act(run(), &[&"read", &project.join(".git/config")]));
}

#[test]
fn too_many_matches() {
    require!("userns");
    let scratch = Scratch::new();
    for number in 0..4100 {
        scratch.file(format!("dir/{number}.key"), "");
    }
    let run = || act(Run::new().write(scratch.join("dir")), &[&"list", &scratch.join("dir")]);
    let refused = run().deny("**/*.key").run();
    assert!(refused.is_clear_error().stderr.contains("more than 4096 paths"), "{refused}");
    refused.code_is(125);
    for number in 4090..4100 {
        fs::remove_file(scratch.join(format!("dir/{number}.key"))).unwrap();
    }
    let run = run().deny("**/*.key");
    blocked(act(run, &[&"read", &scratch.join("dir/4089.key")]), CLOSED);
}

/// The report's word on deny rules after a run.
pub fn report(run: Run) -> Value {
    let scratch = Scratch::new();
    let path = scratch.join("report.json");
    run.flag("--report").arg(&path).shell("true").run().code_is(0);
    let report: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    report["controls"]["deny"].clone()
}

#[test]
fn report_counts_and_names_what_is_not_covered() {
    require!("userns");
    let (_scratch, project) = project();
    let deny = report(Run::new().write(&project).deny("**/.env").deny("**/.git/hooks"));
    assert_eq!(deny["status"], "enforced");
    assert_eq!(deny["seen"], serde_json::json!(["3 held in place", "3 masked"]));
    let by = deny["by"].as_str().unwrap();
    for gap in ["come", "later", "host replaces", "hard links"] {
        assert!(by.contains(gap), "{gap}: {by}");
    }
    assert_eq!(report(Run::new().write(&project))["status"], "not_requested");
}

#[test]
fn what_is_not_covered_is_said_truly() {
    require!("userns");
    let (_scratch, project) = project();
    let run = || Run::new().write(&project).deny("**/.env");
    // These are the words of the report; when one of them no longer works, they must change.
    let new = project.join("src/.env");
    allowed(act(act(run(), &[&"create", &new]), &[&"read", &new]));
    let other = project.join("other-name");
    fs::hard_link(project.join(".env"), &other).unwrap();
    assert_eq!(allowed(act(run(), &[&"read", &other])).detail, "canary");
}
