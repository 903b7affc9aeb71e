//! The one place where `mcp run` begins again, after it has fetched a package.
//!
//! A launcher copies itself, so what TLS has left in memory would be in every sandbox, and its threads must be gone.
//! Where a launcher is a process that execve makes new, it is made new.

use crate::failure::Failure;

/// Starts this program once more with the same words; returns only where that fails.
#[cfg(unix)]
pub fn from_the_start() -> Result<(), Failure> {
    use std::os::unix::process::CommandExt;
    let mut words = std::env::args_os();
    let first = words.next().unwrap_or_else(|| "mcp".into());
    let mut command = std::process::Command::new(own_program());
    command.arg0(first);
    // After the verb, before everything else.
    command.args(words.next()).arg("--fetched").args(words);
    let error = command.exec();
    Err(Failure::Refused(format!(
        "the package is in the store now, but mcp could not start again: {error}; run the same line once more"
    )))
}

/// The same program, even after its file was replaced or removed: an installation takes long enough for an update.
#[cfg(target_os = "linux")]
fn own_program() -> std::path::PathBuf {
    "/proc/self/exe".into()
}

#[cfg(all(unix, not(target_os = "linux")))]
fn own_program() -> std::path::PathBuf {
    std::env::current_exe().unwrap_or_else(|_| "mcp".into())
}

/// Windows starts the command in a new process, to which nothing of this one is copied: the run goes on here.
#[cfg(windows)]
pub fn from_the_start() -> Result<(), Failure> {
    Ok(())
}
