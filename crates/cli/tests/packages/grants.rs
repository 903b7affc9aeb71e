//! A manifest asks, a person grants.

use std::fs;

use crate::require;
use crate::support::Pty;
use crate::user::{User, text};

fn asking(user: &User) -> String {
    let notes = user.scratch.dir("home/notes");
    fs::write(notes.join("note"), "text").unwrap();
    "[filesystem]\nread = ['~/notes']\n".to_owned()
}

#[test]
fn what_a_package_asks_for_is_not_given_by_asking() {
    require!("userns");
    let user = User::new();
    let asks = asking(&user);
    user.stored("1.0.0", &asks);
    let note = user.path("home/notes/note");
    let read = ["--", "read", text(&note)];
    let run = |flags: &[&str]| user.mcp(&[&["run", "acme/test"], flags, &read].concat());
    // Nobody to ask: the flags are told, and nothing runs.
    let flag = format!("--read {}", text(&user.path("home/notes")));
    run(&[]).fails(125, &flag).fails(125, "--yes");
    run(&["--without-grants"]).says("\"ok\":false");
    // Given by flag: runs, and is not remembered.
    run(&["--read", text(&user.path("home/notes"))]).ok().says("\"ok\":true");
    run(&[]).fails(125, "asks for");
    // Given once and for all.
    run(&["--yes"]).ok().says("\"ok\":true");
    run(&[]).ok().says("\"ok\":true");
}

#[test]
fn the_users_config_grants_as_well() {
    require!("userns");
    let user = User::new();
    let asks = asking(&user);
    user.stored("1.0.0", &asks);
    user.scratch.file("config/mcp/config.toml", "[filesystem]\nread = ['~/notes']\n");
    let note = user.path("home/notes/note");
    user.mcp(&["run", "acme/test", "--", "read", text(&note)]).ok().says("\"ok\":true");
}

/// A yes is for one digest: a new version is another program, whatever it asks for.
#[test]
fn another_version_asks_again_and_what_is_more_is_marked() {
    require!("userns");
    let user = User::new();
    let asks = asking(&user);
    user.scratch.dir("home/more");
    let stored = |version: &str, asks: &str| user.stored_from("test.mcpb", version, asks);
    let run = |version: &str, flags: &[&str]| {
        let name = format!("acme/test@{version}");
        user.mcp(&[&["run", &name], flags, &["--", "getenv", "HOME"]].concat())
    };
    stored("1.0.0", &asks);
    run("1.0.0", &["--yes"]).ok();
    // The same wishes under another digest, from the same file.
    stored("1.0.1", &asks);
    let said = run("1.0.1", &[]).fails(125, "asks for what was granted to another version");
    assert!(said.err.contains("home/notes") && !said.err.contains("+ "), "{}", said.err);
    run("1.0.1", &["--yes"]).ok();
    stored("1.1.0", "[filesystem]\nread = ['~/notes', '~/more']\n");
    let said = run("1.1.0", &[]).fails(125, "asks for more than was granted to another version");
    let marked: Vec<&str> = said.err.lines().filter(|line| line.contains("+ ")).collect();
    assert!(marked.len() == 1 && marked[0].contains("home/more"), "{}", said.err);
    run("1.1.0", &["--yes"]).ok();
    // Each of them keeps its own.
    for version in ["1.0.0", "1.0.1", "1.1.0"] {
        run(version, &[]).ok();
    }
}

#[test]
fn settings_name_directories_and_secrets() {
    require!("userns");
    let user = User::new();
    let source = user.package("source", "1.0.0", "");
    fs::remove_file(source.join("mcp.toml")).unwrap();
    user.scratch.file(
        "source/manifest.json",
        r#"{"manifest_version": "0.3", "name": "t", "version": "1.0.0", "description": "", "author": {"name": "a"},
            "server": {"type": "binary", "entry_point": "bin/probe", "mcp_config": {"command": "${__dirname}/bin/probe",
                "args": ["read", "${user_config.dir}/note", "--then", "getenv", "KEY"], "env": {"KEY": "${user_config.key}"}}},
            "user_config": {"dir": {"type": "directory", "title": "Notes", "required": true},
                            "key": {"type": "string", "sensitive": true}}}"#,
    );
    let notes = user.scratch.dir("notes");
    fs::write(notes.join("note"), "text").unwrap();
    let reference = text(&source);
    user.mcp(&["run", reference]).fails(2, "--config dir=VALUE");
    user.mcp(&["run", reference, "--config", "dir=../notes", "--config", "key=hunter2"])
        .fails(2, "by reference");
    let mut command =
        user.command(&["run", reference, "--config", "dir=../notes", "--config", "key=env:MY_KEY"]);
    let said: crate::user::Said = command.env("MY_KEY", "hunter2").output().unwrap().into();
    let said = said.ok();
    assert_eq!(said.out.matches("\"ok\":true").count(), 2, "{}", said.out);
    // It got there by the environment, and is in no record of ours.
    assert!(said.out.contains("hunter2"), "{}", said.out);
    let log = fs::read_to_string(user.path("state/mcp/log.jsonl")).unwrap();
    assert!(!log.contains("hunter2"), "{log}");
}

/// One answer on a terminal, and what came of it.
fn answered(user: &User, words: &[&str], answer: &str, then: &str) -> (i32, String) {
    let pty = Pty::new();
    let mut command = user.command(words);
    command.stdin(pty.end()).stdout(pty.end()).stderr(pty.end());
    let mut child = command.spawn().unwrap();
    pty.expect("[y/N]");
    pty.type_in(answer);
    let code = child.wait().unwrap().code().unwrap_or(-1);
    pty.expect(then);
    (code, pty.whole_screen())
}

#[test]
fn on_a_terminal_it_is_asked_and_a_yes_is_remembered() {
    require!("userns");
    let user = User::new();
    let asks = asking(&user);
    user.stored("1.0.0", &asks);
    let note = user.path("home/notes/note");
    let words = ["run", "acme/test@1.0.0", "--", "read", text(&note)];
    // Nonsense is asked about again, and is no yes.
    for no in ["\n", "n\n", "nonsense\nn\n", "\u{4}"] {
        let (code, screen) = answered(&user, &words, no, "not started");
        assert_eq!(code, 125, "{no:?}: {screen}");
        assert!(screen.contains("home/notes") && screen.contains("not started"), "{screen}");
        assert!(!screen.contains("\"ok\":true"), "{screen}");
    }
    let (code, screen) = answered(&user, &words, "y\n", "\"ok\":true");
    assert!(code == 0 && screen.contains("\"ok\":true"), "{screen}");
    user.mcp(&words).ok().says("\"ok\":true");
    // A version that asks for more shows the difference.
    user.scratch.dir("home/more");
    user.stored_from("test-1.0.0.mcpb", "1.1.0", "[filesystem]\nread = ['~/notes', '~/more']\n");
    let words = ["run", "acme/test@1.1.0", "--", "read", text(&note)];
    let (code, screen) = answered(&user, &words, "y\n", "\"ok\":true");
    assert!(code == 0 && screen.contains("asks for more"), "{screen}");
    let marked: Vec<&str> = screen.lines().filter(|line| line.contains("+ ")).collect();
    assert!(marked.len() == 1 && marked[0].contains("home/more"), "{screen}");
}
