//! Proposals from the refusals of ordinary runs, and the difference of two policies.

use std::fs;

use crate::require;
use crate::user::User;

/// A run that asks for a public address twice and for one of a private network.
fn run_that_is_refused(user: &User) {
    let connect =
        "for at in 192.0.2.7/443 192.0.2.7/443 10.1.2.3/80; do (exec 3<>/dev/tcp/$at); done; true";
    user.mcp(&["run", "--allow-net", "localhost:9", "--", "bash", "-c", connect]).ok();
}

#[test]
fn refusals_of_ordinary_runs_become_rules() {
    require!("userns");
    let user = User::new();
    user.mcp(&["learn", "--from-log", "bash"]).exits(1);
    run_that_is_refused(&user);
    let said = user.mcp(&["learn", "--from-log", "bash"]).ok();
    assert!(said.out.contains("\"192.0.2.7:443\", # 2 times"), "{}", said.out);
    assert!(!said.out.contains("10.1.2.3"), "{}", said.out);
    assert!(
        said.err.contains("asked for, not proposed: 10.1.2.3:80 (a private network)"),
        "{}",
        said.err
    );
    // The control: with --sensitive the same is proposed.
    let said = user.mcp(&["learn", "--from-log", "bash", "--sensitive", "-o", "learned.toml"]).ok();
    assert_eq!(said.out, "");
    let text = fs::read_to_string(user.path("learned.toml")).unwrap();
    assert!(text.contains("\"10.1.2.3:80\", # once"), "{text}");
    user.mcp(&["policy", "check", "learned.toml"]).ok();
    // `mcp log --suggest` is the same.
    let suggested = user.mcp(&["log", "--suggest", "bash"]).ok();
    assert!(suggested.out.contains("\"192.0.2.7:443\", # 2 times"), "{}", suggested.out);
    user.mcp(&["log", "--suggest", "no-such-program"]).exits(1);
}

#[test]
fn a_merge_keeps_the_file_and_shows_the_difference() {
    require!("userns");
    let user = User::new();
    run_that_is_refused(&user);
    let mine = "# mine\n[network]\nallow = [\"example.com\"] # why\n";
    fs::write(user.path("server.toml"), mine).unwrap();
    let said = user.mcp(&["learn", "--from-log", "bash", "--merge", "server.toml"]).ok();
    assert!(said.out.contains("+    \"192.0.2.7:443\", # 2 times"), "{}", said.out);
    let text = fs::read_to_string(user.path("server.toml")).unwrap();
    assert!(text.starts_with("# mine\n[network]\nallow = [\"example.com\",\n"), "{text}");
    assert!(text.contains("] # why\n"), "{text}");
    let again = user.mcp(&["learn", "--from-log", "bash", "--merge", "server.toml"]).ok();
    assert!(again.err.contains("has all of it already"), "{}", again.err);
    assert_eq!(fs::read_to_string(user.path("server.toml")).unwrap(), text);
}

#[test]
fn policies_are_compared_by_what_they_give() {
    let user = User::new();
    user.scratch.file("a.toml", "[filesystem]\nread = [\"/srv/a\"]\n[limits]\nmemory = \"64M\"\n");
    user.scratch
        .file("b.toml", "[limits]\nmemory = \"128M\"\n[filesystem]\nwrite = [\"/srv/a\"]\n");
    user.scratch
        .file("c.toml", "limits = { memory = \"64 MiB\" }\nfilesystem = { read = [\"/srv/a\"] }\n");
    let said = user.mcp(&["policy", "diff", "a.toml", "b.toml"]).exits(1);
    assert_eq!(
        said.out,
        "- filesystem.read: /srv/a  (narrower)\n+ filesystem.write: /srv/a  (wider)\n~ limits.memory: 64 MiB → 128 MiB  (wider)\n"
    );
    let same = user.mcp(&["policy", "diff", "a.toml", "c.toml"]).ok();
    assert_eq!(same.out, "");
    let json = user.mcp(&["policy", "diff", "a.toml", "b.toml", "--json"]).exits(1);
    let changes: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(changes[1]["effect"], "wider");
    user.mcp(&["policy", "diff", "a.toml", "missing.toml"]).exits(2);
}
