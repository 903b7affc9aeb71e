//! Limits on the whole tree, held by the kernel, and what is left when a run is over: nothing.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::require;
use crate::support::{
    ABSENT, Finished, Ground, Run, Scratch, allowed, blocked, eventually, heart_stops, mcp_path,
    patience, probe_path, skip, sys,
};

/// The kernel lets charges that must not fail or cannot wait (`__GFP_NOFAIL`, `GFP_ATOMIC`, reclaim's own) pass above
/// `memory.max`, and counts them in `memory.peak`: a few pages, on a slow machine that reads the program's pages again and again
/// while it reclaims.
const FORCED: u64 = 256 << 10;

/// What a machine that is emulated in software may take for a run.
fn slow() -> Duration {
    patience() * 3
}

fn limited(flags: &[&str]) -> Run {
    flags.iter().fold(Run::new().limit(slow()), |run, flag| run.arg(flag))
}

/// Runs it and gives its report as well.
#[track_caller]
fn reported(run: Run) -> (Finished, Value) {
    let scratch = Scratch::new();
    let path = scratch.join("report.json");
    let finished = run.flag("--report").arg(&path).run();
    let text =
        std::fs::read(&path).unwrap_or_else(|error| panic!("no report: {error}\n{finished}"));
    (finished, serde_json::from_slice(&text).unwrap())
}

#[track_caller]
fn held_by_cgroup(report: &Value, control: &str, file: &str) {
    let status = &report["controls"][control];
    assert_eq!(status["status"], "enforced", "{status}");
    assert!(status["by"].as_str().unwrap().starts_with("cgroup "), "{status}");
    let seen = status["seen"].as_array().unwrap();
    assert!(seen.iter().any(|seen| seen.as_str().unwrap().starts_with(file)), "{status}");
}

/// The run's own directory in the hierarchy, by its report.
fn cgroup_of(report: &Value) -> PathBuf {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let mount = mounts.lines().find(|line| line.contains(" - cgroup2 ")).unwrap();
    let mount = Path::new(mount.split(' ').nth(4).unwrap());
    let memory = &report["controls"]["memory"];
    let seen = memory["seen"].as_array().map_or(&[][..], Vec::as_slice);
    let path = seen.iter().find_map(|seen| seen.as_str().unwrap().strip_prefix("cgroup /"));
    mount.join(path.unwrap_or_else(|| panic!("not in a cgroup: {memory}")))
}

/// What was made for the run: its directory, or the scope that it is in.
fn made_for(report: &Value) -> PathBuf {
    let path = cgroup_of(report);
    if path.ends_with("box") { path.parent().unwrap().to_owned() } else { path }
}

#[track_caller]
fn is_gone(path: &Path) {
    // systemd removes a scope on its own time.
    assert!(eventually(patience(), || !path.exists()), "still there: {}", path.display());
}

#[test]
fn a_hog_is_killed_at_its_memory_limit() {
    require!("userns", "cgroup");
    allowed(limited(&["--max-memory", "512M"]).probe(&["alloc", "209715200", "100"]));
    let (finished, report) =
        reported(limited(&["--max-memory", "64M"]).probe(&["alloc", "209715200", "30000"]));
    finished.code_is(137);
    let line =
        "mcp: killed: memory limit 64 MiB reached (peak 64 MiB) — raise with --max-memory 256MiB";
    assert_eq!(finished.stderr.trim_end(), line, "{finished}");
    held_by_cgroup(&report, "memory", "memory.max 67108864");
    assert_eq!(report["ending"], "memory_limit");
    assert!(report["usage"]["memory_kills"].as_u64().unwrap() >= 1, "{report}");
    let peak = report["usage"]["max_tree_memory_bytes"].as_u64().unwrap();
    assert!((50 << 20..=(64 << 20) + FORCED).contains(&peak), "{report}");
    is_gone(&made_for(&report));
}

/// Memory that no process maps, and memory of many processes: nothing of it is out of sight.
#[test]
fn memory_out_of_sight_is_counted() {
    require!("userns", "cgroup");
    for act in [
        &["memfd", "134217728", "30000"][..],
        &["alloc-shared", "134217728", "30000"],
        &["fork-alloc", "8", "16777216", "30000"],
    ] {
        let short: Vec<&str> =
            act.iter().map(|word| if *word == "30000" { "10" } else { word }).collect();
        allowed(limited(&["--max-memory", "512M"]).probe(&short));
        limited(&["--max-memory", "64M"]).probe(act).run().code_is(137);
    }
}

#[test]
fn the_whole_tree_goes_with_the_hog() {
    require!("userns", "cgroup");
    let scratch = Scratch::new();
    let beat = scratch.open_dir("grant").join("beat");
    let script = r#""$0" loop-heartbeat "$1" 20 & until [ -s "$1" ]; do sleep 0.02; done; "$0" alloc 209715200 30000; sleep 30"#;
    let probe = probe_path();
    let run = limited(&["--max-memory", "64M"]).read(&probe).write(beat.parent().unwrap());
    run.command(&["sh", "-c", script]).command(&[&probe, &beat]).run().code_is(137);
    heart_stops(&beat);
}

#[test]
fn processes_are_refused_at_their_limit() {
    require!("userns", "cgroup");
    assert_eq!(allowed(Run::new().probe(&["fork", "60"])).detail, "60");
    let (finished, report) = reported(limited(&["--max-pids", "20"]).probe(&["fork", "60"]));
    let outcome = finished.last("fork");
    assert_eq!(outcome.errno(), "EAGAIN", "{finished}");
    assert!((5..=20).contains(&outcome.detail.parse::<u32>().unwrap()), "{finished}");
    held_by_cgroup(&report, "processes", "pids.max 21");

    let bomb = "b() { b | b & }; b; while :; do b; done";
    let flags = ["--max-pids", "20", "--timeout", "3s", "--grace", "200ms"];
    let (finished, report) = reported(limited(&flags).shell(bomb));
    finished.has_no_panic();
    assert_ne!(finished.code, 0, "{finished}");
    if let Some(most) = report["usage"]["max_processes"].as_u64() {
        assert!(most <= 20, "{report}");
    }
    is_gone(&made_for(&report));
}

/// By the kernel's own count, over the whole run: a figure of its scheduler, not of our speed.
#[test]
fn a_share_of_the_processor_holds() {
    require!("userns", "cgroup");
    let share = |flags: &[&str]| {
        let flags = [flags, &["--timeout", "3s", "--grace", "0s"]].concat();
        let (finished, report) = reported(limited(&flags).probe(&["spin", "60"]));
        finished.code_is(124);
        let usage = &report["usage"];
        let share =
            usage["cpu_seconds"].as_f64().unwrap() / usage["wall_seconds"].as_f64().unwrap();
        println!("share {share:.3} of {flags:?}: {usage}");
        (share, report)
    };
    let (free, _) = share(&[]);
    // On a machine with much else to do, the others may leave it less than it is allowed: then once more.
    let is_held_back = (0..5).any(|_| {
        let (bound, report) = share(&["--max-cpu", "100"]);
        held_by_cgroup(&report, "cpu", "cpu.max 10000 100000");
        assert!(bound < 0.13, "{bound} of a processor instead of 0.1: {report}");
        assert!(free > bound * 1.5, "{free} without a limit, {bound} with one");
        report["usage"]["throttled_seconds"].as_f64().unwrap() > 0.0
    });
    assert!(is_held_back, "never held back, by the kernel's count");
}

#[test]
fn there_is_no_way_to_cgroups_from_inside() {
    require!("userns", "cgroup");
    let cgroup = allowed(Run::bare().probe(&["read", "/proc/self/cgroup"])).detail;
    let own = cgroup.lines().find_map(|line| line.strip_prefix("0::/")).unwrap().to_owned();
    let own = Path::new("/sys/fs/cgroup").join(own);
    allowed(Run::bare().probe(&["list".as_ref(), own.as_os_str()]));
    blocked(Run::new().probe(&["list", "/sys/fs/cgroup"]), ABSENT);
    for dir in [own.as_path(), Path::new("/sys/fs/cgroup")] {
        let procs = dir.join("cgroup.procs");
        let write = ["write".as_ref(), procs.as_os_str(), "0".as_ref()];
        blocked(Run::new().probe(&write), ABSENT);
    }
    // What it is told of cgroups starts at its own.
    let told = allowed(Run::new().probe(&["read", "/proc/self/cgroup"])).detail;
    assert!(told.lines().all(|line| !line.starts_with("0::") || line == "0::/"), "{told}");
    // And none can be mounted.
    let script = "mkdir /tmp/c && mount -t cgroup2 none /tmp/c; ls /tmp/c | wc -l";
    let finished = Run::new().shell(script).run();
    assert_eq!(finished.text().trim(), "0", "{finished}");
}

/// A launcher that the kernel spares would make a sandbox that it cannot kill either.
#[test]
fn a_spared_launcher_has_a_sandbox_that_can_be_killed() {
    require!("userns", "cgroup", "root");
    let script = r#"echo -1000 > /proc/self/oom_score_adj && exec "$@""#;
    let words = limited(&["--max-memory", "64M"]).probe(&["alloc", "209715200", "30000"]).words();
    let run = Run::bare().limit(slow()).command(&["sh", "-c", script, "sh"]).command(&words);
    run.run().code_is(137);
}

/// Where the launcher's own cgroup is delegated and nothing around it is: the launcher moves into a leaf,
/// since a cgroup whose children have limits holds no processes.
#[test]
fn a_launcher_alone_in_its_cgroup_divides_it() {
    require!("userns", "cgroup");
    let (_, report) = reported(Run::new().command(&["true"]));
    let around = made_for(&report).parent().unwrap().to_owned();
    let membership = std::fs::read_to_string("/proc/self/cgroup").unwrap();
    let own = membership.lines().find_map(|line| line.strip_prefix("0::")).unwrap();
    if !around.ends_with(Path::new(own).parent().unwrap().strip_prefix("/").unwrap()) {
        skip("cgroup-beside", format_args!("runs are in {}", around.display()));
        return;
    }
    let alone = around.join(format!("alone-{}", std::process::id()));
    std::fs::create_dir(&alone).unwrap();
    let enter = format!(r#"echo $$ > {}/cgroup.procs && exec "$@""#, alone.display());
    let scratch = Scratch::new();
    let path = scratch.join("report.json");
    let hog = limited(&["--max-memory", "64M"]).flag("--report").arg(&path);
    let words = hog.probe(&["alloc", "209715200", "30000"]).words();
    let run = Run::bare().limit(slow()).command(&["sh", "-c", &enter, "sh"]).command(&words);
    run.run().code_is(137);
    let report: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    held_by_cgroup(&report, "memory", "memory.max 67108864");
    assert!(cgroup_of(&report).starts_with(&alone), "{report}");
    is_gone(&made_for(&report));
    std::fs::remove_dir(&alone).unwrap();
}

/// The call that makes a process in a cgroup is refused by many filters: then it is moved there before it runs.
#[test]
fn without_clone3_the_sandbox_is_moved() {
    require!("userns", "cgroup");
    let hog = limited(&["--max-memory", "64M"]).on(Ground::Without("clone3"));
    let (finished, report) = reported(hog.probe(&["alloc", "209715200", "30000"]));
    finished.code_is(137);
    held_by_cgroup(&report, "memory", "memory.max 67108864");
    // What it is told starts where it was moved to.
    let run = Run::new().on(Ground::Without("clone3")).probe(&["read", "/proc/self/cgroup"]);
    let told = allowed(run).detail;
    assert!(told.lines().all(|line| !line.starts_with("0::") || line == "0::/"), "{told}");
}

#[test]
fn nothing_is_left_after_any_end() {
    require!("userns", "cgroup");
    let ends: [(&[&str], &[&str], i32); 4] = [
        (&[], &["exit", "0"], 0),
        (&[], &["exit", "3"], 3),
        (&["--timeout", "300ms", "--grace", "0s"], &["sleep", "60"], 124),
        (&["--max-memory", "32M"], &["alloc", "104857600", "30000"], 137),
    ];
    let batch: Vec<_> = (0..8)
        .map(|number| {
            let (flags, act, code) = ends[number % ends.len()];
            let scratch = Scratch::new();
            let path = scratch.join("report.json");
            let live = limited(flags).flag("--report").arg(&path).probe(act).spawn();
            (live, scratch, path, code)
        })
        .collect();
    for (live, _scratch, path, code) in batch {
        live.wait().code_is(code);
        let report: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        is_gone(&made_for(&report));
    }
    // One that fails after all is set up.
    let scratch = Scratch::new();
    let junk = scratch.file("junk", "\u{1}\u{2}\u{3}");
    std::fs::set_permissions(&junk, PermissionsExt::from_mode(0o755)).unwrap();
    Run::new().command(&[&junk]).run().code_is(126);
    assert!(eventually(patience(), || strays().is_empty()), "{:?}", strays());
}

/// Directories of ours without a launcher, who would hold a lock on them.
fn strays() -> Vec<PathBuf> {
    let (mut found, mut pending) = (Vec::new(), vec![PathBuf::from("/sys/fs/cgroup")]);
    while let Some(dir) = pending.pop() {
        let entries = std::fs::read_dir(&dir).into_iter().flatten().flatten();
        for entry in entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
            let name = entry.file_name().to_string_lossy().into_owned();
            match name.starts_with("mcp-") {
                true if !sys::is_gone_or_locked(&entry.path()) => found.push(entry.path()),
                true => {}
                false => pending.push(entry.path()),
            }
        }
    }
    found
}

#[test]
fn the_next_run_removes_what_a_killed_launcher_left() {
    require!("userns", "cgroup");
    let live = Run::new().shell("echo ready; sleep 60").spawn();
    live.await_output("ready");
    // Its launcher lists it while it starts.
    let mut path = PathBuf::new();
    let is_listed = eventually(patience(), || {
        let listed = Command::new(mcp_path()).args(["ps", "--json"]).output().unwrap();
        let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
        let entry = listed.as_array().unwrap().iter().find(|run| run["launcher"] == live.pid());
        path = entry.map_or("", |run| run["cgroup"].as_str().unwrap()).into();
        entry.is_some()
    });
    assert!(is_listed);
    assert!(path.exists(), "{}", path.display());
    live.signal(libc::SIGKILL);
    live.wait();
    let swept = eventually(patience(), || {
        Run::new().command(&["true"]).run().code_is(0);
        !path.exists()
    });
    assert!(swept, "still there: {}", path.display());
}

/// Its lock says that a process uses it.
#[test]
fn a_run_beside_it_is_not_swept() {
    require!("userns", "cgroup");
    let mut live =
        Run::new().limit(slow()).open_input().shell("echo ready; cat; echo alive").spawn();
    live.await_output("ready");
    Run::new().command(&["true"]).run().code_is(0);
    drop(live.stdin());
    let finished = live.wait();
    finished.code_is(0);
    assert!(finished.text().contains("alive"), "{finished}");
}

#[test]
fn without_a_cgroup_the_report_says_so() {
    require!("userns", "no-cgroup");
    let (finished, report) = reported(limited(&["--max-cpu", "100"]).command(&["true"]));
    finished.code_is(0);
    assert!(finished.stderr.contains("cpu cannot be enforced"), "{finished}");
    let memory = &report["controls"]["memory"];
    assert_eq!(memory["status"], "partial", "{memory}");
    assert!(memory["by"].as_str().unwrap().contains("RLIMIT_DATA"), "{memory}");
    assert!(memory["missing"].as_str().unwrap().contains("cgroup"), "{memory}");
    assert_eq!(report["controls"]["cpu"]["status"], "unavailable");
    limited(&["--strict"]).command(&["true"]).run().code_is(125);
}

#[test]
fn doctor_tells_what_is_here() {
    require!("userns");
    let output = Command::new(mcp_path()).args(["doctor", "--json"]).output().unwrap();
    let doctor: Value = serde_json::from_slice(&output.stdout).unwrap();
    let line = |part: &str, topic: &str| {
        let lines = doctor[part].as_array().unwrap();
        lines.iter().find(|line| line["topic"] == topic).unwrap().clone()
    };
    let is_here = crate::support::available("cgroup");
    let (mechanism, memory) = (line("mechanisms", "cgroups v2"), line("controls", "memory"));
    let (cpu, processes) = (line("controls", "cpu"), line("controls", "processes"));
    let says = |line: &Value, word: &str| line["text"].as_str().unwrap().contains(word);
    if is_here {
        for (line, word) in [
            (&mechanism, "one of its own was made"),
            (&memory, "killed) by cgroup memory.max"),
            (&cpu, "by cgroup cpu.max"),
            (&processes, "by cgroup pids.max"),
        ] {
            assert_eq!(line["mark"], "holds", "{line}");
            assert!(says(line, word), "{line}");
        }
    } else {
        assert_eq!((&mechanism["mark"], &memory["mark"]), (&"less".into(), &"less".into()));
        assert!(says(&memory, "a watch over the tree"), "{memory}");
        assert!(cpu["mark"] == "less" && says(&cpu, "not enforced here"), "{cpu}");
        // Before 5.14 the count is of the whole user, and it says so.
        let is_whole =
            processes["mark"] == "holds" && says(&processes, "inside the user namespace");
        let is_partly = processes["mark"] == "less" && says(&processes, "before Linux 5.14");
        assert!(is_whole || is_partly, "{processes}");
    }
}
