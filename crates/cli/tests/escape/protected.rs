//! Protected places: what git, editors, agents and shells act on stays as it is inside writable grants.
//! What was there is read-only; what is new is gone when the command has ended.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use mcp_policy::protect::{LIST, Spot};
use serde_json::Value;

use crate::require;
use crate::support::{Finished, PLAIN, Run, Scratch, allowed, blocked, is_root, is_rootless};

/// What changing something protected answers.
const FIXED: &[&str] = &["EROFS", "EACCES", "EPERM"];
/// What removing, replacing or moving it, or a directory above it, answers.
const HELD: &[&str] = &["EBUSY", "EROFS", "EXDEV"];
/// What another name for it answers.
const OTHER_MOUNT: &[&str] = &["EXDEV"];

/// A project with a repository, a nested one, a worktree's and a submodule's directories, settings.
pub fn project() -> (Scratch, PathBuf) {
    let scratch = Scratch::new();
    let project = scratch.join("project");
    repository(&project.join(".git"));
    repository(&project.join("vendor/inner/.git"));
    repository(&project.join(".git/modules/part"));
    repository(&project.join("bare.git"));
    scratch.file("project/.git/worktrees/side/HEAD", "ref: refs/heads/side\n");
    scratch.file("project/.git/worktrees/side/commondir", "../..\n");
    for file in
        [".vscode/tasks.json", ".mcp.json", ".bashrc", ".gitmodules", "vendor/inner/.idea/x"]
    {
        scratch.file(format!("project/{file}"), "content");
    }
    scratch.file("project/src/main", "content");
    scratch.file("project/prepared/pre-commit", "content");
    (scratch, project)
}

fn repository(git: &Path) {
    for directory in ["hooks", "objects", "refs"] {
        fs::create_dir_all(git.join(directory)).unwrap();
    }
    fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    fs::write(git.join("config"), "[core]\n\tbare = false\n").unwrap();
    fs::write(git.join("hooks/pre-commit"), "#!/bin/sh\n").unwrap();
}

pub fn protecting(project: &Path) -> Run {
    Run::new().flag("--protect").write(project)
}

/// Asserts that an act is refused where protection is on, and works in a copy where it is off.
#[track_caller]
fn kept(words: &[&str], errnos: &[&str]) {
    kept_in(project, words, errnos);
}

#[track_caller]
fn kept_in(make: fn() -> (Scratch, PathBuf), words: &[&str], errnos: &[&str]) {
    let run = |run: Run, project: &Path| {
        let word = |word: &&str| match word.strip_prefix("./") {
            Some(below) => project.join(below).into_os_string(),
            None => word.into(),
        };
        run.probe(&words.iter().map(word).collect::<Vec<_>>())
    };
    let (_scratch, project) = make();
    blocked(run(protecting(&project), &project), errnos);
    allowed(run(Run::new().write(&project), &project));
}

#[test]
fn settings_and_hooks_cannot_be_changed() {
    require!("userns");
    for file in [
        "./.git/config",
        "./.git/hooks/pre-commit",
        "./.git/modules/part/config",
        "./.git/worktrees/side/commondir",
        "./vendor/inner/.git/config",
        "./vendor/inner/.git/hooks/pre-commit",
        "./vendor/inner/.idea/x",
        "./bare.git/config",
        "./.vscode/tasks.json",
        "./.mcp.json",
        "./.bashrc",
        "./.gitmodules",
    ] {
        kept(&["write", file], FIXED);
    }
    kept(&["create", "./.git/hooks/post-commit"], FIXED);
    kept(&["chmod", "./.git/hooks/pre-commit", "755"], FIXED);
    kept(&["truncate", "./.git/config"], FIXED);
    kept(&["unlink", "./.git/hooks/pre-commit"], FIXED);
}

#[test]
fn what_is_protected_stays_in_place() {
    require!("userns");
    kept(&["unlink", "./.git/config"], HELD);
    kept(&["rename", "./.git/config", "./old"], HELD);
    kept(&["rename", "./src/main", "./.git/config"], &["EBUSY", "EXDEV"]);
    kept(&["rename", "./.git", "./old"], HELD);
    kept(&["rename", "./.git/hooks", "./old"], HELD);
    kept(&["rename", "./.vscode", "./old"], HELD);
    kept(&["rename", "./vendor", "./old"], HELD);
    kept(&["rename", "./vendor/inner", "./old"], HELD);
    kept(&["rename", "./.git/modules", "./.git/old"], HELD);
    kept(&["hardlink", "./.git/config", "./other"], OTHER_MOUNT);
    kept(&["hardlink", "./.git/hooks/pre-commit", "./other"], OTHER_MOUNT);
}

#[test]
fn links_lead_to_what_is_protected() {
    require!("userns");
    fn by_symlink() -> (Scratch, PathBuf) {
        let (scratch, project) = project();
        fs::remove_dir_all(project.join(".git")).unwrap();
        repository(&project.join("real"));
        symlink("real", project.join(".git")).unwrap();
        fs::remove_dir_all(project.join(".vscode")).unwrap();
        scratch.file("project/shared/tasks.json", "content");
        symlink("shared", project.join(".vscode")).unwrap();
        (scratch, project)
    }
    kept_in(by_symlink, &["write", "./.git/config"], FIXED);
    kept_in(by_symlink, &["write", "./real/config"], FIXED);
    kept_in(by_symlink, &["unlink", "./.git"], HELD);
    kept_in(by_symlink, &["rename", "./real", "./old"], HELD);
    kept_in(by_symlink, &["write", "./shared/tasks.json"], FIXED);
    kept_in(by_symlink, &["unlink", "./.vscode"], HELD);

    fn by_file() -> (Scratch, PathBuf) {
        let (scratch, project) = project();
        // Without the look of a git directory: the file alone says that it is one.
        scratch.file("project/elsewhere/config", "content");
        scratch.file("project/module/.git", "gitdir: ../elsewhere\n");
        (scratch, project)
    }
    kept_in(by_file, &["write", "./module/.git"], FIXED);
    kept_in(by_file, &["rename", "./src/main", "./module/.git"], &["EBUSY", "EXDEV"]);
    kept_in(by_file, &["write", "./elsewhere/config"], FIXED);

    fn by_settings() -> (Scratch, PathBuf) {
        let (scratch, project) = project();
        let settings = "[core]\n\tHooksPath = \"ci/hooks\" # ours\n[include] path = ../more\n";
        scratch.file("project/.git/config", settings);
        scratch.file("project/ci/hooks/pre-push", "content");
        scratch.file("project/more", "content");
        (scratch, project)
    }
    kept_in(by_settings, &["write", "./ci/hooks/pre-push"], FIXED);
    kept_in(by_settings, &["write", "./more"], FIXED);
}

/// Runs a script in a project.
pub fn script(project: &Path, flags: &[&str], script: &str) -> Finished {
    let run = protecting(project).cwd(project);
    flags.iter().fold(run, |run, flag| run.arg(flag)).shell(script).run()
}

/// Every name of the list, below the top and in a subdirectory, as a path; of those that count there.
fn listed() -> Vec<String> {
    let mut paths = Vec::new();
    for (spot, names, _) in LIST {
        for name in names.iter().map(|name| name.replace('*', "x")) {
            match spot {
                Spot::Top => paths.push(name),
                Spot::Anywhere => paths.extend([format!("deep/sub/{name}"), name]),
                Spot::GitDirectory => paths.push(format!("made/.git/{name}")),
            }
        }
    }
    paths
}

/// A file, and a directory with one in it: what makes them, and where what is written goes.
const KINDS: [(&str, &str); 2] = [("file", ""), ("directory", "/inside")];

#[test]
fn every_name_of_the_list_is_kept_where_it_was() {
    require!("userns");
    for (kind, inside) in KINDS {
        // Where settings of git are a directory nothing is started.
        let is_unclear = |path: &&String| {
            kind == "directory" && (path.contains(".git/config") || path.contains("commondir"))
        };
        let listed: Vec<String> =
            listed().iter().filter(|path| !is_unclear(path)).cloned().collect();
        let written = |flags: &[&str]| -> Vec<String> {
            let scratch = Scratch::new();
            let project = scratch.dir("project");
            let paths: Vec<String> = listed.iter().map(|path| format!("{path}{inside}")).collect();
            let files = paths.iter().map(|path| scratch.file(format!("project/{path}"), ""));
            files.for_each(drop);
            // Nothing of it may be settings that git does not understand.
            let act =
                "while read -r file; do { echo '#' > \"$file\"; } 2>/dev/null; done < list; true";
            scratch.file("project/list", &format!("{}\n", paths.join("\n")));
            let run = Run::new().write(&project).cwd(&project);
            flags.iter().fold(run, |run, flag| run.arg(flag)).shell(act).run().code_is(0);
            let is_written = |path: &String| fs::read(project.join(path)).unwrap() == b"#\n";
            paths.into_iter().filter(is_written).collect()
        };
        assert_eq!(written(&["--protect"]), Vec::<String>::new(), "{kind}");
        assert_eq!(written(&[]).len(), listed.len(), "{kind}: the control");
    }
}

#[test]
fn every_name_of_the_list_is_gone_where_it_is_new() {
    require!("userns");
    for (kind, inside) in KINDS {
        let left = |flags: &[&str]| -> (Vec<String>, String) {
            let scratch = Scratch::new();
            let project = scratch.dir("project");
            let paths: Vec<String> =
                listed().iter().map(|path| format!("{path}{inside}")).collect();
            let act = "while read -r file; do mkdir -p \"${file%/*}\" 2>/dev/null; \
                       echo '[core]fsmonitor = x' > \"$file\"; done < list";
            scratch.file("project/list", &format!("./{}\n", paths.join("\n./")));
            let run = Run::new().write(&project).cwd(&project);
            let finished = flags.iter().fold(run, |run, flag| run.arg(flag)).shell(act).run();
            finished.code_is(0);
            let is_there = |path: &String| project.join(path).exists();
            (paths.into_iter().filter(is_there).collect(), finished.stderr.clone())
        };
        let (there, said) = left(&["--protect"]);
        assert_eq!(there, Vec::<String>::new(), "{kind}\n{said}");
        assert_eq!(left(&[]).0.len(), listed().len(), "{kind}: the control");
    }
}

/// Who edits such things all day reads how to.
#[test]
fn what_is_edited_on_purpose_is_told_with_its_flag() {
    require!("userns");
    let (_scratch, project) = self::project();
    let act = "mkdir -p .github/workflows && touch .github/workflows/x.yml";
    let said = script(&project, &[], act).code_is(0).stderr.clone();
    assert!(said.contains("after a push; if your work is to edit it, allow it"), "{said}");
    assert!(said.contains("keep it with --unprotect .github/workflows"), "{said}");
}

/// `nodejs path:./mine` has asdf start programs of that directory, and rustup has `path =` for it.
#[test]
fn versions_lead_to_no_programs_of_the_command() {
    require!("userns");
    let (_scratch, project) = self::project();
    let new = "echo 'nodejs path:./mine' > .tool-versions; mkdir deep; echo 'path = \"mine\"' > deep/rust-toolchain.toml";
    let said = script(&project, &[], new).code_is(0).stderr.clone();
    assert!(said.contains("keep it with --unprotect .tool-versions"), "{said}");
    let names = [".tool-versions", "deep/rust-toolchain.toml"];
    let there = |name: &&str| project.join(name).exists();
    assert_eq!(names.iter().filter(|name| there(name)).count(), 0, "{said}");
    let keep = ["--unprotect", names[0], "--unprotect", names[1]];
    script(&project, &keep, &new.replace("mkdir", "mkdir -p")).code_is(0);
    assert_eq!(names.iter().filter(|name| there(name)).count(), 2, "the control");
}

/// Packages bring settings of their own along, and people do not open them as projects.
#[test]
fn names_do_not_count_in_what_others_made() {
    require!("userns");
    let scratch = Scratch::new();
    let project = scratch.dir("project");
    let act = "for at in node_modules/x vendor/x target/x src; do mkdir -p $at/.vscode $at/.cargo; \
               touch $at/.vscode/x $at/.cargo/config.toml; done; mkdir node_modules/x/.git";
    script(&project, &[], act).code_is(0);
    for at in ["vendor/x", "target/x"] {
        assert!(project.join(at).join(".vscode/x").exists(), "{at}");
        assert!(project.join(at).join(".cargo/config.toml").exists(), "{at}");
    }
    assert!(
        !project.join("src/.vscode").exists() && !project.join("src/.cargo/config.toml").exists()
    );
    // A repository is a project wherever it is.
    assert!(!project.join("node_modules/x/.vscode").exists());
}

#[test]
fn another_name_stops_the_run() {
    require!("userns");
    let (scratch, project) = project();
    fs::hard_link(project.join(".git/hooks/pre-commit"), project.join("src/other")).unwrap();
    let finished = script(&project, &[], "echo evil > src/other");
    finished.code_is(125);
    assert!(finished.stderr.contains("src/other"), "{finished}");
    fs::remove_file(project.join("src/other")).unwrap();
    // One outside of what can be written does no harm.
    fs::hard_link(project.join(".git/hooks/pre-commit"), scratch.join("backup")).unwrap();
    script(&project, &[], "true").code_is(0);
}

#[test]
fn what_was_closed_before_stays_closed_and_whole() {
    require!("userns");
    if is_root() || is_rootless() {
        println!("SKIP: control: root lists what is closed to everybody");
        return;
    }
    let (_scratch, project) = project();
    fs::create_dir(project.join("shut")).unwrap();
    fs::write(project.join("shut/file"), "content").unwrap();
    fs::set_permissions(project.join("shut"), fs::Permissions::from_mode(0o111)).unwrap();
    let finished = script(&project, &[], "chmod 755 shut; echo x > shut/file; mv shut old");
    assert_ne!(finished.code, 0, "{finished}");
    assert_eq!(fs::metadata(project.join("shut")).unwrap().mode() & 0o777, 0o111, "{finished}");
    fs::set_permissions(project.join("shut"), fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(fs::read_to_string(project.join("shut/file")).unwrap(), "content");
}

#[test]
fn exceptions_are_for_what_is_protected() {
    require!("userns");
    let (scratch, project) = project();
    script(&project, &["--allow-write", ".git/config"], "echo x > .git/config").code_is(0);
    let hooks =
        script(&project, &["--allow-write", ".git/config"], "echo x > .git/hooks/pre-commit");
    assert_ne!(hooks.code, 0, "{hooks}");
    let inside = script(&project, &["--allow-write", ".git/hooks/pre-commit"], "true");
    inside.is_clear_error();
    assert!(inside.stderr.contains("allow that"), "{inside}");
    let outside = scratch.file("outside", "content");
    let outside = script(&project, &["--allow-write", outside.to_str().unwrap()], "true");
    outside.is_clear_error();
    // A link that an earlier run made would have something else excepted.
    std::os::unix::fs::symlink(".git", project.join("sub")).unwrap();
    let linked = script(&project, &["--allow-write", "sub/config"], "echo x > .git/config");
    linked.is_clear_error();
    assert!(linked.stderr.contains("sub is a symlink"), "{linked}");
}

#[test]
fn the_report_tells_what_was_undone() {
    require!("userns");
    let (scratch, project) = project();
    let file = scratch.join("report.json");
    let report = |flags: &[&str], script: &str| -> Value {
        let flags = [flags, &["--report", file.to_str().unwrap()]].concat();
        self::script(&project, &flags, script);
        serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap()
    };
    let told = report(&[], "touch .zshrc .git/config.lock");
    assert_eq!(told["controls"]["protect"]["status"], "enforced", "{told:#}");
    assert!(told["undone"][0]["path"].as_str().unwrap().ends_with("/.zshrc"), "{told:#}");
    assert!(told["kept"][0].as_str().unwrap().ends_with("/.git/config"), "{told:#}");
    let told = report(&["--no-protect"], "touch .zshrc");
    assert_eq!(told["controls"]["protect"]["status"], "not_requested", "{told:#}");
    assert!(project.join(".zshrc").exists());
}

/// Landlock cannot make a hole in a grant: said, and not started.
#[test]
fn without_namespaces_it_is_refused() {
    require!("plain");
    let (_scratch, project) = project();
    let run = |flags: &[&str]| {
        let run = protecting(&project).on(PLAIN);
        flags.iter().fold(run, |run, flag| run.arg(flag)).shell("true").run()
    };
    let refused = run(&[]);
    refused.code_is(125);
    assert!(refused.stderr.contains("protect cannot be enforced"), "{refused}");
    run(&["--no-protect"]).code_is(0);
}
