//! The acts that are measured.

use std::fmt;
use std::fs::File;
use std::hint::black_box;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use super::Result;

/// There in every setting, and deep enough for a path to be walked.
const FILE: &str = "/usr/bin/env";
const PROGRAM: &str = "/bin/true";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// A system call that does next to nothing: what a filter costs.
    Getpid,
    Stat,
    OpenStatClose,
    /// A byte to another process and back.
    Pipe,
    ForkExec,
}

impl Act {
    pub const ALL: [Act; 5] =
        [Act::Getpid, Act::Stat, Act::OpenStatClose, Act::Pipe, Act::ForkExec];

    pub fn name(self) -> &'static str {
        match self {
            Act::Getpid => "getpid",
            Act::Stat => "stat",
            Act::OpenStatClose => "open+stat+close",
            Act::Pipe => "pipe ping-pong",
            Act::ForkExec => "fork+exec",
        }
    }

    pub fn named(name: &str) -> Option<Act> {
        Act::ALL.into_iter().find(|act| act.name() == name)
    }

    /// How many make a batch of a few milliseconds: long beside the clock, short beside noise.
    fn batch(self) -> u32 {
        match self {
            Act::Getpid => 10_000,
            Act::Stat => 2_000,
            Act::OpenStatClose => 1_000,
            Act::Pipe => 200,
            Act::ForkExec => 4,
        }
    }

    /// Nanoseconds for one, from a batch.
    pub fn measure(self, echo: &mut Echo) -> Result<f64> {
        let count = self.batch();
        let start = Instant::now();
        for _ in 0..count {
            self.once(echo)?;
        }
        Ok(start.elapsed().as_nanos() as f64 / f64::from(count))
    }

    fn once(self, echo: &mut Echo) -> Result<()> {
        match self {
            Act::Getpid => {
                // Not libc's, which some versions of it answer from memory.
                black_box(rustix::process::getpid());
            }
            Act::Stat => {
                black_box(rustix::fs::stat(FILE)?);
            }
            Act::OpenStatClose => {
                let file = File::open(Path::new(FILE))?;
                black_box(rustix::fs::fstat(&file)?);
            }
            Act::Pipe => echo.round()?,
            Act::ForkExec => {
                let mut command = Command::new(PROGRAM);
                command.stdin(Stdio::null()).stdout(Stdio::null());
                if !command.status()?.success() {
                    return Err(format!("{PROGRAM} failed").into());
                }
            }
        }
        Ok(())
    }
}

impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Another process that sends back what it gets; it ends with its input.
pub struct Echo {
    to: ChildStdin,
    from: ChildStdout,
}

impl Echo {
    pub fn start(mode: &str) -> Result<Echo> {
        let mut command = Command::new(std::env::current_exe()?);
        let mut child = command.arg(mode).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        match (child.stdin.take(), child.stdout.take()) {
            (Some(to), Some(from)) => Ok(Echo { to, from }),
            _ => Err("no pipes".into()),
        }
    }

    fn round(&mut self) -> Result<()> {
        self.to.write_all(b"x")?;
        let mut byte = [0];
        self.from.read_exact(&mut byte)?;
        Ok(())
    }
}

/// The other end of [`Echo`].
pub fn echo() -> Result<()> {
    let (input, output) = (rustix::stdio::stdin(), rustix::stdio::stdout());
    let mut byte = [0];
    while rustix::io::read(input, &mut byte)? == 1 {
        rustix::io::write(output, &byte)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_act_has_a_name_of_its_own() {
        for act in Act::ALL {
            assert_eq!(Act::named(act.name()), Some(act));
        }
        assert_eq!(Act::named("nothing"), None);
    }
}
