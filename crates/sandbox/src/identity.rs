//! In whose name a command commits: name and address of the user's own git settings, and nothing else of them, in a
//! file of the sandbox's own. Settings of a repository come before it, as they do outside.
//!
//! Where the sandbox has a root of its own, it is the settings of the system. Elsewhere those are the machine's and
//! have things in them that git needs (Git for Windows), so it is the settings in HOME, where that is the run's own: one that
//! is kept is the command's, and nothing is written there.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::core::request::{HOME, Home, Request};
use crate::core::run_spec::Identity;
use crate::protected::git;

const SETTINGS: &str = ".gitconfig";

/// Which of the settings that git looks for inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfigScope {
    #[cfg_attr(
        windows,
        allow(dead_code, reason = "git for Windows has settings of the system that it needs")
    )]
    System,
    Home,
}

/// The file, as a path inside. `home`: where the user's own settings are; `is_own`: whether a file is the user's.
pub fn texts(
    identity: Identity,
    home: Option<&Path>,
    level: ConfigScope,
    is_own: &dyn Fn(&Path) -> bool,
) -> Vec<(PathBuf, String)> {
    let (Identity::User, Some(home)) = (identity, home) else {
        return Vec::new();
    };
    let own = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from);
    let own = own.unwrap_or_else(|| home.join(".config")).join("git").join("config");
    let at = match level {
        ConfigScope::System => PathBuf::from("/etc/gitconfig"),
        ConfigScope::Home => Path::new(HOME).join(SETTINGS),
    };
    let files = [own, home.join(SETTINGS)].into_iter().filter(|file| is_own(file));
    settings(&files.collect::<Vec<_>>()).map(|text| (at, text)).into_iter().collect()
}

/// What the later files say comes first.
fn settings(files: &[PathBuf]) -> Option<String> {
    let mut known: BTreeMap<&str, String> = BTreeMap::new();
    files.iter().for_each(|file| known.extend(git::identity(file)));
    let lines: String =
        known.iter().map(|(key, value)| format!("\t{key} = \"{value}\"\n")).collect();
    (!known.is_empty()).then(|| format!("[user]\n{lines}"))
}

/// Files for a HOME that the run has for itself, with their paths in it.
pub fn home_texts(request: &Request) -> Vec<(&Path, &str)> {
    let below = |(at, text)| Some((Path::strip_prefix(at, HOME).ok()?, text));
    match request.home {
        Home::Kept(_) => Vec::new(),
        Home::Ephemeral => {
            let texts = request.texts.iter().map(|(at, text)| (at.as_path(), text.as_str()));
            texts.filter_map(below).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_and_address_and_nothing_else() {
        let scratch = std::env::temp_dir().join(format!("mcp-identity-{}", std::process::id()));
        std::fs::create_dir_all(&scratch).unwrap();
        let (early, late) = (scratch.join("early"), scratch.join("late"));
        std::fs::write(&early, "[user]\nname = Old\nemail = old@example.org\n").unwrap();
        let text = "[user]\n\tname = \"Ada Example\"\n\tsigningkey = AB\n[alias]\n\tx = !id\n\
                    [user]\n\temail = a<b\n";
        std::fs::write(&late, text).unwrap();
        let told = settings(&[early, late, scratch.join("none")]);
        let expected = "[user]\n\temail = \"old@example.org\"\n\tname = \"Ada Example\"\n";
        assert_eq!(told.as_deref(), Some(expected));
        assert_eq!(settings(&[scratch.join("none")]), None);
        std::fs::remove_dir_all(scratch).unwrap();
    }
}
