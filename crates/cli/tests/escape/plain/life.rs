//! Nothing outlives the run: not its end, its timeout, its limits or its launcher.

use std::path::Path;

use super::plain;
use crate::require;
use crate::support::{
    Run, Scratch, allowed, eventually, heart_beats, heart_stops, heart_stops_in_time, patience,
};

/// A directory that root's stand-in may write too.
fn writable(scratch: &Scratch) -> std::path::PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let dir = scratch.dir("data");
    std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o777)).unwrap();
    dir
}

#[test]
fn daemons_die_with_the_command() {
    require!("plain");
    let scratch = Scratch::new();
    let dir = writable(&scratch);
    let beat = dir.join("beat");
    let finished = plain()
        .write(&dir)
        .probe(&["daemonize", "600", beat.to_str().unwrap()])
        .probe(&["await-file", beat.to_str().unwrap()])
        .run();
    finished.code_is(0);
    heart_stops(&beat);
}

#[test]
fn everything_dies_with_the_timeout() {
    require!("plain");
    let scratch = Scratch::new();
    let dir = writable(&scratch);
    let beat = dir.join("beat");
    heart_stops_in_time(&beat, |timeout| {
        let run = plain().write(&dir).flag("--timeout").arg(timeout).flag("--grace").arg("100ms");
        run.probe(&["daemonize", "600", beat.to_str().unwrap()]).probe(&["ignore-term", "600"])
    });
}

/// It counts what else the user runs, so only that there is an end can be told.
#[test]
fn processes_are_limited() {
    require!("plain", "no-cgroup");
    let run =
        |most: &str, forks: &str| plain().flag("--max-pids").arg(most).probe(&["fork", forks]);
    let finished = run("20", "500").run();
    assert_eq!(finished.last("fork").errno(), "EAGAIN", "{finished}");
    // The processes of other runs count as well: holding more than the 128 that each may have by default
    // would keep every test that runs meanwhile from starting any.
    assert_eq!(allowed(run("2000", "60")).detail, "60");
}

#[test]
fn everything_dies_with_the_launcher() {
    require!("plain");
    let scratch = Scratch::new();
    let dir = writable(&scratch);
    let (beat, orphan, home) = (dir.join("beat"), dir.join("orphan"), dir.join("home"));
    let script = format!(
        "echo $HOME > {}; beat='while :; do echo . >> $0; sleep 0.02; done'; \
         setsid sh -c \"$beat\" {} & (setsid sh -c \"$beat\" {} &); sleep 600",
        home.display(),
        beat.display(),
        orphan.display()
    );
    let live = plain().write(&dir).shell(&script).spawn();
    heart_beats(&beat);
    heart_beats(&orphan);
    live.signal(libc::SIGKILL);
    live.wait();
    heart_stops(&beat);
    heart_stops(&orphan);
    let home = std::fs::read_to_string(&home).unwrap();
    assert!(eventually(patience(), || !Path::new(home.trim()).exists()), "{home} remains");
}

/// The launcher collects what a killed supervisor leaves.
#[test]
fn everything_dies_with_the_supervisor() {
    require!("plain");
    let scratch = Scratch::new();
    let dir = writable(&scratch);
    let (beat, parent) = (dir.join("beat"), dir.join("parent"));
    let script = format!(
        "setsid sh -c 'while :; do echo . >> {}; sleep 0.02; done' & echo $PPID > {}; sleep 600",
        beat.display(),
        parent.display()
    );
    let live = plain().write(&dir).shell(&script).spawn();
    heart_beats(&beat);
    let supervisor = std::fs::read_to_string(&parent).unwrap();
    let words = ["kill", supervisor.trim(), "9"];
    assert!(Run::bare().probe(&words).run().last("kill").ok);
    live.wait();
    heart_stops(&beat);
}

#[test]
fn a_fork_bomb_does_not_outrun_its_end() {
    require!("plain");
    let scratch = Scratch::new();
    let dir = writable(&scratch);
    let beat = dir.join("beat");
    let script = format!(
        "b() {{ echo . >> {}; b & b & }}; b 2>/dev/null; sleep 0.3; exit 7",
        beat.display()
    );
    let run = plain().write(&dir).flag("--max-pids").arg("60").flag("--timeout").arg("20s");
    let finished = run.shell(&script).run();
    assert!([7, 124, 2].contains(&finished.code), "{finished}");
    heart_stops(&beat);
}

#[test]
fn memory_of_the_tree_is_watched() {
    require!("plain");
    let run = |limit: &str, hold: &str| {
        let run = plain().flag("--max-memory").arg(limit);
        run.probe(&["fork-alloc", "3", "33554432", hold]).run()
    };
    run("64M", "30000").code_is(137);
    run("256M", "1500").code_is(0);
}

#[test]
fn no_subprocess_holds_here_too() {
    require!("plain");
    let run = || plain().flag("--no-subprocess");
    let finished = run().probe(&["fork", "1"]).run();
    assert!(!finished.last("fork").ok, "{finished}");
    assert!(plain().probe(&["fork", "1"]).run().last("fork").ok);
    // Files and processes are asked about on the same line.
    let finished = run().command(&["sh", "-c", "cd; echo x > f; umask; exec true"]).run();
    assert_ne!(finished.code, 0, "{finished}");
    assert!(run().probe(&["threads", "3"]).run().last("threads").ok);
}

/// Neither a command that ignores signals nor a stopped one keeps its launcher.
#[test]
fn everything_dies_of_a_signal_to_the_launcher() {
    require!("plain");
    for act in ["trap '' TERM; while :; do sleep 0.02; done", "kill -STOP $$"] {
        let scratch = Scratch::new();
        let dir = writable(&scratch);
        let beat = dir.join("beat");
        let heart =
            format!("trap '' TERM; while :; do echo . >> {}; sleep 0.02; done", beat.display());
        let script = format!("(setsid sh -c \"$0\" &); {act}");
        let run = |grace: &str| plain().write(&dir).flag("--grace").arg(grace);
        let live = run("300ms").shell(&script).command(&[&heart]).spawn();
        heart_beats(&beat);
        live.signal(libc::SIGTERM);
        live.wait().code_is(128 + libc::SIGTERM);
        heart_stops(&beat);
        if act.starts_with("kill") {
            continue;
        }
        // The grace is waited for, unless a second signal comes.
        let live = run("1h").shell(&script).command(&[&heart]).spawn();
        heart_beats(&beat);
        live.signal(libc::SIGTERM);
        live.await_taken(libc::SIGTERM);
        heart_beats(&beat);
        live.signal(libc::SIGINT);
        live.wait().code_is(128 + libc::SIGINT);
        heart_stops(&beat);
    }
}
