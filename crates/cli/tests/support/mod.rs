//! Drives the built `mcp` with the probe program, inside and outside the sandbox.
#![allow(dead_code, unused_imports)]

mod finished;
#[cfg(target_os = "linux")]
pub mod fuse;
mod live;
#[cfg_attr(target_os = "macos", path = "needs_macos.rs")]
mod needs;
#[cfg(target_os = "linux")]
mod pty;
mod run;
mod scratch;
pub mod sys;
mod world;

pub use finished::{Finished, Outcome};
pub use live::Live;
#[cfg(target_os = "linux")]
pub use live::descendants;
pub use needs::{available, is_root, landlock_abi};
#[cfg(target_os = "linux")]
pub use needs::{cgroup, has_program, is_rootless, skip};
#[cfg(target_os = "linux")]
pub use pty::Pty;
pub use run::{Ground, PLAIN, Run, mcp_path, probe_path};
pub use scratch::Scratch;
pub use sys::{Preparation, euid};
pub use world::World;

use std::path::Path;
use std::time::{Duration, Instant};

/// No run of a test takes longer, however slow the machine: what does has hung. An emulated one sets
/// `MCP_TEST_PATIENCE`, in seconds.
pub fn patience() -> Duration {
    let set = std::env::var("MCP_TEST_PATIENCE").ok();
    Duration::from_secs(set.map_or(60, |text| text.parse().expect("MCP_TEST_PATIENCE")))
}

/// For what should be over at once: a whole minute of this in every failure would be too long.
pub fn soon() -> Duration {
    patience() / 6
}

/// What a path outside every grant answers.
pub const ABSENT: &[&str] = &["ENOENT", "EACCES", "EPERM", "ENOTDIR"];
/// What a write to something read-only answers.
pub const READ_ONLY: &[&str] = &["EROFS", "EACCES", "EPERM"];
/// What a call that is not permitted answers.
pub const FORBIDDEN: &[&str] = &["EPERM", "EACCES", "ENOSYS", "EINVAL"];
/// What a process out of sight answers.
pub const NO_PROCESS: &[&str] = &["ESRCH", "ENOENT", "EPERM", "EACCES", "ENOSYS"];
/// What an address out of reach answers.
pub const UNREACHABLE: &[&str] =
    &["ECONNREFUSED", "ENETUNREACH", "EHOSTUNREACH", "EADDRNOTAVAIL", "EACCES", "EPERM"];

/// Returns from the test when the machine lacks something, saying so; with the name in
/// `MCP_REQUIRE` that is a failure instead.
#[macro_export]
macro_rules! require {
    ($($feature:literal),+) => {
        $(if !$crate::support::available($feature) {
            return;
        })+
    };
}

/// Asserts that the last act of the run works, and gives its outcome.
#[track_caller]
pub fn allowed(run: Run) -> Outcome {
    let shown = run.to_string();
    let finished = run.run();
    let outcome = finished.last(&shown);
    assert!(outcome.ok, "should be allowed: {shown}\n{finished}");
    assert_eq!(finished.code, 0, "{shown}\n{finished}");
    outcome.clone()
}

/// Asserts that the last act of `attack` fails with one of `errnos`, and that the same act works
/// in `control`: a probe that is broken would fail in both.
#[track_caller]
pub fn refused(attack: Run, control: Run, errnos: &[&str]) {
    allowed(control);
    blocked(attack, errnos);
}

/// The half of [`refused`] for attacks that share one control.
#[track_caller]
pub fn blocked(attack: Run, errnos: &[&str]) {
    let shown = attack.to_string();
    let finished = attack.run();
    let outcome = finished.last(&shown);
    assert!(!outcome.ok, "should be refused: {shown}\n{finished}");
    assert!(errnos.contains(&outcome.errno()), "{shown}\nnone of {errnos:?}\n{finished}");
}

/// Polls until something holds; whether it did within `limit`.
pub fn eventually(limit: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + limit;
    loop {
        if holds() {
            return true;
        }
        if Instant::now() > end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn size(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |metadata| metadata.len())
}

/// Asserts that a heartbeat file starts to grow.
#[track_caller]
pub fn heart_beats(path: &Path) {
    let before = size(path);
    assert!(eventually(patience(), || size(path) > before + 2), "no heartbeat in {path:?}");
}

/// Runs with a timeout that is short, and longer where the machine was too slow for what is looked for to begin before it.
#[track_caller]
pub fn timed_out(run: impl Fn(&str) -> Run, has_begun: impl Fn(&Finished) -> bool) -> Finished {
    let mut last = None;
    for timeout in ["700ms", "3s", "12s", "48s"] {
        let finished = run(timeout).run();
        finished.code_is(124);
        if has_begun(&finished) {
            return finished;
        }
        last = Some(finished);
    }
    panic!("never began: {}", last.unwrap());
}

/// Asserts that a timeout ends the run whose heart beats in this file.
#[track_caller]
pub fn heart_stops_in_time(path: &Path, run: impl Fn(&str) -> Run) {
    timed_out(run, |_| size(path) > 0);
    heart_stops(path);
}

/// Asserts that a heartbeat file, which has grown, stops growing.
#[track_caller]
pub fn heart_stops(path: &Path) {
    assert!(size(path) > 0, "never lived: {path:?}");
    let stopped = eventually(soon(), || {
        let before = size(path);
        std::thread::sleep(Duration::from_millis(300));
        size(path) == before
    });
    assert!(stopped, "still alive: {path:?}");
}
