//! Who lives how long: the command, its tree, the launcher, and the program that holds them.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use mcp_sandbox::{Ending, Running, Sandbox};

use crate::support::{Check, Outcome, Scratch, holds, same, shell, within};

pub const ALL: &[(&str, Check)] = &[
    ("wait_timeout_and_try_wait", wait_timeout_and_try_wait),
    ("kill_ends_the_tree", kill_ends_the_tree),
    ("drop_ends_the_tree", drop_ends_the_tree),
    ("terminate_reaches_the_command", terminate_reaches_the_command),
    ("terminate_kills_what_does_not_end", terminate_kills_what_does_not_end),
    ("killed_program_takes_its_sandboxes_along", killed_program_takes_its_sandboxes_along),
    ("a_thread_that_ends_does_not", a_thread_that_ends_does_not),
    ("caller_that_ignores_its_children", caller_that_ignores_its_children),
    ("a_helper_by_hand_refuses", a_helper_by_hand_refuses),
];

const LONG: Duration = Duration::from_secs(20);

fn wait_timeout_and_try_wait() -> Outcome {
    let mut running = Sandbox::new("cat").stdin(Stdio::piped()).spawn()?;
    same(running.try_wait()?, None)?;
    let begun = Instant::now();
    same(running.wait_timeout(Duration::from_millis(80))?, None)?;
    holds(begun.elapsed() >= Duration::from_millis(80), || "too early".to_owned())?;
    // Waiting with a time does not close the input: the command goes on.
    drop(running.stdin.take());
    let outcome = running.wait_timeout(LONG)?.ok_or("still running")?;
    same(&outcome.ending, &Ending::Exited(0))?;
    same(running.try_wait()?.as_ref(), Some(&outcome))?;
    same(running.wait()?, outcome)
}

/// A grandchild, in a session of its own, that writes to a file again and again.
fn heartbeat(scratch: &Path) -> Result<Running, Box<dyn std::error::Error>> {
    let script = "setsid sh -c 'while :; do echo x >> beat; sleep 0.02; done' & sleep 600";
    let mut sandbox = shell(script);
    sandbox.write(scratch).current_dir(scratch).stdout(Stdio::null()).stderr(Stdio::null());
    // A heart that is not stopped, because a check failed, stops by itself.
    let running = sandbox.timeout(Duration::from_secs(60)).spawn()?;
    holds(within(LONG, || beats(scratch) > 2), || "no heartbeat".to_owned())?;
    Ok(running)
}

fn beats(scratch: &Path) -> u64 {
    fs::metadata(scratch.join("beat")).map_or(0, |file| file.len())
}

/// Still for ten times as long as a beat takes.
fn is_still(scratch: &Path) -> Outcome {
    let has_stopped = within(LONG, || {
        let before = beats(scratch);
        std::thread::sleep(Duration::from_millis(200));
        beats(scratch) == before
    });
    holds(has_stopped, || "the heart still beats".to_owned())
}

fn kill_ends_the_tree() -> Outcome {
    let scratch = Scratch::new()?;
    let mut running = heartbeat(scratch.path())?;
    running.kill()?;
    let outcome = running.wait()?;
    same((&outcome.ending, outcome.report.is_none()), (&Ending::Signaled(9), true))?;
    running.kill()?;
    is_still(scratch.path())
}

fn drop_ends_the_tree() -> Outcome {
    let scratch = Scratch::new()?;
    let running = heartbeat(scratch.path())?;
    let id = running.id();
    let begun = Instant::now();
    drop(running);
    holds(begun.elapsed() < LONG, || "took too long".to_owned())?;
    holds(!Path::new(&format!("/proc/{id}")).exists(), || "the launcher is there".to_owned())?;
    is_still(scratch.path())
}

fn terminate_reaches_the_command() -> Outcome {
    let mut sandbox = shell("trap 'exit 9' TERM; echo ready; while :; do sleep 0.02; done");
    let mut running = sandbox.stdout(Stdio::piped()).spawn()?;
    let mut line = String::new();
    BufReader::new(running.stdout.take().ok_or("no stdout")?).read_line(&mut line)?;
    running.terminate()?;
    same(&running.wait()?.ending, &Ending::Exited(9))
}

/// Whether no SIGTERM waits for the launcher; where the kernel does not tell, it has to be quick.
fn is_taken(launcher: u32) -> bool {
    const SIGTERM: u64 = 1 << 14;
    let status = fs::read_to_string(format!("/proc/{launcher}/status")).unwrap_or_default();
    let waiting = status.lines().find_map(|line| line.strip_prefix("ShdPnd:"));
    let waiting = waiting.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    waiting.is_none_or(|mask| mask & SIGTERM == 0)
}

fn terminate_kills_what_does_not_end() -> Outcome {
    let scratch = Scratch::new()?;
    let beat = scratch.path().join("beat");
    let script = format!("trap '' TERM; while :; do echo >> {}; sleep 0.02; done", beat.display());
    // The grace kills, or a second request.
    for (grace, requests) in [(Duration::from_millis(300), 1), (LONG * 100, 2)] {
        let mut running = shell(&script).write(scratch.path()).grace(grace).spawn()?;
        for _ in 0..requests {
            let before = beats(scratch.path());
            // Two at the same moment count as one.
            std::thread::sleep(Duration::from_millis(200));
            holds(within(LONG, || beats(scratch.path()) > before), || "no heart".to_owned())?;
            running.terminate()?;
            holds(within(LONG, || is_taken(running.id())), || "not taken".to_owned())?;
        }
        let ending = running.wait_timeout(LONG)?.map(|outcome| outcome.ending);
        same(&ending, &Some(Ending::Signaled(15)))?;
        is_still(scratch.path())?;
    }
    Ok(())
}

/// This program in another part.
pub fn play_caller(args: &[String]) -> Option<ExitCode> {
    match args {
        [part, scratch] if part == "play-heart" => Some(play_heart(scratch)),
        [part] if part == "play-ignorant" => {
            let outcome = shell("exit 3").status();
            Some(ExitCode::from(
                outcome.ok().and_then(|outcome| outcome.code()).map_or(1, |c| c as u8),
            ))
        }
        _ => None,
    }
}

/// Starts a heartbeat and waits to be killed.
fn play_heart(scratch: &str) -> ExitCode {
    // From a thread, as a server would: the sandbox must depend on the process alone.
    let started = std::thread::scope(|scope| {
        scope.spawn(|| heartbeat(Path::new(scratch)).map_err(|e| e.to_string())).join()
    });
    match started {
        Ok(Ok(mut running)) => {
            println!("ready");
            let _ = running.wait();
            ExitCode::SUCCESS
        }
        _ => ExitCode::FAILURE,
    }
}

fn killed_program_takes_its_sandboxes_along() -> Outcome {
    let scratch = Scratch::new()?;
    let mut program = Command::new(std::env::current_exe()?)
        .arg("play-heart")
        .arg(scratch.path())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut line = String::new();
    BufReader::new(program.stdout.take().ok_or("no stdout")?).read_line(&mut line)?;
    same(line.trim(), "ready")?;
    program.kill()?;
    program.wait()?;
    is_still(scratch.path())
}

/// A parent-death signal would mean the thread.
fn a_thread_that_ends_does_not() -> Outcome {
    let started = std::thread::spawn(|| Sandbox::new("cat").stdin(Stdio::piped()).spawn()).join();
    let mut running = started.map_err(|_| "the thread panicked")??;
    same(running.wait_timeout(Duration::from_millis(150))?, None)?;
    holds(running.wait()?.success(), || "it was killed".to_owned())
}

/// A program that leaves its children to the kernel cannot wait for them.
fn caller_that_ignores_its_children() -> Outcome {
    let status = Command::new("/bin/sh")
        .args(["-c", "trap '' CHLD; exec \"$0\" play-ignorant"])
        .arg(std::env::current_exe()?)
        .status()?;
    same(status.code(), Some(3))
}

#[cfg(unix)]
fn a_helper_by_hand_refuses() -> Outcome {
    use std::os::unix::process::CommandExt;
    for args in [&[][..], &["3", "4"], &["0", "1"], &["x", "y"]] {
        let mut command = Command::new(std::env::current_exe()?);
        let output = command.arg0("mcp-sandbox-helper").args(args).output()?;
        same(output.status.code(), Some(125))?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        holds(said.contains("started by hand") && output.stdout.is_empty(), || said.clone())?;
    }
    Ok(())
}

#[cfg(not(unix))]
fn a_helper_by_hand_refuses() -> Outcome {
    Ok(())
}
