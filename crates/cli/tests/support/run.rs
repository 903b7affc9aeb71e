//! Builds a run: `Run::new().flag("--read").arg(path).probe(&["read", path]).run()`.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::sys::{self, Preparation};
use super::{Finished, Live, Scratch, World, needs, patience};

/// The launcher under test: `MCP_BIN`, or the one cargo built for this test.
pub fn mcp_path() -> PathBuf {
    std::env::var_os("MCP_BIN").map_or_else(|| env!("CARGO_BIN_EXE_mcp").into(), PathBuf::from)
}

/// The probe program: `MCP_PROBE_BIN`, or the neighbour of the launcher.
pub fn probe_path() -> PathBuf {
    let path = std::env::var_os("MCP_PROBE_BIN")
        .map_or_else(|| mcp_path().with_file_name("mcp-probe"), PathBuf::from);
    assert!(path.exists(), "{} is missing: run `cargo build -p mcp-probe`", path.display());
    path
}

enum Input {
    Nothing,
    Bytes(Vec<u8>),
    Open,
    Given(Stdio),
}

/// What the host of a run refuses. `MCP_TEST_GROUND=plain` runs every test without user namespaces,
/// to see which of them hold there too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ground {
    AsItIs,
    /// What `mcp-probe without` takes away: kinds of namespaces, or `proc` for a masked one.
    Without(&'static str),
}

/// No user namespaces. An ordinary user gets one of its own in which there can be no others; root stays the real root of
/// the host, behind a filter that refuses namespaces, since the root of a user namespace could do less harm.
pub const PLAIN: Ground = Ground::Without("user");

impl Ground {
    pub fn of_the_tests() -> Ground {
        match std::env::var("MCP_TEST_GROUND").as_deref() {
            Ok("plain") => PLAIN,
            Ok(other) => panic!("MCP_TEST_GROUND={other}: only plain is known"),
            Err(_) => Ground::AsItIs,
        }
    }
}

/// A command, in the sandbox unless it is made [`Run::bare`].
pub struct Run {
    bare: bool,
    /// `run` or `exec`.
    verb: &'static str,
    ground: Ground,
    /// What starts the launcher, where it is not started by the test itself.
    around: Vec<OsString>,
    flags: Vec<OsString>,
    command: Vec<OsString>,
    environment: Vec<(OsString, Option<OsString>)>,
    cwd: Option<PathBuf>,
    stdin: Input,
    stdout: Option<Stdio>,
    stderr: Option<Stdio>,
    preparations: Vec<Preparation>,
    limit: Duration,
}

impl Run {
    pub fn new() -> Run {
        Run {
            bare: false,
            verb: "run",
            ground: Ground::of_the_tests(),
            around: Vec::new(),
            flags: Vec::new(),
            command: Vec::new(),
            environment: Vec::new(),
            cwd: None,
            stdin: Input::Nothing,
            stdout: None,
            stderr: None,
            preparations: Vec::new(),
            limit: patience(),
        }
    }

    /// The same command without a sandbox: the control.
    pub fn bare() -> Run {
        Run { bare: true, ground: Ground::AsItIs, ..Run::new() }
    }

    /// A command of an agent, in a project.
    pub fn exec(project: impl AsRef<Path>) -> Run {
        Run { verb: "exec", ..Run::new() }.cwd(project)
    }

    /// Takes something away from the host that the launcher sees.
    pub fn on(mut self, ground: Ground) -> Run {
        self.ground = ground;
        self
    }

    /// Runs in a world of the test's own.
    pub fn world(mut self, world: &World) -> Run {
        self.around = world.words();
        self
    }

    /// Has another program start all of it.
    pub fn around(mut self, words: impl IntoIterator<Item = OsString>) -> Run {
        self.around = words.into_iter().collect();
        self
    }

    pub fn allow_net(self, rule: impl AsRef<OsStr>) -> Run {
        self.flag("--allow-net").arg(rule)
    }

    pub fn flag(self, flag: &str) -> Run {
        self.arg(flag)
    }

    /// A word for the launcher, before the `--`.
    pub fn arg(mut self, word: impl AsRef<OsStr>) -> Run {
        self.flags.push(word.as_ref().to_owned());
        self
    }

    pub fn read(self, path: impl AsRef<OsStr>) -> Run {
        self.flag("--read").arg(path)
    }

    pub fn write(self, path: impl AsRef<OsStr>) -> Run {
        self.flag("--write").arg(path)
    }

    pub fn deny(self, rule: impl AsRef<OsStr>) -> Run {
        self.flag("--deny").arg(rule)
    }

    /// An act of the probe; further acts follow in the same process.
    pub fn probe<S: AsRef<OsStr>>(mut self, words: &[S]) -> Run {
        if self.command.is_empty() {
            self.command.push(probe_path().into());
        } else {
            self.command.push("--then".into());
        }
        self.command.extend(words.iter().map(|word| word.as_ref().to_owned()));
        self
    }

    /// Any other command.
    pub fn command<S: AsRef<OsStr>>(mut self, words: &[S]) -> Run {
        self.command.extend(words.iter().map(|word| word.as_ref().to_owned()));
        self
    }

    pub fn shell(self, script: &str) -> Run {
        self.command(&["sh", "-c", script])
    }

    /// Sets a variable of the launcher (or of the bare command).
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Run {
        self.environment.push((name.into(), Some(value.as_ref().to_owned())));
        self
    }

    pub fn without_env(mut self, name: &str) -> Run {
        self.environment.push((name.into(), None));
        self
    }

    pub fn cwd(mut self, dir: impl AsRef<Path>) -> Run {
        self.cwd = Some(dir.as_ref().to_owned());
        self
    }

    pub fn input(mut self, bytes: impl Into<Vec<u8>>) -> Run {
        self.stdin = Input::Bytes(bytes.into());
        self
    }

    /// Keeps stdin open, to be taken with [`Live::stdin`].
    pub fn open_input(mut self) -> Run {
        self.stdin = Input::Open;
        self
    }

    pub fn stdin(mut self, stdin: impl Into<Stdio>) -> Run {
        self.stdin = Input::Given(stdin.into());
        self
    }

    pub fn stdout(mut self, stdout: impl Into<Stdio>) -> Run {
        self.stdout = Some(stdout.into());
        self
    }

    pub fn stderr(mut self, stderr: impl Into<Stdio>) -> Run {
        self.stderr = Some(stderr.into());
        self
    }

    /// Something done in the new process just before it becomes the launcher.
    pub fn prepare(mut self, preparation: Preparation) -> Run {
        self.preparations.push(preparation);
        self
    }

    pub fn limit(mut self, limit: Duration) -> Run {
        self.limit = limit;
        self
    }

    /// The words that start this run: `mcp run FLAGS -- COMMAND`, or the bare command.
    pub fn words(&self) -> Vec<OsString> {
        let mut words = self.around.clone();
        if let Ground::Without(what) = self.ground
            && (what != "user" || needs::user_namespaces().is_none())
        {
            let what = if what == "user" && needs::is_root() { "namespaces" } else { what };
            words.extend([probe_path().into(), "without".into(), what.into()]);
        }
        if self.bare {
            words.extend(self.command.iter().cloned());
            return words;
        }
        words.extend([mcp_path().into(), self.verb.into()]);
        // Every attack once more in learning mode, which must give it nothing.
        if std::env::var_os("MCP_TEST_WATCH").is_some() {
            words.push("--watch-paths".into());
        }
        words.extend(self.flags.iter().cloned());
        if !self.command.is_empty() {
            words.push("--".into());
            words.extend(self.command.iter().cloned());
        }
        words
    }

    pub fn spawn(mut self) -> Live {
        let shown = self.to_string();
        let words = self.words();
        let home = Scratch::new();
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        self.give_environment(&mut command, &home);
        if let Some(dir) = &self.cwd {
            command.current_dir(dir);
        }
        let mut bytes = None;
        command.stdin(match self.stdin {
            Input::Nothing => Stdio::null(),
            Input::Given(stdin) => stdin,
            Input::Open => Stdio::piped(),
            Input::Bytes(input) => {
                bytes = Some(input);
                Stdio::piped()
            }
        });
        command.stdout(self.stdout.take().unwrap_or_else(Stdio::piped));
        command.stderr(self.stderr.take().unwrap_or_else(Stdio::piped));
        sys::prepare(&mut command, std::mem::take(&mut self.preparations));
        let child = command.spawn().unwrap_or_else(|error| panic!("cannot start {shown}: {error}"));
        Live::new(child, bytes, self.limit, shown, Some(home))
    }

    /// A home and configuration of the test's own: the user's must not change a test.
    fn give_environment(&self, command: &mut Command, home: &Scratch) {
        command.env("HOME", home.dir("home"));
        for (name, dir) in [
            ("XDG_CONFIG_HOME", "config"),
            ("XDG_CACHE_HOME", "cache"),
            ("XDG_DATA_HOME", "data"),
            ("XDG_STATE_HOME", "state"),
        ] {
            command.env(name, home.dir(dir));
        }
        for (name, value) in &self.environment {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
    }

    #[track_caller]
    pub fn run(self) -> Finished {
        self.spawn().wait()
    }
}

impl fmt::Display for Run {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text: Vec<_> = self.words().iter().map(|word| word.display().to_string()).collect();
        let text = text.join(" ");
        // Thousands of flags are one of the tests; to print them would not help.
        match text.char_indices().nth(2000) {
            Some((end, _)) => write!(formatter, "{}…", &text[..end]),
            None => formatter.write_str(&text),
        }
    }
}
