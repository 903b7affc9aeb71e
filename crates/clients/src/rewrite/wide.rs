//! Entries that are behind `mcp run` with the walls open.

use std::path::Path;

/// The options of a wired line that take the walls away. The words begin after `run`.
pub fn opened_wide(words: &[String], home: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        at += 1;
        if word == "--" || !word.starts_with('-') {
            break;
        }
        let (name, glued) = match word.split_once('=') {
            Some((name, value)) if word.starts_with("--") => (name, Some(value)),
            _ if !word.starts_with("--") && word.len() > 2 && word.is_char_boundary(2) => {
                (&word[..2], Some(&word[2..]))
            }
            _ => (word.as_str(), None),
        };
        if !WITH_VALUE.contains(&name) {
            continue;
        }
        let value = glued.or_else(|| {
            at += 1;
            words.get(at - 1).map(String::as_str)
        });
        let value = value.unwrap_or_default();
        let holds_home = || {
            let path = Path::new(value);
            path.is_absolute() && (path.parent().is_none() || home.starts_with(path))
                || value == "~"
        };
        let is_wide = match name {
            "--network" => value == "host",
            "--fallback" => value == "warn",
            "--read" | "-r" | "--write" | "-w" => holds_home(),
            _ => false,
        };
        if is_wide {
            found.push(format!("{name} {value}"));
        }
    }
    found
}

/// Options of `mcp run` that take the next word. One that is missing here has its value taken for the command.
pub const WITH_VALUE: [&str; 37] = [
    "--policy",
    "--read",
    "-r",
    "--write",
    "-w",
    "--deny",
    "--unprotect",
    "--allow-write",
    "--allow-net",
    "-n",
    "--allow-unix",
    "--listen",
    "--network",
    "--env",
    "-e",
    "--env-file",
    "--secret",
    "--max-memory",
    "--max-cpu",
    "--max-cpu-time",
    "--max-io",
    "--max-pids",
    "--max-fds",
    "--max-file-size",
    "--max-tmp",
    "--max-address-space",
    "--timeout",
    "--grace",
    "--cwd",
    "--home",
    "--fallback",
    "--platform",
    "--report",
    "--registry",
    "--require-signature",
    "--bin",
    "--config",
];
