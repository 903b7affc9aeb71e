//! A user with a home, a log and files of their own.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use crate::support::{Scratch, mcp_path};

pub struct User {
    pub scratch: Scratch,
    variables: Vec<(String, String)>,
}

/// What a command of ours said.
pub struct Said {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl User {
    pub fn new() -> User {
        let scratch = Scratch::new();
        scratch.dir("home");
        User { scratch, variables: Vec::new() }
    }

    /// Sets a variable of the caller's.
    pub fn set(&mut self, name: &str, value: &str) {
        self.variables.push((name.to_owned(), value.to_owned()));
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.scratch.join(name)
    }

    pub fn mcp(&self, words: &[&str]) -> Said {
        Said::from(self.command(words).output().unwrap())
    }

    /// `timeout` with our command as its child.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("timeout");
        command
            .arg("240")
            .arg(mcp_path())
            .args(words)
            .current_dir(self.scratch.path())
            .env("HOME", self.path("home"))
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("XDG_STATE_HOME")
            .env_remove("XDG_DATA_HOME")
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null());
        command
    }
}

impl From<Output> for Said {
    fn from(output: Output) -> Said {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Said {
            code: output.status.code().unwrap_or(-1),
            out: text(output.stdout),
            err: text(output.stderr),
        }
    }
}

impl Said {
    #[track_caller]
    pub fn exits(self, code: i32) -> Said {
        assert_eq!(self.code, code, "{}\n{}", self.out, self.err);
        self
    }

    #[track_caller]
    pub fn ok(self) -> Said {
        self.exits(0)
    }
}
