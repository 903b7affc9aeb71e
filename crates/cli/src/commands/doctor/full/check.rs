//! One check: a command that is run outside, as the control, and inside, under a time-out.

mod running;

use std::cell::Cell;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde::Serialize;

use self::running::{dies, serves, tree};
use super::{denied, profile_forms, windows_forms};
use crate::guest_arguments::GUEST;

const TICK: Duration = Duration::from_millis(5);

/// What is tried. In words, `{dir}` is a directory of the check's own, `{port}` a port on which mcp listens outside
/// and `{free}` a free one.
#[derive(Debug, Clone, Copy)]
pub struct FullCheck {
    /// A stable name: summaries of different machines are compared by it.
    pub id: &'static str,
    pub what: &'static str,
    pub program: Program,
    /// Flags of `mcp run`.
    pub flags: &'static [&'static str],
    pub expect: Expect,
}

#[derive(Debug, Clone, Copy)]
pub enum Program {
    /// An act of our own probe: this program again.
    Guest(&'static [&'static str]),
    /// A program of the machine. Without it the check is skipped.
    Host(&'static [&'static str]),
    /// The same, from a copy in a directory of its own, as a program that was unpacked there.
    Copied(&'static [&'static str]),
    /// A text for PowerShell, by `mcp exec`.
    PowerShell(&'static str),
    /// An act, with the handles of a new console.
    InConsole(&'static [&'static str]),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// It works outside, and the same comes out inside.
    Works,
    /// The same, with standard output in a file that was not granted.
    WorksIntoFile,
    /// It works outside, and fails inside.
    Refused,
    /// It ends inside with this exit code.
    Exit(i32),
    /// A daemon of the command is dead after the launcher was killed.
    DiesWithLauncher,
    /// A server inside is reached on this machine's loopback.
    Serves,
    /// The system takes each form of the profile by itself.
    ProfileForms,
    /// It prints this inside.
    Prints(&'static str),
    /// A tree of so many files is granted.
    Tree(usize),
    /// PowerShell starts in a job with this UI limit.
    UiLimit(u32),
}

impl Expect {
    /// How long one command of a check may take.
    pub fn patience(self) -> Duration {
        match self {
            Expect::Tree(_) => Duration::from_secs(240),
            _ => Duration::from_secs(20),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum CheckOutcome {
    Passed,
    Failed {
        why: String,
    },
    /// The control did not work outside, so the answer inside would mean nothing.
    Skipped {
        why: String,
    },
}

/// What a command printed and how it ended; no status after a time-out.
struct Finished {
    status: Option<ExitStatus>,
    stdout: String,
    stderr: String,
    patience: Duration,
}

impl Finished {
    fn succeeded(&self) -> bool {
        self.status.is_some_and(|status| status.success()) && !self.stdout.contains("\"ok\":false")
    }

    fn shown(&self) -> String {
        let code = match self.status {
            None => format!("no end after {} s", self.patience.as_secs()),
            Some(status) => status.to_string(),
        };
        let last: Vec<&str> = self.stderr.lines().rev().take(3).collect();
        let said: Vec<&str> = last.into_iter().rev().collect();
        let refused = self.stdout.lines().find(|line| line.contains("\"ok\":false"));
        format!("{code}: {} {}", said.join(" / "), refused.unwrap_or_default()).trim().to_owned()
    }
}

/// Where a check runs: files for it, and this program.
pub struct CheckScene<'a> {
    pub exe: &'a Path,
    pub directory: PathBuf,
    pub port: u16,
    /// One that was free a moment ago.
    pub free: u16,
    pub patience: Duration,
    /// How long the command took inside.
    pub inside: Cell<Option<Duration>>,
}

impl CheckScene<'_> {
    fn words(&self, words: &[&str]) -> std::io::Result<Vec<String>> {
        let directory = self.directory.display().to_string();
        let port = self.port.to_string();
        let free = self.free.to_string();
        let fill = |word: &&str| {
            let word = word.replace("{dir}", &directory).replace("{port}", &port);
            windows_forms::with_variables(&word.replace("{free}", &free))
        };
        words.iter().map(fill).collect()
    }

    /// Beside the directory of the check, which is made anew for each try.
    fn copies(&self) -> PathBuf {
        self.directory.with_extension("copy")
    }

    fn command(&self, program: Program) -> std::io::Result<Vec<String>> {
        let mut words = match program {
            Program::Host(words) | Program::Copied(words) => self.words(words)?,
            Program::PowerShell(text) => vec![text.to_owned()],
            Program::Guest(acts) | Program::InConsole(acts) => {
                let own = [self.exe.display().to_string(), GUEST.to_owned()];
                own.into_iter().chain(self.words(acts)?).collect()
            }
        };
        if let (Program::Copied(_), Some(name)) = (program, words.first_mut()) {
            *name = windows_forms::copied(name, &self.copies())?.display().to_string();
        }
        Ok(words)
    }

    fn outside(&self, check: &FullCheck) -> std::io::Result<Finished> {
        let words = self.command(check.program)?;
        let (program, arguments) = words.split_first().ok_or(std::io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        command.args(arguments).current_dir(std::env::temp_dir());
        self.prepare();
        self.finish(command, None)
    }

    fn inside(&self, check: &FullCheck, output: Option<File>) -> std::io::Result<Finished> {
        self.prepare();
        let started = Instant::now();
        let finished = self.finish(self.sandboxed(check)?, output);
        self.inside.set(Some(started.elapsed()));
        finished
    }

    /// What it was refused, by running it once more.
    fn denied(&self, check: &FullCheck) -> String {
        let report = self.directory.with_extension("report");
        let extra = denied::flags(&report);
        self.prepare();
        let (Ok(flags), Ok(words)) = (self.words(check.flags), self.command(check.program)) else {
            return String::new();
        };
        let mut command = Command::new(self.exe);
        command.args(["run", "--quiet"]).args(extra).args(flags).arg("--").args(words);
        command.current_dir(std::env::temp_dir());
        let ran = self.finish(command, None);
        let text = fs::read_to_string(&report).unwrap_or_default();
        let _ = fs::remove_file(&report);
        if ran.is_ok() { denied::told(&text) } else { String::new() }
    }

    fn sandboxed(&self, check: &FullCheck) -> std::io::Result<Command> {
        let (flags, words) = (self.words(check.flags)?, self.command(check.program)?);
        let mut command = Command::new(self.exe);
        match check.program {
            Program::PowerShell(_) => {
                command.args(["exec", "--shell", "powershell"]).args(flags).args(words);
                command.current_dir(self.directory.join("grant"));
            }
            _ => {
                command.args(["run", "--quiet"]).args(flags).arg("--").args(words);
                command.current_dir(std::env::temp_dir());
            }
        }
        Ok(match check.program {
            Program::InConsole(_) => windows_forms::in_console(command),
            _ => command,
        })
    }

    /// Fresh files for each try, so that none sees what another left.
    fn prepare(&self) {
        let _ = fs::remove_dir_all(&self.directory);
        for directory in ["grant/src", "read", "odd name \u{fc} 'x'"] {
            let _ = fs::create_dir_all(self.directory.join(directory));
        }
        for (file, text) in [
            ("secret", "secret"),
            ("grant/secret", "secret"),
            ("grant/.mcp.json", "{}"),
            ("read/file", "text"),
            ("odd name \u{fc} 'x'/file", "text"),
            (
                "grant/Cargo.toml",
                "[package]\nname = \"x\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
            ),
            ("grant/src/main.rs", "fn main() { println!(\"built\"); }\n"),
            ("grant/x.c", "int main(void) { return 0; }\n"),
        ] {
            let _ = fs::write(self.directory.join(file), text);
        }
    }

    fn finish(&self, mut command: Command, output: Option<File>) -> std::io::Result<Finished> {
        let to_file = output.is_some();
        command.stdin(Stdio::null()).stderr(Stdio::piped());
        command.stdout(output.map_or_else(Stdio::piped, Stdio::from));
        command.env("MCP_DOCTOR_CANARY", "1");
        let mut child = command.spawn()?;
        let stderr = reader(child.stderr.take());
        let stdout = if to_file { reader(None::<File>) } else { reader(child.stdout.take()) };
        let status = wait(&mut child, self.patience)?;
        let (stdout, stderr) = (text(stdout), text(stderr));
        Ok(Finished { status, stdout, stderr, patience: self.patience })
    }
}

type Reader = std::thread::JoinHandle<String>;

fn reader(from: Option<impl Read + Send + 'static>) -> Reader {
    std::thread::spawn(move || {
        let mut text = Vec::new();
        if let Some(from) = from {
            let _ = from.take(1 << 20).read_to_end(&mut text);
        }
        String::from_utf8_lossy(&text).into_owned()
    })
}

fn text(reader: Reader) -> String {
    reader.join().unwrap_or_default()
}

/// `None` when it had to be killed.
fn wait(child: &mut Child, patience: Duration) -> std::io::Result<Option<ExitStatus>> {
    let until = Instant::now() + patience;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() > until {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(TICK);
    }
}

/// Runs a check to its outcome.
pub fn run(check: &FullCheck, place: &CheckScene<'_>) -> CheckOutcome {
    let outcome = match check.expect {
        Expect::Works => works(check, place, None),
        Expect::WorksIntoFile => into_file(check, place),
        Expect::Refused => refused(check, place),
        Expect::Exit(code) => exit(check, place, code),
        Expect::DiesWithLauncher => dies(check, place),
        Expect::Serves => serves(check, place),
        Expect::ProfileForms => profile_forms::run(place.exe),
        Expect::Prints(text) => prints(check, place, text),
        Expect::Tree(files) => tree(check, place, files),
        Expect::UiLimit(limit) => windows_forms::ui_limit(limit),
    };
    let _ = fs::remove_dir_all(&place.directory);
    let _ = fs::remove_dir_all(place.copies());
    outcome.unwrap_or_else(|e| match e.kind() {
        std::io::ErrorKind::NotFound => CheckOutcome::Skipped { why: "not installed".to_owned() },
        std::io::ErrorKind::PermissionDenied => {
            CheckOutcome::Skipped { why: "this user may not execute it".to_owned() }
        }
        _ => CheckOutcome::Failed { why: e.to_string() },
    })
}

fn failed(why: impl Into<String>) -> CheckOutcome {
    CheckOutcome::Failed { why: why.into() }
}

/// The control; `Err` with the outcome where it does not work.
fn control(
    check: &FullCheck,
    place: &CheckScene<'_>,
) -> std::io::Result<Result<Finished, CheckOutcome>> {
    let outside = place.outside(check)?;
    Ok(match outside.succeeded() {
        true => Ok(outside),
        false => Err(CheckOutcome::Skipped {
            why: format!("does not work outside: {}", outside.shown()),
        }),
    })
}

fn works(
    check: &FullCheck,
    place: &CheckScene<'_>,
    output: Option<File>,
) -> std::io::Result<CheckOutcome> {
    let outside = match control(check, place)? {
        Ok(outside) => outside,
        Err(outcome) => return Ok(outcome),
    };
    let to_file = output.is_some();
    let inside = place.inside(check, output)?;
    Ok(match (inside.succeeded(), to_file || same(&outside.stdout, &inside.stdout)) {
        (true, true) => CheckOutcome::Passed,
        (true, false) => failed(format!("another answer inside: {}", inside.stdout.trim())),
        (false, _) => failed(inside.shown() + &place.denied(check)),
    })
}

/// Acts of the probe say more than whether they worked, which may differ.
fn same(outside: &str, inside: &str) -> bool {
    outside.contains("\"ok\":") || outside.trim() == inside.trim()
}

fn into_file(check: &FullCheck, place: &CheckScene<'_>) -> std::io::Result<CheckOutcome> {
    let path = place.directory.with_extension("out");
    let outcome = works(check, place, Some(File::create(&path)?))?;
    let written = fs::read_to_string(&path).unwrap_or_default();
    let _ = fs::remove_file(&path);
    Ok(match outcome {
        CheckOutcome::Passed if written.trim().is_empty() => failed("nothing is in the file"),
        outcome => outcome,
    })
}

fn refused(check: &FullCheck, place: &CheckScene<'_>) -> std::io::Result<CheckOutcome> {
    if let Err(outcome) = control(check, place)? {
        return Ok(outcome);
    }
    let inside = place.inside(check, None)?;
    // A sandbox that does not start refuses everything, which proves nothing.
    let started = inside.status.and_then(|status| status.code()) != Some(125);
    Ok(match (inside.succeeded(), started) {
        (true, _) => failed("NOT refused inside"),
        (false, true) => CheckOutcome::Passed,
        (false, false) => failed(format!("did not start: {}", inside.shown())),
    })
}

fn exit(check: &FullCheck, place: &CheckScene<'_>, code: i32) -> std::io::Result<CheckOutcome> {
    let inside = place.inside(check, None)?;
    Ok(match inside.status.and_then(|status| status.code()) {
        Some(seen) if seen == code => CheckOutcome::Passed,
        _ => failed(format!("wanted exit {code}, saw {}", inside.shown())),
    })
}

fn prints(
    check: &FullCheck,
    place: &CheckScene<'_>,
    wanted: &str,
) -> std::io::Result<CheckOutcome> {
    let inside = place.inside(check, None)?;
    Ok(match inside.stdout.contains(wanted) {
        true => CheckOutcome::Passed,
        false => failed(format!("did not print {wanted}: {} {}", inside.stdout, inside.shown())),
    })
}
