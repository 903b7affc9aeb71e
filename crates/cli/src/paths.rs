//! Where `mcp` keeps its own files, by the custom of each system.

use std::env;
use std::io;
use std::path::{Path, PathBuf};

use mcp_policy::windows_path;

/// A path without links, in the spelling that programs know.
pub fn real(path: &Path) -> io::Result<PathBuf> {
    path.canonicalize().map(windows_path::plain)
}

pub fn home() -> Option<PathBuf> {
    let name = if cfg!(windows) { "USERPROFILE" } else { "HOME" };
    absolute(name)
}

pub fn config_file() -> Option<PathBuf> {
    Some(directory("XDG_CONFIG_HOME", ".config", "APPDATA")?.join("config.toml"))
}

/// Homes that outlive a run, one for each name.
pub fn homes() -> Option<PathBuf> {
    Some(directory("XDG_DATA_HOME", ".local/share", "LOCALAPPDATA")?.join("homes"))
}

/// The packages.
pub fn store() -> Option<PathBuf> {
    Some(directory("XDG_DATA_HOME", ".local/share", "LOCALAPPDATA")?.join("store"))
}

/// Credentials for registries.
pub fn credentials() -> Option<PathBuf> {
    Some(directory("XDG_CONFIG_HOME", ".config", "APPDATA")?.join("credentials.json"))
}

/// What was run.
pub fn audit_log() -> Option<PathBuf> {
    Some(directory("XDG_STATE_HOME", ".local/state", "LOCALAPPDATA")?.join("log.jsonl"))
}

fn directory(variable: &str, below_home: &str, windows: &str) -> Option<PathBuf> {
    // A home that is not there is not made: system accounts name one on purpose.
    let home = || home().filter(|home| home.is_dir());
    let base = if cfg!(windows) {
        absolute(windows)
    } else if cfg!(target_os = "macos") {
        home().map(|home| home.join("Library/Application Support"))
    } else {
        absolute(variable).or_else(|| home().map(|home| home.join(below_home)))
    };
    base.map(|base| base.join("mcp"))
}

/// Relative values are against the XDG rules, and would depend on where one stands.
fn absolute(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}
