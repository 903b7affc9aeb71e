//! Which places of the host a line speaks of.

use std::path::{Component, Path, PathBuf};

use super::{Access, Grant, Target, Wanted};
use crate::entry::Stdio;

/// Programs whose first file is code.
const INTERPRETERS: [&str; 12] = [
    "node", "python", "python3", "bun", "deno", "ruby", "tsx", "ts-node", "bash", "sh", "php",
    "perl",
];

/// What marks the top of a project.
const TOPS: [&str; 7] = [
    "package.json",
    "pyproject.toml",
    "setup.py",
    "requirements.txt",
    "deno.json",
    "Gemfile",
    "composer.json",
];

pub fn grants(
    stdio: &Stdio,
    given: &[String],
    is_package: bool,
    wanted: &Wanted,
    target: &Target<'_>,
    notes: &mut Vec<String>,
) -> Vec<Grant> {
    let mut list = List { target, notes, found: Vec::new() };
    let access = if wanted.writes { Access::Write } else { Access::Read };
    let mut words = given.iter().peekable();
    if !is_package {
        let program = words.next().map(String::as_str).unwrap_or_default();
        let script = words.clone().position(|word| !word.starts_with('-'));
        if is_interpreter(program)
            && let Some(at) = script
        {
            for (n, word) in words.by_ref().enumerate() {
                if n == at {
                    list.code(word);
                    break;
                }
            }
        }
    }
    for word in words {
        let value = match word.split_once('=') {
            Some((name, value)) if name.starts_with('-') => value,
            _ => word,
        };
        list.place(value, access, word == value && !word.starts_with('-'));
    }
    for (_, value) in &stdio.env {
        for part in parts(value.as_deref().unwrap_or_default()) {
            list.place(part, access, false);
        }
    }
    if let Some(cwd) = &stdio.cwd {
        list.place(cwd, access, false);
    }
    list.into_grants()
}

fn is_interpreter(program: &str) -> bool {
    let name = program.rsplit(['/', '\\']).next().unwrap_or_default();
    let name = name.strip_suffix(".exe").unwrap_or(name);
    let base = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    INTERPRETERS.contains(&name) || INTERPRETERS.contains(&base)
}

/// A variable may hold a list of paths.
fn parts(value: &str) -> Vec<&str> {
    let many: Vec<&str> = value.split([',', ';']).map(str::trim).collect();
    let is_list =
        |parts: &[&str]| parts.len() > 1 && parts.iter().all(|part| part.starts_with('/'));
    let colons: Vec<&str> = value.split(':').collect();
    match () {
        () if many.len() > 1 => many,
        () if is_list(&colons) => colons,
        () => vec![value],
    }
}

struct List<'a, 'b> {
    target: &'a Target<'b>,
    notes: &'a mut Vec<String>,
    /// Where each is, and what is written.
    found: Vec<(PathBuf, Grant)>,
}

impl List<'_, '_> {
    /// A word that may name a place.
    fn place(&mut self, word: &str, access: Access, is_argument: bool) {
        // The client knows which one it is, and it is a directory in any case.
        if matches!(word, "${workspaceFolder}" | "${workspaceRoot}" | "$PWD" | "${PWD}") {
            self.add(PathBuf::from(word), word, access, true);
            return;
        }
        let Some(path) = self.expanded(word) else {
            return;
        };
        if word.starts_with('~') && is_argument {
            self.notes.push(format!(
                "{word}: the server has a home of its own, and would look for it there; write the path out"
            ));
        }
        match path.metadata() {
            Ok(found) if (found.is_dir() || found.is_file()) && self.holds_home(&path) => {
                self.notes.push(format!(
                    "{word} is or holds your whole home: not granted; name a directory in it, or add --read {word} yourself"
                ));
            }
            Ok(found) if found.is_dir() || found.is_file() => {
                let text = if word.starts_with('~') {
                    path.to_string_lossy().into_owned()
                } else {
                    word.to_owned()
                };
                self.add(path, &text, access, true);
            }
            Ok(_) => self.notes.push(format!("{word} is no file and no directory: not granted")),
            Err(_) if path.parent().is_some_and(|up| up.is_dir() && !self.holds_home(up)) => {
                self.notes.push(format!(
                    "{word} is not there yet; where the server makes it, grant its directory with --write"
                ));
            }
            Err(_) => {}
        }
    }

    /// A script is code: what is around it is read as well, and none of it written.
    fn code(&mut self, word: &str) {
        let Some(path) = self.expanded(word).filter(|path| path.is_file()) else {
            return;
        };
        let parent = path.parent().unwrap_or(&path);
        let is_top = |up: &&Path| TOPS.iter().any(|name| up.join(name).is_file());
        let top = parent.ancestors().take_while(|up| !self.holds_home(up)).find(is_top);
        match top.or_else(|| Some(parent).filter(|up| !self.holds_home(up))) {
            Some(top) => {
                let text = match path.strip_prefix(self.target.base.unwrap_or(Path::new(""))) {
                    Ok(_)
                        if !Path::new(word).is_absolute() && !word.starts_with(['~', '$', '%']) =>
                    {
                        relative(top, self.target.base)
                    }
                    _ => top.to_string_lossy().into_owned(),
                };
                self.add(top.to_owned(), &text, Access::Read, false);
            }
            None => self.add(path.clone(), word, Access::Read, false),
        }
    }

    fn add(&mut self, path: PathBuf, text: &str, access: Access, is_open: bool) {
        let is_known = |(other, grant): &(PathBuf, Grant)| {
            path.starts_with(other) && (grant.access == access || grant.access == Access::Write)
        };
        if !self.found.iter().any(is_known) {
            self.found.push((path, Grant { text: text.to_owned(), access, is_open }));
        }
    }

    /// What lies below another place that can be had in the same way needs no word of its own.
    fn into_grants(self) -> Vec<Grant> {
        let found = self.found;
        let is_below = |at: usize| {
            let (path, grant) = &found[at];
            found.iter().enumerate().any(|(other, (above, one))| {
                other != at
                    && path != above
                    && path.starts_with(above)
                    && one.access == grant.access
                    && one.is_open == grant.is_open
            })
        };
        let keep: Vec<bool> = (0..found.len()).map(|at| !is_below(at)).collect();
        found
            .iter()
            .zip(keep)
            .filter(|(_, keep)| *keep)
            .map(|((_, grant), _)| grant.clone())
            .collect()
    }

    fn holds_home(&self, path: &Path) -> bool {
        path.parent().is_none() || self.target.home.starts_with(path)
    }

    /// An absolute path, where the word is or becomes one.
    fn expanded(&self, word: &str) -> Option<PathBuf> {
        if word.is_empty() || word.contains('\0') || word.contains("://") {
            return None;
        }
        let text = self.variables(word)?;
        let path = match text.strip_prefix("~/") {
            Some(rest) => self.target.home.join(rest),
            None if text == "~" => self.target.home.to_owned(),
            None => PathBuf::from(&text),
        };
        let path = match path.is_absolute() {
            true => path,
            // A word is a path relative to the project only where it looks like one.
            false if text == "." || text.contains(['/', '\\']) => self.target.base?.join(path),
            false => return None,
        };
        Some(plain(&path))
    }

    /// `${env:NAME}`, `${userHome}`, `${NAME}`, `$NAME`, `%NAME%`; `None` for what only the client knows.
    fn variables(&self, word: &str) -> Option<String> {
        let mut out = String::new();
        let mut rest = word;
        let home = || self.target.home.to_str().map(str::to_owned);
        let value = |name: &str| match name {
            "HOME" | "USERPROFILE" | "userHome" => home(),
            name => (self.target.variable)(name.strip_prefix("env:").unwrap_or(name)),
        };
        while let Some(c) = rest.chars().next() {
            if let Some(tail) = rest.strip_prefix("${") {
                let (name, tail) = tail.split_once('}')?;
                out.push_str(&value(name)?);
                rest = tail;
            } else if let Some(tail) = rest.strip_prefix('$') {
                let length = tail
                    .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
                    .unwrap_or(tail.len());
                out.push_str(&value(&tail[..length])?);
                rest = &tail[length..];
            } else if let Some((name, tail)) =
                rest.strip_prefix('%').and_then(|tail| tail.split_once('%'))
            {
                out.push_str(&value(name)?);
                rest = tail;
            } else {
                out.push(c);
                rest = &rest[c.len_utf8()..];
            }
        }
        Some(out)
    }
}

/// Without `.` and `..`, so that what is above can be told.
fn plain(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            part => out.push(part),
        }
    }
    out
}

fn relative(path: &Path, base: Option<&Path>) -> String {
    let below = base.and_then(|base| path.strip_prefix(base).ok());
    match below {
        Some(below) if below.as_os_str().is_empty() => ".".to_owned(),
        Some(below) => format!("./{}", below.display()),
        None => path.display().to_string(),
    }
}
