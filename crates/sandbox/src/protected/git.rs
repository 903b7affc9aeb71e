//! As much of git's files as it takes to see where they lead. What is not understood leads nowhere, and is
//! never harmless.

use std::fs::File;
use std::io::Read;
use std::path::{Component, Path, PathBuf};

use crate::file_names::real;

/// Larger than any that people have.
const LARGEST: u64 = 256 * 1024;

/// Settings that run nothing, wherever they come from; `*` stands for a name of the user's.
const HARMLESS: &[&str] = &[
    "core.repositoryformatversion",
    "core.filemode",
    "core.bare",
    "core.logallrefupdates",
    "core.ignorecase",
    "core.precomposeunicode",
    "core.symlinks",
    "extensions.objectformat",
    "extensions.refstorage",
    "user.name",
    "user.email",
    "init.defaultbranch",
    "remote.*.fetch",
    "branch.*.merge",
    "branch.*.rebase",
];

/// The text of a regular file that is not too large; no symlink is followed at its end.
pub fn text(path: &Path) -> Option<String> {
    let file = open_itself(path).ok()?;
    let metadata = file.metadata().ok()?;
    if !metadata.is_file() || metadata.len() > LARGEST {
        return None;
    }
    let mut text = String::new();
    file.take(LARGEST).read_to_string(&mut text).ok()?;
    Some(text)
}

/// A link is opened itself, and then is no file.
#[cfg(unix)]
fn open_itself(path: &Path) -> std::io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    File::options().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)
}

#[cfg(windows)]
fn open_itself(path: &Path) -> std::io::Result<File> {
    use std::os::windows::fs::OpenOptionsExt;
    const OPEN_REPARSE_POINT: u32 = 0x20_0000;
    File::options().read(true).custom_flags(OPEN_REPARSE_POINT).open(path)
}

/// Where a file that holds one path leads: `gitdir: PATH`, or the path alone.
pub fn pointer(file: &Path, label: &str) -> Option<PathBuf> {
    let text = text(file)?;
    let target = text.strip_prefix(label)?.trim_matches(['\n', '\r', ' ']);
    if target.is_empty() || target.contains(['\n', '\0']) {
        return None;
    }
    resolved(file.parent()?, target)
}

/// With links resolved where it is there, else without `..` at least.
fn resolved(base: &Path, target: &str) -> Option<PathBuf> {
    let joined = base.join(target);
    if let Ok(real) = real(&joined) {
        return Some(real);
    }
    let mut plain = PathBuf::new();
    for part in joined.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            part => plain.push(part),
        }
    }
    Some(plain)
}

/// What the settings of a git directory name: other settings, and directories and files of hooks.
pub fn named(directory: &Path, top: Option<&Path>) -> Vec<PathBuf> {
    let mut named = Vec::new();
    for file in ["config", "config.worktree"] {
        let file = directory.join(file);
        for (key, value) in text(&file).as_deref().map(loosely).unwrap_or_default() {
            let base = match key.as_str() {
                "core.hookspath" | "core.fsmonitor" => top.unwrap_or(directory),
                key if key.starts_with("include") && key.ends_with(".path") => directory,
                _ => continue,
            };
            if !value.starts_with('~') {
                named.extend(resolved(base, &value));
            }
        }
    }
    named
}

/// Where the settings of a git directory say that its work tree is.
pub fn work_tree(directory: &Path) -> Option<PathBuf> {
    let settings = text(&directory.join("config")).as_deref().and_then(settings)?;
    let (_, value) = settings.into_iter().rfind(|(key, _)| key == "core.worktree")?;
    resolved(directory, &value)
}

/// Whether the settings in a file run nothing.
pub fn is_harmless(file: &Path) -> bool {
    let Some(settings) = text(file).as_deref().and_then(settings) else {
        return false;
    };
    settings.iter().all(|(key, value)| match key.as_str() {
        // A word before `::` is a program; so is much of what is no plain address.
        key if fits("remote.*.url", key) || fits("branch.*.remote", key) => is_plain_address(value),
        key => HARMLESS.iter().any(|harmless| fits(harmless, key)),
    })
}

fn is_plain_address(address: &str) -> bool {
    let odd = |c: char| !(c.is_ascii_alphanumeric() || "/:@._-+~%".contains(c));
    !address.starts_with('-') && !address.contains("::") && !address.contains(odd)
}

fn fits(pattern: &str, key: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == key,
        Some((head, tail)) => {
            key.len() > head.len() + tail.len() && key.starts_with(head) && key.ends_with(tail)
        }
    }
}

/// As [`settings`], but what is not understood is left out: for settings of the user's own, which may be
/// anything, and of which some lead somewhere.
fn loosely(text: &str) -> Vec<(String, String)> {
    let mut settings = Vec::new();
    let mut section = String::new();
    for line in text.lines() {
        let mut line = line.trim();
        if let Some((header, rest)) = line.strip_prefix('[').and_then(|line| line.split_once(']')) {
            let name = header.split([' ', '\t', '.']).next().unwrap_or_default();
            section = name.to_ascii_lowercase();
            line = rest.trim();
        }
        if let Some((key, value)) = line.split_once('=') {
            let value = value.split(" #").next().unwrap_or_default();
            let value = value.split(" ;").next().unwrap_or_default().replace(['"', '\\'], "");
            let key = format!("{section}.{}", key.trim().to_ascii_lowercase());
            settings.push((key, value.trim().to_owned()));
        }
    }
    settings
}

/// Keys, their section and last part in lower case, with their values; `None` where a line is not
/// understood.
fn settings(text: &str) -> Option<Vec<(String, String)>> {
    let mut settings = Vec::new();
    let mut section = String::new();
    for line in text.lines() {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(header) = line.strip_prefix('[') {
            section = self::section(header)?;
            continue;
        }
        let (key, value) = line.split_once('=').unwrap_or((line, "true"));
        let key = key.trim().to_ascii_lowercase();
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if section.is_empty() || key.is_empty() || !key.chars().all(is_name) {
            return None;
        }
        settings.push((format!("{section}.{key}"), self::value(value.trim())?));
    }
    Some(settings)
}

fn section(header: &str) -> Option<String> {
    let header = header.strip_suffix(']')?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-';
    match header.split_once([' ', '\t']) {
        None => header.chars().all(is_name).then(|| header.to_ascii_lowercase()),
        Some((name, rest)) => {
            let inner = rest.trim().strip_prefix('"')?.strip_suffix('"')?;
            let plain = name.chars().all(is_name) && !inner.contains(['"', '\\', ']']);
            plain.then(|| format!("{}.{inner}", name.to_ascii_lowercase()))
        }
    }
}

/// A value with at most one pair of quotes around it.
fn value(text: &str) -> Option<String> {
    let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
    let is_plain = !inner.contains(['"', '\\', '#', ';']);
    is_plain.then(|| inner.to_owned())
}

/// Name and address that commits are made with, from the user's own settings.
pub fn identity(file: &Path) -> Vec<(&'static str, String)> {
    let Some(text) = text(file) else {
        return Vec::new();
    };
    // The user's settings may hold what we do not read; only two lines of them matter.
    let mut found = Vec::new();
    let mut in_user = false;
    for line in text.lines().map(str::trim) {
        if let Some(header) = line.strip_prefix('[') {
            in_user = header.trim_end_matches(']').trim().eq_ignore_ascii_case("user");
        } else if let (true, Some((key, text))) = (in_user, line.split_once('=')) {
            let known =
                ["name", "email"].into_iter().find(|name| key.trim().eq_ignore_ascii_case(name));
            let plain = |value: &String| !value.chars().any(|c| c.is_control() || "<>".contains(c));
            if let (Some(key), Some(value)) = (known, value(text.trim()).filter(plain)) {
                found.retain(|(have, _)| *have != key);
                found.push((key, value));
            }
        }
    }
    found
}

/// Whether all that is in a directory of hooks are examples, which git does not run.
pub fn has_only_samples(directory: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return false;
    };
    entries.into_iter().all(|entry| {
        entry.is_ok_and(|entry| {
            entry.file_name().as_encoded_bytes().ends_with(b".sample")
                && entry.file_type().is_ok_and(|kind| kind.is_file())
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(text: &str) -> Option<Vec<String>> {
        settings(text)
            .map(|all| all.into_iter().map(|(key, value)| format!("{key}={value}")).collect())
    }

    #[test]
    fn settings_are_read_as_git_does_or_not_at_all() {
        let text =
            "[core]\n\tbare = false\n# x\n[remote \"Origin\"]\n url = git@host:a/b.git\n[a] \n";
        assert_eq!(keys(text).unwrap(), ["core.bare=false", "remote.Origin.url=git@host:a/b.git"]);
        assert_eq!(keys("[Core]\n\tHooksPath = \".husky\"").unwrap(), ["core.hookspath=.husky"]);
        for odd in [
            "bare = false",
            "[core",
            "[core]\nbare = a\\\nb",
            "[core] bare = false",
            "[a \"b\\\"c\"]",
            "[core]\nx = \"a\" b\"c\"",
            "[core]\nx y = 1",
        ] {
            assert_eq!(keys(odd), None, "{odd:?}");
        }
    }

    #[test]
    fn addresses_that_run_programs_are_not_plain() {
        for plain in ["https://host/a.git", "git@host:a/b.git", "ssh://host/~a", "../up", "/srv/x"]
        {
            assert!(is_plain_address(plain), "{plain}");
        }
        for odd in ["ext::sh -c id", "-oProxyCommand=x", "a b", "https://host/$(id)", "x::y"] {
            assert!(!is_plain_address(odd), "{odd}");
        }
    }
}
