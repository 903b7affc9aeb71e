//! `mcp exec --json`: one object with all that came of a command, for a program that reads it.
//!
//! A launcher is single-threaded and hands its descriptors on, so the output is collected by this process and the
//! command is run by another `mcp` below it, which ends when this one does. Its standard input is ours.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Mutex;

use mcp_files::Links;
use mcp_sandbox::{Ending, Report};
use serde_json::{Value, json};

use crate::args::exec::Exec;
use crate::args::words_of_exec;
use crate::commands::run::hints::Collected;
use crate::failure::Failure;

/// Of each stream; the rest is read and left out, and the result says so.
const MOST_OUTPUT: usize = 16 << 20;
const LARGEST_REPORT: u64 = 64 << 20;

#[derive(Default)]
struct Output {
    bytes: Vec<u8>,
    is_cut: bool,
}

pub fn run(args: &Exec) -> Result<u8, Failure> {
    let place = ReportPlace::new(args)?;
    let mut command = command(&place)?;
    let mut child = command.spawn().map_err(|e| Failure::file(&PathBuf::from("mcp"), &e))?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let printing = Mutex::new(());
    let (stdout, stderr) = std::thread::scope(|scope| {
        let lines = |name: &'static str| args.stream.then_some((name, &printing));
        let errors = scope.spawn(move || stderr.map(|stream| collect(stream, lines("stderr"))));
        let output = stdout.map(|stream| collect(stream, lines("stdout"))).unwrap_or_default();
        (output, errors.join().ok().flatten().unwrap_or_default())
    });
    let status = child.wait().map_err(|e| Failure::file(&PathBuf::from("mcp"), &e))?;
    let code = status.code().unwrap_or(125).clamp(0, 255) as u8;
    let report = place.read();
    let mut result = result(code, report.as_ref());
    let hints = match code {
        0 => place.hints().lines,
        _ => place.hints().with_words_of_command(&String::from_utf8_lossy(&stderr.bytes)),
    };
    result["hints"] = hints.into();
    if !args.stream {
        result["stdout"] = String::from_utf8_lossy(&stdout.bytes).into();
        result["stderr"] = String::from_utf8_lossy(&stderr.bytes).into();
        result["truncated"] = json!({"stdout": stdout.is_cut, "stderr": stderr.is_cut});
    }
    print(&result);
    Ok(code)
}

/// The same words without what is for this process, quiet, with a report to read.
fn command(place: &ReportPlace) -> Result<Command, Failure> {
    let program = std::env::current_exe().map_err(|e| Failure::file(&PathBuf::from("mcp"), &e))?;
    let mut command = Command::new(program);
    command.arg("exec").arg("--quiet").arg("--captured").arg(place.hints_file());
    if place.is_own {
        command.arg("--report").arg(&place.report);
    }
    let mut is_ours = true;
    for word in words_of_exec().into_iter().skip(1) {
        is_ours &= word != "--";
        let is_dropped =
            is_ours && ["--json", "--stream", "--quiet", "-q"].iter().any(|flag| word == *flag);
        if !is_dropped {
            command.arg(word);
        }
    }
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    Ok(command)
}

/// Where the report of the run and its hints are written.
struct ReportPlace {
    report: PathBuf,
    /// Whether the report is in the directory of ours, and not a file that was asked for.
    is_own: bool,
    /// Ours, and gone afterwards.
    directory: PathBuf,
}

impl ReportPlace {
    fn new(args: &Exec) -> Result<ReportPlace, Failure> {
        let asked = args.starting.report.as_ref();
        if asked.is_some_and(|report| report.as_os_str() == "-") {
            return Err(Failure::Usage(
                "--json has the report in it; leave out --report -".to_owned(),
            ));
        }
        let name = format!("mcp-exec-{}", mcp_sandbox::runs::RunId::random());
        let directory = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
        #[cfg_attr(not(unix), expect(unused_mut, reason = "modes are of unix"))]
        let mut builder = std::fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        // A new one: what lies there under the name is anybody's.
        builder.create(&directory).map_err(|e| Failure::temporary(&directory, &e))?;
        let base = args.directory.clone().unwrap_or_default();
        let report =
            asked.map_or_else(|| directory.join("report.json"), |report| base.join(report));
        Ok(ReportPlace { report, is_own: asked.is_none(), directory })
    }

    fn hints_file(&self) -> PathBuf {
        self.directory.join("hints.json")
    }

    fn hints(&self) -> Collected {
        let bytes = mcp_files::read(&self.hints_file(), LARGEST_REPORT, Links::Refuse).ok();
        bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    }

    fn read(&self) -> Option<Report> {
        let bytes = mcp_files::read(&self.report, LARGEST_REPORT, Links::Refuse).ok()?;
        serde_json::from_slice(&bytes).ok()
    }
}

impl Drop for ReportPlace {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn collect(mut stream: impl Read, lines: Option<(&str, &Mutex<()>)>) -> Output {
    let mut output = Output::default();
    let mut chunk = [0; 16 << 10];
    // Characters are not cut in two: what is incomplete waits for the next piece.
    let mut rest: Vec<u8> = Vec::new();
    while let Ok(count @ 1..) = stream.read(&mut chunk) {
        let Some((name, printing)) = lines else {
            let room = MOST_OUTPUT - output.bytes.len();
            output.is_cut |= count > room;
            output.bytes.extend_from_slice(&chunk[..count.min(room)]);
            continue;
        };
        rest.extend_from_slice(&chunk[..count]);
        let whole = match std::str::from_utf8(&rest) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => rest.len(),
        };
        let text: Vec<u8> = rest.drain(..whole).collect();
        let _one_at_a_time = printing.lock();
        print(&json!({"stream": name, "data": String::from_utf8_lossy(&text)}));
    }
    if let (Some((name, _)), false) = (lines, rest.is_empty()) {
        print(&json!({"stream": name, "data": String::from_utf8_lossy(&rest)}));
    }
    output
}

/// A line of JSON, at once. A reader that has gone is no error of the command's.
fn print(value: &Value) {
    let mut stdout = std::io::stdout().lock();
    let _ = writeln!(stdout, "{value}").and_then(|()| stdout.flush());
}

fn result(code: u8, report: Option<&Report>) -> Value {
    let signal = match report.map(|report| &report.ending) {
        Some(Ending::Signaled(signal)) => Some(*signal),
        _ => None,
    };
    let refused = report
        .and_then(|report| report.guard.as_ref())
        .filter(|judged| matches!(judged.decision.as_str(), "refuse" | "ask") && code == 126);
    let blocked =
        report.iter().flat_map(|report| &report.network).flat_map(|network| &network.refused);
    let blocked: Vec<Value> = blocked
        .map(|(to, refusal)| json!({"to": to, "times": refusal.times, "why": refusal.why, "allow": refusal.flag}))
        .collect();
    json!({
        "exit_code": code,
        "signal": signal,
        "timed_out": report.is_some_and(|report| report.ending == Ending::Timeout),
        "not_started": report.and_then(|report| match &report.ending {
            Ending::NotStarted(why) => Some(why.as_str()),
            _ => None,
        }),
        "refused": refused,
        "blocked": blocked,
        "undone": report.map(|report| report.undone.clone()).unwrap_or_default(),
        "kept": report.map(|report| report.kept.clone()).unwrap_or_default(),
        "report": report,
    })
}

/// Ended like by a person when the process above is gone: no process reads the result.
pub fn end_with_parent() {
    #[cfg(target_os = "linux")]
    {
        let signal = Some(rustix::process::Signal::TERM);
        let _ = rustix::process::set_parent_process_death_signal(signal);
    }
}
