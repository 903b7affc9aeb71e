//! Limits of the job.

use crate::support::{Run, allowed, blocked_by, holds};

#[test]
fn memory() {
    let run = |limit: &str| Run::new().flag("--max-memory").flag(limit);
    allowed(run("256M").probe(&["alloc", "67108864"]));
    blocked_by("limits", run("64M").probe(&["alloc", "268435456"]));
}

#[test]
fn processes() {
    let run = |limit: &str| Run::new().flag("--max-pids").flag(limit);
    allowed(run("32").probe(&["fork", "8"]));
    blocked_by("limits", run("4").probe(&["fork", "8"]));
    if holds("limits") {
        let finished = run("4").probe(&["fork", "8"]).run();
        assert!(finished.stderr.contains("process limit 4 reached"), "{finished:#?}");
    }
}

#[test]
fn processor_share() {
    if !holds("cpu_rate") {
        return;
    }
    let scratch = crate::support::Scratch::new();
    let path = scratch.join("report.json");
    let run = Run::new().flag("--max-cpu").flag("100").flag("--report").flag(&path);
    run.probe(&["spin", "2"]).run().code_is(0);
    let report: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let seconds = |name: &str| report["usage"][name].as_f64().unwrap();
    assert!(seconds("cpu_seconds") < 0.5 * seconds("wall_seconds"), "{report:#}");
}

#[test]
fn desktop() {
    if !holds("ui") {
        return;
    }
    let scratch = crate::support::Scratch::new();
    let path = scratch.join("report.json");
    Run::new().flag("--report").flag(&path).probe(&["exit", "0"]).run().code_is(0);
    let report = std::fs::read_to_string(path).unwrap();
    assert!(report.contains("restrictions were read back"), "{report}");
}
