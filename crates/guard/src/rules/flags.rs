//! Which words are options, in the spelling of each shell.

use crate::language::Shell;
use crate::value::Value;

/// Options before the first operand whose value is the next word.
pub fn options_with_value(name: &str) -> &'static [&'static str] {
    match name {
        "git" => &["-C", "-c", "--git-dir", "--work-tree", "--namespace"],
        "docker" | "podman" => &["-H", "--host", "--context", "-c", "--log-level"],
        "kubectl" | "helm" => &["-n", "--namespace", "--context", "--kubeconfig", "-f"],
        "ssh" | "scp" | "sftp" => &["-i", "-F", "-P", "-p", "-o", "-c", "-l", "-J"],
        "aws" => &["--profile", "--region", "--endpoint-url", "--output"],
        "terraform" | "tofu" => &[],
        _ => &[],
    }
}

/// Options whose value is a text for people: it may tell of a file, and nothing is done to that file.
pub fn message_options(name: &str, subcommand: &str) -> &'static [&'static str] {
    match (name, subcommand) {
        ("git", "commit" | "tag" | "merge" | "stash" | "notes") => &["-m", "-am", "--message"],
        ("gh" | "glab", "pr" | "mr" | "issue" | "release") => {
            &["-t", "--title", "-b", "--body", "-n", "--notes", "-d", "--description"]
        }
        _ => &[],
    }
}

pub fn is_option(value: &Value, shell: Shell) -> bool {
    match shell {
        Shell::Bash => value.starts_with('-') && value.known().as_deref() != Some("-"),
        Shell::PowerShell => value.starts_with('-'),
        Shell::Cmd => value.starts_with('/'),
    }
}

/// `-r` in `-rf`, `--recursive` in `--recur`; `-Recurse` in `-rec`; `/s` in `/S`.
pub fn is_flag(text: &str, wanted: &str, shell: Shell) -> bool {
    match shell {
        Shell::Cmd => text.eq_ignore_ascii_case(wanted),
        // A verb, as programs have them that are not PowerShell's own.
        Shell::PowerShell if !wanted.starts_with('-') => text.eq_ignore_ascii_case(wanted),
        Shell::PowerShell => {
            let text = text.split(':').next().unwrap_or_default().to_lowercase();
            let wanted = wanted.to_lowercase();
            text.len() > 1 && text.starts_with('-') && wanted.starts_with(&text)
        }
        Shell::Bash => posix_flag(text, wanted),
    }
}

fn posix_flag(text: &str, wanted: &str) -> bool {
    if let Some(long) = wanted.strip_prefix("--") {
        let name = text.split('=').next().unwrap_or_default();
        return name
            .strip_prefix("--")
            .is_some_and(|name| name.len() > 1 && long.starts_with(name));
    }
    let short = wanted.strip_prefix('-').unwrap_or(wanted);
    if short.chars().count() != 1 {
        return text == wanted;
    }
    let cluster = text.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
    cluster.is_some_and(|rest| rest.contains(short))
}
