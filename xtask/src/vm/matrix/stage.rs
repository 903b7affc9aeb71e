//! The programs that are tried: mcp, its probe and the tests.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::{staging, suite};
use crate::Result;
use crate::vm::{Temporary, tools};

const PROGRAMS: [&str; 4] = ["mcp", "mcp-probe", suite::NAMES[0], suite::NAMES[1]];

pub struct Stage {
    pub directory: PathBuf,
    /// Tells builds apart.
    pub fingerprint: String,
    /// What they were built from.
    pub commit: String,
    _temporary: Option<Temporary>,
}

impl Stage {
    pub fn make(named: Option<&Path>, cache: &Path) -> Result<Stage> {
        let (directory, temporary) = match named {
            Some(directory) => (directory.canonicalize()?, None),
            None => {
                let temporary = staging(cache)?;
                build(&temporary.0)?;
                (temporary.0.clone(), Some(temporary))
            }
        };
        let mut hasher = DefaultHasher::new();
        for program in PROGRAMS {
            let path = directory.join(program);
            fs::read(&path).map_err(|e| format!("{}: {e}", path.display()))?.hash(&mut hasher);
        }
        let fingerprint = format!("{:016x}", hasher.finish());
        let commit = match fs::read_to_string(directory.join("commit")) {
            Ok(text) => text.trim().to_owned(),
            Err(_) => head()?,
        };
        Ok(Stage { directory, fingerprint, commit, _temporary: temporary })
    }

    #[cfg(test)]
    pub fn named(fingerprint: &str, commit: &str) -> Stage {
        let (fingerprint, commit) = (fingerprint.to_owned(), commit.to_owned());
        Stage { directory: PathBuf::new(), fingerprint, commit, _temporary: None }
    }
}

/// What is checked out here.
fn head() -> Result<String> {
    let mut git = Command::new("git");
    git.args(["rev-parse", "--short=8", "HEAD"]).current_dir(crate::workspace());
    Ok(tools::output(&mut git)?.trim().to_owned())
}

fn build(into: &Path) -> Result<()> {
    let cargo = std::env::var_os("CARGO")
        .ok_or("not started by cargo, so there is nothing to build with: give --bin-dir DIR")?;
    for arguments in [
        ["build", "--package=mcp-cli", "--package=mcp-probe"].as_slice(),
        ["test", "--no-run", "--package=mcp-cli", "--test=escape", "--test=exec"].as_slice(),
    ] {
        let mut command = Command::new(&cargo);
        command.args(arguments).args(["--release", "--message-format=json-render-diagnostics"]);
        let output = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
        if !output.status.success() {
            return Err("the programs do not build".into());
        }
        for (name, path) in executables(&String::from_utf8_lossy(&output.stdout)) {
            if PROGRAMS.contains(&name.as_str()) {
                fs::copy(path, into.join(name))?;
            }
        }
    }
    Ok(())
}

/// Name and path of each program in cargo's messages.
fn executables(messages: &str) -> Vec<(String, PathBuf)> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let program = |message: Value| {
        let name = message["target"]["name"].as_str()?.to_owned();
        Some((name, message["executable"].as_str()?.into()))
    };
    messages.filter_map(program).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_taken_from_cargos_messages() {
        let messages = r#"{"target":{"name":"mcp_sandbox"},"executable":null}
{"target":{"name":"escape"},"executable":"/t/escape-1"}
{"reason":"build-finished","success":true}"#;
        assert_eq!(executables(messages), [("escape".to_owned(), "/t/escape-1".into())]);
    }
}
