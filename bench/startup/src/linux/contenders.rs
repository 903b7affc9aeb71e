//! The ways of starting a command that are compared, as plain command lines.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use bench_common::programs::find;

use super::{Result, sys};

/// The hidden mode of this program that is the `floor` contender.
pub const FLOOR: &str = "__floor";

/// One contender: its name, and its command line made ready for spawning.
pub struct Contender {
    pub name: &'static str,
    spawn: sys::Spawn,
}

/// A contender, or why it is not there.
pub enum Entry {
    Ready(Contender),
    Skipped { name: &'static str, why: String },
}

impl Entry {
    pub fn ready(&self) -> Option<&Contender> {
        match self {
            Self::Ready(contender) => Some(contender),
            Self::Skipped { .. } => None,
        }
    }

    /// Tries the command once, because a sandbox that fails at start-up is fast.
    fn try_out(name: &'static str, words: &[OsString]) -> Result<Self> {
        Ok(match failure(words) {
            None => Self::Ready(Contender { name, spawn: sys::Spawn::new(words)? }),
            Some(why) => Self::Skipped { name, why },
        })
    }
}

impl Contender {
    pub fn time_once(&self) -> Result<Duration> {
        let run = self.spawn.run()?;
        if run.exit_code != Some(0) {
            return Err(format!("{} failed in the middle of the rounds", self.name).into());
        }
        Ok(run.took)
    }
}

pub fn all(command: &Path, launcher: &Path) -> Result<Vec<Entry>> {
    let command = command.as_os_str();
    let bare = vec![command.to_owned()];
    if let Some(why) = failure(&bare) {
        return Err(format!("{} does not run bare: {why}", command.display()).into());
    }
    let own = std::env::current_exe()?;
    let floor = vec![own.into_os_string(), FLOOR.into(), command.to_owned()];
    Ok(vec![
        Entry::try_out("bare", &bare)?,
        Entry::try_out("floor", &floor)?,
        Entry::try_out("bubblewrap", &bubblewrap([command.to_owned()]))?,
        Entry::try_out("mcp", &mcp(launcher, [command.to_owned()]))?,
    ])
}

pub fn mcp(launcher: &Path, command: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec![launcher.into(), "run".into(), "--".into()];
    words.extend(command);
    words
}

/// What our default policy gives, as far as bubblewrap can express it: the same namespaces and the
/// same view of the file system. In doubt it gets the easier job: no system call filter, no
/// Landlock, no limits, nothing hidden in /proc.
pub fn bubblewrap(command: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let program = find("bwrap").unwrap_or_else(|| "bwrap".into());
    let mut words: Vec<OsString> = vec![program.into()];
    let mut add = |options: &[&OsStr]| words.extend(options.iter().map(|&word| word.to_owned()));
    add(&["--unshare-all", "--die-with-parent", "--new-session"].map(OsStr::new));
    add(&["--ro-bind", "/usr", "/usr"].map(OsStr::new));
    for path in ["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"].map(Path::new) {
        if let Ok(link) = fs::read_link(path) {
            add(&[OsStr::new("--symlink"), link.as_os_str(), path.as_os_str()]);
        } else if path.is_dir() {
            add(&[OsStr::new("--ro-bind"), path.as_os_str(), path.as_os_str()]);
        }
    }
    // What ours shows of /etc, by bind or as a text of its own.
    for file in [
        "/etc/alternatives",
        "/etc/fonts",
        "/etc/group",
        "/etc/hosts",
        "/etc/java-17-openjdk",
        "/etc/ld.so.cache",
        "/etc/localtime",
        "/etc/nsswitch.conf",
        "/etc/os-release",
        "/etc/passwd",
        "/etc/protocols",
        "/etc/services",
        "/etc/ssl",
    ] {
        add(&["--ro-bind-try", file, file].map(OsStr::new));
    }
    add(&["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"].map(OsStr::new));
    add(&["--tmpfs", "/home/x", "--chdir", "/", "--clearenv"].map(OsStr::new));
    add(&["--setenv", "PATH", "/usr/bin:/bin", "--setenv", "HOME", "/home/x", "--"].map(OsStr::new));
    words.extend(command);
    words
}

/// Why a command does not succeed, if it does not.
pub fn failure(words: &[OsString]) -> Option<String> {
    let (program, arguments) = words.split_first()?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null());
    match command.output() {
        Ok(output) if output.status.success() => None,
        Ok(output) => {
            let stderr = String::from_utf8_lossy(&output.stderr);
            let first = stderr.lines().next().unwrap_or("no message");
            Some(format!("{}: {first}", output.status))
        }
        Err(error) => Some(format!("{}: {error}", program.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_comes_last() {
        let words = bubblewrap(["/bin/true".into()]);
        assert_eq!(words[words.len() - 2..], ["--", "/bin/true"]);
        let words = mcp(Path::new("/opt/mcp"), ["/bin/true".into()]);
        assert_eq!(words, ["/opt/mcp", "run", "--", "/bin/true"]);
    }

    #[test]
    fn a_failing_command_says_why() {
        assert_eq!(failure(&["/bin/true".into()]), None);
        let why = failure(&["/bin/sh".into(), "-c".into(), "echo no luck >&2; exit 3".into()]);
        assert_eq!(why.as_deref(), Some("exit status: 3: no luck"));
        assert!(failure(&["/does/not/exist".into()]).is_some());
    }

    #[test]
    fn a_missing_launcher_is_skipped_not_fatal() {
        let words = mcp(Path::new("/does/not/exist"), ["/bin/true".into()]);
        assert!(Entry::try_out("mcp", &words).unwrap().ready().is_none());
    }
}
