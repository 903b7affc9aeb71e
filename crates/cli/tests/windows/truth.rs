//! What is said to hold, holds; what does not, is named.

use serde_json::Value;

use crate::support::{Run, Scratch, doctor, missing};

const BOUNDARIES: [&str; 4] = ["filesystem", "network", "process_isolation", "privileges"];

fn report(run: Run) -> Value {
    let scratch = Scratch::new();
    let path = scratch.join("report.json");
    run.flag("--report").flag(&path).probe(&["exit", "0"]).run();
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn status<'a>(report: &'a Value, control: &str) -> &'a str {
    report["controls"][control]["status"].as_str().unwrap()
}

#[test]
fn without_a_container_nothing_starts_and_the_boundaries_are_named() {
    let finished = Run::strict().probe(&["exit", "0"]).run();
    match missing("container") {
        None => drop(finished.code_is(0)),
        Some(why) => {
            finished.code_is(125);
            for boundary in BOUNDARIES {
                assert!(finished.stderr.contains(boundary), "{boundary}: {finished:#?}");
            }
            assert!(finished.stderr.contains(&why), "{why}: {finished:#?}");
            assert!(finished.stderr.contains("--fallback warn"), "{finished:#?}");
            let warned = Run::strict().flag("--fallback").flag("warn").probe(&["exit", "3"]).run();
            assert!(warned.stderr.contains("warning: filesystem"), "{warned:#?}");
            warned.code_is(3);
        }
    }
}

/// A report never claims what the probes say does not hold, and claims what they say does.
#[test]
fn report_and_doctor_agree() {
    let report = report(Run::new());
    let walls = missing("container").is_none();
    for boundary in ["filesystem", "network"] {
        assert_eq!(status(&report, boundary) == "enforced", walls, "{boundary} {report:#}");
    }
    for limit in ["memory", "processes"] {
        let held = missing("limits").is_none();
        assert_eq!(status(&report, limit) == "enforced", held, "{limit} {report:#}");
    }
    assert_eq!(status(&report, "tree_kill"), "enforced", "{report:#}");
    assert_eq!(status(&report, "descriptors"), "enforced", "{report:#}");
    assert_eq!(status(&report, "open_files"), "unavailable", "{report:#}");
}

#[test]
fn strict_refuses_every_gap() {
    // Windows bounds no handles, so there always is one.
    let finished = Run::new().flag("--strict").probe(&["exit", "0"]).run();
    finished.code_is(125);
    assert!(finished.stderr.contains("open_files"), "{finished:#?}");
}

#[test]
fn what_is_not_built_is_a_gap() {
    for (flag, value, control) in [
        ("--allow-net", "api.github.com:443", "network"),
        ("--deny", "**/.env", "deny"),
        ("--allow-unix", r"C:\x.sock", "network"),
    ] {
        let finished = Run::strict().flag(flag).flag(value).probe(&["exit", "0"]).run();
        finished.code_is(125);
        let named = finished.stderr.contains(&format!("{control} cannot be enforced"));
        assert!(named, "{flag}: {finished:#?}");
    }
}

#[test]
fn doctor_says_what_it_tried() {
    let found = doctor();
    let lines: Vec<&Value> = found["mechanisms"].as_array().unwrap().iter().collect();
    let mark = |topic: &str| {
        let line = lines.iter().find(|line| line["topic"] == topic).unwrap();
        line["mark"].as_str().unwrap().to_owned()
    };
    assert_eq!(mark("job objects"), "holds", "{found:#}");
    for (topic, fact) in
        [("AppContainer", "container"), ("restricted token", "token"), ("job limits", "limits")]
    {
        assert_eq!(mark(topic) == "holds", missing(fact).is_none(), "{topic} {found:#}");
    }
    let enforced = found["default_policy_enforced"].as_bool().unwrap();
    assert_eq!(enforced, missing("container").is_none() && missing("token").is_none(), "{found:#}");
    // Without a container there is nothing that the drive's root could be tried with.
    let untried = |line: &Value| {
        line["text"] == "not tried"
            && (line["topic"] != "drive root" || missing("container").is_none())
    };
    assert!(!lines.iter().any(|line| untried(line)), "{found:#}");
}

#[test]
fn explain_says_the_same_and_starts_nothing() {
    let finished = Run::strict().flag("--explain").flag("--json").probe(&["exit", "9"]).run();
    finished.code_is(0);
    let plan: Value = serde_json::from_str(&finished.stdout).unwrap();
    let planned = plan["controls"]["filesystem"]["status"] == "enforce";
    assert_eq!(planned, missing("container").is_none(), "{plan:#}");
}
