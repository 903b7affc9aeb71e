//! The launchers that are compared, as plain command lines, and whether they work here.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::programs::find;

pub fn mcp(launcher: &Path, command: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec![launcher.into(), "run".into(), "--".into()];
    words.extend(command);
    words
}

/// As `mcp learn` starts a round: calls that name a file are announced.
pub fn mcp_watching(launcher: &Path, command: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> =
        vec![launcher.into(), "run".into(), "--watch-paths".into(), "--".into()];
    words.extend(command);
    words
}

/// A command of an agent, in a project.
pub fn mcp_exec(launcher: &Path, project: &Path, text: &OsStr) -> Vec<OsString> {
    let words: [&OsStr; 6] = [
        launcher.as_os_str(),
        "exec".as_ref(),
        "-C".as_ref(),
        project.as_os_str(),
        "--".as_ref(),
        text,
    ];
    words.map(OsStr::to_owned).to_vec()
}

/// As people call it: all of the system at once, which is less to do than our default policy, and shows more.
pub fn bubblewrap_all_of_etc(command: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let program = find("bwrap").unwrap_or_else(|| "bwrap".into());
    let mut words: Vec<OsString> = vec![program.into()];
    let mut add = |options: &[&OsStr]| words.extend(options.iter().map(|&word| word.to_owned()));
    add(&["--unshare-all", "--die-with-parent", "--new-session"].map(OsStr::new));
    for path in ["/usr", "/etc", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"] {
        let path = Path::new(path);
        if let Ok(link) = fs::read_link(path) {
            add(&[OsStr::new("--symlink"), link.as_os_str(), path.as_os_str()]);
        } else if path.is_dir() {
            add(&[OsStr::new("--ro-bind"), path.as_os_str(), path.as_os_str()]);
        }
    }
    add(&["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--"].map(OsStr::new));
    words.extend(command);
    words
}

/// What our default policy gives, as far as bubblewrap can express it: the same namespaces and the
/// same view of the file system. In doubt it gets the easier job: no system call filter, no
/// Landlock, no limits, nothing hidden in /proc. `shown`: what lies elsewhere and is to be seen.
pub fn bubblewrap(shown: &[&Path], command: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
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
    // After the temporary places, below which it may lie.
    for path in shown {
        add(&[OsStr::new("--ro-bind"), path.as_os_str(), path.as_os_str()]);
    }
    add(&["--setenv", "PATH", "/usr/bin:/bin", "--setenv", "HOME", "/home/x", "--"].map(OsStr::new));
    words.extend(command);
    words
}

/// Without a profile, with what comes nearest to ours: no network, an empty home, no capabilities, a filter.
pub fn firejail(command: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let program = find("firejail").unwrap_or_else(|| "firejail".into());
    let mut words: Vec<OsString> = vec![program.into()];
    let options =
        ["--quiet", "--noprofile", "--net=none", "--private", "--caps.drop=all", "--seccomp", "--"];
    words.extend(options.map(OsString::from));
    words.extend(command);
    words
}

/// With no host allowed. Its settings are a file below the temporary directory.
pub fn srt(command: impl IntoIterator<Item = OsString>) -> io::Result<Vec<OsString>> {
    const SETTINGS: &str = r#"{
  "network": { "allowedDomains": [], "deniedDomains": [] },
  "filesystem": { "denyRead": [], "allowWrite": [], "denyWrite": [] }
}"#;
    let settings = std::env::temp_dir().join(format!("bench-srt-{}.json", std::process::id()));
    fs::write(&settings, SETTINGS)?;
    let program = find("srt").unwrap_or_else(|| "srt".into());
    let mut words: Vec<OsString> = vec![program.into(), "--settings".into(), settings.into()];
    words.extend(command);
    Ok(words)
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
        let words = bubblewrap(&[], ["/bin/true".into()]);
        assert_eq!(words[words.len() - 2..], ["--", "/bin/true"]);
        let words = mcp(Path::new("/opt/mcp"), ["/bin/true".into()]);
        assert_eq!(words, ["/opt/mcp", "run", "--", "/bin/true"]);
        let words = mcp_exec(Path::new("/opt/mcp"), Path::new("/p"), OsStr::new("true"));
        assert_eq!(words, ["/opt/mcp", "exec", "-C", "/p", "--", "true"]);
        let words = bubblewrap_all_of_etc(["/bin/true".into()]);
        assert_eq!(words[words.len() - 2..], ["--", "/bin/true"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_failing_command_says_why() {
        assert_eq!(failure(&["/bin/true".into()]), None);
        let why = failure(&["/bin/sh".into(), "-c".into(), "echo no luck >&2; exit 3".into()]);
        assert_eq!(why.as_deref(), Some("exit status: 3: no luck"));
        assert!(failure(&["/does/not/exist".into()]).is_some());
    }
}
