//! The MCP client of the demo. Every wait has a limit, for the other end is not trusted.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use mcp_probe::Outcome;
use serde_json::{Value, json};

use crate::commands::demo::server::{ATTEMPT, TOOL};

/// Far more than any answer takes, even on a busy machine. A start on Windows takes two processes more.
pub const PATIENCE: Duration = Duration::from_secs(if cfg!(windows) { 30 } else { 5 });
/// Enough of stderr for an error message; the rest is read and dropped.
const STDERR_KEPT: u64 = 16 << 10;
const PROTOCOL: &str = "2025-06-18";

/// Why there is no answer.
#[derive(Debug)]
pub enum Fault {
    /// The server closed its end: it is gone, or about to be.
    Ended,
    Late,
    /// An answer that is none, or an error.
    Odd(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Ended => f.write_str("server ended"),
            Fault::Late => f.write_str("no answer in time"),
            Fault::Odd(what) => f.write_str(what),
        }
    }
}

/// A server that was started, and the pipes to it. Killed and reaped when dropped.
pub struct ServerProcess {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    stderr: Option<JoinHandle<String>>,
    requests: u64,
    greeted: bool,
}

impl ServerProcess {
    pub fn start(command: &mut Command) -> io::Result<ServerProcess> {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let (sender, lines) = mpsc::channel();
        let (stdin, stdout, stderr) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take());
        // From here on a failure must not leave the process behind.
        let mut server =
            ServerProcess { child, stdin, lines, stderr: None, requests: 0, greeted: false };
        if let Some(stdout) = stdout {
            thread::Builder::new().spawn(move || {
                for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                    if sender.send(line).is_err() {
                        return;
                    }
                }
            })?;
        }
        if let Some(stderr) = stderr {
            server.stderr = Some(thread::Builder::new().spawn(move || collect(stderr))?);
        }
        Ok(server)
    }

    pub fn child(&self) -> &Child {
        &self.child
    }

    /// The greeting, the list of tools and one honest call; gives the tool's text.
    pub fn introduce(&mut self) -> Result<String, Fault> {
        self.greet()?;
        let list = self.ask("tools/list", json!({}))?;
        if list["tools"][0]["name"] != TOOL {
            return Err(Fault::Odd(format!("unknown tools: {list}")));
        }
        let result =
            self.ask("tools/call", json!({"name": TOOL, "arguments": {"city": "Kyoto"}}))?;
        text(&result).map(str::to_owned)
    }

    /// Lets the server do an attempt; gives what came of each act.
    pub fn attempt(&mut self, words: &[String]) -> Result<Vec<Outcome>, Fault> {
        self.begin(words)?;
        self.finish()
    }

    /// Sends an attempt without waiting for it.
    pub fn begin(&mut self, words: &[String]) -> Result<(), Fault> {
        self.greet()?;
        self.send("tools/call", json!({"name": TOOL, "arguments": {ATTEMPT: words}}))
    }

    pub fn finish(&mut self) -> Result<Vec<Outcome>, Fault> {
        let result = self.receive()?;
        text(&result)?.lines().map(outcome).collect()
    }

    /// Closes the server's stdin, which asks it to leave, and gives its exit status.
    pub fn leave(&mut self) -> io::Result<ExitStatus> {
        self.stdin = None;
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            if Instant::now() > end {
                self.child.kill()?;
                return self.child.wait();
            }
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// Waits until no process holds the server's stdout any more, its orphans included.
    pub fn drain(&self) -> Result<(), Fault> {
        let end = Instant::now() + PATIENCE;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
                Err(RecvTimeoutError::Timeout) => return Err(Fault::Late),
            }
        }
    }

    /// What the server said on stderr; to be asked once it has left.
    pub fn stderr(&mut self) -> String {
        let said = self.stderr.take().and_then(|thread| thread.join().ok());
        said.unwrap_or_default()
    }

    fn greet(&mut self) -> Result<(), Fault> {
        if self.greeted {
            return Ok(());
        }
        let client = json!({"name": "mcp-demo", "version": env!("CARGO_PKG_VERSION")});
        let greeting =
            json!({"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": client});
        let answer = self.ask("initialize", greeting)?;
        if answer["protocolVersion"] != PROTOCOL {
            return Err(Fault::Odd(format!("another protocol: {answer}")));
        }
        self.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        self.greeted = true;
        Ok(())
    }

    fn ask(&mut self, method: &str, params: Value) -> Result<Value, Fault> {
        self.send(method, params)?;
        self.receive()
    }

    fn send(&mut self, method: &str, params: Value) -> Result<(), Fault> {
        self.requests += 1;
        let id = self.requests;
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
    }

    /// A pipe that no process reads any more is the end of the server.
    fn write(&mut self, message: &Value) -> Result<(), Fault> {
        let stdin = self.stdin.as_mut().ok_or(Fault::Ended)?;
        let written = stdin.write_all(format!("{message}\n").as_bytes());
        written.map_err(|_| Fault::Ended)
    }

    fn receive(&mut self) -> Result<Value, Fault> {
        let line = self.lines.recv_timeout(PATIENCE).map_err(|error| match error {
            RecvTimeoutError::Timeout => Fault::Late,
            RecvTimeoutError::Disconnected => Fault::Ended,
        })?;
        let odd = || Fault::Odd(format!("odd answer: {line}"));
        let mut answer: Value = serde_json::from_str(&line).map_err(|_| odd())?;
        if answer["id"] != self.requests {
            return Err(odd());
        }
        answer.get_mut("result").map(Value::take).ok_or_else(odd)
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // Both fail only for a child that is gone already; its sandbox goes with it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn collect(stderr: impl Read) -> String {
    let mut stderr = BufReader::new(stderr);
    let mut text = Vec::new();
    let _ = stderr.by_ref().take(STDERR_KEPT).read_to_end(&mut text);
    // A full pipe would stop the writer.
    let _ = io::copy(&mut stderr, &mut io::sink());
    String::from_utf8_lossy(&text).trim().to_owned()
}

fn text(result: &Value) -> Result<&str, Fault> {
    let text = result["content"][0]["text"].as_str();
    text.ok_or_else(|| Fault::Odd(format!("no text in {result}")))
}

fn outcome(line: &str) -> Result<Outcome, Fault> {
    let odd = || Fault::Odd(format!("odd outcome: {line}"));
    let value: Value = serde_json::from_str(line).map_err(|_| odd())?;
    let word = |name: &str| value[name].as_str().map(str::to_owned);
    Ok(Outcome {
        act: word("act").ok_or_else(odd)?,
        arg: word("arg").ok_or_else(odd)?,
        ok: value["ok"].as_bool().ok_or_else(odd)?,
        errno: word("errno"),
        detail: word("detail").ok_or_else(odd)?,
    })
}
