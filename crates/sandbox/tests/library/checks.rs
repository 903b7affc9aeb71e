//! What goes in and what comes out.

use std::ffi::OsStr;
use std::fs;
use std::io::{Read, Write};
use std::process::Stdio;
use std::time::Duration;

use mcp_sandbox::{Bytes, Control, Ending, Error, Fallback, Sandbox, Status};

use crate::support::{Check, Outcome, Scratch, holds, same, shell};

pub const ALL: &[(&str, Check)] = &[
    ("output_of_echo", output_of_echo),
    ("both_outputs_at_once", both_outputs_at_once),
    ("exit_codes_and_signals", exit_codes_and_signals),
    ("stdin_is_piped", stdin_is_piped),
    ("stdout_to_a_file", stdout_to_a_file),
    ("reads_only_what_is_granted", reads_only_what_is_granted),
    ("writes_only_what_is_granted", writes_only_what_is_granted),
    ("current_directory_and_home", current_directory_and_home),
    ("environment", environment),
    ("secrets_come_by_the_socket", secrets_come_by_the_socket),
    ("secrets_by_reference", secrets_by_reference),
    ("arguments_of_any_bytes", arguments_of_any_bytes),
    ("large_orders_and_reports", large_orders_and_reports),
    ("timeout", timeout),
    ("memory_limit", memory_limit),
    ("report_says_enforced", report_says_enforced),
    ("errors_come_back", errors_come_back),
    ("gaps_are_refused", gaps_are_refused),
    ("no_descriptor_gets_in", no_descriptor_gets_in),
    ("one_sandbox_starts_twice", one_sandbox_starts_twice),
    ("a_program_that_is_no_helper", a_program_that_is_no_helper),
];

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn output_of_echo() -> Outcome {
    let output = Sandbox::new("echo").arg("hello").args(["big", "world"]).output()?;
    same(text(&output.stdout), "hello big world\n".to_owned())?;
    same(output.stderr.len(), 0)?;
    holds(output.outcome.success(), || format!("{:?}", output.outcome))
}

/// More than a pipe holds, on both: a reader that takes one after the other would wait for ever.
fn both_outputs_at_once() -> Outcome {
    let script = "head -c 300000 /dev/zero >&2; head -c 300000 /dev/zero; \
                  head -c 300000 /dev/zero >&2";
    let output = shell(script).output()?;
    same((output.stdout.len(), output.stderr.len()), (300_000, 600_000))
}

fn exit_codes_and_signals() -> Outcome {
    let outcome = shell("exit 7").status()?;
    same(&outcome.ending, &Ending::Exited(7))?;
    same((outcome.code(), outcome.success()), (Some(7), false))?;
    same(outcome.report.map(|report| report.exit_code), Some(7))?;
    let outcome = shell("kill -TERM $$").status()?;
    same(&outcome.ending, &Ending::Signaled(15))?;
    same((outcome.code(), outcome.report.map(|report| report.exit_code)), (None, Some(143)))
}

fn stdin_is_piped() -> Outcome {
    let mut running = Sandbox::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let (Some(mut stdin), Some(mut stdout)) = (running.stdin.take(), running.stdout.take()) else {
        return Err("no pipes".into());
    };
    let words = "to and fro ".repeat(20_000);
    let sent = words.clone();
    let writer = std::thread::spawn(move || stdin.write_all(sent.as_bytes()));
    let mut heard = String::new();
    stdout.read_to_string(&mut heard)?;
    writer.join().map_err(|_| "writer panicked")??;
    holds(heard == words, || format!("{} of {} bytes", heard.len(), words.len()))?;
    holds(running.wait()?.success(), || "cat failed".to_owned())
}

fn stdout_to_a_file() -> Outcome {
    let scratch = Scratch::new()?;
    let path = scratch.path().join("out");
    let outcome = Sandbox::new("echo").arg("kept").stdout(fs::File::create(&path)?).status()?;
    holds(outcome.success(), || format!("{outcome:?}"))?;
    same(fs::read_to_string(path)?, "kept\n".to_owned())
}

fn reads_only_what_is_granted() -> Outcome {
    let scratch = Scratch::new()?;
    let path = scratch.path().join("notes");
    fs::write(&path, "remember")?;
    let refused = Sandbox::new("cat").arg(&path).output()?;
    same((refused.outcome.code(), refused.stdout.len()), (Some(1), 0))?;
    let allowed = Sandbox::new("cat").arg(&path).read(scratch.path()).output()?;
    same((allowed.outcome.code(), text(&allowed.stdout)), (Some(0), "remember".to_owned()))
}

fn writes_only_what_is_granted() -> Outcome {
    let scratch = Scratch::new()?;
    let path = scratch.path().join("new");
    let mut touch = Sandbox::new("touch");
    let refused = touch.arg(&path).read(scratch.path()).output()?;
    same((refused.outcome.success(), path.exists()), (false, false))?;
    let allowed = Sandbox::new("touch").arg(&path).write(scratch.path()).output()?;
    holds(allowed.outcome.success() && path.exists(), || text(&allowed.stderr))
}

fn current_directory_and_home() -> Outcome {
    let scratch = Scratch::new()?;
    let output = Sandbox::new("pwd").read(scratch.path()).current_dir(scratch.path()).output()?;
    same(text(&output.stdout), format!("{}\n", scratch.path().display()))?;
    let outcome = shell("echo kept > ~/file").home(scratch.path()).status()?;
    holds(outcome.success(), || format!("{outcome:?}"))?;
    same(fs::read_to_string(scratch.path().join("file"))?, "kept\n".to_owned())
}

fn environment() -> Outcome {
    let script = "echo ${CARGO-unset} ${PATH:+path} $GIVEN";
    let output = shell(script).env("GIVEN", "a b").output()?;
    same(text(&output.stdout), "unset path a b\n".to_owned())?;
    let Some(path) = std::env::var_os("PATH") else {
        return Err("no PATH to pass".into());
    };
    let output = shell("echo $PATH").pass_env("PAT*").output()?;
    same(text(&output.stdout), format!("{}\n", path.display()))
}

/// The helper is looked at from outside while the command runs, and the command from inside.
fn secrets_come_by_the_socket() -> Outcome {
    let mut sandbox = shell("echo $TOKEN; read go");
    sandbox.secret("TOKEN", "hunter2").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut running = sandbox.spawn()?;
    let mut said = [0; 8];
    running.stdout.as_mut().ok_or("no stdout")?.read_exact(&mut said)?;
    same(text(&said), "hunter2\n".to_owned())?;
    for file in ["cmdline", "environ"] {
        let seen = fs::read(format!("/proc/{}/{file}", running.id()))?;
        holds(!seen.is_empty(), || format!("{file} is empty"))?;
        holds(!text(&seen).contains("hunter2"), || format!("the secret is in {file}"))?;
    }
    let report = running.wait()?.report.ok_or("no report")?;
    holds(!serde_json::to_string(&report)?.contains("hunter2"), || "in the report".to_owned())?;
    // A secret stands in for any other variable of its name.
    let output = shell("echo $HOME").secret("HOME", "/secret").output()?;
    same(text(&output.stdout), "/secret\n".to_owned())
}

fn secrets_by_reference() -> Outcome {
    let scratch = Scratch::new()?;
    let path = scratch.path().join("token");
    fs::write(&path, "from file\n")?;
    let reference = format!("file:{}", path.display()).parse()?;
    let output = shell("echo $TOKEN").secret_from("TOKEN", reference).output()?;
    same(text(&output.stdout), "from file\n".to_owned())
}

#[cfg(unix)]
fn arguments_of_any_bytes() -> Outcome {
    use std::os::unix::ffi::OsStrExt;
    let scratch = Scratch::new()?;
    let odd = OsStr::from_bytes(b"\xff\xfe line\nbreak \"quoted\"");
    let output = Sandbox::new("printf").arg("%s").arg(odd).output()?;
    same(&output.stdout[..], odd.as_bytes())?;
    let path = scratch.path().join(odd);
    fs::write(&path, "odd")?;
    let output = Sandbox::new("cat").arg(&path).read(&path).output()?;
    same(text(&output.stdout), "odd".to_owned())
}

#[cfg(not(unix))]
fn arguments_of_any_bytes() -> Outcome {
    let odd = OsStr::new("\u{fffd}");
    let output = Sandbox::new("printf").arg("%s").arg(odd).output()?;
    same(&output.stdout[..], odd.as_encoded_bytes())
}

/// More than the socket holds, in both directions.
fn large_orders_and_reports() -> Outcome {
    let word = "x".repeat(100_000);
    let output = Sandbox::new("echo").args((0..10).map(|_| &word)).output()?;
    same(output.stdout.len(), 10 * (word.len() + 1))?;
    let report = output.outcome.report.ok_or("no report")?;
    same(report.command.iter().map(String::len).sum::<usize>(), 10 * word.len() + 4)
}

fn timeout() -> Outcome {
    let mut sandbox = Sandbox::new("sleep");
    let outcome = sandbox.arg("60").timeout(Duration::from_millis(100)).status()?;
    same(&outcome.ending, &Ending::Timeout)?;
    let report = outcome.report.ok_or("no report")?;
    same(report.exit_code, 124)?;
    holds(report.usage.wall_seconds < 20.0, || format!("{:?}", report.usage))
}

fn memory_limit() -> Outcome {
    let mut sandbox = shell("head -c 256M /dev/zero | tail -c 200M > /dev/null");
    let outcome = sandbox.memory(Bytes::mib(32)).stderr(Stdio::null()).status()?;
    holds(!outcome.success(), || format!("{outcome:?}"))
}

fn report_says_enforced() -> Outcome {
    let mut sandbox = Sandbox::new("true");
    let mut running = sandbox.timeout(Duration::from_secs(60)).spawn()?;
    holds(running.report().is_none(), || "a report before the end".to_owned())?;
    let outcome = running.wait()?;
    same(running.report(), outcome.report.as_ref())?;
    let report = outcome.report.ok_or("no report")?;
    for control in [Control::Filesystem, Control::Network, Control::TreeKill, Control::Timeout] {
        let status = &report.controls[&control];
        holds(status.is_enforced(), || format!("{control}: {status:?}"))?;
    }
    same(&report.controls[&Control::AddressSpace], &Status::NotRequested)?;
    same(report.command, vec!["true".to_owned()])
}

fn errors_come_back() -> Outcome {
    let error = Sandbox::new("no-such-program").spawn().err().ok_or("it started")?;
    holds(matches!(&error, Error::NotFound { .. }), || format!("{error:?}"))?;
    same(error.exit_code(), 127)?;
    let error = Sandbox::new("true").read("/no/such").spawn().err().ok_or("it started")?;
    holds(matches!(&error, Error::Grant { .. }), || format!("{error:?}"))?;
    // Found out in the sandbox, after the start: told by the wait, as often as it is asked.
    let scratch = Scratch::new()?;
    let program = scratch.path().join("program");
    fs::copy("/bin/true", &program)?;
    fs::OpenOptions::new().write(true).truncate(true).open(&program)?.write_all(b"\x7fELF")?;
    let mut running = Sandbox::new(&program).spawn()?;
    for error in [running.wait().err(), running.wait().err()] {
        let error = error.ok_or("it ran")?;
        holds(matches!(&error, Error::NotExecutable { .. }), || format!("{error:?}"))?;
        same(error.exit_code(), 126)?;
    }
    let directory = fs::File::open(scratch.path())?;
    let error = Sandbox::new("true").stdin(directory).spawn().err().ok_or("it started")?;
    holds(matches!(&error, Error::Descriptor { fd: 0, .. }), || format!("{error:?}"))
}

/// `Cpu` is a limit that this machine may or may not enforce; the three ways agree with each other.
fn gaps_are_refused() -> Outcome {
    let half = mcp_sandbox::Cores::from_millicores(500);
    let report = Sandbox::new("true").cpu(half).status()?.report.ok_or("no report")?;
    let is_whole = report.controls[&Control::Cpu].is_enforced()
        && report.controls.values().all(|status| !matches!(status, Status::Partial { .. }));
    let strict = Sandbox::new("true").cpu(half).strict().status();
    same(strict.is_ok(), is_whole)?;
    if let Err(error) = strict {
        holds(matches!(error, Error::NotEnforced { .. }), || format!("{error:?}"))?;
        same(error.exit_code(), 125)?;
    }
    let outcome = Sandbox::new("true").fallback(Fallback::Warn).status()?;
    holds(outcome.success(), || format!("{outcome:?}"))
}

fn no_descriptor_gets_in() -> Outcome {
    let output = shell("echo /proc/self/fd/*").output()?;
    // The shell's own look at the directory may be among them.
    let open = text(&output.stdout).split_whitespace().count();
    holds((3..=4).contains(&open), || text(&output.stdout))
}

fn one_sandbox_starts_twice() -> Outcome {
    let mut echo = Sandbox::new("echo");
    echo.arg("again");
    same(echo.output()?.stdout, echo.output()?.stdout)?;
    echo.stdout(Stdio::null());
    holds(echo.status()?.success(), || "the first start failed".to_owned())?;
    let error = echo.status().err().ok_or("it started")?;
    same(error.to_string(), "stdout: was used by an earlier start; set it again".to_owned())
}

fn a_program_that_is_no_helper() -> Outcome {
    for (helper, said) in [("/bin/true", "without an answer"), ("/no/such", "start /no/such")] {
        let error = Sandbox::new("true").helper(helper).stderr(Stdio::null()).spawn();
        let error = error.err().ok_or("it started")?.to_string();
        holds(error.contains(said), || error.clone())?;
    }
    Ok(())
}
