//! A worker: this program in one setting, doing batches of acts as it is asked to, line by line.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};

use rustix::thread::{CpuSet, sched_setaffinity};

use super::act::{self, Act, Echo};
use super::{Result, sys};

/// Hidden modes of this program.
pub const WORKER: &str = "__worker";
/// A worker with a filter of one instruction, which allows everything: what any filter costs.
pub const FILTERED: &str = "__filtered";
const ECHO: &str = "__echo";

/// Runs a hidden mode, if the words name one.
pub fn dispatch(words: &[OsString]) -> Option<ExitCode> {
    let outcome = match words.first()?.to_str()? {
        WORKER => work(),
        FILTERED => sys::allow_everything().map_err(Into::into).and_then(|()| work()),
        ECHO => act::echo(),
        _ => return None,
    };
    Some(match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    })
}

fn work() -> Result<()> {
    // One processor for the worker and its children: a wake-up on another one costs more, and
    // how often that happens is chance.
    let mut one = CpuSet::new();
    one.set(0);
    sched_setaffinity(None, &one)?;
    let mut echo = Echo::start(ECHO)?;
    for line in std::io::stdin().lines() {
        let line = line?;
        let act = Act::named(&line).ok_or_else(|| format!("no act: {line}"))?;
        let mut output = std::io::stdout();
        writeln!(output, "{}", act.measure(&mut echo)?)?;
        output.flush()?;
    }
    Ok(())
}

/// A running worker; it ends with its input.
pub struct Worker {
    pub name: &'static str,
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
}

impl Worker {
    /// Asks for the first act, because a sandbox that fails at the start is fast.
    pub fn start(name: &'static str, words: &[OsString]) -> Result<Worker> {
        let (program, arguments) = words.split_first().ok_or("empty command line")?;
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|e| format!("{}: {e}", program.display()))?;
        let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("no pipes".into());
        };
        let mut worker = Worker { name, child, to: Some(to), from: BufReader::new(from) };
        worker.ask(Act::Getpid)?;
        Ok(worker)
    }

    /// Nanoseconds for one act.
    pub fn ask(&mut self, act: Act) -> Result<f64> {
        let mut answer = String::new();
        if let Some(to) = &mut self.to {
            writeln!(to, "{act}")?;
            self.from.read_line(&mut answer)?;
        }
        answer.trim().parse().map_err(|_| format!("{} does not do {act}", self.name).into())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.to = None;
        let _ = self.child.wait();
    }
}

/// A worker, or why it is not there.
pub enum Entry {
    Ready(Worker),
    Skipped { name: &'static str, why: String },
}

impl Entry {
    pub fn start(name: &'static str, words: &[OsString]) -> Entry {
        match Worker::start(name, words) {
            Ok(worker) => Entry::Ready(worker),
            Err(why) => Entry::Skipped { name, why: why.to_string() },
        }
    }

    pub fn ready(&mut self) -> Option<&mut Worker> {
        match self {
            Entry::Ready(worker) => Some(worker),
            Entry::Skipped { .. } => None,
        }
    }
}
