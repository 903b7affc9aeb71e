//! One conversation with one server, started bare or in the sandbox.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use rmcp::model::CallToolRequestParams;
use rmcp::service::RunningService;
use rmcp::transport::TokioChildProcess;
use rmcp::{RoleClient, ServiceExt};
use serde_json::Value;
use tokio::io::AsyncReadExt;
use tokio::process::{ChildStderr, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::Result;

/// The servers that are asked for packages, each by its variable.
const NOWHERE: [&str; 10] = [
    "npm_config_registry",
    "NPM_CONFIG_REGISTRY",
    "PIP_INDEX_URL",
    "UV_DEFAULT_INDEX",
    "HTTPS_PROXY",
    "https_proxy",
    "HTTP_PROXY",
    "http_proxy",
    "ALL_PROXY",
    "all_proxy",
];

pub const INSTALL_LIMIT: Duration = Duration::from_secs(600);
const INITIALIZE_LIMIT: Duration = Duration::from_secs(30);
const ANSWER_LIMIT: Duration = Duration::from_secs(20);
/// rmcp kills a server that has not ended three seconds after its input was closed.
const KILLED_AFTER: Duration = Duration::from_secs(3);
const END_LIMIT: Duration = Duration::from_secs(10);
/// Of a failing server's error output, this much of the end is shown.
const STDERR_SHOWN: usize = 2000;

pub enum Setting {
    Bare,
    Sandboxed {
        launcher: PathBuf,
    },
    /// By `mcp run REFERENCE`, with a data directory of its own.
    Packaged {
        launcher: PathBuf,
        reference: &'static str,
        data: PathBuf,
        reach: Reach,
    },
}

/// What a package may be fetched from.
#[derive(Clone, Copy, PartialEq)]
pub enum Reach {
    /// Those that the user's npm and pip are configured with.
    Registries,
    /// Nowhere: every registry and proxy is a port that no server listens on.
    Nothing,
}

impl Setting {
    pub fn installs(&self) -> bool {
        matches!(self, Setting::Packaged { reach: Reach::Registries, .. })
    }
}

/// A server's command line and what it is granted. Bare, grants mean nothing.
pub struct Invocation {
    pub program: PathBuf,
    /// Where the program and its libraries are.
    pub bundle: PathBuf,
    pub arguments: Vec<OsString>,
    pub environment: Vec<(&'static str, OsString)>,
    pub read: Vec<PathBuf>,
    pub write: Vec<PathBuf>,
    pub directory: PathBuf,
}

impl Invocation {
    fn command(&self, setting: &Setting) -> Command {
        let mut command = match setting {
            Setting::Bare => {
                let mut command = Command::new(&self.program);
                command.envs(self.environment.iter().map(|(name, value)| (name, value)));
                command
            }
            Setting::Sandboxed { launcher } => {
                let mut command = self.granting(launcher, &self.read);
                command.arg("--").arg(&self.program);
                command
            }
            Setting::Packaged { launcher, reference, data, reach } => {
                // What it is made of is its own, and needs no grant.
                let granted = self.read.iter().filter(|path| **path != self.bundle).cloned();
                let mut command = self.granting(launcher, &granted.collect::<Vec<_>>());
                command.arg(reference).arg("--");
                command.env("XDG_DATA_HOME", data).env("XDG_STATE_HOME", data.join("state"));
                if *reach == Reach::Nothing {
                    command.envs(NOWHERE.map(|name| (name, "http://127.0.0.1:9/")));
                    command.env("NO_PROXY", "").env("no_proxy", "");
                }
                command
            }
        };
        command.args(&self.arguments).current_dir(&self.directory);
        command
    }

    fn granting(&self, launcher: &Path, read: &[PathBuf]) -> Command {
        let mut command = Command::new(launcher);
        command.arg("run");
        for (flag, paths) in [("--read", read), ("--write", &self.write)] {
            for path in paths {
                command.arg(flag).arg(path);
            }
        }
        for (name, value) in &self.environment {
            let mut pair = OsString::from(name);
            pair.push("=");
            pair.push(value);
            command.arg("--env").arg(pair);
        }
        command
    }
}

pub struct Session {
    service: RunningService<RoleClient, ()>,
    stderr: JoinHandle<String>,
    /// From the spawn to the answer to `initialize`.
    pub initialize: Duration,
}

/// How a tool answered.
pub struct Answer {
    pub text: String,
    pub is_error: bool,
}

/// How a session ended.
pub struct End {
    /// When its input was closed, as opposed to being killed later.
    pub by_itself: bool,
    stderr: String,
}

impl Session {
    pub async fn start(setting: &Setting, invocation: &Invocation) -> Result<Self> {
        let limit = if setting.installs() { INSTALL_LIMIT } else { INITIALIZE_LIMIT };
        Self::spawn(invocation.command(setting), limit).await
    }

    /// Starts a command as a server, which has this long to answer `initialize`.
    pub async fn spawn(mut command: Command, limit: Duration) -> Result<Self> {
        let start = Instant::now();
        // A run given up on must not leave a server behind.
        command.kill_on_drop(true);
        let shown = command.as_std().get_program().display().to_string();
        let (transport, stderr) = TokioChildProcess::builder(command)
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{shown}: {error}"))?;
        let stderr = tokio::spawn(collect(stderr));
        match timeout(limit, ().serve(transport)).await {
            Ok(Ok(service)) => Ok(Self { service, stderr, initialize: start.elapsed() }),
            Ok(Err(error)) => {
                Err(format!("initialize: {error}{}", quoted(&rest(stderr).await)).into())
            }
            Err(_) => {
                let limit = limit.as_secs();
                Err(format!("no answer to initialize in {limit} s{}", quoted(&rest(stderr).await))
                    .into())
            }
        }
    }

    /// The number of tools the server has.
    pub async fn tools(&self) -> Result<usize> {
        match timeout(ANSWER_LIMIT, self.service.list_all_tools()).await {
            Ok(Ok(tools)) if tools.is_empty() => Err("tools/list: no tools".into()),
            Ok(Ok(tools)) => Ok(tools.len()),
            Ok(Err(error)) => Err(format!("tools/list: {error}").into()),
            Err(_) => Err("tools/list: no answer".into()),
        }
    }

    /// A tool's answer, be it a success or an error of the tool.
    pub async fn ask(&self, tool: &str, arguments: Value) -> Result<Answer> {
        let Value::Object(arguments) = arguments else {
            return Err(format!("{tool}: arguments must be an object").into());
        };
        let request = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        match timeout(ANSWER_LIMIT, self.service.call_tool(request)).await {
            Ok(Ok(result)) => {
                let texts = result.content.iter().filter_map(|block| block.as_text());
                Ok(Answer {
                    text: texts.map(|it| it.text.as_str()).collect::<Vec<_>>().join("\n"),
                    is_error: result.is_error.unwrap_or(false),
                })
            }
            Ok(Err(error)) => Err(format!("{tool}: {error}").into()),
            Err(_) => Err(format!("{tool}: no answer").into()),
        }
    }

    /// Calls a tool that has to succeed, with an answer that has to contain `expected`.
    pub async fn call(&self, tool: &str, arguments: Value, expected: &str) -> Result<()> {
        let Answer { text, is_error } = self.ask(tool, arguments).await?;
        if is_error {
            Err(format!("{tool}: {text}").into())
        } else if !text.contains(expected) {
            Err(format!("{tool}: no {expected:?} in the answer {text:?}").into())
        } else {
            Ok(())
        }
    }

    /// Closes the server's input and waits for its end.
    pub async fn end(self) -> Result<End> {
        let start = Instant::now();
        match timeout(END_LIMIT, self.service.cancel()).await {
            Ok(outcome) => outcome?,
            Err(_) => return Err("the server does not end, not even when killed".into()),
        };
        let by_itself = start.elapsed() < KILLED_AFTER;
        Ok(End { by_itself, stderr: rest(self.stderr).await })
    }
}

impl End {
    pub fn stderr_quoted(&self) -> String {
        quoted(&self.stderr)
    }
}

async fn collect(stderr: Option<ChildStderr>) -> String {
    let mut bytes = Vec::new();
    if let Some(mut stderr) = stderr {
        // What was read before an error is still worth showing.
        let _ = stderr.read_to_end(&mut bytes).await;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Bounded, because a grandchild that survived would keep the pipe open.
async fn rest(stderr: JoinHandle<String>) -> String {
    match timeout(Duration::from_secs(2), stderr).await {
        Ok(Ok(text)) => text,
        _ => String::new(),
    }
}

fn quoted(stderr: &str) -> String {
    let stderr = stderr.trim_end();
    let start = stderr.char_indices().rev().nth(STDERR_SHOWN).map_or(0, |(index, _)| index);
    stderr[start..].lines().map(|line| format!("\n    | {line}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(setting: &Setting) -> Vec<String> {
        let invocation = Invocation {
            program: "/opt/server".into(),
            bundle: "/opt".into(),
            arguments: vec!["--flag".into()],
            environment: vec![("NAME", "value".into())],
            read: vec!["/opt".into()],
            write: vec!["/data".into()],
            directory: "/".into(),
        };
        let command = invocation.command(setting);
        let command = command.as_std();
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        words.map(|word| word.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn the_sandbox_gets_grants_and_the_same_command() {
        let launcher = PathBuf::from("/bin/mcp");
        let expected =
            "/bin/mcp run --read /opt --write /data --env NAME=value -- /opt/server --flag";
        assert_eq!(words(&Setting::Sandboxed { launcher }).join(" "), expected);
        assert_eq!(words(&Setting::Bare).join(" "), "/opt/server --flag");
        let packaged = Setting::Packaged {
            launcher: "/bin/mcp".into(),
            reference: "npm:x",
            data: "/d".into(),
            reach: Reach::Nothing,
        };
        let expected = "/bin/mcp run --write /data --env NAME=value npm:x -- --flag";
        assert_eq!(words(&packaged).join(" "), expected);
    }

    #[test]
    fn the_end_of_long_error_output_is_quoted() {
        assert_eq!(quoted(""), "");
        assert_eq!(quoted("one\ntwo\n"), "\n    | one\n    | two");
        assert!(quoted(&"é".repeat(5000)).chars().count() < STDERR_SHOWN + 20);
    }
}
