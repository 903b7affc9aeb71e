//! Resource limits, by what the program sees and by what happens when it goes on.

use crate::shared::limits::{killed_for_memory, limited};
use crate::support::{Outcome, Run, allowed};
use crate::{require, shared_attacks};

shared_attacks! { "seatbelt", limits:
    limits_cannot_be_raised;
    open_files;
    file_size;
    processor_time;
    memory_of_many_processes;
}

const MIB: u64 = 1 << 20;

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
fn fork_bomb_ends() {
    require!("seatbelt");
    let bomb = "b() { b | b & }; b; while :; do b; done";
    let run = limited("--max-pids", "20").flag("--timeout").arg("2s").flag("--grace").arg("200ms");
    let finished = run.shell(bomb).run();
    finished.has_no_panic();
    assert_ne!(finished.code, 0, "{finished}");
    allowed(Run::new().probe(&["fork", "5"]));
}

#[test]
fn private_memory() {
    require!("seatbelt");
    allowed(limited("--max-memory", "128M").probe(&["alloc", "33554432", "500"]));
    killed_for_memory(limited("--max-memory", "64M").probe(&["alloc", "209715200", "30000"]));
}
