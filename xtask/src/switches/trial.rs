//! Building an edited tree and running tests against what was built.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::tree::Tree;
use crate::Result;

/// An ordinary user, for tests that mean something else as root.
const ORDINARY: &str = "1000";

/// Takes half a minute, and nothing but the death of the tree depends on it.
const SLOW: &str = "kill_launcher_200";

pub enum Suite<'a> {
    /// Every escape test but the slow one.
    All,
    Named(Vec<&'a str>),
}

pub struct Trial {
    /// Where any user can start the programs.
    stage: PathBuf,
    is_root: bool,
}

impl Trial {
    /// Builds everything once, the tests included: they do not change with a switch.
    pub fn prepare(tree: &Tree) -> Result<Trial> {
        // Not in the system's /tmp, which some tests cover.
        let stage = PathBuf::from(format!("/var/tmp/mcp-switches-{}", std::process::id()));
        fs::create_dir_all(&stage)?;
        let id = Command::new("id").arg("-u").stdin(Stdio::null()).output()?;
        let trial = Trial { stage, is_root: id.stdout == b"0\n" };
        trial.build(tree)?;
        stage_programs(&cargo(tree, &["build", "--package=mcp-probe"])?, &trial.stage)?;
        let test = ["test", "--no-run", "--package=mcp-cli", "--test=escape"];
        stage_programs(&cargo(tree, &test)?, &trial.stage)?;
        Ok(trial)
    }

    pub fn build(&self, tree: &Tree) -> Result<()> {
        let build = ["build", "--package=mcp-cli", "--bin=mcp"];
        stage_programs(&cargo(tree, &build)?, &self.stage)
    }

    /// The tests that fail, as root or as an ordinary user.
    pub fn failing(&self, tree: &Tree, suite: &Suite<'_>) -> Result<Vec<String>> {
        let mut failing = Vec::new();
        let words = match suite {
            Suite::All => vec!["--skip", SLOW],
            Suite::Named(names) => {
                let (units, escapes): (Vec<&str>, Vec<&str>) =
                    names.iter().partition(|name| name.starts_with("lib:"));
                if !units.is_empty() {
                    failing.extend(failing_units(tree, &units)?);
                }
                if escapes.is_empty() {
                    return Ok(failing);
                }
                [vec!["--exact"], escapes].concat()
            }
        };
        let mut users = vec![Command::new(self.stage.join("escape"))];
        if self.is_root {
            let ids = [format!("--reuid={ORDINARY}"), format!("--regid={ORDINARY}")];
            let mut drop = Command::new("setpriv");
            drop.args(ids).arg("--clear-groups").arg(self.stage.join("escape"));
            users.push(drop);
        }
        for mut command in users {
            command.args(&words).env("MCP_BIN", self.stage.join("mcp"));
            command.env("MCP_PROBE_BIN", self.stage.join("mcp-probe")).current_dir("/");
            let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output()?;
            failing.extend(failed(&String::from_utf8_lossy(&output.stdout), "")?);
            self.end_survivors();
        }
        failing.sort();
        failing.dedup();
        Ok(failing)
    }

    /// What outlives its launcher because a switch is off.
    fn end_survivors(&self) {
        for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let name = entry.file_name();
            let is_process = name.to_string_lossy().bytes().all(|byte| byte.is_ascii_digit());
            let program = fs::read_link(entry.path().join("exe")).unwrap_or_default();
            if is_process && program.starts_with(&self.stage) {
                let _ = Command::new("kill").arg("-9").arg(&name).stderr(Stdio::null()).status();
            }
        }
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.stage);
    }
}

fn failing_units(tree: &Tree, names: &[&str]) -> Result<Vec<String>> {
    let mut words = vec!["test", "--package=mcp-sandbox", "--lib", "--", "--exact"];
    words.extend(names.iter().map(|name| name.trim_start_matches("lib:")));
    let output = command(tree, &words).stderr(Stdio::null()).output()?;
    failed(&String::from_utf8_lossy(&output.stdout), "lib:")
}

/// Names of failed tests in what the test harness says.
fn failed(text: &str, prefix: &str) -> Result<Vec<String>> {
    if !text.lines().any(|line| line.starts_with("test result: ")) {
        return Err("the tests did not come to their end".into());
    }
    let name = |line: &str| {
        let name = line.strip_prefix("test ")?.strip_suffix(" ... FAILED")?;
        Some(format!("{prefix}{name}"))
    };
    Ok(text.lines().filter_map(name).collect())
}

fn cargo(tree: &Tree, words: &[&str]) -> Result<String> {
    let mut command = command(tree, words);
    let output = command.arg("--message-format=json").stderr(Stdio::piped()).output()?;
    if !output.status.success() {
        let messages = String::from_utf8_lossy(&output.stdout).into_owned();
        let error = first_error(&messages).unwrap_or_else(|| "cargo fails".to_owned());
        return Err(error.into());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn command(tree: &Tree, words: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // What is switched off leaves unused things behind.
    let lints = "target.'cfg(all(target_os = \"linux\", target_env = \"gnu\"))'.rustflags=\
                 [\"--cap-lints\", \"warn\"]";
    command.arg("--config").arg(lints).args(words).current_dir(&tree.top);
    command.env("CARGO_TARGET_DIR", &tree.target).stdin(Stdio::null());
    // Nobody looks at them in a debugger, and linking is most of the time.
    command.env("CARGO_PROFILE_DEV_DEBUG", "0");
    command
}

fn messages(text: &str) -> impl Iterator<Item = Value> {
    text.lines().filter_map(|line| serde_json::from_str(line).ok())
}

fn first_error(text: &str) -> Option<String> {
    messages(text)
        .find(|message| message["message"]["level"] == "error")
        .and_then(|message| message["message"]["message"].as_str().map(str::to_owned))
}

fn stage_programs(text: &str, stage: &Path) -> Result<()> {
    for message in messages(text) {
        let name = message["target"]["name"].as_str().unwrap_or_default();
        let (Some(path), true) =
            (message["executable"].as_str(), ["mcp", "mcp-probe", "escape"].contains(&name))
        else {
            continue;
        };
        // A program that is still running cannot be written over.
        let _ = fs::remove_file(stage.join(name));
        fs::copy(path, stage.join(name))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_tests_are_named() {
        let text = "test a::b ... ok\ntest a::c ... FAILED\n\ntest result: FAILED. 1 passed\n";
        assert_eq!(failed(text, "lib:").unwrap(), ["lib:a::c"]);
        assert!(failed("test a::c ... FAILED\n", "").is_err());
    }
}
