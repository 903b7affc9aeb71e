//! Where the `mcp` under test comes from.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::Result;

/// The launcher that was named, or a fresh release build: a stale one must not pass for today's.
pub fn locate(named: Option<&Path>) -> Result<PathBuf> {
    match named {
        Some(path) => {
            path.canonicalize().map_err(|error| format!("--mcp {}: {error}", path.display()).into())
        }
        None => build("build", &[]),
    }
}

/// As it is released: by `cargo build`, or by `cargo rustc` with more words.
pub fn build(verb: &str, more: &[&str]) -> Result<PathBuf> {
    let cargo = env::var_os("CARGO")
        .ok_or("not started by cargo, so there is nothing to build mcp with: give --mcp PATH")?;
    let output = Command::new(cargo)
        .args([verb, "--release", "--package", "mcp-cli", "--bin", "mcp"])
        .arg("--message-format=json-render-diagnostics")
        .args(more)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()?;
    if !output.status.success() {
        return Err("mcp does not build".into());
    }
    executable(&String::from_utf8_lossy(&output.stdout))
        .ok_or_else(|| "cargo built mcp without saying where".into())
}

/// Cargo says where: the path depends on target directory, target triple and profile.
fn executable(messages: &str) -> Option<PathBuf> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut built = messages.filter(|message| message["target"]["name"] == "mcp");
    built.find_map(|message| message["executable"].as_str().map(PathBuf::from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_executable_is_taken_from_cargos_messages() {
        let messages = r#"{"reason":"compiler-artifact","target":{"name":"other"},"executable":"/t/other"}
not json
{"reason":"compiler-artifact","target":{"name":"mcp"},"executable":"/t/release/mcp"}
{"reason":"build-finished","success":true}"#;
        assert_eq!(executable(messages), Some(PathBuf::from("/t/release/mcp")));
        assert_eq!(executable(""), None);
    }
}
