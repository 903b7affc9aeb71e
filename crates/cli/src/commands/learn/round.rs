//! One run of the command with one policy, in the sandbox and watched: `mcp run` as it is, started by us.

use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use mcp_policy::{Fallback, Policy};
use mcp_sandbox::{Report, exit_code};

use super::calls::Call;
use super::drive::{Answer, Asked, Driver, Phases, Status};
use super::{client, package};
use crate::args::learn::Subject;
use crate::commands::run::report_file::ReportFile;
use crate::failure::Failure;
use crate::{paths, render};

/// How long a server may take to end after its input has.
const ENDING: Duration = Duration::from_secs(2);
/// How long `mcp run` may take to end after the grace of its policy: it has a report to write, and a machine may be busy.
const BUSY: Duration = Duration::from_secs(30);
/// Of what a failed run wrote to standard error.
const MOST_STDERR: usize = 4_000;
const MOST_EXPLORED: usize = 50;
const LARGEST_REPORT: u64 = 64 << 20;

/// What a round is made of, besides its policy.
pub struct Rounds<'a> {
    args: &'a Subject,
    calls: Vec<Call>,
    /// What `mcp run` gives the command before it kills it.
    grace: Duration,
    /// Private, and gone in the end.
    directory: PathBuf,
}

/// Who is at the other end of the command's pipes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Partner {
    /// We drive it as a server, or run it to its end.
    Ourselves,
    /// The client that started us.
    Client,
}

/// What came of a round.
pub struct Outcome {
    pub report: Report,
    pub phases: Phases,
    pub answers: Vec<Answer>,
    /// The end of what it wrote to standard error.
    pub said: String,
}

impl<'a> Rounds<'a> {
    /// Installs a package first: a round waits for the server's answers, and not for a registry.
    pub fn new(
        args: &'a Subject,
        calls: Vec<Call>,
        policy: &Policy,
    ) -> Result<Rounds<'a>, Failure> {
        package::install(args)?;
        let state = paths::audit_log().and_then(|log| log.parent().map(Path::to_owned));
        let state = state.unwrap_or_else(std::env::temp_dir);
        sweep(&state);
        let directory = state.join(format!("learn-{}", std::process::id()));
        mcp_package::store::make_private(&directory).map_err(|e| Failure::file(&directory, &e))?;
        let grace = policy.limits.grace.value.as_std();
        Ok(Rounds { args, calls, grace, directory })
    }

    /// Runs it once with exactly this policy.
    pub fn run(&self, policy: &str, partner: Partner) -> Result<Outcome, Failure> {
        let report = self.directory.join("report.json");
        let mut command = self.command(policy, &report)?;
        let mut child = command
            .spawn()
            .map_err(|e| Failure::Refused(format!("mcp run cannot be started: {e}")))?;
        let errors = tail(child.stderr.take());
        let (phases, answers) = match partner {
            Partner::Client => (client::pass_through(&mut child), Vec::new()),
            Partner::Ourselves if self.args.plain => self.plain(&mut child),
            Partner::Ourselves => self.drive(&mut child),
        };
        let status = end(&mut child, self.grace)?;
        let told = errors.recv().unwrap_or_default();
        let text = mcp_files::read_text(&report, LARGEST_REPORT, mcp_files::Links::Refuse);
        let report: Option<Report> = text.ok().and_then(|text| serde_json::from_str(&text).ok());
        match report {
            Some(report) if !matches!(report.ending, mcp_sandbox::Ending::NotStarted(_)) => {
                Ok(Outcome { report, phases, answers, said: told })
            }
            found => Err(no_outcome(status, found.is_some(), &told)),
        }
    }

    fn command(&self, policy: &str, report: &Path) -> Result<Command, Failure> {
        let file = self.directory.join("policy.toml");
        // Through no link, whatever an earlier round left there.
        ReportFile::create(&file)?.write(policy).map_err(|e| Failure::file(&file, &e))?;
        let program = std::env::current_exe().map_err(|e| Failure::file(Path::new("mcp"), &e))?;
        let mut command = Command::new(program);
        command.args(["run", "--quiet", "--watch-paths", "--report"]).arg(report);
        command.arg("--policy").arg(&file).args(self.flags());
        let args = self.args;
        command.args(&args.reference);
        if !args.command.is_empty() {
            command.arg("--").args(&args.command);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok(command)
    }

    /// What is no part of a policy.
    fn flags(&self) -> Vec<OsString> {
        let args = self.args;
        let mut flags: Vec<OsString> = Vec::new();
        let mut valued = |name: &str, value: OsString| flags.extend([name.into(), value]);
        if let Some(cwd) = &args.cwd {
            valued("--cwd", cwd.into());
        }
        if let Some(home) = &args.home {
            valued("--home", home.into());
        }
        if let Some(fallback) = &args.fallback {
            valued("--fallback", word(*fallback).into());
        }
        for (key, value) in &args.package.config {
            valued("--config", format!("{key}={value}").into());
        }
        if let Some(program) = &args.package.program {
            valued("--bin", program.into());
        }
        let fetching = &args.package.fetching;
        if let Some(registry) = &fetching.registry {
            valued("--registry", registry.into());
        }
        if let Some(key) = &fetching.require_signature {
            valued("--require-signature", key.into());
        }
        for rule in &fetching.install_net {
            valued("--install-net", rule.to_string().into());
        }
        for (is_given, flag) in [
            (args.package.yes, "--yes"),
            (fetching.plain_http, "--plain-http"),
            (fetching.allow_scripts, "--allow-scripts"),
            (fetching.allow_build, "--allow-build"),
            (args.package.ephemeral, "--ephemeral"),
            (args.package.without_grants, "--without-grants"),
            (args.log.no_log, "--no-log"),
        ] {
            if is_given {
                flags.push(flag.into());
            }
        }
        flags
    }

    fn patience(&self) -> Duration {
        Duration::from_secs(self.args.patience)
    }

    fn drive(&self, child: &mut Child) -> (Phases, Vec<Answer>) {
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return (Phases::default(), Vec::new());
        };
        let mut driver = Driver::new(input, output, self.patience());
        driver.session(&self.calls, self.args.explore.then_some(MOST_EXPLORED));
        driver.close();
        (std::mem::take(&mut driver.phases), std::mem::take(&mut driver.answers))
    }

    /// Its end is its one answer.
    fn plain(&self, child: &mut Child) -> (Phases, Vec<Answer>) {
        let mut phases = Phases::default();
        phases.begin("start");
        drop(child.stdin.take());
        let output = all(child.stdout.take());
        let until = Instant::now() + self.patience();
        let mut status = None;
        while status.is_none() && Instant::now() < until {
            status = child.try_wait().ok().flatten();
            std::thread::sleep(Duration::from_millis(10));
        }
        let (status, text) = match status {
            Some(ended) => {
                let text = output.recv_timeout(ENDING).unwrap_or_default();
                let status = if ended.success() { Status::Answered } else { Status::Failed };
                (status, format!("{ended}\n{text}"))
            }
            None => (Status::Unanswered, String::new()),
        };
        (phases, vec![Answer { asked: Asked::Named, name: "the command".to_owned(), status, text }])
    }
}

impl Drop for Rounds<'_> {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// Removes what learning left that was interrupted.
#[cfg(unix)]
fn sweep(state: &Path) {
    use rustix::process::{Pid, test_kill_process};
    for entry in std::fs::read_dir(state).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix("learn-")?.parse().ok());
        let Some(pid) = number.and_then(Pid::from_raw) else { continue };
        if test_kill_process(pid) == Err(rustix::io::Errno::SRCH) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(not(unix))]
fn sweep(_: &Path) {}

fn word(fallback: Fallback) -> &'static str {
    let found = Fallback::WORDS.iter().find(|(_, known)| *known == fallback);
    found.map_or("deny", |(word, _)| word)
}

/// Asked to end, then made to: the launcher takes the whole tree with it.
fn end(child: &mut Child, grace: Duration) -> Result<ExitStatus, Failure> {
    let refuse = |e: std::io::Error| Failure::Refused(format!("mcp run cannot be waited for: {e}"));
    for (is_asked, patience) in [(false, ENDING), (true, grace.saturating_add(BUSY))] {
        if is_asked {
            ask_to_end(child);
        }
        let begun = Instant::now();
        while begun.elapsed() < patience {
            if let Some(status) = child.try_wait().map_err(refuse)? {
                return Ok(status);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    child.kill().map_err(refuse)?;
    child.wait().map_err(refuse)
}

#[cfg(unix)]
fn ask_to_end(child: &Child) {
    let pid = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
}

#[cfg(not(unix))]
fn ask_to_end(_: &Child) {}

/// The last that it writes, read by a thread to the end.
fn tail(stream: Option<impl Read + Send + 'static>) -> mpsc::Receiver<String> {
    collect(stream, |kept| {
        let surplus = kept.len().saturating_sub(MOST_STDERR);
        kept.drain(..surplus);
    })
}

/// The first that it writes, up to a bound; the rest is read and forgotten.
fn all(stream: Option<impl Read + Send + 'static>) -> mpsc::Receiver<String> {
    collect(stream, |kept| kept.truncate(1 << 20))
}

fn collect(
    stream: Option<impl Read + Send + 'static>,
    bound: impl Fn(&mut Vec<u8>) + Send + 'static,
) -> mpsc::Receiver<String> {
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        let mut bytes = vec![0; 16 << 10];
        if let Some(mut stream) = stream {
            while let Ok(read @ 1..) = stream.read(&mut bytes) {
                kept.extend_from_slice(&bytes[..read]);
                bound(&mut kept);
            }
        }
        let _ = send.send(String::from_utf8_lossy(&kept).into_owned());
    });
    receive
}

/// A run that was killed left no report: it may have started the command all the same.
fn no_outcome(status: ExitStatus, is_reported: bool, told: &str) -> Failure {
    let told = render::printable(told.trim());
    let was_refused = is_reported || status.code() == Some(i32::from(exit_code::NOT_SET_UP));
    match status.code() {
        Some(2) => Failure::Usage(format!("the round was refused:\n{told}")),
        _ if was_refused && !told.is_empty() => {
            Failure::Refused(format!("the command was not started:\n{told}"))
        }
        _ => {
            let said = if told.is_empty() { String::new() } else { format!(". It said:\n{told}") };
            Failure::Refused(format!("mcp run ended without a report ({status}); try again{said}"))
        }
    }
}
