//! Programs of the machine that are called, with errors that say which package has them.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::Result;

/// The package of Debian that a program is in, where that is not its name.
const PACKAGES: [(&str, &str); 6] = [
    ("apt-get", "apt"),
    ("apt-cache", "apt"),
    ("depmod", "kmod"),
    ("dpkg-deb", "dpkg"),
    ("mkfs.ext4", "e2fsprogs"),
    ("qemu-system-x86_64", "qemu-system-x86"),
];

/// Standard output of a command that must succeed.
pub fn output(command: &mut Command) -> Result<String> {
    let output = collect(command)?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{command:?}: {}: {}", output.status, stderr.trim()).into());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn collect(command: &mut Command) -> Result<Output> {
    command.stdin(Stdio::null()).output().map_err(|error| missing(command, &error).into())
}

pub fn missing(command: &Command, error: &std::io::Error) -> String {
    let program = command.get_program().to_string_lossy();
    if error.kind() != std::io::ErrorKind::NotFound {
        return format!("{program}: {error}");
    }
    let found = PACKAGES.iter().find(|(name, _)| *name == program);
    let package = found.map_or(&*program, |(_, package)| package);
    format!("{program} is not installed: apt-get install {package}")
}

/// A program that mostly root has on its path.
pub fn administrative(name: &str) -> Command {
    let mut command = Command::new(name);
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{path}:/usr/sbin:/sbin"));
    command
}

/// The content of a file, expanded as its first bytes say. Damage at the end is the caller's to
/// notice: some streams have other data behind them.
pub fn expanded(path: &Path) -> Result<Vec<u8>> {
    let content = std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let mut tool = match content.as_slice() {
        [0xfd, b'7', ..] => words(&["xz", "-dc", "--single-stream"]),
        [0x28, 0xb5, ..] => words(&["zstd", "-dcq"]),
        [0x1f, 0x8b, ..] => words(&["gzip", "-dcq"]),
        [0x02, 0x21, ..] => words(&["lz4", "-dcq"]),
        _ => return Ok(content),
    };
    tool.stdin(File::open(path)?).stderr(Stdio::null());
    let output = tool.output().map_err(|error| missing(&tool, &error))?;
    Ok(output.stdout)
}

fn words(words: &[&str]) -> Command {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]);
    command
}
