//! The walls of an AppContainer. Each refusal with its control.

use std::net::TcpListener;
use std::process::Command;

use crate::support::{
    Run, Scratch, allowed, blocked, blocked_by, eventually, heart_beats, holds, refused_by,
};

#[test]
fn files_that_were_not_granted() {
    let scratch = Scratch::new();
    let secret = scratch.file(r"outside\secret", "secret");
    let text = secret.to_str().unwrap();
    let outside = scratch.join("outside");
    let granted = Run::new().read(&outside).probe(&["read", text]);
    refused_by("container", Run::new().probe(&["read", text]), granted);
    blocked_by("container", Run::new().probe(&["list", outside.to_str().unwrap()]));
    blocked_by("container", Run::new().read(&outside).probe(&["write", text]));
    allowed(Run::new().write(&outside).probe(&["write", text]));
}

#[test]
fn files_of_other_spellings() {
    let scratch = Scratch::new();
    let secret = scratch.file(r"outside\secret", "secret");
    let text = secret.to_str().unwrap();
    for spelling in [
        format!(r"\\?\{text}"),
        format!(r"\\.\{text}"),
        text.to_uppercase(),
        text.replace('\\', "/"),
    ] {
        let control = Run::bare().probe(&["read", &spelling]);
        refused_by("container", Run::new().probe(&["read", &spelling]), control);
    }
    if holds("container") {
        // Wine has no streams.
        let stream = format!("{text}::$DATA");
        allowed(Run::bare().probe(&["read", &stream]));
        blocked(Run::new().probe(&["read", &stream]));
    }
}

#[test]
fn own_directories_can_be_written() {
    for name in ["TEMP", "USERPROFILE"] {
        let place = allowed(Run::new().probe(&["getenv", name]));
        assert!(place.contains("mcp-"), "{name} is a run's own: {place}");
    }
    let made = r"echo x> %TEMP%\made && echo x> %USERPROFILE%\made && type %TEMP%\made";
    let finished = Run::new().command(&["cmd", "/c", made]).run();
    assert!(finished.code == 0 && finished.stdout.contains('x'), "{finished:#?}");
}

#[test]
fn network() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let connect = |run: Run| run.probe(&["connect", &address]);
    refused_by("container", connect(Run::new()), connect(Run::bare()));
    if holds("container") {
        blocked(Run::new().probe(&["connect", "1.1.1.1:53"]));
        blocked(Run::new().probe(&["udp-talk", "1.1.1.1:53"]));
    }
}

#[test]
fn other_processes() {
    let own = std::process::id().to_string();
    let open = |run: Run| run.probe(&["kill", &own, "0"]);
    refused_by("container", open(Run::new()), open(Run::bare()));
}

/// What most programs of Windows use where others use unix sockets.
#[test]
fn named_pipes_of_others() {
    let name = format!("mcp-test-{}", std::process::id());
    let mut server = Run::bare().probe(&["pipe-serve", &name, "60"]).spawn();
    let open = |run: Run| run.probe(&["pipe-open", &name]);
    assert!(eventually(|| open(Run::bare()).run().last()["ok"] == true), "no pipe");
    blocked_by("container", open(Run::new()));
    server.child.kill().unwrap();
    server.wait();
}

#[test]
fn no_subprocess() {
    let run = Run::new().flag("--no-subprocess");
    refused_by("container", run.probe(&["fork", "1"]), Run::new().probe(&["fork", "1"]));
    allowed(Run::new().flag("--no-subprocess").probe(&["threads", "4"]));
}

#[test]
fn token() {
    assert_eq!(allowed(Run::bare().probe(&["in-container"])), "false");
    if holds("container") && holds("token") {
        assert_eq!(allowed(Run::new().probe(&["in-container"])), "true");
    }
}

pub fn entries(path: &std::path::Path) -> String {
    let listed = Command::new("icacls").arg(path).output().unwrap();
    String::from_utf8_lossy(&listed.stdout).into_owned()
}

/// A SID of a container that is gone is shown by its numbers.
pub const CONTAINER: &str = "S-1-15-2-";

#[test]
fn entries_are_withdrawn() {
    if !holds("container") {
        return;
    }
    let scratch = Scratch::new();
    let granted = scratch.dir("granted");
    let inner = scratch.file(r"granted\inner", "x");
    let before = entries(&granted);
    let heart = granted.join("beat");
    let text = heart.to_str().unwrap();
    let live = Run::new().write(&granted).flag("--timeout").flag("5s");
    let live = live.probe(&["loop-heartbeat", text, "20"]).spawn();
    heart_beats(&heart);
    assert!(entries(&granted).contains(CONTAINER), "the control: there was one");
    live.wait().code_is(124);
    assert_eq!(entries(&granted), before);
    assert!(!entries(&inner).contains(CONTAINER));
}

#[test]
fn entries_of_a_killed_launcher_are_withdrawn_by_the_next() {
    if !holds("container") {
        return;
    }
    let scratch = Scratch::new();
    let granted = scratch.dir("granted");
    let heart = granted.join("beat");
    let run = Run::new().write(&granted).probe(&["loop-heartbeat", heart.to_str().unwrap(), "20"]);
    let home = run.home.path().join(r"LOCALAPPDATA\mcp\runs");
    let mut live = run.spawn();
    heart_beats(&heart);
    live.child.kill().unwrap();
    let journal = live.wait_and_give(|| {
        let journal = std::fs::read_dir(&home).unwrap().next().unwrap().unwrap().path();
        std::fs::read_to_string(journal).unwrap()
    });
    assert!(entries(&granted).contains(CONTAINER), "the control: it was left");
    let next = Run::new().probe(&["exit", "0"]);
    std::fs::write(next.home.dir(r"LOCALAPPDATA\mcp\runs").join("x.journal"), journal).unwrap();
    next.run().code_is(0);
    assert!(!entries(&granted).contains(CONTAINER));
}

/// No WRITE_DAC there for anybody but the system's own installer.
#[test]
fn what_cannot_be_granted_is_named() {
    if !holds("container") {
        return;
    }
    let system = r"C:\Windows\System32\drivers";
    let finished = Run::new().flag("--write").flag(system).probe(&["exit", "0"]).run();
    finished.code_is(125);
    assert!(finished.stderr.contains(system), "{finished:#?}");
}
