//! The report tells no more than what was done.

use serde_json::Value;

use crate::require;
use crate::support::{Run, Scratch};

fn report(run: Run) -> Value {
    let scratch = Scratch::new();
    let path = scratch.join("report.json");
    run.flag("--report").arg(&path).probe(&["cwd"]).run();
    serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap()
}

#[test]
fn every_control_has_a_status() {
    require!("seatbelt");
    let report = report(Run::new());
    let status = |control: &str| report["controls"][control]["status"].clone();
    for control in [
        "filesystem",
        "network",
        "process_isolation",
        "privileges",
        "environment",
        "descriptors",
        "tree_kill",
    ] {
        assert_eq!(status(control), "enforced", "{control}\n{report:#}");
    }
    for control in ["memory", "processes"] {
        assert_eq!(status(control), "partial", "{control}\n{report:#}");
    }
    assert_eq!(status("tmp_size"), "unavailable", "{report:#}");
}

#[test]
fn host_network_is_not_called_enforced() {
    require!("seatbelt");
    let report = report(Run::new().flag("--network").arg("host"));
    assert_eq!(report["controls"]["network"]["status"], "not_requested", "{report:#}");
}

/// Inside a sandbox there can be no other: nothing is run, unless a person says so.
#[test]
fn a_sandbox_around_us_is_a_clear_error() {
    require!("seatbelt");
    let nested = |flags: &[&str]| {
        let mut run =
            Run::bare().command(&["/usr/bin/sandbox-exec", "-p", "(version 1)(allow default)"]);
        run = run.command(&[crate::support::mcp_path()]).command(&["run"]).command(flags);
        run.command(&["--", "/bin/echo", "out"]).run()
    };
    let refused = nested(&[]);
    refused.code_is(125).is_clear_error();
    assert!(refused.stderr.contains("in a sandbox already"), "{refused}");
    let asked = nested(&["--fallback", "prompt"]);
    asked.code_is(125);
    assert!(asked.stderr.contains("--fallback warn"), "{asked}");
    let warned = nested(&["--fallback", "warn"]);
    warned.code_is(0);
    assert_eq!(warned.text(), "out\n");
    assert!(warned.stderr.contains("warning"), "{warned}");
}

#[test]
fn explain_shows_the_plan_and_runs_nothing() {
    require!("seatbelt");
    let explained = Run::new().flag("--explain").probe(&["cwd"]).run();
    explained.code_is(0);
    assert!(explained.text().contains("(deny default)"), "{explained}");
    assert!(explained.outcomes.is_empty(), "{explained}");
}
