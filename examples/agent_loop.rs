//! A coding agent's loop, without the model: it reads tool calls as lines of JSON and answers each with
//! another, as a program around a language model does.
//!
//! ```text
//! $ printf '%s\n' '{"tool":"run","command":"ls"}' | cargo run -q -p mcp-sandbox --example agent_loop -- ~/project
//! ```
//!
//! Tools: `run` (a shell command: guard in front, sandbox behind), `read` and `write` (files, through a gate made from
//! the same policy). Nothing else of the machine can be reached.

use std::io::{BufRead, Read, Write};
use std::path::Path;
use std::time::Duration;

use mcp_guard::paths::{Absolute, Gate, Intent};
use mcp_policy::Policy;
use mcp_sandbox::agent::{Shell, gate, project_policy};
use mcp_sandbox::prepare_run_command;
use serde_json::{Value, json};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    // First of all: this program is its own launcher.
    mcp_sandbox::helper::dispatch();
    let project = std::env::args_os().nth(1).unwrap_or_else(|| ".".into());
    run(Path::new(&project), std::io::stdin().lock(), std::io::stdout().lock())
}

/// Answers every call on `input` until it ends.
pub fn run(project: &Path, input: impl BufRead, mut output: impl Write) -> Result<(), Failure> {
    let policy = project_policy(project)?;
    let gate = gate(&policy, project, Absolute::InRoots)?;
    for line in input.lines() {
        let answer = match serde_json::from_str::<Value>(&line?) {
            Ok(call) => answer(&call, project, &policy, &gate),
            Err(error) => json!({ "error": error.to_string() }),
        };
        writeln!(output, "{answer}")?;
    }
    Ok(())
}

fn answer(call: &Value, project: &Path, policy: &Policy, gate: &Gate) -> Value {
    let text = |key: &str| call[key].as_str().unwrap_or_default();
    let done = match text("tool") {
        "run" => shell(text("command"), project, policy),
        "read" => read(gate, text("path")),
        "write" => write(gate, text("path"), text("text")),
        other => Err(format!("there is no tool {other:?}").into()),
    };
    // Errors are for the model: it reads them, and does better.
    done.unwrap_or_else(|error| json!({ "error": error.to_string() }))
}

fn shell(command: &str, project: &Path, policy: &Policy) -> Result<Value, Failure> {
    let prepared = prepare_run_command(command, Shell::Bash, policy.clone());
    // A person could be asked here, and `sandbox_after_yes` called.
    let mut sandbox = match prepared.sandbox() {
        Ok(sandbox) => sandbox,
        Err(verdict) => {
            let reason = verdict.reason();
            return Ok(json!({
                "refused": reason.map(|finding| &finding.rule),
                "why": reason.map(|finding| &finding.model),
            }));
        }
    };
    sandbox.current_dir(project).timeout(Duration::from_secs(30));
    let output = sandbox.output()?;
    let undone =
        output.outcome.report.as_ref().map(|report| {
            report.undone.iter().map(|undone| undone.path.clone()).collect::<Vec<_>>()
        });
    Ok(json!({
        "code": output.outcome.code(),
        "stdout": String::from_utf8_lossy(&output.stdout),
        "stderr": String::from_utf8_lossy(&output.stderr),
        "undone": undone,
    }))
}

fn read(gate: &Gate, path: &str) -> Result<Value, Failure> {
    let mut text = String::new();
    gate.resolve(path, Intent::Read)?.file.read_to_string(&mut text)?;
    Ok(json!({ "text": text }))
}

fn write(gate: &Gate, path: &str, text: &str) -> Result<Value, Failure> {
    let mut file = gate.resolve(path, Intent::Write)?.file;
    file.set_len(0)?;
    file.write_all(text.as_bytes())?;
    Ok(json!({ "written": text.len() }))
}
