//! On a terminal: the program gets one of the sandbox's own, and it behaves like the user's.

use std::fs;
use std::time::Duration;

use crate::require;
use crate::support::{Live, Pty, Run, Scratch, eventually, mcp_path, patience, probe_path};

/// Has a plain shell lead the session, run the command and then the rest of the script: when the
/// leader of a session ends, the kernel resets its terminal, and there is nothing left to look at.
fn below_a_shell(run: &Run, rest: &str) -> Run {
    let script = format!("\"$@\"; echo code-$?.; {rest}");
    Run::bare().command(&["sh", "-c", &script, "sh"]).command(&run.words())
}

/// Waits for the end; a wrong exit code shows the screen.
#[track_caller]
fn ends(live: Live, pty: &Pty, code: i32) {
    let finished = live.wait();
    assert_eq!(finished.code, code, "the terminal showed\n{}", pty.screen());
}

#[test]
fn program_sees_a_terminal_that_is_not_the_users() {
    require!("userns");
    let file_system = |run: Run| {
        let pty = Pty::new();
        let script = "test -t 0 && test -t 1 && test -t 2 && stat -Lc dev=%d. /proc/self/fd/0";
        pty.on(run.shell(script)).run().code_is(0);
        pty.expect("dev=");
        pty.screen()
    };
    assert_ne!(file_system(Run::bare()), file_system(Run::new()));
}

#[test]
fn controlling_terminal_is_the_sandboxs_own() {
    require!("userns");
    for run in [Run::bare(), Run::new()] {
        let pty = Pty::new();
        pty.on(run.shell("echo by-tty-$((1+1)) >/dev/tty")).run().code_is(0);
        pty.expect("by-tty-2");
    }
}

#[test]
fn characters_cannot_be_typed_into_the_users_terminal() {
    require!("userns");
    let typed = |run: Run| {
        let pty = Pty::new();
        let run = run.probe(&["tiocsti", "0", "X"]).probe(&["tiocsti", "1", "X"]);
        let live = pty.on(below_a_shell(&run, "read -r line; echo \"[$line]\"")).spawn();
        pty.expect("code-0.");
        pty.type_in("\n");
        live.wait().code_is(0);
        pty.expect("]");
        pty.screen()
    };
    let control = typed(Run::bare());
    if !control.contains("[XX]") {
        println!("SKIP: control: this kernel has TIOCSTI switched off: {control}");
    }
    let inside = typed(Run::new());
    assert!(inside.contains("[]"), "{inside}");
}

#[test]
fn interactive_shell_has_job_control() {
    require!("userns");
    for run in [Run::bare(), Run::new()] {
        let pty = Pty::new();
        let live = pty.on(run.flag("--env").arg("PS1=$ ").command(&["sh", "-i"])).spawn();
        pty.type_in("set -m; echo mode-$-\n");
        pty.type_in("sleep 60 & echo in-$((40+2))\n");
        pty.expect("in-42");
        // Not by SIGTERM, which a shell at a terminal ignores, and so does its child for a moment.
        pty.type_in("kill -KILL %1; wait %1; echo gone-$?\n");
        pty.expect("gone-137");
        pty.type_in("exit 9\n");
        ends(live, &pty, 9);
        assert!(!pty.screen().contains("no job control"), "{}", pty.screen());
    }
}

#[test]
fn stop_key_stops_a_job_of_the_inner_shell() {
    require!("userns");
    for run in [Run::bare(), Run::new()] {
        let pty = Pty::new();
        let live = pty.on(run.command(&["sh", "-i"])).spawn();
        pty.type_in("echo start-$((1+1)); sleep 600\n");
        pty.expect("start-2");
        // Until the shell has handed the terminal to sleep, ^Z reaches the shell, which ignores it.
        let stopped = eventually(patience(), || {
            pty.type_in("\x1a");
            std::thread::sleep(Duration::from_millis(200));
            pty.screen().contains("topped")
        });
        assert!(stopped, "{}", pty.screen());
        pty.type_in("kill -9 %1; exit 4\n");
        pty.type_in("exit 4\n");
        ends(live, &pty, 4);
    }
}

#[test]
fn interrupt_key_ends_the_foreground() {
    require!("userns");
    for run in [Run::bare(), Run::new()] {
        let pty = Pty::new();
        let live = pty.on(run.shell("echo ready-$((1+1)); exec sleep 600")).spawn();
        pty.expect("ready-2");
        pty.type_in("\x03");
        ends(live, &pty, 128 + libc::SIGINT);
    }
}

#[test]
fn end_of_file_key_ends_the_input() {
    require!("userns");
    for run in [Run::bare(), Run::new()] {
        let pty = Pty::new();
        let live = pty.on(run.shell("echo ready-$((1+1)); cat; echo done-$((2+2))")).spawn();
        pty.expect("ready-2");
        pty.type_in("line\n\x04");
        live.wait().code_is(0);
        pty.expect("done-4");
    }
}

/// The events that the probe's `job` act noted.
fn events(path: &std::path::Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

#[test]
fn stop_key_stops_the_launcher_and_it_continues() {
    require!("userns");
    for sandboxed in [false, true] {
        let scratch = Scratch::new();
        let path = scratch.join("events");
        let pty = Pty::new();
        let script = "echo ready-$((1+1)); read -r line; echo got-$line; exit 6";
        let mut words = vec!["job".into(), path.clone().into_os_string()];
        if sandboxed {
            words.extend([mcp_path().into(), "run".into(), "--".into()]);
        }
        words.extend(["sh", "-c", script].map(Into::into));
        let live = pty.on(Run::bare().command(&[probe_path()]).command(&words)).spawn();
        pty.expect("ready-2");
        pty.type_in("\x1a");
        let seen = |text: &str| eventually(patience(), || events(&path).contains(text));
        assert!(seen("stopped"), "sandboxed {sandboxed}: {}\n{}", events(&path), pty.screen());
        fs::write(scratch.join("events.fg"), "").unwrap();
        assert!(seen("continued"), "sandboxed {sandboxed}: {}", events(&path));
        pty.type_in("word\n");
        assert!(seen("exited 6"), "sandboxed {sandboxed}: {}\n{}", events(&path), pty.screen());
        pty.expect("got-word");
        live.wait();
    }
}

#[test]
fn resizing_reaches_the_program() {
    require!("userns");
    for run in [Run::bare(), Run::new()] {
        let pty = Pty::new();
        let script = "trap 'stty size' WINCH; stty size; while :; do sleep 0.05; done";
        let live = pty.on(run.shell(script)).spawn();
        pty.expect("24 80");
        pty.resize(33, 99);
        pty.expect("33 99");
        live.signal(libc::SIGTERM);
        live.wait();
    }
}

#[test]
fn modes_of_the_terminal_are_restored() {
    require!("userns");
    let restored = |script: &str, code: i32, signal: Option<i32>| {
        let pty = Pty::new();
        let before = pty.modes();
        let run = Run::new().shell(&format!("echo ready-$((1+1)); {script}"));
        let live = pty.on(below_a_shell(&run, "read -r line")).spawn();
        pty.expect("ready-2");
        if let Some(signal) = signal {
            assert_ne!(pty.modes(), before, "the terminal is not raw, so this proves nothing");
            live.signal_children(signal);
        }
        pty.expect(&format!("code-{code}."));
        assert_eq!(pty.modes(), before, "{script}");
        pty.type_in("\n");
        live.wait();
    };
    restored("true", 0, None);
    restored("stty raw -echo", 0, None);
    restored("kill -9 $$", 137, None);
    restored("sleep 60", 128 + libc::SIGTERM, Some(libc::SIGTERM));
}

#[test]
fn output_arrives_whole_before_the_end() {
    require!("userns");
    let pty = Pty::new();
    let run = Run::new().shell("i=0; while [ $i -lt 5000 ]; do echo line-$i; i=$((i+1)); done");
    pty.on(run).run().code_is(0);
    pty.expect("line-4999");
}

#[test]
fn only_stderr_is_a_terminal() {
    require!("userns");
    let act = |run: Run, pty: &Pty| run.input("").stderr(pty.end());
    let pty = Pty::new();
    let run = act(Run::new(), &pty).probe(&["write-stderr", "a problem"]).probe(&["fds"]);
    let finished = run.probe(&["tiocsti", "2", "X"]).run();
    finished.code_is(0);
    pty.expect("a problem");
    assert_eq!(finished.act("fds").field("0")[0], "pipe", "{finished}");
    assert_eq!(finished.act("fds").field("1")[0], "pipe", "{finished}");
    assert!(!finished.act("tiocsti").ok || finished.act("fds").field("2")[2] != "/dev/pts/0");
    let bare = act(Run::bare(), &pty).probe(&["fds"]).run();
    assert_eq!(bare.act("fds").field("2")[0], "terminal", "{bare}");
}

#[test]
fn only_stdout_is_a_terminal() {
    require!("userns");
    let pty = Pty::new();
    Run::new().input("typed").stdout(pty.end()).shell("cat; echo; test -t 1 && echo tty-$?").run();
    pty.expect("typed");
    pty.expect("tty-0");
}

#[test]
fn hang_up_of_the_terminal_ends_the_run() {
    require!("userns");
    let scratch = Scratch::new();
    let beat = scratch.dir("grant").join("beat");
    let pty = Pty::new();
    let run = Run::new().write(beat.parent().unwrap());
    let run = run.probe(&["loop-heartbeat".as_ref(), beat.as_os_str(), "20".as_ref()]);
    let live = pty.on(run).spawn();
    crate::support::heart_beats(&beat);
    live.signal(libc::SIGHUP);
    live.wait().code_is(128 + libc::SIGHUP);
    crate::support::heart_stops(&beat);
}

/// Keys go to the program, which may do with them what it likes; a signal to the launcher means the end.
#[test]
fn an_interrupt_key_is_no_signal_to_the_launcher() {
    require!("userns");
    let script =
        "n=0; trap 'n=$((n+1)); echo key-$n.' INT; echo ready; while :; do sleep 0.05; done";
    for bare in [true, false] {
        let run = if bare { Run::bare() } else { Run::new().flag("--grace").arg("0") };
        let pty = Pty::new();
        let live = pty.on(run.shell(script)).spawn();
        pty.expect("ready");
        for key in 1..=3 {
            pty.type_in("\x03");
            pty.expect(&format!("key-{key}."));
        }
        live.signal(if bare { libc::SIGKILL } else { libc::SIGINT });
        ends(live, &pty, if bare { 137 } else { 128 + libc::SIGINT });
    }
}

/// A program that stops when it is asked to end must not stop its launcher with it.
#[test]
fn a_program_that_stops_itself_does_not_outlive_a_signal() {
    require!("userns");
    let script = "trap 'echo stops; kill -STOP $$' TERM; echo ready; while :; do sleep 0.05; done";
    let pty = Pty::new();
    let live = pty.on(Run::new().flag("--grace").arg("300ms").shell(script)).spawn();
    pty.expect("ready");
    live.signal(libc::SIGTERM);
    pty.expect("stops");
    ends(live, &pty, 128 + libc::SIGTERM);
}
