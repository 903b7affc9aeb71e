//! The audit log.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::require;
use crate::user::{Said, User, text};

#[test]
fn a_run_leaves_its_start_and_its_end() {
    require!("userns");
    let user = User::new();
    user.stored("1.0.0", "");
    user.mcp(&["run", "acme/test", "--", "exit", "3"]);
    user.mcp(&["run", "acme/none"]).fails(125, "no registry");
    user.mcp(&["run", "--", "true", "--password=hunter2"]).ok();
    let path = user.path("state/mcp/log.jsonl");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let events: Vec<&str> = lines.iter().map(|line| line["event"].as_str().unwrap()).collect();
    assert_eq!(events, ["start", "end", "refused", "start", "end"]);
    assert_eq!(lines[1]["reference"], "acme/test@1.0.0");
    assert!(lines[1]["digest"].as_str().unwrap().starts_with("sha256:"));
    assert_eq!(lines[0]["policy"], lines[1]["policy"]);
    assert!(lines[1]["controls"]["enforced"].as_u64().unwrap() > 3, "{}", lines[1]);
    assert!(!text.contains("hunter2"), "{text}");
    user.mcp(&["log"]).ok().says("acme/test@1.0.0");
    user.mcp(&["log", "--failed", "--json"]).ok().says("refused");
    let said = user.mcp(&["log", "true"]).ok();
    assert!(said.out.contains("true") && !said.out.contains("acme"), "{}", said.out);
    user.mcp(&["log", "--since", "1h", "-n", "1"]).ok();
    let said = user.mcp(&["run", "--no-log", "--", "true"]).ok();
    assert_eq!(fs::read_to_string(&path).unwrap(), text, "{}", said.err);
}

#[test]
fn a_log_that_cannot_be_written_stops_the_run_before_it_starts() {
    require!("userns");
    let user = User::new();
    fs::remove_dir(user.path("state")).unwrap();
    fs::write(user.path("state"), "in the way").unwrap();
    let made = user.scratch.dir("made");
    let file = made.join("x");
    let words = ["--write", text(&made), "--", "touch", text(&file)];
    user.mcp(&[&["run"], &words[..]].concat()).fails(125, "the audit log");
    assert!(!made.join("x").exists());
    user.mcp(&[&["run", "--no-log"], &words[..]].concat()).ok();
    assert!(made.join("x").exists());
}

#[test]
fn it_is_rotated() {
    require!("userns");
    let user = User::new();
    user.mcp(&["run", "--", "true"]).ok();
    let path = user.path("state/mcp/log.jsonl");
    let line = fs::read_to_string(&path).unwrap();
    fs::write(&path, line.repeat((4 << 20) / line.len())).unwrap();
    user.mcp(&["run", "--", "true"]).ok();
    assert!(user.path("state/mcp/log.jsonl.1").exists());
    assert!(fs::metadata(&path).unwrap().len() < 10_000);
    user.mcp(&["log", "-n", "3"]).ok().says("true");
}

#[test]
fn no_secret_is_ever_in_it() {
    require!("userns");
    let user = User::new();
    user.scratch.file("secret", "hunter2-file");
    let secret = user.path("secret");
    let words = [
        "run",
        "--secret",
        "A=env:TOKEN",
        "--secret",
        &format!("B=file:{}", text(&secret)),
        "--secret",
        "C=cmd:echo hunter2-cmd",
        "--env",
        "D=hunter2-set",
        "--",
        "sh",
        "-c",
        "echo $A $B $C $D hunter2-argument; getent hosts $A.example; getent hosts plain.example; true",
    ];
    let said: Said = user.command(&words).env("TOKEN", "hunter2-env").output().unwrap().into();
    let said = said.ok();
    for value in ["hunter2-env", "hunter2-file", "hunter2-cmd", "hunter2-set"] {
        assert!(said.out.contains(value), "{}", said.out);
    }
    let log = fs::read_to_string(user.path("state/mcp/log.jsonl")).unwrap();
    assert!(!log.contains("hunter2"), "{log}");
    assert!(log.contains("(holds a secret)") && log.contains("plain.example"), "{log}");
}

#[test]
fn it_is_followed_past_a_rotation() {
    require!("userns");
    let user = User::new();
    user.mcp(&["run", "--", "true"]).ok();
    let path = user.path("state/mcp/log.jsonl");
    let mut follow = user.command(&["log", "--follow", "--json", "-n", "0", "env"]);
    let mut follow = follow.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let seen = std::sync::Arc::new(std::sync::Mutex::new(String::new()));
    let (mut out, into) = (follow.stdout.take().unwrap(), seen.clone());
    std::thread::spawn(move || {
        let mut chunk = [0; 4096];
        while let Ok(count @ 1..) = std::io::Read::read(&mut out, &mut chunk) {
            into.lock().unwrap().push_str(&String::from_utf8_lossy(&chunk[..count]));
        }
    });
    let shows = |runs: usize| {
        let seen = || seen.lock().unwrap().matches("\"end\"").count();
        assert!(
            crate::support::eventually(crate::support::patience(), || seen() >= runs),
            "{} of {runs}",
            seen()
        );
    };
    // It may begin to follow only after the first of them: until one is seen, there is another.
    let started = crate::support::eventually(crate::support::patience(), || {
        user.mcp(&["run", "--", "env"]).ok();
        seen.lock().unwrap().contains("\"end\"")
    });
    assert!(started);
    let before = seen.lock().unwrap().matches("\"end\"").count();
    // The last lines of the old log and the first of the new one.
    user.mcp(&["run", "--", "env"]).ok();
    fs::rename(&path, user.path("state/mcp/log.jsonl.1")).unwrap();
    user.mcp(&["run", "--", "env"]).ok();
    user.mcp(&["run", "--", "true"]).ok();
    shows(before + 2);
    follow.kill().unwrap();
    follow.wait().unwrap();
    assert!(!seen.lock().unwrap().contains("\"true\""), "the filter holds while it follows");
}

#[test]
fn what_was_refused_on_the_network_is_told() {
    require!("userns");
    let user = User::new();
    let connect = "exec 3<>/dev/tcp/192.0.2.1/443";
    let said = user.mcp(&["run", "--allow-net", "localhost:9", "--", "bash", "-c", connect]);
    let log = fs::read_to_string(user.path("state/mcp/log.jsonl")).unwrap();
    assert!(log.contains(r#""blocked":{"192.0.2.1:443":1}"#), "{log}\n{}", said.err);
}

/// A crash in the middle of a line, or bytes that are no text: what comes after them is there.
#[test]
fn a_torn_line_swallows_nothing() {
    require!("userns");
    let user = User::new();
    user.mcp(&["run", "--", "true"]).ok();
    let path = user.path("state/mcp/log.jsonl");
    let whole = fs::read_to_string(&path).unwrap();
    let half = &whole.lines().next().unwrap().as_bytes()[..40];
    for torn in [half, b"\xff\xfe half", b"{"] {
        fs::write(&path, [whole.as_bytes(), torn].concat()).unwrap();
        user.mcp(&["run", "--", "env"]).ok();
        let said = user.mcp(&["log"]).ok();
        assert_eq!(said.out.lines().count(), 2, "{}", said.out);
        assert_eq!(said.out.matches("  env  ").count(), 1, "{}", said.out);
        assert!(said.err.contains("1 line is not whole"), "{}", said.err);
    }
    // Positive control: without such a line nothing is said of it.
    fs::write(&path, &whole).unwrap();
    let said = user.mcp(&["log"]).ok();
    assert!(!said.err.contains("not whole"), "{}", said.err);
}

/// Which script ran, why a run did not start, and what the hints were about; no argument.
#[test]
fn the_script_and_the_reason_are_told() {
    require!("userns");
    let user = User::new();
    let script = user.scratch.file("serve.sh", "cat \"$1\"\n");
    let hidden = user.scratch.file("hunter2.txt", "x");
    let script = text(&script);
    user.mcp(&["run", "--read", script, "--", "sh", script, text(&hidden)]);
    user.mcp(&["run", "--read", "/none/hunter2", "--", "true"]);
    user.mcp(&["run", "--", "no-such-program"]);
    let said = user.mcp(&["log"]).ok().out;
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].contains("  sh serve.sh  exited 1"), "{said}");
    assert!(lines[0].contains(", told: a path or flag that the command does not have"), "{said}");
    assert!(lines[1].contains("  true  not started (a granted path cannot be given, "), "{said}");
    assert!(lines[2].contains("  not started (there is no such program, 127)"), "{said}");
    assert!(!said.contains("hunter2"), "{said}");
    assert_eq!(user.mcp(&["log", "serve.sh"]).ok().out.lines().count(), 1);
}

/// The guard's rule, the first word and blocked hosts are told; arguments never are.
#[test]
fn commands_of_agents_are_told() {
    require!("userns");
    let user = User::new();
    let exec = |command: &str| user.mcp(&["exec", "--", command]);
    exec("rm -rf ~ # hunter2").fails(126, "refused by the guard");
    exec("getent hosts blocked.example; getent hosts blocked.example; true hunter2").ok();
    exec("TOKEN=hunter2 true").ok();
    let log = fs::read_to_string(user.path("state/mcp/log.jsonl")).unwrap();
    assert!(!log.contains("hunter2"), "{log}");
    let said = user.mcp(&["log"]).ok();
    let lines: Vec<&str> = said.out.lines().collect();
    assert_eq!(lines.len(), 3, "{}", said.out);
    assert!(
        lines[0].contains(
            "  exec rm  not started (refused by the guard, 126), rule: delete-everything"
        ),
        "{}",
        said.out
    );
    assert!(lines[1].contains("  exec getent  exited 0"), "{}", said.out);
    assert!(lines[1].contains("blocked: blocked.example"), "{}", said.out);
    assert!(lines[2].contains("  exec  exited 0"), "{}", said.out);
    // A word is searched in what was run, not in the rest of the line.
    assert_eq!(user.mcp(&["log", "getent"]).ok().out.lines().count(), 1);
    assert_eq!(user.mcp(&["log", "exited"]).ok().out, "");
}

/// Every run is in the log or does not start: where no place for it is known as well.
#[test]
fn without_a_place_for_the_log_nothing_starts() {
    require!("userns", "root");
    if !crate::support::has_program("setpriv") {
        return;
    }
    let user = User::new();
    let made = user.scratch.open_dir("made");
    let run = |more: &[&str]| -> Said {
        // A number that no account has, and what tells nothing of a home.
        let mut command = std::process::Command::new("setpriv");
        command.args(["--reuid=54321", "--regid=54321", "--clear-groups", "--"]);
        command.arg(crate::support::mcp_path()).arg("run").args(more);
        command.args(["--write", text(&made), "--", "touch", text(&made.join("x"))]);
        let path = std::env::var_os("PATH").unwrap();
        command.env_clear().env("PATH", path).current_dir("/");
        command.output().unwrap().into()
    };
    run(&[]).fails(125, "there is no place for the audit log");
    assert!(!made.join("x").exists());
    run(&["--no-log"]).ok();
    assert!(made.join("x").exists());
}
