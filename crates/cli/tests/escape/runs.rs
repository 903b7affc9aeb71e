//! `mcp ps`, `kill` and `stats`: what runs, and nothing that does not.

use std::io::Write;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::require;
use crate::support::{Run, Scratch, eventually, heart_beats, heart_stops, mcp_path, patience};

/// A runtime directory of the test's own.
struct Desk {
    scratch: Scratch,
}

impl Desk {
    fn new() -> Desk {
        let scratch = Scratch::new();
        std::fs::set_permissions(scratch.path(), PermissionsExt::from_mode(0o700)).unwrap();
        Desk { scratch }
    }

    fn run(&self) -> Run {
        Run::new().env("XDG_RUNTIME_DIR", self.scratch.path())
    }

    fn mcp(&self, words: &[&str]) -> Output {
        let mut command = Command::new(mcp_path());
        command.args(words).env("XDG_RUNTIME_DIR", self.scratch.path()).output().unwrap()
    }

    /// The runs whose launcher this is; others may run on this machine as well.
    fn of(&self, launcher: u32) -> Vec<Value> {
        let listed = self.mcp(&["ps", "--json"]);
        assert!(listed.status.success(), "{listed:?}");
        let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
        listed
            .as_array()
            .unwrap()
            .iter()
            .filter(|run| run["launcher"] == launcher)
            .cloned()
            .collect()
    }

    /// The same of one that has started: its launcher lists it meanwhile.
    fn listed(&self, launcher: u32) -> Vec<Value> {
        eventually(patience(), || !self.of(launcher).is_empty());
        self.of(launcher)
    }

    fn files(&self) -> usize {
        std::fs::read_dir(self.scratch.join("mcp")).map_or(0, Iterator::count)
    }
}

#[test]
fn what_runs_is_listed_and_gone_afterwards() {
    require!("userns");
    let desk = Desk::new();
    let live = desk.run().shell("echo ready; sleep 60 & sleep 60").spawn();
    live.await_output("ready");
    let found = desk.listed(live.pid());
    assert_eq!(found.len(), 1, "{found:?}");
    let run = &found[0];
    assert_eq!(run["command"][0], "sh");
    assert!(run["memory_bytes"].as_u64().unwrap() > 0, "{run}");
    assert!((1..=10).contains(&run["processes"].as_u64().unwrap()), "{run}");
    assert!(run["cpu_seconds"].as_f64().is_some(), "{run}");

    let id = run["id"].as_str().unwrap();
    let table = desk.mcp(&["ps"]);
    assert!(String::from_utf8_lossy(&table.stdout).contains(id), "{table:?}");
    let stats = desk.mcp(&["stats", id, "--json"]);
    let stats: Value = serde_json::from_slice(&stats.stdout).unwrap();
    assert_eq!(stats["id"], *id);
    assert!(desk.mcp(&["stats", &id[..6]]).status.success());

    live.signal(libc::SIGTERM);
    live.wait();
    assert!(desk.of(live_pid(run)).is_empty());
    assert_eq!(desk.files(), 0);
}

/// While the connection is open, not only after it.
#[test]
fn what_went_over_the_network_is_counted_as_it_goes() {
    require!("userns");
    let desk = Desk::new();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = server.local_addr().unwrap().to_string();
    let silent = desk.run().shell("echo ready; sleep 60").spawn();
    silent.await_output("ready");
    let live = desk.run().allow_net(&at).probe(&["talk", &at, "12345"]).spawn();
    let (mut open, _) = server.accept().unwrap();
    open.write_all(&[b'x'; 1000]).unwrap();
    let expected = json!({"connections": 1, "bytes_out": 5, "bytes_in": 1000});
    let counted = || desk.of(live.pid()).iter().any(|run| run["network"] == expected);
    assert!(eventually(patience(), counted), "{:?}", desk.of(live.pid()));
    let id = desk.of(live.pid())[0]["id"].as_str().unwrap().to_owned();
    let shown = desk.mcp(&["stats", &id]);
    let text = String::from_utf8_lossy(&shown.stdout);
    assert!(text.contains("1 connections, 5 B sent, 1000 B received"), "{text}");
    assert_eq!(desk.listed(silent.pid())[0]["network"], Value::Null);
    drop(open);
    live.wait().code_is(0);
}

fn live_pid(run: &Value) -> u32 {
    u32::try_from(run["launcher"].as_u64().unwrap()).unwrap()
}

#[test]
fn a_run_can_be_killed_by_its_name() {
    require!("userns");
    let desk = Desk::new();
    let scratch = Scratch::new();
    let beat = scratch.open_dir("grant").join("beat");
    let act = ["loop-heartbeat".as_ref(), beat.as_os_str(), "20".as_ref()];
    let live = desk.run().write(beat.parent().unwrap()).probe(&act).spawn();
    heart_beats(&beat);
    let id = desk.listed(live.pid())[0]["id"].as_str().unwrap().to_owned();
    for wrong in ["", "zz", "ffffffffffff", "../x"] {
        let refused = desk.mcp(&["kill", wrong]);
        assert!([1, 2].contains(&refused.status.code().unwrap()), "{wrong}: {refused:?}");
    }
    heart_beats(&beat);
    let killed = desk.mcp(&["kill", &id]);
    assert!(killed.status.success(), "{killed:?}");
    heart_stops(&beat);
    live.wait().code_is(137);
    assert_eq!(desk.mcp(&["kill", &id]).status.code(), Some(1));
    assert_eq!(desk.files(), 0);
}

#[test]
fn a_killed_launcher_leaves_no_entry() {
    require!("userns");
    let desk = Desk::new();
    let live = desk.run().shell("echo ready; sleep 60").spawn();
    live.await_output("ready");
    let pid = live.pid();
    assert_eq!(desk.listed(pid).len(), 1);
    live.signal(libc::SIGKILL);
    live.wait();
    // Init has no copy of the lock, so it is gone at once.
    assert!(desk.of(pid).is_empty());
    assert_eq!(desk.files(), 0);

    let live = desk.run().shell("echo ready; sleep 60").spawn();
    live.await_output("ready");
    live.signal(libc::SIGKILL);
    live.wait();
    assert_eq!(desk.files(), 1);
    desk.run().command(&["true"]).run().code_is(0);
    assert_eq!(desk.files(), 0, "the next run takes it away");
}

/// A directory that others could have written is neither read nor written, and the run goes on.
#[test]
fn a_directory_open_to_others_is_not_used() {
    require!("userns");
    let desk = Desk::new();
    let open = desk.scratch.dir("mcp");
    std::fs::set_permissions(&open, PermissionsExt::from_mode(0o777)).unwrap();
    let nonsense = open.join("01234567.json");
    std::fs::write(&nonsense, "{}").unwrap();
    desk.run().command(&["true"]).run().code_is(0);
    assert!(desk.mcp(&["ps"]).status.success());
    assert!(nonsense.exists());
    assert_eq!(desk.files(), 1);
}

#[test]
fn nonsense_among_the_entries_is_passed_over() {
    require!("userns");
    let desk = Desk::new();
    let own = desk.scratch.dir("mcp");
    std::fs::set_permissions(&own, PermissionsExt::from_mode(0o700)).unwrap();
    std::fs::write(own.join("notes.json"), [0xff; 100]).unwrap();
    std::os::unix::fs::symlink("/dev/zero", own.join("00000001.json")).unwrap();
    std::fs::create_dir(own.join("00000002.json")).unwrap();
    assert!(Command::new("mkfifo").arg(own.join("00000003.json")).status().unwrap().success());
    let live = desk.run().shell("echo ready; sleep 60").spawn();
    live.await_output("ready");
    assert_eq!(desk.listed(live.pid()).len(), 1);
}

/// The command learns nothing of it, and cannot change it.
#[test]
fn entries_are_out_of_reach_inside() {
    require!("userns");
    let desk = Desk::new();
    let place = desk.scratch.join("mcp");
    let list = ["list".as_ref(), place.as_os_str()];
    let live = desk.run().shell("echo ready; sleep 60").spawn();
    live.await_output("ready");
    crate::support::refused(
        desk.run().probe(&list),
        Run::bare().probe(&list),
        crate::support::ABSENT,
    );
    assert_eq!(desk.listed(live.pid()).len(), 1);
}
