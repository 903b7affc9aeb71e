//! `mcp export`: what comes out is what its reader takes, and means what the policy says.
//!
//! `kubernetes-validate` (PyPI) and `systemd-analyze` are used where they are: without them a test says so and ends.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "support/mod.rs"]
mod support;

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use support::{Scratch, mcp_path};

const IMAGE: &str = "registry.example.com/notes@sha256:0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a";

/// Where `.ci/run tools` puts it, and where pip does.
const VALIDATORS: [&str; 2] = [
    concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../target/kubernetes-validate/bin/kubernetes-validate"
    ),
    "kubernetes-validate",
];

fn export(words: &[&str], directory: &Path) -> Output {
    let home = directory.join("home");
    std::fs::create_dir_all(&home).unwrap();
    Command::new(mcp_path())
        .arg("export")
        .args(words)
        .current_dir(directory)
        .env("HOME", &home)
        .env_remove("XDG_CONFIG_HOME")
        .output()
        .unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn succeeded(output: &Output) -> String {
    assert!(output.status.success(), "{}", stderr(output));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn has(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|it| it.status.success())
}

/// Policies as different as they can be, each a line of `mcp run`.
fn lines() -> Vec<Vec<String>> {
    let networks: [&[&str]; 6] = [
        &[],
        &["--allow-net", "api.example.com"],
        &["--allow-net", "10.1.0.0/16:5432", "--allow-net", "udp://9.9.9.9:53"],
        &["--allow-net", "public"],
        &["--allow-net", "[2001:4860::/32]:*", "--allow-net", "*.example.com:8443"],
        &["--network", "host"],
    ];
    let limits: [&[&str]; 5] = [
        &[],
        &["--max-memory", "64M", "--max-cpu", "250", "--max-pids", "32"],
        &["--max-memory", "none", "--max-pids", "none", "--max-tmp", "1000000"],
        &["--timeout", "10m", "--grace", "90s", "--max-io", "10M/s"],
        &["--max-fds", "64", "--max-file-size", "1M", "--max-cpu-time", "1m", "--no-subprocess"],
    ];
    let rest: [&[&str]; 2] = [
        &["--env", "GREETING=a: b # c\n- d \"e\" 'f' %n $(HOME) {{x}}"],
        &["--secret", "API_KEY=env:API_KEY", "--read", "/usr/share/doc", "--deny", "**/.env"],
    ];
    let mut all = Vec::new();
    for network in networks {
        for limit in limits {
            for other in rest {
                let words = network.iter().chain(limit).chain(other).copied();
                let command = ["--", "notes-server", "--- \"x\": |", "%h\n- y"];
                all.push(words.chain(command).map(str::to_owned).collect());
            }
        }
    }
    assert_eq!(all.len(), 60);
    all
}

#[test]
fn sixty_policies_are_valid_for_kubernetes_old_and_new() {
    let Some(validate) = VALIDATORS.iter().find(|program| has(program)) else {
        return println!("SKIP: no kubernetes-validate here (pip install kubernetes-validate)");
    };
    let scratch = Scratch::new();
    let mut files = Vec::new();
    for (number, line) in lines().iter().enumerate() {
        let kind: &[&str] = match number % 3 {
            0 => &["--replicas", "2", "--namespace", "team-a"],
            1 => &["--ingress-namespace", "ingress-nginx"],
            _ => &[],
        };
        let first = ["kubernetes", "--image", IMAGE].into_iter().chain(kind.iter().copied());
        let words: Vec<&str> = first.chain(line.iter().map(String::as_str)).collect();
        let text = succeeded(&export(&words, scratch.path()));
        let file = scratch.path().join(format!("{number}.yaml"));
        std::fs::write(&file, text).unwrap();
        files.push(file);
    }
    for version in ["1.25", "1.37"] {
        let checked =
            Command::new(validate).args(["--strict", "-k", version]).args(&files).output().unwrap();
        assert!(
            checked.status.success(),
            "{version}: {}{}",
            String::from_utf8_lossy(&checked.stdout),
            stderr(&checked)
        );
    }
    // The control: it notices a field that does not exist.
    let wrong = std::fs::read_to_string(&files[0]).unwrap().replace("hostUsers", "hostUser");
    std::fs::write(&files[0], wrong).unwrap();
    let checked =
        Command::new(validate).args(["--strict", "-k", "1.37"]).arg(&files[0]).output().unwrap();
    assert!(!checked.status.success(), "a misspelt field passed");
}

#[test]
fn units_are_sound_and_score_well() {
    if !has("systemd-analyze") {
        return println!("SKIP: no systemd-analyze here");
    }
    let scratch = Scratch::new();
    // Each network once; `network = "host"` asks for an open unit.
    for line in lines()
        .into_iter()
        .step_by(12)
        .filter(|line| line[0] != "--network")
        .chain([lines()[0].clone()])
    {
        let program = mcp_path();
        let first =
            ["systemd", "--json", "--mcp", program.to_str().unwrap(), "--resolver", "192.168.1.1"];
        let words: Vec<&str> = first.into_iter().chain(line.iter().map(String::as_str)).collect();
        let json: Value =
            serde_json::from_str(&succeeded(&export(&words, scratch.path()))).unwrap();
        let mut units = Vec::new();
        for file in json["servers"][0]["files"].as_array().unwrap() {
            let path = scratch.path().join(file["name"].as_str().unwrap());
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, file["text"].as_str().unwrap()).unwrap();
            if !path.to_str().unwrap().ends_with(".toml") {
                units.push(path);
            }
        }
        let verified = Command::new("systemd-analyze").arg("verify").args(&units).output().unwrap();
        let told = stderr(&verified);
        let about_ours: Vec<&str> =
            told.lines().filter(|line| line.contains("mcp-server")).collect();
        assert!(about_ours.is_empty(), "{about_ours:#?}");
        let scored = Command::new("systemd-analyze")
            .args(["security", "--offline=true", "--threshold=20"])
            .arg(&units[0])
            .output()
            .unwrap();
        assert!(scored.status.success(), "{line:?}: {}", String::from_utf8_lossy(&scored.stdout));
    }
}

#[test]
fn what_is_exported_can_be_served() {
    let scratch = Scratch::new();
    let source = "hosts = ['mcp.example.com']\n[limits]\nidle = '1m'\n[servers.notes]\nrun = ['--max-memory', '64M', 'cat', '-u']\n\
                  [servers.other]\nrun = ['cat']\n";
    std::fs::write(scratch.path().join("servers.toml"), source).unwrap();
    let out = scratch.path().join("out");
    let output = export(
        &["systemd", "--output", out.to_str().unwrap(), "servers.toml", "notes"],
        scratch.path(),
    );
    succeeded(&output);
    let file = out.join("mcp-notes/servers.toml");
    let checked = Command::new(mcp_path()).args(["serve", "--check"]).arg(&file).output().unwrap();
    assert!(checked.status.success(), "{}", stderr(&checked));
    assert!(stderr(&checked).contains("/mcp/notes"), "{}", stderr(&checked));
    assert!(!out.join("mcp-other.service").exists());
    let policy = out.join("mcp-notes/policy.toml");
    let checked = Command::new(mcp_path()).args(["policy", "check"]).arg(&policy).output().unwrap();
    assert!(checked.status.success(), "{}", stderr(&checked));
    assert!(std::fs::read_to_string(&policy).unwrap().contains("memory = \"64 MiB\""));
    // What is there stays.
    let again = export(
        &["systemd", "--output", out.to_str().unwrap(), "servers.toml", "notes"],
        scratch.path(),
    );
    assert_eq!(again.status.code(), Some(2), "{}", stderr(&again));
    // Beside a servers.toml names will do, and an unknown one is told.
    assert!(
        succeeded(&export(&["systemd", "notes"], scratch.path())).contains("mcp-notes.service")
    );
    let unknown = export(&["systemd", "servers.toml", "nots"], scratch.path());
    assert!(stderr(&unknown).contains("it has: notes, other"), "{}", stderr(&unknown));
}

/// The user's own settings are a part of the policy, and stay behind: so they are in the output.
#[test]
fn the_users_own_settings_go_along() {
    let scratch = Scratch::new();
    let words = ["systemd", "--json", "--read", "/usr/share", "--", "cat"];
    let before = succeeded(&export(&words, scratch.path()));
    assert!(!before.contains("**/.env"));
    let config = scratch.path().join("home/.config/mcp");
    std::fs::create_dir_all(&config).unwrap();
    std::fs::write(config.join("config.toml"), "[filesystem]\ndeny = ['**/.env']\n").unwrap();
    let after = succeeded(&export(&words, scratch.path()));
    assert!(after.contains("**/.env"), "{after}");
}

#[test]
fn gaps_are_told_and_strict_refuses_them() {
    let scratch = Scratch::new();
    let words = ["kubernetes", "--image", IMAGE, "--deny", "**/.env", "--", "cat"];
    let output = export(&words, scratch.path());
    assert!(succeeded(&output).contains("# deny               UNAVAILABLE"));
    assert!(stderr(&output).contains("unavailable: deny"), "{}", stderr(&output));
    let strict = export(
        &["kubernetes", "--strict", "--image", IMAGE, "--deny", "**/.env", "--", "cat"],
        scratch.path(),
    );
    assert_eq!(strict.status.code(), Some(125), "{}", stderr(&strict));
    assert!(strict.stdout.is_empty());
}

#[test]
fn mistakes_are_refused_with_what_to_type() {
    let scratch = Scratch::new();
    std::fs::write(scratch.path().join("policy.toml"), "[limits]\nmemory = '64M'\n").unwrap();
    for (words, said) in [
        (&["kubernetes", "cat"][..], "--image HOST/NAME@sha256:DIGEST"),
        (&["kubernetes", "--image", "registry.example.com/x:1", "cat"], "has no digest"),
        (&["systemd", "--cilium", "cat"], "--cilium means nothing for systemd"),
        (
            &["kubernetes", "--image", IMAGE, "--listen", "127.0.0.1:1", "cat"],
            "--listen means nothing",
        ),
        (
            &["kubernetes", "--image", IMAGE, "--deadline", "1h", "cat"],
            "--deadline is for --kind sandbox",
        ),
        (&["kubernetes", "--image", IMAGE, "--write", "/srv", "cat"], "--volume /srv=CLAIM"),
        (&["systemd", "policy.toml"], "mcp export TARGET --policy policy.toml COMMAND"),
        (&["systemd", "--max-memroy", "1", "cat"], "max-memroy"),
        (&["systemd", "--name", "a b", "cat"], "letters, digits"),
    ] {
        let output = export(words, scratch.path());
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(said), "{words:?}: {}", stderr(&output));
    }
}

/// A value that looks like a secret is told; a reference is not resolved.
#[test]
fn values_of_secrets_do_not_come_out() {
    let scratch = Scratch::new();
    let output = Command::new(mcp_path())
        .args(["export", "systemd", "--json", "--secret", "API_KEY=env:API_KEY", "--", "cat"])
        .env("API_KEY", "hunter2")
        .env("HOME", scratch.path())
        .output()
        .unwrap();
    assert!(!succeeded(&output).contains("hunter2"));
    let told = export(&["systemd", "--env", "GITHUB_TOKEN=hunter2", "--", "cat"], scratch.path());
    assert!(stderr(&told).contains("--secret GITHUB_TOKEN=env:GITHUB_TOKEN"), "{}", stderr(&told));
    assert!(!stderr(&told).contains("hunter2"));
}
