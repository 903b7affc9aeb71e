//! `~` and `$HOME` at the beginning of an argument. A shell expands them; a client that starts a server from its
//! configuration has no shell, and hands them on as they are.
//!
//! Only what a shell would have done, and only where it leads to something: `~`, `~/…`, `$HOME`, `${HOME}` and what is
//! below them at the beginning of a word, `$HOME` also behind `--name=`. No other variable, no pattern, no text of
//! an interpreter, and nothing that is a file here by that very name.

use std::ffi::OsString;
use std::path::Path;

use crate::paths;

/// Expands in place. `has_package`: the first word is an argument, too. What was expanded is told.
pub fn home(words: &mut [OsString], has_package: bool) -> Vec<String> {
    let Some(home) = paths::home() else {
        return Vec::new();
    };
    let mut notes = Vec::new();
    let first = usize::from(!has_package);
    for at in first..words.len() {
        let is_text = at.checked_sub(1).is_some_and(|before| {
            ["-c", "-e", "--eval"].iter().any(|option| words[before].as_os_str() == *option)
        });
        let Some(word) = words[at].to_str().filter(|_| !is_text).map(str::to_owned) else {
            continue;
        };
        let is_there = |path: &Path| path.exists() || path.parent().is_some_and(Path::is_dir);
        if let Some(expanded) = expanded(&word, &home)
            && !Path::new(&word).exists()
            && is_there(Path::new(
                expanded.rsplit_once('=').map_or(expanded.as_str(), |(_, path)| path),
            ))
        {
            notes.push(format!("{word} is taken as {expanded}, as a shell would have written it"));
            words[at] = expanded.into();
        }
    }
    notes
}

/// What a shell would have made of a word; none where it would have left it.
fn expanded(word: &str, home: &Path) -> Option<String> {
    let home = home.to_str()?;
    let below =
        |rest: &str| (rest.is_empty() || rest.starts_with('/')).then(|| format!("{home}{rest}"));
    if let Some(rest) = word.strip_prefix('~') {
        return below(rest);
    }
    let (before, value) = match word.split_once('=') {
        Some((name, value)) if name.starts_with('-') => (format!("{name}="), value),
        _ => (String::new(), word),
    };
    let rest = value.strip_prefix("$HOME").or_else(|| value.strip_prefix("${HOME}"))?;
    below(rest).map(|path| before + &path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_a_shell_would_have() {
        for (word, told) in [
            ("~", Some("/home/me")),
            ("~/notes", Some("/home/me/notes")),
            ("$HOME/notes", Some("/home/me/notes")),
            ("${HOME}/notes", Some("/home/me/notes")),
            ("--root=$HOME/notes", Some("--root=/home/me/notes")),
            // A shell leaves these, or does something else with them.
            ("--root=~/notes", None),
            ("~other/notes", None),
            ("$HOMEX/notes", None),
            ("a~/notes", None),
            ("echo $HOME", None),
            ("$USER", None),
        ] {
            assert_eq!(expanded(word, Path::new("/home/me")).as_deref(), told, "{word}");
        }
    }
}
