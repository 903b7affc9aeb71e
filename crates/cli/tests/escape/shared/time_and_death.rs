//! Time limits, signals, and that nothing outlives a run. The same attack on every system; the caller has checked that the boundary is there.

use std::process::Stdio;

use crate::support::{
    Run, Scratch, allowed, heart_beats, heart_stops, heart_stops_in_time, timed_out,
};

pub fn timed(timeout: &str) -> Run {
    Run::new().flag("--timeout").arg(timeout).flag("--grace").arg("300ms")
}

/// A file in a write grant that shows whether the process lives.
pub struct Heart {
    pub scratch: Scratch,
    pub path: std::path::PathBuf,
}

impl Heart {
    pub fn new() -> Heart {
        let scratch = Scratch::new();
        let path = scratch.dir("grant").join("beat");
        Heart { scratch, path }
    }

    pub fn in_run(&self, run: Run) -> Run {
        run.write(self.scratch.join("grant"))
    }

    pub fn text(&self) -> &str {
        self.path.to_str().unwrap()
    }
}

pub fn timeout() {
    allowed(timed("30s").probe(&["sleep", "0.1"]));
    let finished = timed("500ms").probe(&["sleep", "50"]).run();
    finished.code_is(124);
    let said = finished.stderr.lines().any(|line| line.starts_with("mcp: killed: timeout"));
    assert!(said, "{finished}");
}

pub fn timeout_lets_a_program_clean_up() {
    let script = "trap 'echo cleaned; exit 0' TERM; echo ready; while :; do sleep 0.05; done";
    let run = |timeout: &str| Run::new().flag("--timeout").arg(timeout).flag("--grace").arg("20s");
    let finished = timed_out(
        |timeout| run(timeout).shell(script),
        |finished| finished.text().contains("ready"),
    );
    assert!(finished.text().contains("cleaned"), "{finished}");
}

pub fn daemons_die_with_the_run() {
    let control = Heart::new();
    Run::bare()
        // The daemon keeps these, and outlives the run: that is the point.
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .probe(&["daemonize", "5", control.text()])
        .run()
        .code_is(0);
    heart_beats(&control.path);
    let heart = Heart::new();
    let run = heart.in_run(Run::new()).probe(&["daemonize", "60", heart.text()]);
    run.probe(&["await-file", heart.text()]).run().code_is(0);
    heart_stops(&heart.path);
}

pub fn daemons_die_with_the_timeout() {
    let heart = Heart::new();
    heart_stops_in_time(&heart.path, |timeout| {
        let run = heart.in_run(timed(timeout)).probe(&["daemonize", "60", heart.text()]);
        run.probe(&["sleep", "50"])
    });
}

pub fn those_who_ignore_sigterm_die() {
    let heart = Heart::new();
    heart_stops_in_time(&heart.path, |timeout| {
        heart.in_run(timed(timeout)).probe(&["ignore-term", "60", heart.text()])
    });
}

pub fn the_stopped_die() {
    timed("700ms").probe(&["stop-self"]).run().code_is(124);
    timed("700ms").shell("sh -c 'kill -STOP $$' & sleep 50").run().code_is(124);
    // A stopped process that no process waits for must not keep the run alive either.
    let is_stopped = if cfg!(target_os = "linux") {
        "grep -q '^State:.T' /proc/$!/status"
    } else {
        "ps -o stat= -p $! | grep -q T"
    };
    let script = format!("sh -c 'kill -STOP $$' & until {is_stopped}; do sleep 0.02; done");
    Run::new().shell(&script).run().code_is(0);
}

pub fn killing_the_launcher_kills_everything() {
    for act in ["loop", "daemon", "ignore"] {
        let heart = Heart::new();
        let run = heart.in_run(Run::new());
        let run = match act {
            "loop" => run.probe(&["loop-heartbeat", heart.text(), "20"]),
            "daemon" => run.probe(&["daemonize", "60", heart.text()]).probe(&["sleep", "50"]),
            _ => run.probe(&["ignore-term", "60", heart.text()]),
        };
        let live = run.spawn();
        heart_beats(&heart.path);
        live.signal(libc::SIGKILL);
        live.wait().code_is(137);
        heart_stops(&heart.path);
    }
}

pub fn signals_are_passed_on() {
    for (name, signal) in [
        ("INT", libc::SIGINT),
        ("TERM", libc::SIGTERM),
        ("HUP", libc::SIGHUP),
        ("QUIT", libc::SIGQUIT),
    ] {
        let script =
            format!("trap 'echo got; exit 7' {name}; echo ready; while :; do sleep 0.05; done");
        for run in [Run::bare(), Run::new()] {
            let live = run.shell(&script).spawn();
            live.await_output("ready");
            live.signal(signal);
            let finished = live.wait();
            assert_eq!(finished.code, 7, "SIG{name}: {finished}");
            assert!(finished.text().contains("got"), "SIG{name}: {finished}");
        }
    }
}

pub fn exit_codes_pass_through() {
    for code in [0, 1, 2, 42, 124, 125, 255] {
        for run in [Run::bare(), Run::new()] {
            run.probe(&["exit", &code.to_string()]).run().code_is(code);
        }
    }
    for signal in [libc::SIGKILL, libc::SIGTERM, libc::SIGSEGV, libc::SIGABRT, libc::SIGUSR1] {
        for run in [Run::bare(), Run::new()] {
            run.probe(&["signal-self", &signal.to_string()]).run().code_is(128 + signal);
        }
    }
}

pub fn output_is_the_childs_alone() {
    let finished = Run::new().input("in\n").shell("cat; echo out; echo err >&2").run();
    finished.code_is(0);
    assert_eq!(finished.text(), "in\nout\n");
    assert!(finished.stderr.contains("err"), "{finished}");
    let big = Run::new().shell("head -c 3000000 /dev/zero").run();
    assert_eq!(big.stdout.len(), 3_000_000);
}
