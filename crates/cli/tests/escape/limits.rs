//! Resource limits, by what the program sees and by what happens when it goes on.

use crate::shared::limits::{killed_for_memory, limited};
use crate::support::{Outcome, Preparation, Run, Scratch, allowed, blocked, has_program, skip};
use crate::{require, shared_attacks};

shared_attacks! { "userns", limits:
    limits_cannot_be_raised;
    open_files;
    file_size;
    processor_time;
    memory_of_many_processes;
}

const MIB: u64 = 1 << 20;

fn rlimits(run: Run) -> Outcome {
    allowed(run.probe(&["rlimits"]))
}

fn soft(outcome: &Outcome, name: &str) -> u64 {
    let value = outcome.field(name)[0];
    if value == "unlimited" { u64::MAX } else { value.parse().unwrap() }
}

#[test]
fn limits_are_seen_inside() {
    require!("userns");
    let seen = |flag: &str, value: &str, name: &str| soft(&rlimits(limited(flag, value)), name);
    assert_eq!(seen("--max-fds", "50", "nofile"), 50);
    assert_eq!(seen("--max-file-size", "1M", "fsize"), MIB);
    assert_eq!(seen("--max-cpu-time", "2s", "cpu"), 2);
    assert_eq!(seen("--max-address-space", "512M", "as"), 512 * MIB);
}

#[test]
fn limit_of_processes_is_seen_inside() {
    require!("userns", "nproc");
    let limits = rlimits(limited("--max-pids", "20"));
    assert!(soft(&limits, "nproc") <= 24, "{limits:?}");
}

#[test]
fn defaults_are_those_that_servers_live_with() {
    require!("userns");
    let bare = rlimits(Run::bare().prepare(Preparation::CoreFiles));
    if bare.field("core") == ["0", "0"] {
        println!("SKIP: control: core files are off outside too");
    }
    let limits = rlimits(Run::new().prepare(Preparation::CoreFiles));
    assert_eq!(limits.field("core"), ["0", "0"]);
    assert_eq!(soft(&limits, "nofile"), 1024);
    assert_eq!(soft(&limits, "as"), u64::MAX);
    allowed(Run::new().probe(&["fork", "100"]));
}

#[test]
fn address_space() {
    require!("userns");
    let act = |run: Run| run.probe(&["alloc", "100000000"]);
    allowed(act(Run::new()));
    blocked(act(limited("--max-address-space", "64M")), &["ENOMEM"]);
}

#[test]
fn processes_and_threads() {
    require!("userns");
    for act in ["fork", "threads"] {
        assert_eq!(allowed(Run::new().probe(&[act, "60"])).detail, "60");
        let finished = limited("--max-pids", "20").probe(&[act, "60"]).run();
        let outcome = finished.last(act);
        assert_eq!(outcome.errno(), "EAGAIN", "{finished}");
        let made: u32 = outcome.detail.parse().unwrap();
        assert!((5..=20).contains(&made), "{finished}");
    }
}

#[test]
fn processes_are_counted_per_sandbox() {
    require!("userns");
    let holders: Vec<_> = (0..3)
        .map(|_| {
            limited("--max-pids", "20").shell("sleep 30 & sleep 30 & echo ready; wait").spawn()
        })
        .collect();
    for holder in &holders {
        holder.await_output("ready");
    }
    allowed(limited("--max-pids", "20").probe(&["fork", "10"]));
}

#[test]
fn fork_bomb_ends() {
    require!("userns");
    let bomb = "b() { b | b & }; b; while :; do b; done";
    let finished = Run::new()
        .flag("--max-pids")
        .arg("20")
        .flag("--timeout")
        .arg("2s")
        .flag("--grace")
        .arg("200ms")
        .shell(bomb)
        .run();
    finished.has_no_panic();
    assert_ne!(finished.code, 0, "{finished}");
    allowed(Run::new().probe(&["fork", "5"]));
}

#[test]
fn private_memory() {
    require!("userns");
    allowed(limited("--max-memory", "128M").probe(&["alloc", "33554432", "500"]));
    allowed(Run::new().probe(&["alloc", "209715200", "500"]));
    let finished = limited("--max-memory", "64M").probe(&["alloc", "209715200", "30000"]).run();
    // Either the kernel refuses the allocation or the watchdog ends the run.
    let refused = finished.outcomes.last().is_some_and(|outcome| outcome.errno() == "ENOMEM");
    assert!(refused || finished.code == 137, "{finished}");
}

#[test]
fn shared_memory() {
    require!("userns");
    allowed(limited("--max-memory", "128M").probe(&["alloc-shared", "33554432", "500"]));
    killed_for_memory(limited("--max-memory", "64M").probe(&[
        "alloc-shared",
        "209715200",
        "30000",
    ]));
}

/// A byte here and there of much address space is next to no memory, but for the kernel's tables.
#[test]
fn page_tables() {
    require!("userns");
    let act = |limit: &str, bytes: &str, hold: &str| {
        limited("--max-memory", limit).probe(&["page-tables", bytes, hold])
    };
    allowed(act("64M", "4194304", "500"));
    allowed(act("1G", "268435456", "500"));
    killed_for_memory(act("64M", "268435456", "30000"));
}

/// What a program has swapped out on purpose is its memory still. Each process stays below its own limit.
#[test]
fn swap() {
    require!("userns");
    let swaps = std::fs::read_to_string("/proc/swaps").unwrap_or_default();
    if swaps.lines().count() < 2 || !has_program("python3") {
        return skip("swap", "there is no swap here, or no python3".to_owned());
    }
    let script = "import mmap, os, time\n\
        told, tell = os.pipe()\n\
        for number in range(10):\n\
        \x20   if os.fork() == 0:\n\
        \x20       m = mmap.mmap(-1, 32 << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)\n\
        \x20       for at in range(0, len(m), 1 << 20):\n\
        \x20           m[at:at + (1 << 20)] = os.urandom(1 << 20)\n\
        \x20           m.madvise(21, at, 1 << 20)\n\
        \x20       status = dict(line.split(':', 1) for line in open('/proc/self/status'))\n\
        \x20       swapped = int(status['VmSwap'].split()[0]) > 24 << 10\n\
        \x20       os.write(tell, b's' if swapped else b'r')\n\
        \x20       time.sleep(600)\n\
        print(b''.join(os.read(told, 1) for number in range(10)).decode(), flush=True)\n\
        time.sleep(2)\n";
    let act = |limit: &str| limited("--max-memory", limit).command(&["python3", "-c", script]);
    let open = act("1G").run();
    open.code_is(0);
    assert_eq!(open.text().trim(), "ssssssssss", "{open}");
    killed_for_memory(act("160M"));
}

/// Counted once for each process it would be far over the limit; and counting precisely takes
/// long, which must not keep the timeout waiting.
#[test]
fn memory_that_many_processes_share_is_counted_once() {
    require!("userns");
    let act = |run: Run, hold: &str| {
        let run = run.flag("--max-memory").arg("96M").flag("--max-pids").arg("300");
        run.probe(&["fork-share", "200", "33554432", hold])
    };
    allowed(act(Run::new(), "1500"));
    let timed = Run::new().flag("--timeout").arg("1s").flag("--grace").arg("100ms");
    act(timed, "60000").run().code_is(124);
}

#[test]
fn memory_of_daemons() {
    require!("userns");
    let script =
        r#"setsid "$0" alloc 41943040 30000 & setsid "$0" alloc 41943040 30000 & sleep 20"#;
    let probe = crate::support::probe_path();
    let run = limited("--max-memory", "64M").read(&probe).command(&["sh", "-c", script]);
    killed_for_memory(run.command(&[probe]));
}

#[test]
fn temporary_files() {
    require!("userns");
    let act = |dir: &str, bytes: u64| {
        limited("--max-tmp", "4M").probe(&["tmp-fill", dir, &bytes.to_string()])
    };
    allowed(act("/tmp", 2 * MIB));
    blocked(act("/tmp", 8 * MIB), &["ENOSPC"]);
    allowed(Run::new().probe(&["tmp-fill", "/tmp", "8388608"]));
}

#[test]
fn no_other_place_holds_more() {
    require!("userns");
    for dir in ["/home/mcp", "/dev/shm", "/var/tmp", "/run"] {
        let finished =
            limited("--max-tmp", "4M").probe(&["tmp-fill", dir, &(1200 * MIB).to_string()]).run();
        let ended = finished.code == 137 || finished.outcomes.iter().all(|outcome| !outcome.ok);
        assert!(ended, "{dir} took it all: {finished}");
    }
}

/// The watch reads the name of a process on the way to its memory.
#[test]
fn memory_of_a_process_with_an_odd_name() {
    require!("userns");
    let hog = "import ctypes, mmap, sys, time\n\
               ctypes.CDLL(None).prctl(15, b'\\xff\\xfe', 0, 0, 0)\n\
               m = mmap.mmap(-1, 256 << 20)\n\
               any(m.write(b'x' * (1 << 20)) < 0 for _ in range(256))\n\
               time.sleep(int(sys.argv[1]))";
    let run = |limit: &str, hold: &str| {
        Run::new().flag("--max-memory").arg(limit).command(&["python3", "-c", hog, hold]).run()
    };
    if !has_program("python3") {
        return;
    }
    run("1G", "1").code_is(0);
    run("128M", "50").code_is(137);
}

#[test]
fn a_limit_too_small_to_start_with_is_said_to_be() {
    require!("userns");
    let few = Run::new().flag("--max-fds").arg("3").command(&["true"]).run();
    few.is_clear_error().code_is(2);
    assert!(few.stderr.contains("at least 4"), "{few}");
    Run::new().flag("--max-fds").arg("4").command(&["true"]).run().code_is(0);

    let said =
        |size: &str| Run::new().flag("--max-memory").arg(size).command(&["true"]).run().stderr;
    assert!(said("64K").contains("less than most programs need"), "{}", said("64K"));
    assert_eq!(said("64M"), "");
}

/// Empty files take no space, but memory of the host's.
#[test]
fn number_of_temporary_files() {
    require!("userns");
    let make = "i=0; while [ $i -lt 20000 ]; do : > /tmp/$i || exit 3; i=$((i + 1)); done";
    let run = |size: &str| limited("--max-tmp", size).shell(make).run();
    run("256M").code_is(0);
    assert_ne!(run("4M").code, 0);
}

/// SIGXCPU can be ignored; what comes after it cannot.
#[test]
fn processor_time_of_who_ignores_the_warning() {
    require!("userns");
    let run = limited("--max-cpu-time", "1s").flag("--timeout").arg("50s");
    let finished = run.shell("trap '' XCPU; while :; do :; done").run();
    assert_eq!(finished.code, 137, "{finished}");
}

/// Where no cgroup holds the memory, each process has a limit beside the watch over all of them.
#[test]
fn memory_of_a_process_is_limited_where_no_cgroup_does() {
    require!("userns");
    let scratch = Scratch::new();
    let file = scratch.join("report.json");
    let limits = rlimits(limited("--max-memory", "64M").flag("--report").arg(&file));
    let text = std::fs::read_to_string(&file).unwrap();
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    match report["controls"]["memory"]["by"].as_str().unwrap() {
        by if by.contains("RLIMIT_DATA") => assert_eq!(soft(&limits, "data"), 64 * MIB),
        by => skip("no-cgroup", format_args!("memory is held by {by}")),
    }
    assert_eq!(soft(&rlimits(limited("--max-memory", "none")), "data"), u64::MAX);
}
