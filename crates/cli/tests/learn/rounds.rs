//! Rounds with a real server: what is learned is enough, nothing of it is superfluous, and nothing sensitive is in it.

use std::fs;
use std::io::Write;
use std::os::unix::net::UnixListener;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::require;
use crate::support::{descendants, eventually, mcp_path, patience, sys};
use crate::user::{Said, User};

const CANARY: &str = "canary of a private key";

/// The tools of `server.py` that need something, in the order in which they are called.
const NEEDY: [&str; 8] = ["greet", "read", "list", "write", "replace", "mode", "child", "service"];

struct Server {
    user: User,
}

impl Server {
    fn new() -> Server {
        let mut user = User::new();
        user.set("LEARN_MODE", "fast");
        let scratch = &user.scratch;
        scratch.file("app/server.py", include_str!("server.py"));
        scratch.file("etc/config.json", r#"{ "greeting": "hello" }"#);
        scratch.file("etc/zone", "UTC");
        scratch.open_dir("cache");
        scratch.open_dir("data");
        scratch.file("data/db", "old");
        for name in ["a.md", "b.md", "c.md"] {
            scratch.file(format!("notes/{name}"), name);
        }
        scratch.script("bin/hello", "#!/bin/sh\necho hello\n");
        scratch.file("home/.ssh/id_ed25519", CANARY);
        scratch.dir("run");
        let listener = UnixListener::bind(scratch.join("run/service.sock")).unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let _ = stream.and_then(|mut stream| stream.write_all(b"served"));
            }
        });
        Server { user }
    }

    fn arguments(&self, tool: &str) -> Value {
        match tool {
            "read" => json!({ "path": self.user.path("notes/a.md") }),
            "list" => json!({ "path": self.user.path("notes") }),
            _ => json!({}),
        }
    }

    fn command(&self) -> Vec<String> {
        let script = self.user.path("app/server.py").display().to_string();
        vec!["python3".to_owned(), script, self.user.scratch.path().display().to_string()]
    }

    /// `mcp learn FLAGS --call … -- python3 server.py BASE`.
    fn learn(&self, flags: &[&str], tools: &[&str]) -> Said {
        let calls: Vec<String> =
            tools.iter().map(|tool| format!("--call={tool}={}", self.arguments(tool))).collect();
        let command = self.command();
        let mut words = vec!["learn"];
        words.extend(flags);
        words.extend(calls.iter().map(String::as_str));
        words.push("--");
        words.extend(command.iter().map(String::as_str));
        self.user.mcp(&words)
    }

    /// Runs it with a policy by `mcp run`; the tools that fail, all of them where it does not start.
    fn failing(&self, policy: &str) -> Vec<&'static str> {
        let file = self.user.scratch.file("try.toml", policy);
        let mut child = Command::new(mcp_path())
            .args(["run", "-q", "--policy"])
            .arg(file)
            .arg("--")
            .args(self.command())
            .env("HOME", self.user.path("home"))
            .env("LEARN_MODE", "fast")
            .env_remove("XDG_STATE_HOME")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = String::from(
            "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{}}\n",
        );
        for (id, tool) in (1..).zip(NEEDY) {
            let params = json!({ "name": tool, "arguments": self.arguments(tool) });
            lines += &format!(
                "{}\n",
                json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
            );
        }
        // One that does not start does not read.
        let _ = child.stdin.take().unwrap().write_all(lines.as_bytes());
        let output = child.wait_with_output().unwrap();
        let answers: Vec<Value> = String::from_utf8(output.stdout)
            .unwrap()
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect();
        let works = |id: usize| {
            answers.iter().any(|answer| {
                answer["id"] == json!(id)
                    && answer["result"].is_object()
                    && answer["result"]["isError"] != json!(true)
            })
        };
        NEEDY
            .into_iter()
            .enumerate()
            .filter(|(at, _)| !works(at + 1))
            .map(|(_, tool)| tool)
            .collect()
    }
}

/// The lines that give something.
fn grant_lines(policy: &str) -> Vec<&str> {
    let is_limit = |line: &&str| line.starts_with("memory") || line.starts_with("processes");
    policy
        .lines()
        .filter(|line| line.starts_with("    \""))
        .filter(|line| !is_limit(line))
        .collect()
}

#[test]
fn a_server_is_learned_in_three_rounds_and_no_line_is_superfluous() {
    require!("userns");
    let server = Server::new();
    // The control: without a policy nothing works.
    assert_eq!(server.failing(""), NEEDY);
    let said = server.learn(&["--yes", "-o", "learned.toml"], &NEEDY).ok();
    assert!(
        said.err.contains("proved: with exactly this policy nothing was missing"),
        "{}",
        said.err
    );
    assert!(!said.err.contains("round 4"), "{}", said.err);
    let policy = fs::read_to_string(server.user.path("learned.toml")).unwrap();
    server.user.mcp(&["policy", "check", "learned.toml"]).ok();
    assert_eq!(server.failing(&policy), Vec::<&str>::new(), "{policy}");
    // A description of a tool is no answer.
    assert!(said.err.contains("etc/zone (everything is the same without it)"), "{}", said.err);
    let lines = grant_lines(&policy);
    assert!(lines.len() >= 6, "{policy}");
    for line in lines {
        let without: String =
            policy.lines().filter(|other| *other != line).map(|line| format!("{line}\n")).collect();
        assert!(!server.failing(&without).is_empty(), "superfluous: {line}\n{policy}");
        assert!(line.contains(" # "), "no evidence: {line}");
    }
    assert!(policy.contains("memory = ") && policy.contains("# peak "), "{policy}");
}

#[test]
fn a_private_key_is_named_and_never_proposed() {
    require!("userns");
    let server = Server::new();
    let said = server.learn(&["--yes", "-o", "learned.toml"], &["greet", "steal"]).ok();
    let policy = fs::read_to_string(server.user.path("learned.toml")).unwrap();
    assert!(!policy.contains(".ssh"), "{policy}");
    let named = "asked for, not proposed: ";
    assert!(said.err.contains(named) && said.err.contains(".ssh/id_ed25519"), "{}", said.err);
    assert!(!said.err.contains(CANARY) && !said.out.contains(CANARY), "{}", said.err);
    // The control: a person who asks for it has it proposed.
    server.learn(&["--yes", "--sensitive", "-o", "open.toml"], &["greet", "steal"]).ok();
    let policy = fs::read_to_string(server.user.path("open.toml")).unwrap();
    assert!(policy.contains(".ssh/id_ed25519\", # "), "{policy}");
}

/// What is granted below the caller's home is in the command's own HOME too.
/// This test's own process stands for any of the host. Its number is not one of the few inside.
#[test]
fn processes_of_the_host_are_named_and_never_proposed() {
    require!("userns");
    let user = User::new();
    let place = format!("/proc/{}/status", std::process::id());
    for (flags, code) in
        [(&["learn", "--plain"][..], 0), (&["learn", "--plain", "--yes", "--sensitive"], 0)]
    {
        let script = format!("cat {place} /proc/self/status >/dev/null; true");
        let said = user.mcp(&[flags, &["--", "sh", "-c", &script]].concat()).exits(code);
        let named = format!("asked for, not proposed: /proc/{}", std::process::id());
        assert!(said.err.contains(&named), "{}", said.err);
        assert!(!said.out.contains("/proc") && !said.err.contains("/proc/self"), "{}", said.err);
    }
}

#[test]
fn what_it_looks_for_in_its_home_is_found_in_the_callers() {
    require!("userns");
    let user = User::new();
    let file = user.scratch.file("home/.config/app/app.toml", "x");
    user.scratch.file("home/.ssh/config", CANARY);
    let script = "import os\nfor name in ('.ssh/config', '.config/app/app.toml'):\n    try: print(open(os.path.expanduser('~/' + name)).read())\n    except OSError as error: last = error\n    else: last = None\nif last: raise last";
    let said = user.mcp(&["learn", "--plain", "--yes", "--", "python3", "-c", script]).ok();
    assert!(said.out.contains(&format!("{}\", # ", file.display())), "{}\n{}", said.out, said.err);
    assert!(
        !said.out.contains(".ssh") && said.err.contains(".ssh/config (a place of credentials)"),
        "{}",
        said.err
    );
    assert!(said.err.contains("proved: "), "{}", said.err);
}

/// Without the variable every answer is the same, and the data is elsewhere: it is no superfluous line.
#[test]
fn a_variable_that_says_where_data_goes_is_kept() {
    require!("userns");
    let mut user = User::new();
    let notes = user.scratch.open_dir("notes");
    user.set("NOTES_DIRECTORY", notes.to_str().unwrap());
    let script =
        user.scratch.file("app/keep.sh", "echo kept > \"${NOTES_DIRECTORY:-$HOME}/entry\"\n");
    let script = script.to_str().unwrap();
    let words = ["learn", "--plain", "--yes", "-o", "learned.toml", "--", "sh", script];
    let said = user.mcp(&words).ok();
    let policy = fs::read_to_string(user.path("learned.toml")).unwrap();
    assert!(policy.contains("NOTES_DIRECTORY") && policy.contains("/notes\", # "), "{policy}");
    assert!(said.err.contains("proved: "), "{}", said.err);
    fs::remove_file(notes.join("entry")).unwrap();
    user.mcp(&["run", "-q", "--policy", "learned.toml", "--", "sh", script]).ok();
    assert_eq!(fs::read_to_string(notes.join("entry")).unwrap(), "kept\n");
}

#[test]
fn credentials_in_a_granted_directory_stay_closed() {
    require!("userns");
    let server = Server::new();
    server.user.scratch.file("notes/.env", CANARY);
    let env = server.user.path("notes/.env").display().to_string();
    let learned = server.learn(&["--yes", "-o", "learned.toml"], &["greet", "list"]).ok();
    let policy = fs::read_to_string(server.user.path("learned.toml")).unwrap();
    assert!(policy.contains(&format!("{env}\", # credentials")), "{policy}\n{}", learned.err);
    let read =
        |path: &str| server.user.mcp(&["run", "-q", "--policy", "learned.toml", "--", "cat", path]);
    assert!(!read(&env).out.contains(CANARY));
    let note = server.user.path("notes/a.md").display().to_string();
    assert_eq!(read(&note).ok().out, "a.md");
}

#[test]
fn without_somebody_to_ask_proposals_are_written_and_not_tried() {
    require!("userns");
    let server = Server::new();
    let said = server.learn(&[], &["greet"]).exits(3);
    assert!(said.out.contains("/app\", # "), "{}", said.out);
    assert!(said.err.contains("round 1") && !said.err.contains("round 2"), "{}", said.err);
    let json = server.learn(&["--json"], &["greet"]).exits(3);
    let learned: Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(learned["grants"][0]["key"], "filesystem.read", "{}", json.out);
}

#[test]
fn a_file_to_merge_into_is_changed_by_an_acceptance_only() {
    require!("userns");
    let server = Server::new();
    let file = server.user.path("mine.toml");
    let mine = "# mine\n[network]\nallow = [\"example.com\"]\n";
    fs::write(&file, mine).unwrap();
    let said = server.learn(&["--merge", "mine.toml"], &["greet"]).exits(3);
    assert!(said.out.contains("/app\", # "), "{}", said.out);
    assert_eq!(fs::read_to_string(&file).unwrap(), mine);
    let said = server.learn(&["--yes", "--merge", "mine.toml"], &["greet"]).ok();
    assert!(said.err.contains("proved: with exactly this policy"), "{}", said.err);
    let merged = fs::read_to_string(&file).unwrap();
    assert!(merged.starts_with("# mine\n") && merged.contains("/app\", # "), "{merged}");
}

/// The proof runs the file as it will be. What it denies the server misses.
#[test]
fn the_proof_is_of_the_merged_file() {
    require!("userns");
    let server = Server::new();
    let app = server.user.path("app");
    let mine = format!("[filesystem]\ndeny = [\"{}\"]\n", app.display());
    let file = server.user.path("mine.toml");
    fs::write(&file, &mine).unwrap();
    let said = server.learn(&["--yes", "--merge", "mine.toml"], &["greet"]);
    assert_ne!(said.code, 0, "{}", said.err);
    assert!(!said.err.contains("\nproved") && !said.err.contains("mcp: proved"), "{}", said.err);
    // A file that is no policy is told before anything runs.
    fs::write(&file, "[filesytem]\n").unwrap();
    let said = server.learn(&["--yes", "--merge", "mine.toml"], &["greet"]).exits(2);
    assert!(said.err.contains("filesytem") && !said.err.contains("round 1"), "{}", said.err);
}

#[test]
fn what_was_given_is_kept_and_the_rest_is_added() {
    require!("userns");
    let server = Server::new();
    let (app, etc) = (server.user.path("app"), server.user.path("etc"));
    let flags = [
        "--yes",
        "-o",
        "learned.toml",
        "--timeout",
        "10m",
        "--max-memory",
        "300M",
        "--read",
        app.to_str().unwrap(),
        "--read",
        etc.to_str().unwrap(),
    ];
    let said = server.learn(&flags, &["greet", "read"]).ok();
    let policy = fs::read_to_string(server.user.path("learned.toml")).unwrap();
    assert!(policy.contains("timeout = \"10m\" # --timeout"), "{policy}");
    assert!(policy.contains("memory = \"300 MiB\" # --max-memory"), "{policy}");
    assert!(policy.contains("/app\", # --read"), "{policy}");
    assert!(policy.contains("/notes/a.md\", # once, first by read"), "{policy}\n{}", said.err);
}

#[test]
fn a_server_of_the_later_era_is_driven() {
    require!("userns");
    let server = Server::new();
    let mut command = server.command();
    command.push("discover".to_owned());
    let mut words = vec!["learn", "--yes", "--call", "greet", "--"];
    words.extend(command.iter().map(String::as_str));
    let said = server.user.mcp(&words).ok();
    assert!(said.err.contains("proved"), "{}", said.err);
    assert!(said.out.contains("/etc/config.json\", # "), "{}", said.out);
}

#[test]
fn exploring_never_calls_what_destroys() {
    require!("userns");
    let server = Server::new();
    let base = server.user.scratch.path().to_owned();
    // Root's stand-in, too, could write it.
    fs::set_permissions(&base, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let flags = ["--yes", "--explore", "-o", "learned.toml", "--write", base.to_str().unwrap()];
    // Arguments that are made up may fail.
    let said = server.learn(&flags, &[]).ok();
    assert!(said.err.contains("failed: read") && said.err.contains("proved: "), "{}", said.err);
    assert!(!server.user.path("destroyed").exists(), "{}", said.err);
    // The control: asked for by name, it is called.
    let said = server
        .learn(&["--yes", "-o", "learned.toml", "--write", base.to_str().unwrap()], &["destroy"]);
    assert!(server.user.path("destroyed").exists(), "{}", said.err);
}

#[test]
fn a_client_has_its_session() {
    require!("userns");
    let server = Server::new();
    let mut child = Command::new(mcp_path())
        .args(["learn", "--client", "-o"])
        .arg(server.user.path("learned.toml"))
        .args(["--read", server.user.path("app").to_str().unwrap()])
        .args(["--read", server.user.path("etc").to_str().unwrap(), "--"])
        .args(server.command())
        .env("HOME", server.user.path("home"))
        .env_remove("XDG_STATE_HOME")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": "read", "arguments": server.arguments("read") } });
    let lines = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{{}}}}\n{call}\n"
    );
    child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
    let said = Said::from(child.wait_with_output().unwrap()).exits(3);
    // Standard output is the client's alone.
    let answers: Vec<Value> =
        said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), 2, "{}", said.out);
    assert_eq!(answers[1]["result"]["isError"], json!(true));
    let policy = fs::read_to_string(server.user.path("learned.toml")).unwrap();
    assert!(policy.contains("/notes/a.md\", # once, first by read"), "{policy}");
}

#[test]
fn what_is_not_used_is_dropped() {
    require!("userns");
    let server = Server::new();
    let path = |name: &str| server.user.path(name).display().to_string();
    let policy = format!(
        "[filesystem]\nread = [{:?}, {:?}, {:?}]\nwrite = [{:?}]\n[network]\nallow = [\"example.com\"]\n[limits]\nmemory = \"256M\"\n",
        path("app"),
        path("etc"),
        path("bin"),
        path("notes")
    );
    server.user.scratch.file("wide.toml", &policy);
    let call = format!("--call=read={}", server.arguments("read"));
    let command = server.command();
    let mut words = vec!["policy", "minimize", "wide.toml", "-o", "small.toml", &call, "--"];
    words.extend(command.iter().map(String::as_str));
    let said = server.user.mcp(&words).ok();
    let small = fs::read_to_string(server.user.path("small.toml")).unwrap();
    for (name, kept) in [("app", true), ("etc", true), ("bin", false)] {
        assert_eq!(small.contains(&format!("{}\"", path(name))), kept, "{name}\n{small}");
    }
    assert!(said.err.contains(&format!("not used, dropped: read {}", path("bin"))), "{}", said.err);
    assert!(said.err.contains("not used, dropped: connect to example.com"), "{}", said.err);
    assert!(said.err.contains(&format!("now: read {}", path("notes"))), "{}", said.err);
    assert!(!small.contains("write = ") && small.contains("memory = \"256 MiB\""), "{small}");
}

#[test]
fn a_run_that_is_killed_is_not_said_to_be_not_started() {
    require!("userns");
    let user = User::new();
    let words = ["learn", "--plain", "--yes", "--", "sh", "-c", "echo alive >&2; sleep 600; true"];
    let mut command = user.command(&words);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let sleeps =
        |pid: &u32| fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|it| it == "sleep\n");
    assert!(eventually(patience(), || descendants(child.id()).iter().any(sleeps)));
    // `timeout` started `mcp learn`, and that `mcp run`.
    sys::kill(descendants(child.id())[1], libc::SIGKILL);
    let said = Said::from(child.wait_with_output().unwrap());
    assert_eq!(said.code, 125, "{}", said.err);
    assert!(said.err.contains("mcp run ended without a report (signal: 9"), "{}", said.err);
    assert!(said.err.contains("alive") && !said.err.contains("not started"), "{}", said.err);
    // One that was refused says why, and that nothing was started.
    let refused = user.mcp(&["learn", "--plain", "--yes", "--cwd", "/no/such/place", "--", "true"]);
    assert_eq!(refused.code, 125, "{}", refused.err);
    assert!(!refused.err.contains("without a report"), "{}", refused.err);
}
