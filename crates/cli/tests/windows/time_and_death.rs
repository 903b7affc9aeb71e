//! Time limits, exit codes, and that nothing outlives a run.

use std::os::windows::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{
    Run, Scratch, allowed, blocked, heart_beats, heart_stops, heart_stops_in_time, mcp, probe,
    refused,
};

fn timed(timeout: &str) -> Run {
    Run::new().flag("--timeout").flag(timeout).flag("--grace").flag("300ms")
}

/// A file in a write grant that shows whether a process lives.
struct Heart {
    scratch: Scratch,
    path: std::path::PathBuf,
}

impl Heart {
    fn new() -> Heart {
        let scratch = Scratch::new();
        let path = scratch.dir("grant").join("beat");
        Heart { scratch, path }
    }

    fn in_run(&self, run: Run) -> Run {
        run.write(&self.scratch.join("grant"))
    }

    fn text(&self) -> &str {
        self.path.to_str().unwrap()
    }
}

#[test]
fn exit_codes_pass_through() {
    for code in [0, 1, 42, 124, 125, 255] {
        for run in [Run::bare(), Run::new()] {
            run.probe(&["exit", &code.to_string()]).run().code_is(code);
        }
    }
}

#[test]
fn codes_of_windows_do_not_become_a_success() {
    Run::new().command(&["cmd", "/c", "exit 256"]).run().code_is(255);
    Run::new().command(&["cmd", "/c", "exit -1073741819"]).run().code_is(139);
    Run::new().command(&["cmd", "/c", "exit 7"]).run().code_is(7);
}

#[test]
fn programs_that_are_not_there() {
    Run::new().command(&["no-such-program"]).run().code_is(127);
    let scratch = Scratch::new();
    let text = scratch.file("text.txt", "no program");
    Run::new().command(&[text.to_str().unwrap()]).run().code_is(126);
    let broken = scratch.file("broken.exe", "no program");
    Run::new().command(&[broken.to_str().unwrap()]).run().code_is(126);
}

#[test]
fn output_is_the_childs_alone() {
    let run = Run::new().input("in\n").probe(&["stdin-read"]).probe(&["write-stderr", "err"]);
    let finished = run.probe(&["write-stdout", "out"]).run();
    finished.code_is(0);
    assert!(finished.stdout.ends_with("out"), "{finished:#?}");
    assert_eq!(finished.acts()[0]["detail"], "3", "bytes read: {finished:#?}");
    assert!(finished.stderr.contains("err"), "{finished:#?}");
}

#[test]
fn arguments_arrive_as_they_were() {
    for argument in ["a b", "a\"b", "a\\", "a\\\"b", "", "%PATH%", "a&b|c>d", "ü ß"] {
        let finished = Run::new().probe(&["getenv", argument]).run();
        assert_eq!(finished.last()["arg"], argument, "{finished:#?}");
    }
}

#[test]
fn batch_files_run_and_hear_words_only() {
    let scratch = Scratch::new();
    let script = scratch.file("say.cmd", "@echo off\r\necho [%1]\r\nexit /b 5\r\n");
    let script = script.to_str().unwrap();
    let run = || Run::new().read(scratch.path());
    let finished = run().command(&[script, "a & exit 9"]).run();
    finished.code_is(5);
    assert!(finished.stdout.contains("[\"a & exit 9\"]"), "{finished:#?}");
    run().command(&[script, "%PATH%"]).run().code_is(126);
}

#[test]
fn timeout() {
    allowed(timed("60s").probe(&["sleep", "0.1"]));
    let finished = timed("500ms").probe(&["sleep", "50"]).run();
    finished.code_is(124);
    assert!(finished.stderr.contains("killed: timeout"), "{finished:#?}");
}

#[test]
fn timeout_closes_the_input_first() {
    let run = Run::new().flag("--timeout").flag("1s").flag("--grace").flag("60s");
    let began = Instant::now();
    // It ends when its input does; only then can what it says afterwards be heard.
    let finished = run.open_input().probe(&["stdin-read"]).run_with_open_input();
    finished.code_is(124);
    assert!(began.elapsed() < Duration::from_secs(40), "waited for the grace: {finished:#?}");
}

/// Whether this system brings Ctrl-Break to a console of another process, as a timeout does: tried on a process
/// of our own.
fn breaks_arrive() -> bool {
    const CREATE_NO_WINDOW: u32 = 0x0800_0000;
    const CREATE_NEW_PROCESS_GROUP: u32 = 0x200;
    let heart = Heart::new();
    let mut sleeper = Command::new(probe())
        .args(["loop-heartbeat", heart.text(), "20"])
        .creation_flags(CREATE_NO_WINDOW | CREATE_NEW_PROCESS_GROUP)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    heart_beats(&heart.path);
    let sent = Command::new(mcp()).arg("mcp-sandbox-break").arg(sleeper.id().to_string()).status();
    let is_sent = sent.unwrap().success();
    if !is_sent {
        println!("NOT VERIFIED: break: this system refuses to send one to another console");
    }
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
    is_sent
}

/// A program that does not listen for it is ended by Ctrl-Break, long before the grace is over.
#[test]
fn timeout_sends_a_break() {
    if !breaks_arrive() {
        return;
    }
    let run = Run::new().flag("--timeout").flag("1s").flag("--grace").flag("60s");
    let began = Instant::now();
    let finished = run.probe(&["sleep", "80"]).run();
    finished.code_is(124);
    assert!(began.elapsed() < Duration::from_secs(40), "waited for the grace: {finished:#?}");
}

/// A launcher in a console of its own, as one that somebody has started, who now presses Ctrl-Break in it.
fn interrupted(run: Run, heart: &Heart, times: u32) -> crate::support::Finished {
    let live = run.own_console().spawn();
    heart_beats(&heart.path);
    for _ in 0..times {
        let id = live.child.id().to_string();
        let sent = Command::new(mcp()).args(["mcp-sandbox-break", &id]).status();
        assert!(sent.unwrap().success());
        std::thread::sleep(Duration::from_millis(300));
    }
    live.wait()
}

#[test]
fn an_interrupt_asks_the_command_and_then_ends_the_tree() {
    if !breaks_arrive() {
        return;
    }
    // One that does not listen is ended by the break itself …
    let heart = Heart::new();
    let run = heart.in_run(Run::new()).flag("--grace").flag("60s");
    let began = Instant::now();
    interrupted(run.probe(&["loop-heartbeat", heart.text(), "20"]), &heart, 1).code_is(130);
    assert!(began.elapsed() < Duration::from_secs(40), "waited for the grace");
    heart_stops(&heart.path);
    // … one that ignores it by the end of the grace …
    let heart = Heart::new();
    let run = heart.in_run(Run::new()).flag("--grace").flag("500ms");
    interrupted(run.probe(&["ignore-term", "60", heart.text()]), &heart, 1).code_is(130);
    heart_stops(&heart.path);
    // … or by a second one.
    let heart = Heart::new();
    let run = heart.in_run(Run::new()).flag("--grace").flag("60s");
    interrupted(run.probe(&["ignore-term", "80", heart.text()]), &heart, 2).code_is(130);
    assert!(began.elapsed() < Duration::from_secs(80));
    heart_stops(&heart.path);
}

#[test]
fn those_who_ignore_breaks_die() {
    let heart = Heart::new();
    heart_stops_in_time(&heart.path, |timeout| {
        heart.in_run(timed(timeout)).probe(&["ignore-term", "60", heart.text()])
    });
}

/// Three generations, the last of which shows that it lives.
#[test]
fn a_tree_of_three_dies_with_the_timeout() {
    let heart = Heart::new();
    let own = probe();
    let own = own.to_str().unwrap();
    let words = ["exec", own, "exec", own, "loop-heartbeat", heart.text(), "20"];
    heart_stops_in_time(&heart.path, |timeout| heart.in_run(timed(timeout)).probe(&words));
}

#[test]
fn daemons_die_with_the_run() {
    let heart = Heart::new();
    let run = heart.in_run(Run::new()).probe(&["daemonize", "60", heart.text()]);
    run.probe(&["await-file", heart.text()]).run().code_is(0);
    heart_stops(&heart.path);
}

#[test]
fn killing_the_launcher_kills_everything() {
    for act in ["loop", "daemon", "ignore"] {
        let heart = Heart::new();
        let run = heart.in_run(Run::new());
        let run = match act {
            "loop" => run.probe(&["loop-heartbeat", heart.text(), "20"]),
            "daemon" => run.probe(&["daemonize", "60", heart.text()]).probe(&["sleep", "50"]),
            _ => run.probe(&["ignore-term", "60", heart.text()]),
        };
        let mut live = run.spawn();
        heart_beats(&heart.path);
        live.child.kill().unwrap();
        live.wait();
        heart_stops(&heart.path);
    }
}

#[test]
fn nothing_breaks_away() {
    assert_eq!(allowed(Run::new().probe(&["in-job"])), "true");
    refused(Run::new().probe(&["break-away"]), Run::bare().probe(&["break-away"]));
    // From further down as well.
    let own = probe();
    blocked(Run::new().probe(&["exec", own.to_str().unwrap(), "break-away"]));
}

#[test]
fn at_the_same_time_they_do_not_disturb_each_other() {
    let runs: Vec<_> = (0..4)
        .map(|number: i32| (number, Run::new().probe(&["exit", &number.to_string()]).spawn()))
        .collect();
    for (number, live) in runs {
        live.wait().code_is(number);
    }
}
