//! Paths as the table writes them, on a system and for a user.

use std::path::{Path, PathBuf};

/// The system whose customs a path follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum System {
    /// Linux.
    Linux,
    /// macOS.
    Macos,
    /// Windows.
    Windows,
}

impl System {
    /// The system that this program was compiled for.
    #[must_use]
    pub fn of_this_program() -> System {
        match () {
            () if cfg!(windows) => System::Windows,
            () if cfg!(target_os = "macos") => System::Macos,
            () => System::Linux,
        }
    }
}

/// Where a user is at home.
pub struct Surroundings<'a> {
    /// The operating system.
    pub system: System,
    /// The user's home directory.
    pub home: PathBuf,
    /// The variables of the session.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
}

impl Surroundings<'_> {
    /// A template with its variables put in; `None` where one of them has no value.
    #[must_use]
    pub fn expand(&self, template: &str) -> Option<PathBuf> {
        let mut out = String::new();
        let mut rest = template;
        if let Some(tail) = rest.strip_prefix('~') {
            out.push_str(self.home.to_str()?);
            rest = tail;
        }
        while let Some(c) = rest.chars().next() {
            if let Some(tail) = rest.strip_prefix("${") {
                let (inner, tail) = tail.split_once('}')?;
                let (name, default) = inner.split_once(":-").unwrap_or((inner, ""));
                let value = self
                    .absolute(name)
                    .or_else(|| self.expand(default)?.to_str().map(str::to_owned));
                out.push_str(&value.filter(|value| !value.is_empty())?);
                rest = tail;
            } else if let Some((name, tail)) =
                rest.strip_prefix('%').and_then(|tail| tail.split_once('%'))
            {
                out.push_str(&self.of_windows(name)?);
                rest = tail;
            } else {
                out.push(c);
                rest = &rest[c.len_utf8()..];
            }
        }
        // A path of Windows can be looked at from Linux, where Windows is mounted.
        Some(PathBuf::from(if cfg!(windows) { out } else { out.replace('\\', "/") }))
    }

    /// Relative values are against the XDG rules.
    fn absolute(&self, name: &str) -> Option<String> {
        (self.variable)(name).filter(|value| Path::new(value).is_absolute())
    }

    fn of_windows(&self, name: &str) -> Option<String> {
        let below = |tail: &str| self.home.join(tail).to_str().map(str::to_owned);
        let known = (self.variable)(name).filter(|value| !value.is_empty());
        known.or_else(|| match name {
            "USERPROFILE" => self.home.to_str().map(str::to_owned),
            "APPDATA" => below("AppData/Roaming"),
            "LOCALAPPDATA" => below("AppData/Local"),
            _ => None,
        })
    }
}

/// Names looked at for one pattern: a home with more of them is not searched further.
const MOST_NAMES: usize = 20_000;
const MOST_DEPTH: usize = 8;

/// The files that a path with stars stands for; without stars, the path itself where it is there.
pub fn matching(pattern: &Path) -> Vec<PathBuf> {
    let Some(text) = pattern.to_str().filter(|text| text.contains('*')) else {
        return if pattern.is_file() { vec![pattern.to_owned()] } else { Vec::new() };
    };
    let mut base = PathBuf::new();
    let mut parts = Vec::new();
    for part in Path::new(text).components() {
        match part.as_os_str().to_str() {
            Some(part) if part.contains('*') || !parts.is_empty() => parts.push(part.to_owned()),
            _ => base.push(part),
        }
    }
    let (mut found, mut budget) = (Vec::new(), MOST_NAMES);
    search(&base, &parts, MOST_DEPTH, &mut budget, &mut found);
    found.sort();
    found
}

fn search(at: &Path, parts: &[String], depth: usize, budget: &mut usize, found: &mut Vec<PathBuf>) {
    let Some((part, rest)) = parts.split_first() else {
        if at.is_file() {
            found.push(at.to_owned());
        }
        return;
    };
    if !part.contains('*') {
        return search(&at.join(part), rest, depth, budget, found);
    }
    let deep = part == "**";
    if deep {
        search(at, rest, depth, budget, found);
    }
    for entry in std::fs::read_dir(at).into_iter().flatten().flatten() {
        if *budget == 0 {
            return;
        }
        *budget -= 1;
        let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        match entry.file_name().to_str() {
            // Links are not followed down: they may lead in a circle.
            Some(_) if deep && is_directory && !is_link && depth > 0 => {
                search(&entry.path(), parts, depth - 1, budget, found);
            }
            Some(name) if !deep && is_match(part, name) => {
                search(&entry.path(), rest, depth, budget, found);
            }
            _ => {}
        }
    }
}

/// One name against one pattern.
fn is_match(pattern: &str, name: &str) -> bool {
    mcp_policy::wildcard::matches(pattern.bytes(), name.bytes(), |c| *c == b'*', |a, b| a == b)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn templates() {
        let linux = |name: &str| match name {
            "XDG_CONFIG_HOME" => Some("/xdg".to_owned()),
            "RELATIVE" => Some("here".to_owned()),
            _ => None,
        };
        let here =
            Surroundings { system: System::Linux, home: "/home/me".into(), variable: &linux };
        for (template, expected) in [
            ("~/.cursor/mcp.json", Some("/home/me/.cursor/mcp.json")),
            ("${XDG_CONFIG_HOME:-~/.config}/zed/settings.json", Some("/xdg/zed/settings.json")),
            ("${RELATIVE:-~/.config}/x", Some("/home/me/.config/x")),
            ("${NOTHING}/x", None),
            ("/etc/codex/config.toml", Some("/etc/codex/config.toml")),
        ] {
            assert_eq!(here.expand(template), expected.map(PathBuf::from), "{template}");
        }
        let none = |_: &str| None;
        let there = Surroundings {
            system: System::Windows,
            home: "/mnt/c/Users/me".into(),
            variable: &none,
        };
        if cfg!(not(windows)) {
            assert_eq!(
                there.expand("%APPDATA%\\Claude\\claude_desktop_config.json").unwrap(),
                PathBuf::from("/mnt/c/Users/me/AppData/Roaming/Claude/claude_desktop_config.json")
            );
        }
        assert_eq!(there.expand("%ProgramData%\\x"), None);
    }

    #[test]
    fn stars() {
        for (pattern, name, expected) in [
            ("Claude_*", "Claude_pzs8sxrjxfjjc", true),
            ("Claude_*", "Claud", false),
            ("*.json", "a.json", true),
            ("*.json", ".json", true),
            ("*.json", "a.jsonc", false),
            ("a*b*c", "a1b2c", true),
            ("a*bc*c", "abc", false),
            ("*", "anything", true),
        ] {
            assert_eq!(is_match(pattern, name), expected, "{pattern} {name}");
        }
    }
}
