//! Building an edited tree and running tests against what was built.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::guest;
use super::suites::{Built, Place, STAGED, by_place};
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

/// What came of some tests, by their names with the word in front.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Results {
    pub run: Vec<String>,
    pub failed: Vec<String>,
}

impl Results {
    fn add(&mut self, other: Results) {
        self.run.extend(other.run);
        self.failed.extend(other.failed);
        for names in [&mut self.run, &mut self.failed] {
            names.sort();
            names.dedup();
        }
    }
}

impl Trial {
    /// Builds everything once, the tests included: they do not change with a switch.
    pub fn prepare(tree: &Tree) -> Result<Trial> {
        // Not in the system's /tmp, which some tests cover.
        let stage = PathBuf::from(format!("/var/tmp/mcp-switches-{}", std::process::id()));
        fs::create_dir_all(&stage)?;
        let id = Command::new("id").arg("-u").stdin(Stdio::null()).output()?;
        let trial = Trial { stage, is_root: id.stdout == b"0\n" };
        trial.build_program(tree)?;
        stage_programs(&cargo(tree, &["build", "--package=mcp-probe"])?, &trial.stage)?;
        let tests = STAGED.map(|name| format!("--test={name}"));
        let mut words = vec!["test", "--no-run", "--package=mcp-cli"];
        words.extend(tests.iter().map(String::as_str));
        stage_programs(&cargo(tree, &words)?, &trial.stage)?;
        Ok(trial)
    }

    /// Builds what these tests are about.
    pub fn build(&self, tree: &Tree, suite: &Suite<'_>) -> Result<()> {
        let Suite::Named(names) = suite else {
            return self.build_program(tree);
        };
        let places = by_place(names)?;
        for place in places.keys() {
            if let Place::Built(built) = place {
                let package = format!("--package={}", built.package);
                cargo(tree, &["test", "--no-run", &package, built.part])?;
            }
        }
        // A switch without tests of its own has to build as well.
        let needs_none = |place: &Place| matches!(place, Place::Built(_));
        match !places.is_empty() && places.keys().all(needs_none) {
            true => Ok(()),
            false => self.build_program(tree),
        }
    }

    fn build_program(&self, tree: &Tree) -> Result<()> {
        let build = ["build", "--package=mcp-cli", "--bin=mcp"];
        stage_programs(&cargo(tree, &build)?, &self.stage)
    }

    /// What came of the tests, as root and as an ordinary user.
    pub fn results(&self, tree: &Tree, suite: &Suite<'_>) -> Result<Results> {
        let mut results = Results::default();
        match suite {
            Suite::All => results.add(self.staged("escape", &["--skip", SLOW])?),
            Suite::Named(names) => {
                for (place, tests) in by_place(names)? {
                    results.add(match place {
                        Place::Staged(name) => {
                            self.staged(name, &[vec!["--exact"], tests].concat())?
                        }
                        Place::Built(built) => built_tests(tree, built, &tests)?,
                        Place::Guest(user) => {
                            let said = guest::run(&self.stage, user, &tests)?;
                            read(&said, &place.prefix())?
                        }
                    });
                }
            }
        }
        Ok(results)
    }

    fn staged(&self, name: &'static str, words: &[&str]) -> Result<Results> {
        let program = self.stage.join(name);
        let mut users = vec![Command::new(&program)];
        if self.is_root {
            let ids = [format!("--reuid={ORDINARY}"), format!("--regid={ORDINARY}")];
            let mut drop = Command::new("setpriv");
            drop.args(ids).arg("--clear-groups").arg(&program);
            users.push(drop);
        }
        let mut results = Results::default();
        for mut command in users {
            command.args(words).env("MCP_BIN", self.stage.join("mcp"));
            command.env("MCP_PROBE_BIN", self.stage.join("mcp-probe")).current_dir("/");
            let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output()?;
            let said = String::from_utf8_lossy(&output.stdout);
            results.add(read(&said, &Place::Staged(name).prefix())?);
            self.end_survivors();
            // One user for whom all of them fail is enough.
            if !results.failed.is_empty() && results.failed.len() == results.run.len() {
                break;
            }
        }
        Ok(results)
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

fn built_tests(tree: &Tree, built: Built, names: &[&str]) -> Result<Results> {
    let package = format!("--package={}", built.package);
    let mut words = vec!["test", "--no-fail-fast", &package, built.part, "--", "--exact"];
    words.extend(names);
    let output = command(tree, &words).stderr(Stdio::null()).output()?;
    read(&String::from_utf8_lossy(&output.stdout), &Place::Built(built).prefix())
}

/// What the test harness says of each test.
fn read(text: &str, prefix: &str) -> Result<Results> {
    if !text.lines().any(|line| line.starts_with("test result: ")) {
        return Err("the tests did not come to their end".into());
    }
    let mut results = Results::default();
    for line in text.lines() {
        let Some((name, outcome)) =
            line.strip_prefix("test ").and_then(|line| line.split_once(" ... "))
        else {
            continue;
        };
        // Behind a test that is to panic stands a note.
        let name = name.split(' ').next().unwrap_or_default();
        results.run.push(format!("{prefix}{name}"));
        if outcome == "FAILED" {
            results.failed.push(format!("{prefix}{name}"));
        }
    }
    Ok(results)
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
    command.args(words).current_dir(&tree.top);
    command.env("CARGO_TARGET_DIR", &tree.target).stdin(Stdio::null());
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
        let is_ours = ["mcp", "mcp-probe"].contains(&name) || STAGED.contains(&name);
        let (Some(path), true) = (message["executable"].as_str(), is_ours) else {
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
    fn tests_are_named_with_their_outcome() {
        let text = "test a::b ... ok\ntest a::c ... FAILED\n\ntest result: FAILED. 1 passed\n";
        let results = read(text, "lib:").unwrap();
        assert_eq!(results.run, ["lib:a::b", "lib:a::c"]);
        assert_eq!(results.failed, ["lib:a::c"]);
        assert!(read("test a::c ... FAILED\n", "").is_err());
    }
}
