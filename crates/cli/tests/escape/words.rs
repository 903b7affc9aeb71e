//! Words from outside do not steer the terminal: names of files, hosts and packages, and what quotes them, in every message.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::support::{Finished, Run, Scratch};

/// Each does something to a terminal, or to the eyes.
const NASTY: [&str; 9] = [
    "clear\x1b[2J\x1b[H",
    "title\x1b]0;owned\x07",
    "colour\x1b[31mred",
    "c1\u{9b}2J",
    "return\rmcp: all is well",
    "line\nmcp: all is well",
    "reversed\u{202e}gpj.exe",
    "isolated\u{2066}x\u{2069}",
    "unseen\u{200b}\u{feff}\u{e0041}\x7f",
];

fn is_unseen(c: char) -> bool {
    let hidden = matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e0fff}');
    c.is_control() && c != '\n' || hidden
}

/// Nothing of it is raw, no line of ours was made by it, and it can still be recognised.
#[track_caller]
fn is_written_out(what: &str, nasty: &str, finished: &Finished) {
    let said = format!("{}{}", finished.text(), finished.stderr);
    assert!(!said.chars().any(is_unseen), "{what}: {said:?}");
    assert!(!said.lines().any(|line| line == "mcp: all is well"), "{what}: {said:?}");
    let start: String = nasty.chars().take_while(char::is_ascii_alphanumeric).collect();
    assert!(said.contains(&start), "{what}: it is not told at all: {said:?}");
    // Written out, or, where it is wrong itself, replaced or left out.
    let marks = ["\\u{", "\\n", "\\r", "\u{fffd}", "error: "];
    assert!(marks.iter().any(|mark| said.contains(mark)), "{what}: {said:?}");
    assert_ne!(finished.code, 0, "{what}: {said:?}");
}

#[test]
fn words_of_others_are_written_out_in_every_message() {
    let scratch = Scratch::new();
    let directory = scratch.open_dir("d");
    for nasty in NASTY {
        let missing = directory.join(nasty);
        let path = missing.to_str().unwrap().to_owned();
        let text = directory.join(format!("text-{nasty}"));
        fs::write(&text, format!("nonsense {nasty} [\n")).unwrap();
        let mode = directory.join(format!("mode-{nasty}"));
        fs::write(&mode, "#!/bin/sh\n").unwrap();
        let bad = directory.join(format!("bad-{nasty}"));
        fs::write(&bad, format!("#!{path}\n")).unwrap();
        fs::set_permissions(&bad, fs::Permissions::from_mode(0o755)).unwrap();
        let flag = |flag: &str, word: &str| Run::new().flag(flag).arg(word).command(&["true"]);
        let (text, mode, bad) =
            (text.to_str().unwrap(), mode.to_str().unwrap(), bad.to_str().unwrap());
        let runs = [
            ("not found", Run::new().command(&[path.as_str()])),
            ("not on PATH", Run::new().command(&[nasty])),
            ("not executable", Run::new().command(&[mode])),
            ("interpreter", Run::new().command(&[bad])),
            ("read", flag("--read", &path)),
            ("write", flag("--write", &path)),
            ("allow-unix", flag("--allow-unix", &path)),
            ("allow-write", flag("--allow-write", &path)),
            ("cwd", flag("--cwd", &path)),
            ("policy", flag("--policy", &path)),
            ("policy text", flag("--policy", text)),
            ("env-file", flag("--env-file", &path)),
            ("env-file text", flag("--env-file", text)),
            ("report", flag("--report", &format!("{path}/report"))),
            ("secret file", flag("--secret", &format!("S=file:{path}"))),
            ("host", flag("--allow-net", nasty)),
            ("size", flag("--max-memory", nasty)),
            ("time", flag("--timeout", nasty)),
            ("port", flag("--listen", nasty)),
            ("flag", flag(&format!("--{nasty}"), "x")),
            ("variable", flag("--env", &format!("{nasty}=x"))),
            ("package", Run::new().arg(format!("npm:{nasty}@1")).command(&["x"])),
            ("package path", Run::new().arg(format!("./{nasty}")).command(&["x"])),
            ("guard", Run::exec(&directory).command(&[format!("rm -rf ~ # {nasty}")])),
            ("rules", Run::exec(&directory).flag("--rules").arg(&path).command(&["true"])),
            ("rules text", Run::exec(&directory).flag("--rules").arg(text).command(&["true"])),
        ];
        for (what, run) in runs {
            let finished = run.run();
            // The guard, clap and a #! line have only a part of what they were given.
            if ["guard", "rules text", "port", "interpreter", "variable"].contains(&what) {
                let said = format!("{}{}", finished.text(), finished.stderr);
                assert!(!said.chars().any(is_unseen), "{what}: {said:?}");
                continue;
            }
            is_written_out(what, nasty, &finished);
        }
    }
}

/// What a command is told of while it runs, and in plans and reports.
#[test]
fn names_in_notices_plans_and_reports_are_written_out() {
    crate::require!("userns");
    let scratch = Scratch::new();
    let directory = scratch.open_dir("d");
    for nasty in NASTY {
        let seen = |what: &str, finished: &Finished| {
            let said = format!("{}{}", finished.text(), finished.stderr);
            assert!(!said.chars().any(is_unseen), "{what}: {said:?}");
            assert!(!said.lines().any(|line| line == "mcp: all is well"), "{what}: {said:?}");
        };
        let granted = directory.join(nasty);
        fs::create_dir_all(&granted).unwrap();
        let explain = || Run::new().flag("--explain").read(&granted).command(&["true"]);
        seen("explain", &explain().run());
        let json = explain().flag("--json").run();
        seen("explain as JSON", &json);
        let plan: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
        assert!(
            plan.to_string().contains(&serde_json::to_string(&granted).unwrap().replace('"', "")),
            "{plan}"
        );
        // A failed command that was given a path that it could not see, and one that is denied.
        let file = scratch.file(Path::new("hidden").join(nasty), "");
        seen("hidden", &Run::new().command(&["false".as_ref(), file.as_os_str()]).run());
        let denied = Run::new().read(scratch.join("hidden")).deny(&file);
        seen("denied", &denied.command(&["false".as_ref(), file.as_os_str()]).run());
    }
}
