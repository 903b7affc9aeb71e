//! The report says what the kernel answered, in a form that machines read.

use std::fs;

use serde_json::Value;

use crate::require;
use crate::support::{Finished, Run, Scratch, cgroup};

fn report(run: Run) -> (Finished, Value) {
    let scratch = Scratch::new();
    let file = scratch.join("report.json");
    let finished = run.flag("--report").arg(&file).probe(&["cwd"]).run();
    let text = fs::read_to_string(&file).unwrap_or_else(|error| panic!("{error}\n{finished}"));
    (finished, serde_json::from_str(&text).unwrap())
}

fn status<'a>(report: &'a Value, control: &str) -> &'a str {
    report["controls"][control]["status"].as_str().unwrap_or("missing")
}

#[test]
fn every_control_has_a_status() {
    require!("userns");
    let (finished, report) = report(Run::new());
    finished.code_is(0);
    let controls = report["controls"].as_object().unwrap();
    assert!(controls.len() >= 8, "{report:#}");
    for (name, control) in controls {
        let status = control["status"].as_str().unwrap_or("missing");
        let known = ["enforced", "partial", "unavailable", "not_requested"];
        assert!(known.contains(&status), "{name}: {status}");
    }
    for control in [
        "filesystem",
        "network",
        "process_isolation",
        "privileges",
        "environment",
        "descriptors",
        "tree_kill",
        "processes",
        "open_files",
        "tmp_size",
    ] {
        assert_eq!(status(&report, control), "enforced", "{control}: {report:#}");
    }
    let memory = if cgroup().is_none() { "enforced" } else { "partial" };
    assert_eq!(status(&report, "memory"), memory, "{report:#}");
}

#[test]
fn host_network_is_not_called_enforced() {
    require!("userns");
    let (_, report) = report(Run::new().flag("--network").arg("host"));
    assert_eq!(status(&report, "network"), "not_requested", "{report:#}");
}

#[test]
fn report_is_written_when_the_run_fails() {
    require!("userns");
    let scratch = Scratch::new();
    let file = scratch.join("report.json");
    let run = Run::new().flag("--report").arg(&file).flag("--timeout").arg("300ms");
    run.flag("--grace").arg("100ms").probe(&["sleep", "50"]).run().code_is(124);
    let value: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert!(value["controls"].is_object(), "{value:#}");
}

#[test]
fn report_is_out_of_reach_of_the_program() {
    require!("userns");
    let scratch = Scratch::new();
    let file = scratch.join("report.json");
    let text = file.to_str().unwrap().to_owned();
    let run = Run::new().flag("--report").arg(&file);
    let finished = run.probe(&["write", &text]).probe(&["create", &text]).run();
    assert!(finished.outcomes.iter().all(|outcome| !outcome.ok), "{finished}");
    assert!(serde_json::from_str::<Value>(&fs::read_to_string(&file).unwrap()).is_ok());
}

#[test]
fn report_that_cannot_be_written_is_an_error() {
    require!("userns");
    let finished =
        Run::new().flag("--report").arg("/no/such/dir/report.json").probe(&["cwd"]).run();
    finished.has_no_panic();
    assert_ne!(finished.code, 0, "{finished}");
    assert!(finished.stderr.contains("/no/such/dir"), "{finished}");
}

#[test]
fn explain_shows_the_plan_and_runs_nothing() {
    require!("userns");
    let scratch = Scratch::new();
    let proof = scratch.dir("grant").join("ran");
    let run = || {
        let run = Run::new().flag("--explain").write(proof.parent().unwrap());
        run.probe(&["create".as_ref(), proof.as_os_str()])
    };
    let text = run().run();
    text.code_is(0);
    assert!(text.text().contains(scratch.path().to_str().unwrap()), "{text}");
    let json = run().flag("--json").run();
    json.code_is(0);
    assert!(serde_json::from_slice::<Value>(&json.stdout).is_ok(), "{json}");
    assert!(!proof.exists(), "it ran");
}

#[test]
fn quiet_says_nothing_of_its_own() {
    require!("userns");
    let finished = Run::new().flag("--quiet").probe(&["cwd"]).run();
    finished.code_is(0);
    assert_eq!(finished.stderr, "");
}

#[test]
fn explain_fetches_no_secret_and_makes_no_home() {
    require!("userns");
    let scratch = Scratch::new();
    let (trace, data) = (scratch.join("trace"), scratch.join("data"));
    let secret = format!("T=cmd:touch '{}'; echo x", trace.display());
    let run = || Run::new().env("XDG_DATA_HOME", &data).flag("--secret").arg(&secret);
    let explained = run().flag("--home").arg("name").flag("--explain").probe(&["cwd"]).run();
    explained.code_is(0);
    assert!(!trace.exists() && !data.exists(), "{explained}");
    run().flag("--home").arg("name").probe(&["cwd"]).run().code_is(0);
    assert!(trace.exists() && data.exists());
}

#[test]
fn kept_home_is_not_called_bounded() {
    require!("userns");
    let scratch = Scratch::new();
    let data = scratch.join("data");
    let run = Run::new().env("XDG_DATA_HOME", &data).flag("--home").arg("name");
    let (_, report) = report(run);
    assert_eq!(status(&report, "tmp_size"), "partial", "{report:#}");
}

/// What was killed is counted too.
#[test]
fn usage_counts_those_who_were_killed() {
    require!("userns");
    let scratch = Scratch::new();
    let file = scratch.join("report.json");
    let seconds = || {
        let report: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        report["usage"]["cpu_seconds"].as_f64().unwrap()
    };
    let spins = |timeout: &str| {
        let run = Run::new().flag("--report").arg(&file).flag("--timeout").arg(timeout);
        run.flag("--grace").arg("100ms").shell("trap '' TERM; while :; do :; done")
    };
    crate::support::timed_out(spins, |_| seconds() > 0.1);
    // And those whom the command left behind.
    let run = Run::new().flag("--report").arg(&file);
    run.shell("(while :; do :; done) & until [ $(cut -d ' ' -f 14 /proc/$!/stat) -gt 20 ]; do sleep 0.05; done").run().code_is(0);
    assert!(seconds() > 0.1, "{}", seconds());
}

/// A directory that the command may write is one where it can plant links for the next run.
#[test]
fn report_is_not_written_through_a_symlink() {
    require!("userns");
    let scratch = Scratch::new();
    let victim = scratch.file("victim", "precious");
    let file = scratch.join("report.json");
    std::os::unix::fs::symlink(&victim, &file).unwrap();
    let finished = Run::new().flag("--report").arg(&file).probe(&["cwd"]).run();
    finished.is_clear_error();
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    fs::remove_file(&file).unwrap();
    Run::new().flag("--report").arg(&file).probe(&["cwd"]).run().code_is(0);
}

#[test]
fn command_cannot_write_into_its_report() {
    require!("userns");
    let scratch = Scratch::new();
    let file = scratch.join("report.json");
    // Longer than any report, and not on the command line, which is in the report.
    let fill = ["sh", "-c", "head -c 100000 /dev/zero | tr '\\0' x > \"$0\""];
    let run = Run::new().write(scratch.path()).flag("--report").arg(&file);
    run.command(&fill).command(&[&file]).run().code_is(0);
    let report: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert!(report["controls"].is_object());
}

/// However early a run fails: what an earlier one left must not pass for its report.
#[test]
fn an_old_report_does_not_stay_for_a_run_that_never_started() {
    let scratch = Scratch::new();
    let file = scratch.join("report.json");
    let missing = scratch.join("missing");
    let early: [(&str, Run); 4] = [
        ("no command", Run::new().command(&["mcp-no-such-command"])),
        ("no grant", Run::new().read(&missing).command(&["true"])),
        ("no policy", Run::new().flag("--policy").arg(&missing).command(&["true"])),
        ("strict", Run::new().flag("--strict").flag("--max-cpu-time").arg("9s").command(&["true"])),
    ];
    for (what, run) in early {
        fs::write(&file, "{\"ending\": {\"exited\": 0}, \"exit_code\": 0}").unwrap();
        let finished = run.flag("--report").arg(&file).run();
        assert_ne!(finished.code, 0, "{what}: {finished}");
        let text = fs::read_to_string(&file).unwrap();
        let report: Value = serde_json::from_str(&text).unwrap_or_else(|e| panic!("{e}: {text}"));
        let why = report["ending"]["not_started"].as_str();
        assert!(why.is_some_and(|why| !why.is_empty()), "{what}: {report:#}");
        assert_eq!(report["exit_code"], finished.code, "{what}: {report:#}");
        let enforced = report["controls"].as_object().unwrap().values();
        let claims = enforced.filter(|it| it["status"] == "enforced" || it["status"] == "partial");
        assert_eq!(claims.count(), 0, "{what}: {report:#}");
    }
}

/// A project that may be written, and what the report in it says in the end.
fn in_grant(script: &str) -> (Scratch, Finished, String) {
    let scratch = Scratch::new();
    let project = scratch.open_dir("project");
    scratch.open_dir("project/out");
    let file = project.join("out/report.json");
    let run = Run::new().write(&project).cwd(&project).flag("--report").arg("out/report.json");
    let finished = run.shell(script).run();
    let text = fs::read_to_string(&file).unwrap_or_default();
    (scratch, finished, text)
}

const FORGED: &str = r#"echo '{"ending":{"exited":0},"exit_code":0,"forged":true}'"#;

#[test]
fn a_report_that_the_command_replaced_is_put_in_place_anew() {
    require!("userns");
    for way in [
        "true".to_owned(),
        format!("rm out/report.json; {FORGED} > out/report.json"),
        format!("{FORGED} > f; mv f out/report.json"),
        format!("{FORGED} > f; rm out/report.json; ln -s ../f out/report.json"),
        format!("{FORGED} > f; rm out/report.json; ln f out/report.json"),
        "rm out/report.json; mkfifo out/report.json".to_owned(),
        "rm out/report.json; mkdir -p out/report.json/x".to_owned(),
        "rm out/report.json".to_owned(),
        format!("rm out/report.json; {FORGED} > out/report.json; chmod 555 out"),
        format!("mv out gone; mkdir out; {FORGED} > out/report.json"),
    ] {
        let (scratch, finished, text) = in_grant(&format!("{way}; exit 3"));
        finished.code_is(3);
        let report: Value = serde_json::from_str(&text)
            .unwrap_or_else(|e| panic!("{way}: {e}: {text}\n{finished}"));
        assert_eq!(report["exit_code"], 3, "{way}: {report:#}");
        assert!(report["controls"].is_object(), "{way}: {report:#}");
        let name = scratch.join("project/out/report.json");
        assert!(fs::symlink_metadata(name).unwrap().is_file(), "{way}");
    }
}

/// The path that people read leads to nothing of the command's, and the run's own ending is the answer.
#[test]
fn a_directory_of_the_report_that_becomes_a_link_is_not_followed() {
    require!("userns");
    let way =
        format!("mv out gone; mkdir other; {FORGED} > other/report.json; ln -s other out; exit 3");
    let (scratch, finished, text) = in_grant(&way);
    finished.code_is(3);
    assert_eq!(text, "", "{finished}");
    assert!(finished.stderr.contains("the report is not written"), "{finished}");
    let forged = fs::read_to_string(scratch.join("project/other/report.json")).unwrap();
    assert!(forged.contains("forged"), "{forged}");
}

#[test]
fn a_directory_that_is_a_link_leads_no_report_elsewhere() {
    require!("userns");
    let scratch = Scratch::new();
    let victim = scratch.file("victim/report.json", "precious");
    let project = scratch.open_dir("project");
    std::os::unix::fs::symlink(scratch.join("victim"), project.join("out")).unwrap();
    for path in ["out/report.json", "./out/../out/report.json"] {
        let run = || Run::new().cwd(&project).flag("--report").arg(path).command(&["true"]);
        let refused = run().run();
        refused.is_clear_error();
        assert!(refused.stderr.contains("symlink"), "{refused}");
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    }
    // Positive control: by its own path, which may have `..` in it.
    let run = Run::new().cwd(&project).flag("--report").arg("../victim/report.json");
    run.command(&["true"]).run().code_is(0);
    assert!(fs::read_to_string(&victim).unwrap().contains("controls"));
}

#[test]
fn a_pipe_in_the_place_of_the_report_does_not_hold_up_the_start() {
    let scratch = Scratch::new();
    let pipe = scratch.join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let run = || Run::new().flag("--report").arg(&pipe).command(&["true"]);
    let finished = run().run();
    finished.is_clear_error();
    assert!(finished.stderr.contains("is not a regular file"), "{finished}");
    // With a program at its other end as well.
    let _reader = fs::File::options().read(true).write(true).open(&pipe).unwrap();
    run().run().is_clear_error();
}

/// What has run is never told as not started, whatever init dies of.
#[test]
fn a_run_whose_init_fails_has_run() {
    require!("userns");
    let scratch = Scratch::new();
    let file = scratch.join("report.json");
    let run = Run::new().flag("--report").arg(&file);
    let live = run.shell("echo ready; exec sleep 60").spawn();
    live.await_output("ready");
    let list = format!("/proc/{0}/task/{0}/children", live.pid());
    let init = fs::read_to_string(list).unwrap();
    // From outside; from inside it is refused.
    let limit = Run::bare().probe(&["limit-files", init.trim(), "1"]);
    assert!(limit.run().last("limit-files").ok);
    let finished = live.wait();
    finished.code_is(137);
    assert!(finished.stderr.contains("mcp: killed: the sandbox failed"), "{finished}");
    let report: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert!(report["ending"]["sandbox_failed"].is_string(), "{report:#}");
    assert_eq!(status(&report, "filesystem"), "enforced", "{report:#}");
}
