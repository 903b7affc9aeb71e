//! Time limits, signals, and that nothing outlives a run.

use crate::shared::time_and_death::{Heart, timed};
use crate::support::{Run, eventually, heart_beats, heart_stops, heart_stops_in_time, patience};
use crate::{require, shared_attacks};

shared_attacks! { "userns", time_and_death:
    timeout;
    timeout_lets_a_program_clean_up;
    daemons_die_with_the_run;
    daemons_die_with_the_timeout;
    those_who_ignore_sigterm_die;
    the_stopped_die;
    killing_the_launcher_kills_everything;
    signals_are_passed_on;
    exit_codes_pass_through;
    output_is_the_childs_alone;
}

#[test]
fn a_session_of_its_own_is_no_escape() {
    require!("userns");
    let heart = Heart::new();
    let script = r#"setsid "$0" loop-heartbeat "$1" 20 & sleep 50"#;
    let probe = crate::support::probe_path();
    heart_stops_in_time(&heart.path, |timeout| {
        let run = heart.in_run(timed(timeout)).read(&probe).command(&["sh", "-c", script]);
        run.command(&[&probe, &heart.path])
    });
}

#[test]
fn signals_end_a_program_that_does_not_care() {
    require!("userns");
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
        for run in [Run::bare(), Run::new()] {
            let live = run.shell("echo ready; exec sleep 50").spawn();
            live.await_output("ready");
            // The shell says so just before it becomes sleep; both die of the signal.
            live.signal(signal);
            live.wait().code_is(128 + signal);
        }
    }
}

/// A heart that no signal stops but SIGKILL.
fn deaf(heart: &Heart) -> String {
    format!(
        "trap '' TERM HUP INT; echo ready; while :; do echo . >> {}; sleep 0.02; done",
        heart.text()
    )
}

const MEANS_THE_END: [i32; 3] = [libc::SIGTERM, libc::SIGHUP, libc::SIGINT];

#[test]
fn a_signal_to_the_launcher_kills_after_the_grace() {
    require!("userns");
    for signal in MEANS_THE_END {
        // Outside it lives on.
        let heart = Heart::new();
        let live = Run::bare().shell(&deaf(&heart)).spawn();
        live.await_output("ready");
        live.signal(signal);
        heart_beats(&heart.path);
        live.signal(libc::SIGKILL);
        live.wait().code_is(137);

        // The whole tree goes: daemons of the command as well.
        let (heart, daemon) = (Heart::new(), Heart::new());
        let run = daemon.in_run(heart.in_run(Run::new().flag("--grace").arg("300ms")));
        let script = format!("({}) & {}", deaf(&daemon), deaf(&heart));
        let live = run.shell(&script).spawn();
        heart_beats(&heart.path);
        heart_beats(&daemon.path);
        live.signal(signal);
        live.wait().code_is(128 + signal);
        heart_stops(&heart.path);
        heart_stops(&daemon.path);
    }
}

/// Until the grace is over the command lives; a second signal does not wait for it.
#[test]
fn a_second_signal_to_the_launcher_kills_at_once() {
    require!("userns");
    for (first, second) in [
        (libc::SIGTERM, libc::SIGTERM),
        (libc::SIGHUP, libc::SIGINT),
        (libc::SIGINT, libc::SIGTERM),
    ] {
        let heart = Heart::new();
        let run = heart.in_run(Run::new().flag("--grace").arg("1h"));
        let live = run.shell(&deaf(&heart)).spawn();
        heart_beats(&heart.path);
        live.signal(first);
        live.await_taken(first);
        heart_beats(&heart.path);
        live.signal(second);
        live.wait().code_is(128 + second);
        heart_stops(&heart.path);
    }
}

/// `timeout` sends its signal to the launcher, and then to the group that the launcher is in.
#[test]
fn a_signal_that_comes_twice_leaves_the_grace() {
    require!("userns");
    let script =
        "trap 'sleep 0.3; echo cleaned; exit 7' TERM; echo ready; while :; do sleep 0.05; done";
    for run in [Run::bare(), Run::new()] {
        let words = run.shell(script).words();
        // Once more, and later, where the machine was too slow for the trap to be set.
        let mut tries = ["2", "10", "40"].into_iter().map(|seconds| {
            let run = Run::bare().command(&["timeout", "--preserve-status", seconds]);
            run.command(&words).run()
        });
        let finished = tries.find(|finished| finished.text().contains("ready"));
        let finished = finished.expect("never ready");
        assert!(finished.text().contains("cleaned"), "{finished}");
        finished.code_is(7);
    }
}

/// Whether a process below this one is stopped.
fn has_stopped(pid: u32) -> bool {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    children.unwrap_or_default().split_whitespace().any(|child| {
        let status = std::fs::read_to_string(format!("/proc/{child}/status")).unwrap_or_default();
        status.contains("State:\tT") || has_stopped(child.parse().unwrap())
    })
}

#[test]
fn a_signal_to_the_launcher_reaches_the_stopped() {
    require!("userns");
    for signal in MEANS_THE_END {
        // One that has stopped itself is woken, and cleans up …
        let script =
            "trap 'echo cleaned; exit 7' TERM HUP INT; echo ready; kill -STOP $$; sleep 60";
        let live = Run::new().flag("--grace").arg("1h").shell(script).spawn();
        assert!(eventually(patience(), || has_stopped(live.pid())), "it never stopped");
        live.signal(signal);
        let finished = live.wait();
        assert!(finished.text().contains("cleaned"), "{finished}");
        finished.code_is(7);
        // … or it stops itself again, and is killed.
        let script =
            "trap 'kill -STOP $$' TERM HUP INT; echo ready; while :; do kill -STOP $$; done";
        let live = Run::new().flag("--grace").arg("300ms").shell(script).spawn();
        assert!(eventually(patience(), || has_stopped(live.pid())), "it never stopped");
        live.signal(signal);
        live.wait().code_is(128 + signal);
    }
}

/// Started to go on when the terminal is closed, it goes on.
#[test]
fn nohup_is_respected() {
    require!("userns");
    for around in [&["nohup"][..], &[]] {
        let heart = Heart::new();
        let run = heart.in_run(Run::new().flag("--grace").arg("0"));
        let run = run.probe(&["loop-heartbeat", heart.text(), "20"]);
        let live = Run::bare().command(around).command(&run.words()).spawn();
        heart_beats(&heart.path);
        live.signal(libc::SIGHUP);
        if around.is_empty() {
            live.wait().code_is(128 + libc::SIGHUP);
            continue;
        }
        heart_beats(&heart.path);
        live.signal(libc::SIGTERM);
        live.wait().code_is(128 + libc::SIGTERM);
    }
}

/// What an agent's shell command starts is ended alike.
#[test]
fn a_signal_ends_an_agents_command() {
    require!("userns");
    let heart = Heart::new();
    let project = heart.scratch.join("grant");
    let live = Run::exec(&project).flag("--grace").arg("300ms").shell(&deaf(&heart)).spawn();
    heart_beats(&heart.path);
    live.signal(libc::SIGTERM);
    live.wait().code_is(128 + libc::SIGTERM);
    heart_stops(&heart.path);
}

/// A client that closes its end has not said that the server shall end.
#[test]
fn end_of_input_is_not_the_end() {
    require!("userns");
    let run = Run::new().flag("--grace").arg("0").input("last\n");
    let finished = run.shell("cat; exec <&-; sleep 0.5; echo still; exit 7").run();
    assert_eq!((finished.code, finished.text().as_str()), (7, "last\nstill\n"), "{finished}");
}

#[test]
fn stopping_and_continuing_the_launcher() {
    require!("userns");
    let heart = Heart::new();
    let live = heart.in_run(Run::new()).probe(&["loop-heartbeat", heart.text(), "20"]).spawn();
    heart_beats(&heart.path);
    live.signal(libc::SIGTSTP);
    let status = format!("/proc/{}/status", live.pid());
    let is_stopped = || std::fs::read_to_string(&status).unwrap().contains("State:\tT");
    assert!(eventually(patience(), is_stopped), "it never stopped");
    live.signal(libc::SIGCONT);
    heart_beats(&heart.path);
    live.signal(libc::SIGTERM);
    live.wait().code_is(128 + libc::SIGTERM);
}

#[test]
fn signal_dispositions_are_those_of_a_plain_command() {
    require!("userns");
    // A Rust program ignores SIGPIPE; what it starts must not inherit that.
    let sets = |run: Run| -> Vec<u64> {
        let finished = run.shell("grep -E '^Sig(Blk|Ign|Cgt)' /proc/self/status").run();
        let set = |line: &str| u64::from_str_radix(line.split_whitespace().nth(1)?, 16).ok();
        // The real-time signals belong to the C library.
        finished.text().lines().filter_map(set).map(|set| set & 0x7fff_ffff).collect()
    };
    assert_eq!(sets(Run::bare()), sets(Run::new()));
    let pipe = Run::new().shell("yes | head -n 1").run();
    assert_eq!((pipe.code, pipe.text().as_str()), (0, "y\n"), "{pipe}");
    assert!(!pipe.stderr.contains("roken pipe"), "{pipe}");
}
