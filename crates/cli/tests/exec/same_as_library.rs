//! `prepare_run_command` and `mcp exec` are one thing: the same command in the same project gets the same verdict, the
//! same boundaries, the same protection and the same words from both.

use std::path::Path;

use mcp_sandbox::agent::{self, Shell};
use mcp_sandbox::{Error, Sandbox};
use serde_json::{Value, json};

use crate::require;
use crate::support::{Ground, Run, Scratch, mcp_path};

/// Runs, is refused, leaves protected files behind, fails, cannot be read, is noted, is not found.
const COMMANDS: [&str; 9] = [
    "echo hi > made; cat made",
    "rm -rf ~",
    "git push --force",
    "curl https://example.org",
    "mkdir .vscode && touch .vscode/tasks.json; exit 3",
    "echo x > .git/hooks/pre-commit",
    "python3 -c 'print(40 + 2)'",
    "eval \"$(cat made)\"",
    "no-such-program-at-all",
];

fn project() -> Scratch {
    let scratch = Scratch::new();
    scratch.dir("project/.git/hooks");
    scratch.file("project/.git/config", "[core]\n");
    scratch
}

/// What the library makes of it. This program has threads, so `mcp` is the launcher.
fn prepared(command: &str, project: &Path) -> Result<Sandbox, Value> {
    let policy = agent::project_policy(project).unwrap();
    match agent::prepare_run_command(command, Shell::Bash, policy).sandbox() {
        Ok(mut sandbox) => {
            sandbox.helper(mcp_path()).current_dir(project);
            Ok(sandbox)
        }
        Err(verdict) => {
            let reason = verdict.reason().unwrap();
            let said = [&reason.rule, &reason.human, &reason.model];
            Err(json!({ "guard": agent::judged(&verdict), "said": said }))
        }
    }
}

/// Without what no two runs share, and with the project under one name.
fn comparable(report: impl serde::Serialize, project: &Path) -> Value {
    let text = serde_json::to_string(&report).unwrap();
    let mut report: Value =
        serde_json::from_str(&text.replace(project.to_str().unwrap(), "PROJECT")).unwrap();
    report.as_object_mut().unwrap().remove("usage");
    without_run_ids(&mut report);
    report
}

/// A cgroup is named after its run, and a watch looks when it looks.
fn without_run_ids(value: &mut Value) {
    match value {
        Value::String(text) if text.starts_with("peak seen ") => {
            *text = "ended before the first look".to_owned();
        }
        Value::String(text) => {
            let is_id =
                |word: &str| word.len() == 8 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
            let words = text.split_inclusive(|c: char| !c.is_ascii_alphanumeric());
            *text = words
                .map(|word| {
                    let bare = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
                    if is_id(bare) { word.replace(bare, "RUN") } else { word.to_owned() }
                })
                .collect();
        }
        Value::Array(values) => values.iter_mut().for_each(without_run_ids),
        Value::Object(values) => values.values_mut().for_each(without_run_ids),
        _ => {}
    }
}

#[test]
fn every_kind_of_command_comes_to_the_same() {
    require!("userns");
    for command in COMMANDS {
        let (own, theirs) = (project(), project());
        let (own, theirs) = (own.join("project"), theirs.join("project"));
        let file = own.parent().unwrap().join("report");
        let finished = Run::exec(&own)
            .on(Ground::AsItIs)
            .flag("--report")
            .arg(&file)
            .command(&[command])
            .run();
        let report: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        match prepared(command, &theirs) {
            Ok(mut sandbox) => {
                let output = sandbox.output().unwrap();
                let (ours, others) = (
                    comparable(&report, &own),
                    comparable(output.outcome.report.as_ref().unwrap(), &theirs),
                );
                assert_eq!(ours, others, "{command}");
                assert_eq!(finished.stdout, output.stdout, "{command}");
                assert_eq!(Some(finished.code), output.outcome.code(), "{command}");
                assert_eq!(own.join("made").exists(), theirs.join("made").exists(), "{command}");
                assert_eq!(own.join(".vscode").exists(), theirs.join(".vscode").exists());
            }
            Err(verdict) => {
                finished.code_is(126);
                assert_eq!(report["guard"], verdict["guard"], "{command}");
                for said in verdict["said"].as_array().unwrap() {
                    let said = said.as_str().unwrap();
                    assert!(finished.stderr.contains(said), "{command}: {said}\n{finished}");
                }
            }
        }
    }
}

/// What this machine cannot enforce is refused by both with the same sentences, or by neither.
#[test]
fn gaps_are_the_same_gaps() {
    require!("userns");
    let scratch = project();
    let project = scratch.join("project");
    let finished = Run::exec(&project).on(Ground::AsItIs).flag("--strict").command(&["true"]).run();
    let outcome = prepared("true", &project).unwrap().strict().status();
    assert_eq!(finished.code == 0, outcome.is_ok(), "{finished}");
    if let Err(error) = outcome {
        finished.code_is(i32::from(error.exit_code()));
        let Error::NotEnforced { gaps } = error else { panic!("{error:?}") };
        assert!(!gaps.is_empty());
        for gap in gaps {
            assert!(finished.stderr.contains(&gap.sentence), "{gap}\n{finished}");
        }
    }
}
