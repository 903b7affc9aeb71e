//! `mcp exec`: the guard in front, cmd.exe behind. PowerShell is not on every machine these tests run on, so its
//! command line is tested where it is made.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{Finished, Scratch, mcp, missing};

fn exec(project: &Path, flags: &[&str], text: &str) -> Finished {
    exec_as(&Scratch::new(), project, flags, text)
}

fn exec_as(home: &Scratch, project: &Path, flags: &[&str], text: &str) -> Finished {
    let mut command = Command::new(mcp());
    command.env_remove("HOME").env_remove("XDG_CONFIG_HOME");
    for name in ["USERPROFILE", "APPDATA", "LOCALAPPDATA"] {
        command.env(name, home.dir(name));
    }
    command.args(["exec", "--no-log", "--shell", "cmd"]);
    if missing("container").is_some() {
        command.args(["--fallback", "warn"]);
    }
    command.args(flags).arg("-C").arg(project).arg("--").arg(text);
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Finished {
        code: output.status.code().unwrap(),
        stdout: text(&output.stdout),
        stderr: text(&output.stderr),
    }
}

#[test]
fn a_text_runs_in_the_project_and_its_code_passes() {
    let scratch = Scratch::new();
    let project = scratch.dir("p");
    let finished = exec(&project, &[], r#"echo "a b" & echo made> made & exit 3"#);
    finished.code_is(3);
    assert!(finished.stdout.contains("\"a b\""), "{finished:#?}");
    assert!(project.join("made").exists(), "{finished:#?}");
}

#[test]
fn the_guard_refuses_before_anything_runs() {
    let scratch = Scratch::new();
    let project = scratch.dir("p");
    let finished = exec(&project, &[], r"rd /s /q C:\ & echo x> made");
    finished.code_is(126);
    assert!(finished.stderr.contains("delete-everything"), "{finished:#?}");
    assert!(!project.join("made").exists());
    exec(&project, &["--no-guard"], "exit 7").code_is(7);
}

#[test]
fn new_settings_are_removed_and_old_ones_stay() {
    let scratch = Scratch::new();
    scratch.file(r"p\.git\HEAD", "ref: refs/heads/main");
    scratch.file(r"p\.git\config", "[core]");
    let project = scratch.join("p");
    let text = r"mkdir .vscode & echo x> .vscode\tasks.json & echo x> .mcp.json & echo x> plain";
    let finished = exec(&project, &[], text);
    for gone in [".vscode", ".mcp.json"] {
        assert!(!project.join(gone).exists(), "{gone}: {finished:#?}");
        assert!(finished.stderr.contains(gone), "{gone}: {finished:#?}");
    }
    assert!(project.join("plain").exists() && project.join(r".git\config").exists());
    exec(&project, &["--allow-write", ".mcp.json"], "echo x> .mcp.json");
    assert!(project.join(".mcp.json").exists(), "the control: allowed, it stays");
}

#[test]
fn a_name_to_commit_with_comes_along_and_nothing_else() {
    let scratch = Scratch::new();
    let (home, project) = (Scratch::new(), scratch.dir("p"));
    let text = "[user]\n\tname = Ada Example\n\temail = ada@example.org\n[alias]\n\tx = !id\n";
    home.file(r"USERPROFILE\.gitconfig", text);
    let show = r#"type "%USERPROFILE%\.gitconfig""#;
    let finished = exec_as(&home, &project, &[], show);
    finished.code_is(0);
    let told = "[user]\n\temail = \"ada@example.org\"\n\tname = \"Ada Example\"\n";
    assert_eq!(finished.stdout.replace('\r', ""), told, "{finished:#?}");
    // It is the command's to change, and gone with it.
    let change = r#"(echo [alias])>> "%HOME%\.gitconfig" & type "%HOME%\.gitconfig""#;
    let finished = exec_as(&home, &project, &["--yes"], change);
    assert!(finished.stdout.contains("[alias]"), "{finished:#?}");
    assert_eq!(std::fs::read_to_string(home.join(r"USERPROFILE\.gitconfig")).unwrap(), text);
    // Who has no name has no file, and a home that is kept is left as it is.
    let finished = exec(&project, &[], show);
    assert_ne!(finished.code, 0, "{finished:#?}");
    let finished = exec_as(&home, &project, &["--home", "kept"], show);
    assert_ne!(finished.code, 0, "{finished:#?}");
}

#[test]
fn a_home_is_no_project() {
    let finished = exec(Path::new(r"C:\"), &[], "exit 0");
    finished.code_is(125);
    assert!(finished.stderr.contains("whole home"), "{finished:#?}");
}

#[test]
fn lines_that_cmd_would_drop_are_refused() {
    let scratch = Scratch::new();
    let finished = exec(&scratch.dir("p"), &["--no-guard"], "echo a\necho b");
    finished.code_is(126);
    assert!(finished.stderr.contains("line break"), "{finished:#?}");
}
