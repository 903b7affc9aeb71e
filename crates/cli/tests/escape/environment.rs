//! Variables and secrets: only those that are named get in, and secrets show up nowhere else.

use std::fs;

use crate::require;
use crate::support::{Finished, NO_PROCESS, Run, Scratch, allowed, blocked, refused};

const CANARY: &str = "canary-5f1c9a";

/// Variables that tell a program about the place it runs in, and nothing about its user.
const HARMLESS: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TERM",
    "COLORTERM",
    "NO_COLOR",
    "TMPDIR",
    "PWD",
    "SHLVL",
    "HOSTNAME",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "XDG_RUNTIME_DIR",
    "TEMP",
    "TMP",
    "COLUMNS",
    "LINES",
    "FORCE_COLOR",
    "CI",
];

fn launcher_with_secret() -> Run {
    Run::new().env("MCP_TEST_SECRET", CANARY)
}

/// A pattern is for many; a credential has to be named.
#[test]
fn patterns_pass_no_credentials() {
    require!("userns");
    for (name, value) in [
        ("MCP_TEST_API_KEY", CANARY),
        ("GITHUB_TOKEN", CANARY),
        ("LD_PRELOAD", "/nowhere.so"),
        ("MCP_TEST_PLAIN", "ghp_abcdefghijklmnopqrstuvwxyz0123456789"),
    ] {
        let act = |pattern: &str| {
            Run::new().env(name, value).flag("--env").arg(pattern).probe(&["getenv", name])
        };
        refused(act("*"), act(name), &["ENOENT"]);
        let told = act("*").run().stderr;
        assert!(told.contains(&format!("--env {name}")) && !told.contains(value), "{told}");
    }
    let harmless = || Run::new().env("MCP_TEST_MODE", "fast").flag("--env").arg("MCP_*");
    assert_eq!(allowed(harmless().probe(&["getenv", "MCP_TEST_MODE"])).detail, "fast");
}

#[test]
fn unnamed_variables_do_not_get_in() {
    require!("userns");
    for name in [
        "MCP_TEST_SECRET",
        "AWS_SECRET_ACCESS_KEY",
        "SSH_AUTH_SOCK",
        "GITHUB_TOKEN",
        "LD_LIBRARY_PATH",
    ] {
        let act = |run: Run| run.env(name, CANARY).probe(&["getenv", name]);
        refused(act(Run::new()), act(Run::bare()), &["ENOENT"]);
    }
    let names = allowed(launcher_with_secret().probe(&["env"]));
    for name in names.lines() {
        assert!(HARMLESS.contains(&name) || name.starts_with("LC_"), "{name} got in");
    }
}

#[test]
fn programs_find_what_they_need() {
    require!("userns");
    for name in ["PATH", "HOME"] {
        assert!(!allowed(Run::new().probe(&["getenv", name])).detail.is_empty(), "{name}");
    }
    let language = Run::new().env("LANG", "C.UTF-8").probe(&["getenv", "LANG"]);
    assert_eq!(allowed(language).detail, "C.UTF-8");
}

#[test]
fn environment_of_init_is_out_of_reach() {
    require!("userns");
    let own = |run: Run| run.env("MCP_TEST_SECRET", CANARY).probe(&["environ", "self"]);
    assert!(allowed(own(Run::bare())).detail.contains(CANARY));
    assert!(!allowed(own(Run::new())).detail.contains(CANARY));
    blocked(launcher_with_secret().probe(&["environ", "1"]), NO_PROCESS);
}

#[test]
fn no_process_inside_holds_the_launchers_environment() {
    require!("userns");
    let script = "cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null; true";
    let bare = Run::bare().env("MCP_TEST_SECRET", CANARY).shell("cat /proc/self/environ").run();
    assert!(bare.text().contains(CANARY), "{bare}");
    let inside = launcher_with_secret().shell(script).run();
    assert!(!inside.stdout.is_empty() && !inside.text().contains(CANARY), "{inside}");
}

#[test]
fn named_variables_get_in() {
    require!("userns");
    let value = |run: Run, name: &str| allowed(run.probe(&["getenv", name])).detail;
    let run = || launcher_with_secret().flag("--env");
    assert_eq!(value(run().arg("MCP_TEST_SECRET"), "MCP_TEST_SECRET"), CANARY);
    assert_eq!(value(run().arg("NEW=a=b c"), "NEW"), "a=b c");
    assert_eq!(value(run().arg("EMPTY="), "EMPTY"), "");
    let unset = run().arg("MCP_TEST_NOT_SET").probe(&["getenv", "MCP_TEST_NOT_SET"]).run();
    unset.has_no_panic();
    assert!(unset.outcomes.iter().all(|outcome| !outcome.ok), "{unset}");
}

#[test]
fn variables_from_a_file_get_in() {
    require!("userns");
    let scratch = Scratch::new();
    let file = scratch.file("env", "# a comment\n\nONE=1\nTWO=two words\nTHREE=a=b\n");
    for (name, value) in [("ONE", "1"), ("TWO", "two words"), ("THREE", "a=b")] {
        let run = Run::new().flag("--env-file").arg(&file).probe(&["getenv", name]);
        assert_eq!(allowed(run).detail, value);
    }
    let missing = Run::new().flag("--env-file").arg(scratch.join("none")).probe(&["cwd"]).run();
    missing.is_clear_error();
    assert!(missing.stderr.contains("none"), "{missing}");
}

/// The same secret by each kind of reference.
fn secrets(scratch: &Scratch) -> [String; 3] {
    let file = scratch.file("secret", CANARY);
    let script = scratch.script("print-secret", &format!("#!/bin/sh\nprintf %s {CANARY}\n"));
    [
        "TOKEN=env:MCP_TEST_SECRET".into(),
        format!("TOKEN=file:{}", file.display()),
        format!("TOKEN=cmd:{}", script.display()),
    ]
}

fn has_no_secret(finished: &Finished) {
    assert!(!finished.stderr.contains(CANARY), "{finished}");
}

#[test]
fn secrets_get_in_and_show_up_nowhere_else() {
    require!("userns");
    let scratch = Scratch::new();
    for secret in secrets(&scratch) {
        let run = || launcher_with_secret().flag("--secret").arg(&secret);
        let report = scratch.join("report.json");
        let reported = run().flag("--report").arg(&report).probe(&["getenv", "TOKEN"]).run();
        assert_eq!(reported.last(&secret).detail, CANARY, "{secret}\n{reported}");
        has_no_secret(&reported);
        assert!(!fs::read_to_string(&report).unwrap().contains(CANARY), "in the report: {secret}");
        for format in [&["--explain"][..], &["--explain", "--json"]] {
            let mut run = run();
            for flag in format {
                run = run.flag(flag);
            }
            let explained = run.probe(&["cwd"]).run();
            has_no_secret(&explained);
            assert!(!explained.text().contains(CANARY), "{explained}");
        }
    }
}

#[test]
fn secrets_are_not_on_any_command_line() {
    require!("userns");
    let scratch = Scratch::new();
    for secret in secrets(&scratch) {
        let live = launcher_with_secret()
            .flag("--secret")
            .arg(&secret)
            .shell("echo ready; sleep 30")
            .spawn();
        live.await_output("ready");
        let own = fs::read(format!("/proc/{}/cmdline", live.pid())).unwrap();
        assert!(String::from_utf8_lossy(&own).contains("--secret"));
        for entry in fs::read_dir("/proc").unwrap() {
            let Ok(words) = fs::read(entry.unwrap().path().join("cmdline")) else {
                continue;
            };
            let words = String::from_utf8_lossy(&words).into_owned();
            assert!(!words.contains(CANARY), "{secret}: {words}");
        }
        live.signal(libc::SIGKILL);
    }
}

#[test]
fn secrets_that_cannot_be_had_are_errors() {
    require!("userns");
    let marker = "MCP_TEST_NO_SUCH";
    for reference in [
        format!("T=env:{marker}"),
        format!("T=file:/{marker}"),
        format!("T=cmd:exit 3 # {marker}"),
        format!("T=vault:{marker}"),
    ] {
        let finished = Run::new().flag("--secret").arg(&reference).probe(&["cwd"]).run();
        finished.is_clear_error();
        assert!(finished.outcomes.is_empty(), "it ran: {finished}");
    }
}

#[test]
fn secret_given_by_value_is_not_repeated() {
    let finished = Run::new().flag("--secret").arg("T=sk-123456").probe(&["cwd"]).run();
    finished.code_is(2);
    assert!(!finished.stderr.contains("sk-123456"), "{finished}");
    assert!(finished.stderr.contains("NAME=env:"), "{finished}");
}

#[test]
fn secret_without_end_is_an_error() {
    require!("userns");
    let scratch = Scratch::new();
    let large = scratch.file("large", &"x".repeat(200 << 10));
    let large = format!("T=file:{}", large.display());
    for (reference, said) in [
        ("T=cmd:yes", "128 KiB"),
        (large.as_str(), "128 KiB"),
        ("T=file:/dev/zero", "is a device, not a regular file"),
    ] {
        let finished = Run::new().flag("--secret").arg(reference).probe(&["cwd"]).run();
        finished.is_clear_error();
        assert!(finished.stderr.contains(said), "{finished}");
    }
}
