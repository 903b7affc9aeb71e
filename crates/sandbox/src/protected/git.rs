//! The small files of git's that lead elsewhere, and which of the new ones do nothing by themselves: what is not
//! understood is never harmless.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::git_config::grammar::{self, Setting};
use super::git_config::pathname;
use super::git_config::programs::fits;
use super::git_config::source::contents;
use super::link_chain::link_chain;

/// Larger than any that are new.
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

/// What a `.git` file begins with, exactly.
pub const GITDIR: &str = "gitdir: ";

/// The text of a regular file that is not too large; no symlink is followed at its end.
fn text(path: &Path) -> Option<Vec<u8>> {
    let file = open_itself(path).ok()?;
    let metadata = file.metadata().ok()?;
    if !metadata.is_file() || metadata.len() > LARGEST {
        return None;
    }
    let mut text = Vec::new();
    file.take(LARGEST).read_to_end(&mut text).ok()?;
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

/// Where a file that holds one path leads: `gitdir: PATH`, or the path alone. Links are followed, those in what it leads
/// to are not resolved.
pub fn pointer(file: &Path, label: &str) -> Option<PathBuf> {
    target(&contents(file).ok()??, file, label)
}

/// As [`pointer`], and no link is followed to the file.
pub fn pointer_itself(file: &Path, label: &str) -> Option<PathBuf> {
    target(&text(file)?, file, label)
}

/// git takes away line ends behind it, and nothing else: a blank belongs to the path.
fn target(text: &[u8], file: &Path, label: &str) -> Option<PathBuf> {
    let rest = text.strip_prefix(label.as_bytes())?;
    let end = rest.iter().rposition(|c| !matches!(c, b'\n' | b'\r'))? + 1;
    // It is a string of C.
    let path = rest.get(..end)?.split(|c| *c == 0).next().filter(|path| !path.is_empty())?;
    Some(file.parent()?.join(pathname::path(path)))
}

/// Whether a directory looks like one of git's, as the searches see it.
pub fn is_directory(directory: &Path) -> bool {
    let has = |name: &str| directory.join(name).symlink_metadata().is_ok();
    let is_file = |name: &str| directory.join(name).symlink_metadata().is_ok_and(|is| !is.is_dir());
    has("HEAD") && has("commondir")
        || has("objects") && has("refs") && (has("HEAD") || is_file("config"))
}

/// The work tree of a worktree's own git directory, by the file that names its `.git`.
pub fn top_of_worktree(directory: &Path) -> Option<PathBuf> {
    let link = pointer(&directory.join("gitdir"), "")?;
    link.parent().map(|top| link_chain(top).end)
}

/// Where the settings of a git directory say that its work tree is.
pub fn work_tree(directory: &Path) -> Option<PathBuf> {
    let parsed = grammar::parse(&contents(&directory.join("config")).ok()??);
    if parsed.bad_line.is_some() {
        return None;
    }
    let is = |setting: &&Setting| setting.key == b"core.worktree";
    let value = parsed.settings.iter().rfind(is)?.value.as_deref()?;
    Some(link_chain(&directory.join(pathname::path(value))).end)
}

/// Whether the settings in a file run nothing: those that git itself writes, in the way that it writes them, so that
/// every version of it reads the same.
pub fn is_harmless(file: &Path) -> bool {
    text(file).is_some_and(|text| is_harmless_text(&text))
}

fn is_harmless_text(text: &[u8]) -> bool {
    let Some(settings) = std::str::from_utf8(text).ok().and_then(settings) else {
        return false;
    };
    let parsed = grammar::parse(text);
    let is_same = |(own, gits): (&(String, String), &Setting)| {
        let value = gits.value.as_deref().unwrap_or(b"true");
        own.0.as_bytes() == gits.key && own.1.as_bytes() == value
    };
    parsed.bad_line.is_none()
        && parsed.settings.len() == settings.len()
        && settings.iter().zip(&parsed.settings).all(is_same)
        && parsed.settings.iter().all(is_harmless_setting)
}

fn is_harmless_setting(setting: &Setting) -> bool {
    let is = |key: &[u8]| fits(key, &setting.key);
    // A word before `::` is a program; so is much of what is no plain address.
    match is(b"remote.*.url") || is(b"branch.*.remote") {
        true => {
            let value = setting.value.as_deref().unwrap_or(b"true");
            std::str::from_utf8(value).is_ok_and(is_plain_address)
        }
        false => HARMLESS.iter().any(|harmless| is(harmless.as_bytes())),
    }
}

/// The text of settings, to be compared with what takes their place.
#[cfg(target_os = "linux")]
pub fn settings_text(file: &Path) -> Option<Vec<u8>> {
    text(file)
}

/// Whether settings that took the place of others run the same as those: all but the harmless ones are alike, and in the
/// same order, for the last one counts.
#[cfg(unix)]
pub fn runs_the_same(before: &[u8], file: &Path) -> bool {
    text(file).is_some_and(|now| runs_the_same_text(before, &now))
}

#[cfg(unix)]
fn runs_the_same_text(before: &[u8], now: &[u8]) -> bool {
    let [before, now] = [before, now].map(grammar::parse);
    let telling = |parsed: &grammar::Parsed| -> Vec<Setting> {
        let telling = parsed.settings.iter().filter(|setting| !is_harmless_setting(setting));
        telling.cloned().collect()
    };
    now.bad_line.is_none() && telling(&before) == telling(&now)
}

fn is_plain_address(address: &str) -> bool {
    let odd = |c: char| !(c.is_ascii_alphanumeric() || "/:@._-+~%".contains(c));
    !address.starts_with('-') && !address.contains("::") && !address.contains(odd)
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
    let Some(text) = contents(file).ok().flatten() else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for setting in grammar::parse(&text).settings {
        let key = match setting.key.as_slice() {
            b"user.name" => "name",
            b"user.email" => "email",
            _ => continue,
        };
        // It is written down again, between quotes.
        let plain = |value: &String| !value.chars().any(|c| c.is_control() || "<>\"\\".contains(c));
        let value = setting.value.and_then(|value| String::from_utf8(value).ok());
        if let Some(value) = value.filter(plain) {
            found.retain(|(have, _)| *have != key);
            found.push((key, value));
        }
    }
    found
}

/// Whether nothing is in a directory.
pub fn is_empty(directory: &Path) -> bool {
    std::fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_none())
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

    #[cfg(unix)]
    #[test]
    fn settings_run_the_same_if_only_harmless_ones_differ() {
        let before = b"[core]\n\tbare = false\n[alias]\n\tst = status\n\tci = commit\n";
        let same = |now: &str| runs_the_same_text(before, now.as_bytes());
        assert!(same("[user]\nname = me\n[alias]\n st = status\n[ALIAS]\n\tCI = commit # x"));
        for other in [
            "[alias]\nst = status\nci = commit\n[core]\nfsmonitor = evil",
            "[alias]\nst = status\nci = !evil",
            "[alias]\nci = commit\nst = status",
            "[alias]\nst = status\nci = commit\n[include]\npath = x",
            "[alias]\nst = status\nci = commit\n[remote \"o\"]\nurl = ext::evil",
            "[alias]\nst = status\nci = commit\n[core",
            "[alias]\nst = status",
        ] {
            assert!(!same(other), "{other}");
        }
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
