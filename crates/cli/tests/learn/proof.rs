//! What counts as proved, and limits that hold.

use std::fs;

use crate::require;
use crate::user::User;

/// What a person asked for and does not get is no proof.
#[test]
fn what_fails_is_not_proved() {
    require!("userns");
    let user = User::new();
    let learn = |script| user.mcp(&["learn", "--plain", "--yes", "--", "sh", "-c", script]);
    let said = learn("exit 3").exits(1);
    assert!(said.err.contains("mcp: not proved: "), "{}", said.err);
    assert!(!said.err.contains("mcp: proved"), "{}", said.err);
    let said = learn("exit 0").ok();
    assert!(said.err.contains("mcp: proved: "), "{}", said.err);
}

/// A server that does not end by itself has the grace of its policy, and what it did is known all the same.
#[test]
fn a_server_that_stays_has_its_grace() {
    require!("userns");
    let user = User::new();
    let script = user.scratch.file(
        "app/server.py",
        "import json, signal, sys, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n\
         for line in sys.stdin:\n    message = json.loads(line)\n    if 'id' in message:\n        \
         print(json.dumps({'jsonrpc': '2.0', 'id': message['id'], 'result': {'tools': []}}), flush=True)\n\
         time.sleep(1000)",
    );
    let script = script.to_str().unwrap();
    let flags = ["learn", "--yes", "--grace", "9s", "--", "python3", "-S", script];
    let said = user.mcp(&flags).ok();
    assert!(said.err.contains("mcp: proved: "), "{}", said.err);
}

/// Before anything runs.
#[test]
fn a_place_that_cannot_be_written_is_told_at_once() {
    let user = User::new();
    user.scratch.dir("place");
    for place in ["missing/learned.toml", "place"] {
        let said = user.mcp(&["learn", "--plain", "--yes", "-o", place, "--", "true"]).exits(2);
        assert!(said.err.contains(place) && !said.err.contains("round 1"), "{}", said.err);
    }
}

/// The third start is the proof. What it needs beyond the peak of the first two it gets.
#[test]
fn a_limit_that_is_too_small_in_the_proof_is_raised() {
    require!("userns");
    let user = User::new();
    let count = user.scratch.open_dir("count").display().to_string();
    let script = format!(
        "import os\nplace = {count:?}\nstarts = len(os.listdir(place))\n\
         open(f'{{place}}/{{starts}}', 'w').close()\nif starts >= 2: b'x' * (100 << 20)"
    );
    let command = ["--", "python3", "-S", "-c", &script];
    let flags = ["learn", "--plain", "--yes", "--write", &count, "-o", "learned.toml"];
    let said = user.mcp(&[&flags[..], &command].concat()).ok();
    assert!(said.err.contains("mcp: proved: "), "{}", said.err);
    assert!(fs::read_dir(&count).unwrap().count() > 3, "{}", said.err);
    user.mcp(&[&["run", "-q", "--policy", "learned.toml"], &command[..]].concat()).ok();
    // The control: the peak of the first two and half as much again is too little.
    let small = ["run", "-q", "--write", &count, "--max-memory", "48M"];
    assert_ne!(user.mcp(&[&small[..], &command].concat()).code, 0);
}
