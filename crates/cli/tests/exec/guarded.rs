//! What the guard says, and what comes of it.

use std::fs;

use serde_json::Value;

use crate::require;
use crate::support::{PLAIN, Pty, Run, Scratch};

fn project() -> Scratch {
    let scratch = Scratch::new();
    scratch.file("file", "content");
    scratch
}

#[test]
fn refused_commands_do_not_run() {
    require!("userns");
    let project = project();
    let finished = Run::exec(project.path()).command(&["touch made; rm -rf ~"]).run();
    finished.code_is(126);
    for part in ["delete-everything", "rm -rf ~", "--no-guard"] {
        assert!(finished.stderr.contains(part), "{part}\n{finished}");
    }
    assert!(!project.join("made").exists());
    // The sandbox alone: its HOME is its own.
    let finished =
        Run::exec(project.path()).flag("--no-guard").command(&["touch made; rm -rf ~"]).run();
    assert!(project.join("made").exists() && project.join("file").exists(), "{finished}");
}

#[test]
fn questions_need_a_person() {
    require!("userns");
    let project = project();
    let command = "git push --force; touch made";
    let finished = Run::exec(project.path()).command(&[command]).run();
    finished.code_is(126);
    assert!(finished.stderr.contains("--yes"), "{finished}");
    assert!(!project.join("made").exists());
    Run::exec(project.path()).flag("--yes").command(&[command]).run().code_is(0);
    assert!(project.join("made").exists());
    // A yes does not reach what is refused.
    Run::exec(project.path()).flag("--yes").command(&["rm -rf /"]).run().code_is(126);
}

#[test]
fn a_person_is_asked_at_a_terminal() {
    require!("userns");
    for (answer, is_made) in [("n\n", false), ("y\n", true)] {
        let project = project();
        let pty = Pty::new();
        let run = Run::exec(project.path()).command(&["git push --force; touch made"]);
        let live = pty.on(run).spawn();
        pty.expect("git push --force; touch made");
        pty.expect("[y/N]");
        pty.type_in(answer);
        live.wait();
        assert_eq!(project.join("made").exists(), is_made, "{answer:?}");
    }
}

#[test]
fn network_tools_are_told_why() {
    require!("userns");
    let project = project();
    let finished = Run::exec(project.path()).command(&["curl https://example.com/x"]).run();
    finished.code_is(126);
    assert!(finished.stderr.contains("--allow-net example.com lets it"), "{finished}");
    let finished = Run::exec(project.path())
        .allow_net("example.invalid:443")
        .command(&["curl -sS https://example.org || echo failed"])
        .run();
    // The guard lets it pass, and the kernel's wall stands.
    finished.code_is(0);
    assert!(finished.text().contains("failed"), "{finished}");
}

#[test]
fn what_cannot_be_read_runs_only_behind_walls() {
    require!("userns", "plain");
    let project = project();
    let run =
        || Run::exec(project.path()).command(&["$COMMAND; touch made"]).env("COMMAND", "true");
    run().run().code_is(0);
    assert!(project.join("made").exists());
    fs::remove_file(project.join("made")).unwrap();
    let finished = run().on(PLAIN).flag("--fallback=warn").run();
    finished.code_is(126);
    assert!(!project.join("made").exists(), "{finished}");
}

#[test]
fn rules_of_ones_own_count() {
    require!("userns");
    let project = project();
    let rules = project.file("rules.toml", "allow = [\"interpreter\"]\n");
    let command = "python3 -c 'print(6 * 7)'";
    let strict = || Run::exec(project.path()).flag("--guard=strict").command(&[command]);
    let refused = strict().run();
    refused.code_is(126);
    assert!(refused.stderr.contains("--guard usual"), "{refused}");
    let finished = strict().flag("--rules").arg(&rules).run();
    assert_ne!(finished.code, 126, "{finished}");
}

/// Agents write programs as text all day; the sandbox holds them, and the report says that they were there.
#[test]
fn a_program_given_as_text_is_left_to_whole_walls_and_noted() {
    require!("userns", "plain");
    let project = project();
    let elsewhere = Scratch::new();
    let file = elsewhere.join("report.json");
    let run = || {
        Run::exec(project.path())
            .flag("--report")
            .arg(&file)
            .command(&["python3 - <<'E'\nopen('made', 'w').write('x')\nE"])
    };
    run().run().code_is(0);
    assert!(project.join("made").exists());
    let told: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(told["guard"]["decision"], "allow", "{told:#}");
    assert_eq!(told["guard"]["noted"][0], "interpreter-reads", "{told:#}");
    fs::remove_file(project.join("made")).unwrap();
    let finished = run().on(PLAIN).flag("--fallback=warn").run();
    finished.code_is(126);
    assert!(!project.join("made").exists(), "{finished}");
    let config = elsewhere.file("config.toml", "[tools.sandbox]\nguard = \"strict\"\n");
    run().flag("--policy").arg(&config).run().code_is(126);
    assert!(!project.join("made").exists());
}

/// Each kind that whole boundaries hold: it runs with a note; strict, or without them, it is refused, and told which
/// setting that comes from.
#[test]
fn what_the_walls_hold_is_noted_and_refused_where_strict() {
    require!("userns", "plain");
    let project = project();
    let elsewhere = Scratch::new();
    let file = elsewhere.join("report.json");
    for (command, rule) in [
        ("python3 -c 'print(1)'", "interpreter-text"),
        ("perl -pi -e 's/a/a/' file", "interpreter-text-e"),
        ("python3 <<'E'\nprint(1)\nE", "interpreter-reads"),
        ("bash -c 'echo 1'", "shell-pivot"),
        ("nohup true", "detach"),
        ("setsid true", "detach"),
        ("curl -s -m 5 localhost:1 || true", "network-tool-loopback"),
    ] {
        let run = || Run::exec(project.path()).command(&[&format!("touch made; {command}")]);
        run().flag("--report").arg(&file).run().code_is(0);
        assert!(project.join("made").exists(), "{command}");
        let told: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        assert_eq!(told["guard"]["decision"], "allow", "{command} {told:#}");
        assert_eq!(told["guard"]["noted"][0], rule, "{command} {told:#}");
        fs::remove_file(project.join("made")).unwrap();
        let strict = run().flag("--guard=strict").run();
        strict.code_is(126);
        for part in [rule, "guard = \"strict\"", "--guard usual"] {
            assert!(strict.stderr.contains(part), "{command}: {part}\n{strict}");
        }
        run().on(PLAIN).flag("--fallback=warn").run().code_is(126);
        assert!(!project.join("made").exists(), "{command}");
    }
    // What is catastrophic is refused whatever the setting, and no setting is offered that would let it pass.
    let finished = Run::exec(project.path()).command(&["bash -c 'touch made; rm -rf ~'"]).run();
    finished.code_is(126);
    assert!(!finished.stderr.contains("--guard usual"), "{finished}");
    assert!(!project.join("made").exists());
}

#[test]
fn the_report_says_which_layer_spoke() {
    require!("userns");
    let project = project();
    let elsewhere = Scratch::new();
    let file = elsewhere.join("report.json");
    let report = |command: &str| -> Value {
        Run::exec(project.path()).flag("--report").arg(&file).command(&[command]).run();
        serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap()
    };
    let told = report("rm -rf /");
    assert_eq!(told["guard"]["decision"], "refuse", "{told:#}");
    assert_eq!(told["guard"]["rules"][0], "delete-everything");
    assert_eq!(told["exit_code"], 126);
    assert!(told["ending"]["not_started"].is_string(), "{told:#}");
    let told = report("touch .zshrc; ls");
    assert_eq!(told["guard"]["decision"], "allow", "{told:#}");
    assert_eq!(told["controls"]["filesystem"]["status"], "enforced", "{told:#}");
    assert!(told["undone"][0]["path"].as_str().unwrap().ends_with(".zshrc"), "{told:#}");
}

#[test]
fn words_are_words_and_a_text_is_a_text() {
    require!("userns");
    let project = project();
    let finished = Run::exec(project.path()).command(&["echo", "a  b", "$HOME", "it's"]).run();
    assert_eq!(finished.text(), "a  b $HOME it's\n", "{finished}");
    let finished = Run::exec(project.path()).command(&["echo $HOME"]).run();
    assert_eq!(finished.text(), "/home/mcp\n", "{finished}");
    let finished = Run::exec(project.path()).flag("--shell=sh").command(&["echo $0"]).run();
    assert_eq!(finished.text(), "sh\n", "{finished}");
    // A text that begins with a dash is a command that is not there, and no option of the shell's.
    for flag in ["--shell=bash", "--shell=sh"] {
        let finished = Run::exec(project.path()).flag(flag).command(&["--version"]).run();
        finished.code_is(127);
    }
}
