//! Resource limits, by what the program sees and by what happens when it goes on.

use crate::require;
use crate::support::{Outcome, Run, Scratch, allowed};

const MIB: u64 = 1 << 20;

fn limited(flag: &str, value: &str) -> Run {
    Run::new().flag(flag).arg(value)
}

fn soft(run: Run, name: &str) -> u64 {
    let outcome: Outcome = allowed(run.probe(&["rlimits"]));
    let value = outcome.field(name)[0].to_owned();
    if value == "unlimited" { u64::MAX } else { value.parse().unwrap() }
}

/// The reference implementation set them on itself, and none arrived.
#[test]
fn limits_are_seen_inside() {
    require!("seatbelt");
    assert_eq!(soft(limited("--max-fds", "50"), "nofile"), 50);
    assert_eq!(soft(limited("--max-file-size", "1M"), "fsize"), MIB);
    assert_eq!(soft(limited("--max-cpu-time", "2s"), "cpu"), 2);
    assert_eq!(soft(Run::new(), "core"), 0);
    let few = soft(limited("--max-pids", "20"), "nproc");
    let many = soft(limited("--max-pids", "200"), "nproc");
    assert!(few < many && many < u64::MAX, "{few} {many}");
}

#[test]
fn limits_cannot_be_raised() {
    require!("seatbelt");
    let run = || limited("--max-fds", "50");
    run().shell("ulimit -n 40 && test $(ulimit -n) = 40").run().code_is(0);
    let raised = run().shell("ulimit -n 60").run();
    assert_ne!(raised.code, 0, "{raised}");
}

#[test]
fn open_files() {
    require!("seatbelt");
    let act = |run: Run| run.probe(&["open-files", "100"]);
    allowed(act(Run::new()));
    let finished = act(limited("--max-fds", "50")).run();
    assert_eq!(finished.last("open-files").errno(), "EMFILE", "{finished}");
}

#[test]
fn file_size() {
    require!("seatbelt");
    let scratch = Scratch::new();
    let file = scratch.dir("grant").join("file");
    let act = |run: Run| {
        let run = run.write(file.parent().unwrap());
        run.probe(&["write-big".as_ref(), file.as_os_str(), "2097152".as_ref()])
    };
    allowed(act(Run::new()));
    let finished = act(limited("--max-file-size", "1M")).run();
    assert_eq!(finished.last("write-big").errno(), "EFBIG", "{finished}");
}

#[test]
fn processor_time() {
    require!("seatbelt");
    allowed(limited("--max-cpu-time", "5s").probe(&["spin", "0.1"]));
    let finished = limited("--max-cpu-time", "1s").probe(&["spin", "30"]).run();
    assert!([128 + libc::SIGXCPU, 137].contains(&finished.code), "{finished}");
}

#[test]
fn fork_bomb_ends() {
    require!("seatbelt");
    let bomb = "b() { b | b & }; b; while :; do b; done";
    let run = limited("--max-pids", "20").flag("--timeout").arg("2s").flag("--grace").arg("200ms");
    let finished = run.shell(bomb).run();
    finished.has_no_panic();
    assert_ne!(finished.code, 0, "{finished}");
    allowed(Run::new().probe(&["fork", "5"]));
}

/// Asserts that the run was killed for its memory and that we said so.
#[track_caller]
fn killed_for_memory(run: Run) {
    let finished = run.run();
    assert_eq!(finished.code, 137, "{finished}");
    let said = finished.stderr.lines().any(|line| line.starts_with("mcp: killed: memory limit"));
    assert!(said, "{finished}");
}

#[test]
fn private_memory() {
    require!("seatbelt");
    allowed(limited("--max-memory", "128M").probe(&["alloc", "33554432", "500"]));
    killed_for_memory(limited("--max-memory", "64M").probe(&["alloc", "209715200", "30000"]));
}

#[test]
fn memory_of_many_processes() {
    require!("seatbelt");
    let act = |limit: &str, hold: &str| {
        limited("--max-memory", limit).probe(&["fork-alloc", "8", "20971520", hold])
    };
    allowed(act("512M", "500"));
    killed_for_memory(act("64M", "30000"));
}
