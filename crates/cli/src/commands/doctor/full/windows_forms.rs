//! What checks of Windows need beside a command: variables in paths, copies of programs, a console, UI limits one by one.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use mcp_sandbox::platform;

use super::check::CheckOutcome;

/// UILIMIT_HANDLES and UILIMIT_GLOBALATOMS, which mcp leaves out: others saw PowerShell and Python end under them.
const LEFT_OUT: u32 = 0x21;

/// A word that begins with `%NAME%`, with what the variable holds. One that is not set belongs to a program that is not
/// installed.
pub fn with_variables(word: &str) -> io::Result<String> {
    let parts = word.strip_prefix('%').and_then(|rest| rest.split_once('%'));
    let is_name = |name: &str| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    };
    match parts.filter(|(name, _)| is_name(name)) {
        Some((name, rest)) => Ok(std::env::var(name).map_err(|_| io::ErrorKind::NotFound)? + rest),
        None => Ok(word.to_owned()),
    }
}

/// A copy of a program on PATH, alone in this directory.
pub fn copied(name: &str, directory: &Path) -> io::Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|at| at.join(name)).find(|at| at.is_file());
    let found = found.ok_or(io::ErrorKind::NotFound)?;
    let copy = directory.join(name);
    if !copy.is_file() {
        fs::create_dir_all(directory)?;
        fs::copy(found, &copy)?;
    }
    Ok(copy)
}

/// The same command, in a console of its own: a redirected one has none.
#[cfg(windows)]
pub fn in_console(command: Command) -> Command {
    use std::os::windows::process::CommandExt;
    const CREATE_NEW_CONSOLE: u32 = 0x10;
    let quoted = |word: &std::ffi::OsStr| format!("\"{}\"", word.to_string_lossy());
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let line: Vec<String> = words.map(quoted).collect();
    let line = format!("/d /s /c \"{} <CONIN$ >CONOUT$ 2>CONOUT$\"", line.join(" "));
    let mut shell = Command::new("cmd.exe");
    shell.raw_arg(line).creation_flags(CREATE_NEW_CONSOLE);
    shell
}

#[cfg(not(windows))]
pub fn in_console(command: Command) -> Command {
    command
}

/// PowerShell in a job with one UI limit, after the same without.
pub fn ui_limit(limit: u32) -> io::Result<CheckOutcome> {
    let root = PathBuf::from(std::env::var_os("SystemRoot").ok_or(io::ErrorKind::NotFound)?);
    let shell = root.join(r"System32\WindowsPowerShell\v1.0\powershell.exe");
    let words = ["-NoProfile", "-NonInteractive", "-Command", "exit 0"].map(OsString::from);
    let starts = |limit: u32| platform::starts_under_ui_limit(limit, &shell, &words);
    let skipped = |why: &str| Ok(CheckOutcome::Skipped { why: why.to_owned() });
    if !starts(0)? {
        return skipped("does not work outside: PowerShell does not start in a job without limits");
    }
    match starts(limit) {
        Ok(true) => Ok(CheckOutcome::Passed),
        Ok(false) if limit & LEFT_OUT != 0 => {
            skipped("PowerShell does not start under it, as others saw; mcp does not set it")
        }
        Ok(false) => {
            Ok(CheckOutcome::Failed { why: "PowerShell does not start under it".to_owned() })
        }
        Err(e) => skipped(&format!("the limit cannot be set here: {e}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_filled_in_and_other_percent_signs_stay() {
        let path = std::env::var("PATH").unwrap();
        assert_eq!(with_variables("%PATH%/node").unwrap(), format!("{path}/node"));
        for same in ["plain", "%{http_code}", "100% of it", "a %% b"] {
            assert_eq!(with_variables(same).unwrap(), same, "{same}");
        }
        assert!(with_variables("%MCP_NOT_SET_ANYWHERE%\\node.exe").is_err());
    }

    #[test]
    fn a_copy_is_alone_in_its_directory() {
        let directory = std::env::temp_dir().join(format!("mcp-copy-{}", std::process::id()));
        let name = if cfg!(windows) { "cmd.exe" } else { "sh" };
        let copy = copied(name, &directory).unwrap();
        assert!(copy.is_file() && fs::read_dir(&directory).unwrap().count() == 1);
        assert!(copied("no such program", &directory).is_err());
        fs::remove_dir_all(directory).unwrap();
    }
}
