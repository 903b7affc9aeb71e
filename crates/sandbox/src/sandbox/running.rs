//! A sandbox from its start to its end.

use std::fmt;
use std::io::{self, Read};
use std::process::{ChildStderr, ChildStdin, ChildStdout, ExitStatus};
use std::time::{Duration, Instant};

use crate::core::error::Error;
use crate::core::report::{Ending, Report};
use crate::order::reply::{Heard, LauncherReply};
use crate::platform::{self, Launcher};

/// A command in its sandbox, made by [`Sandbox::spawn`](crate::Sandbox::spawn).
///
/// Dropping it kills the command and everything the command started. So does the end of the
/// program that holds it, whatever that ends by: the kernel sees to it.
///
/// ```standalone_crate
/// use std::io::{BufRead, BufReader, Write};
/// use std::process::Stdio;
/// use mcp_sandbox::Sandbox;
///
/// fn main() -> Result<(), Box<dyn std::error::Error>> {
///     mcp_sandbox::helper::dispatch();
/// #   if !cfg!(target_os = "linux") { return Ok(()); }
///     let mut server = Sandbox::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
///     let mut answers = BufReader::new(server.stdout.take().ok_or("no stdout")?).lines();
///     if let Some(requests) = &mut server.stdin {
///         writeln!(requests, "ping")?;
///     }
///     assert_eq!(answers.next().transpose()?.as_deref(), Some("ping"));
///
///     drop(server.stdin.take());
///     assert!(server.wait()?.success());
///     Ok(())
/// }
/// ```
#[must_use = "dropping it kills the command"]
pub struct Running {
    /// The command's input, where it was [piped](std::process::Stdio::piped).
    pub stdin: Option<ChildStdin>,
    /// The command's output, where it was piped.
    pub stdout: Option<ChildStdout>,
    /// The command's errors, where they were piped.
    pub stderr: Option<ChildStderr>,
    launcher: Launcher,
    /// The last thing the launcher said.
    answer: Option<Vec<u8>>,
    outcome: Option<Outcome>,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Outcome {
    /// How it ended.
    pub ending: Ending,
    /// What was enforced and used. `None` where the launcher was killed, and could not tell.
    pub report: Option<Report>,
}

impl Outcome {
    /// Whether the command ended by itself, with exit code 0.
    pub fn success(&self) -> bool {
        self.ending == Ending::Exited(0)
    }

    /// The command's own exit code, where it ended by itself.
    pub fn code(&self) -> Option<i32> {
        match self.ending {
            Ending::Exited(code) => Some(code),
            _ => None,
        }
    }
}

/// How a run ended, and what it wrote.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Output {
    /// How it ended, and its report.
    pub outcome: Outcome,
    /// What the command wrote to standard output.
    pub stdout: Vec<u8>,
    /// What the command wrote to standard error.
    pub stderr: Vec<u8>,
}

impl Running {
    /// Gives the launcher its order. What is wrong with it is told here, and not by `wait`.
    pub(super) fn start(mut launcher: Launcher, order: &[u8]) -> Result<Running, Error> {
        // A launcher that is gone already says more by how it ended.
        let _ = launcher.send(order);
        let answer = match launcher.hear(None).map_err(waiting)? {
            Heard::Message(answer) => answer,
            Heard::End | Heard::Nothing => {
                return Err(no_answer(launcher.reap().map_err(waiting)?));
            }
        };
        if let LauncherReply::Failed(error) = parse(&answer)? {
            launcher.reap().map_err(waiting)?;
            return Err(error);
        }
        let child = launcher.child();
        Ok(Running {
            stdin: child.stdin.take(),
            stdout: child.stdout.take(),
            stderr: child.stderr.take(),
            launcher,
            answer: None,
            outcome: None,
        })
    }

    /// The process id of the launcher. The command has one of its own, in its own numbering.
    pub fn id(&self) -> u32 {
        self.launcher.id()
    }

    /// Kills the command and everything it started, at once. No error when it has ended already.
    pub fn kill(&mut self) -> Result<(), Error> {
        self.launcher.kill().map_err(|source| doing("kill the sandbox", source))
    }

    /// Asks the command to end: sends it SIGTERM. When its [grace](crate::Sandbox::grace) is over, or this is
    /// called a second time, the launcher kills it and everything it started.
    pub fn terminate(&mut self) -> Result<(), Error> {
        self.launcher.terminate().map_err(|source| doing("terminate the sandbox", source))
    }

    /// Waits for the end. Closes the command's input first, lest both wait for each other.
    ///
    /// # Errors
    ///
    /// When the system refused a step of the set-up, so that the command never ran.
    pub fn wait(&mut self) -> Result<Outcome, Error> {
        drop(self.stdin.take());
        loop {
            if let Some(outcome) = self.wait_until(None)? {
                return Ok(outcome);
            }
        }
    }

    /// Waits for the end, but not longer than this. `None` is a command that still runs.
    pub fn wait_timeout(&mut self, timeout: Duration) -> Result<Option<Outcome>, Error> {
        self.wait_until(Instant::now().checked_add(timeout))
    }

    /// The outcome of a command that has ended.
    pub fn try_wait(&mut self) -> Result<Option<Outcome>, Error> {
        self.wait_timeout(Duration::ZERO)
    }

    /// What was enforced and used, once one of the waits has told the outcome.
    pub fn report(&self) -> Option<&Report> {
        self.outcome.as_ref()?.report.as_ref()
    }

    /// Reads both outputs to their ends, and waits.
    pub fn wait_with_output(mut self) -> Result<Output, Error> {
        drop(self.stdin.take());
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        let (out, err) = (self.stdout.take(), self.stderr.take());
        // Each has a reader of its own: a command that fills one is not kept waiting by the other.
        std::thread::scope(|scope| {
            let errors = scope.spawn(|| read(err, &mut stderr));
            let read = read(out, &mut stdout);
            read.and(errors.join().unwrap_or_else(|_| Err(io::Error::other("reader panicked"))))
        })
        .map_err(|source| doing("read the output", source))?;
        Ok(Output { outcome: self.wait()?, stdout, stderr })
    }

    fn wait_until(&mut self, until: Option<Instant>) -> Result<Option<Outcome>, Error> {
        while self.outcome.is_none() {
            match self.launcher.hear(until).map_err(waiting)? {
                Heard::Message(answer) => self.answer = Some(answer),
                Heard::Nothing => return Ok(None),
                Heard::End => {
                    let status = self.launcher.reap().map_err(waiting)?;
                    self.outcome = Some(self.conclude(status)?);
                }
            }
        }
        Ok(self.outcome.clone())
    }

    fn conclude(&self, status: ExitStatus) -> Result<Outcome, Error> {
        let Some(answer) = &self.answer else {
            return match platform::ending_signal(status) {
                Some(signal) => Ok(Outcome { ending: Ending::Signaled(signal), report: None }),
                None => Err(no_answer(status)),
            };
        };
        match parse(answer)? {
            LauncherReply::Ended(report) => {
                Ok(Outcome { ending: report.ending.clone(), report: Some(*report) })
            }
            LauncherReply::Failed(error) => Err(error),
            LauncherReply::Accepted => Err(no_answer(status)),
        }
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Running");
        shown.field("id", &self.id()).field("outcome", &self.outcome).finish_non_exhaustive()
    }
}

fn read(from: Option<impl Read>, to: &mut Vec<u8>) -> io::Result<()> {
    from.map_or(Ok(0), |mut from| from.read_to_end(to)).map(drop)
}

fn parse(answer: &[u8]) -> Result<LauncherReply, Error> {
    serde_json::from_slice(answer).map_err(|error| doing("understand the helper", error.into()))
}

fn waiting(source: io::Error) -> Error {
    doing("wait for the sandbox", source)
}

fn doing(doing: &str, source: io::Error) -> Error {
    Error::Io { doing: doing.to_owned(), source }
}

fn no_answer(status: ExitStatus) -> Error {
    Error::Input {
        what: "helper".to_owned(),
        why: format!(
            "ended without an answer ({status}); it has to be an mcp binary, or a program that \
             calls mcp_sandbox::helper::dispatch() first"
        ),
    }
}
