//! What stays as it is inside writable directories, because other programs act on it unasked: git runs
//! hooks at every commit, editors and agents start what a project's settings name, shells read their
//! rc files. One list, with the reason for each.
//!
//! Not on it: what somebody runs on purpose (a Makefile, the scripts of a package).

use serde::{Serialize, Serializer};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protect {
    /// What is on the list.
    Usual,
    Nothing,
}

impl Serialize for Protect {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bool(*self == Protect::Usual)
    }
}

/// Where a name is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spot {
    /// At the top of a writable directory, and of every repository in it.
    Top,
    /// In every git directory: `.git`, those of worktrees and submodules, bare repositories.
    GitDirectory,
}

/// Names in lower case: file systems that ignore it take `.VSCode` for `.vscode`.
pub const LIST: &[(Spot, &[&str], &str)] = &[
    (Spot::GitDirectory, &["hooks"], "git runs what is in it"),
    (Spot::GitDirectory, &["config", "config.worktree"], "git runs programs that it names"),
    (Spot::GitDirectory, &["commondir"], "git takes its settings from where it leads"),
    (Spot::Top, &[".gitmodules"], "git fetches from where it says"),
    (Spot::Top, &[".gitconfig"], "git runs programs that it names"),
    (
        Spot::Top,
        &[".vscode", ".idea", ".vs", ".zed", ".fleet", ".devcontainer", ".devcontainer.json"],
        "editors run what it names when the project is opened",
    ),
    (
        Spot::Top,
        &[".vimrc", ".exrc", ".nvimrc", ".nvim.lua", ".dir-locals.el", ".emacs", ".emacs.d"],
        "editors run it when a file is opened",
    ),
    (
        Spot::Top,
        &[
            ".mcp.json",
            ".claude",
            ".claude.json",
            ".cursor",
            ".codex",
            ".gemini",
            ".windsurf",
            ".continue",
            ".roo",
            ".kiro",
            ".amazonq",
            ".opencode",
            "opencode.json",
            ".aider.conf.yml",
        ],
        "agents start what it names, and take their permissions from it",
    ),
    (
        Spot::Top,
        &[
            ".bashrc",
            ".bash_profile",
            ".bash_login",
            ".bash_logout",
            ".bash_aliases",
            ".profile",
            ".zshrc",
            ".zshenv",
            ".zprofile",
            ".zlogin",
            ".zlogout",
            ".kshrc",
            ".cshrc",
            ".tcshrc",
            ".login",
            ".inputrc",
            ".xprofile",
            ".xinitrc",
            ".xsessionrc",
            ".pam_environment",
        ],
        "shells and sessions run it",
    ),
    (Spot::Top, &[".ssh", ".gnupg"], "it decides who may log in, and what is trusted"),
];

/// Why a name is protected in such a place; `None` where it is not.
pub fn reason(spot: Spot, name: &[u8]) -> Option<&'static str> {
    let is_listed =
        |names: &[&str]| names.iter().any(|own| name.eq_ignore_ascii_case(own.as_bytes()));
    LIST.iter().find(|(place, names, _)| *place == spot && is_listed(names)).map(|(.., why)| *why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_count_in_any_case_and_in_their_place_alone() {
        assert!(reason(Spot::Top, b".VSCode").is_some());
        assert!(reason(Spot::GitDirectory, b"Config").is_some());
        assert!(reason(Spot::Top, b"config").is_none());
        assert!(reason(Spot::GitDirectory, b".vscode").is_none());
        assert!(reason(Spot::Top, b".vscode2").is_none());
    }

    #[test]
    fn the_list_is_in_lower_case_and_has_each_name_once() {
        let mut all: Vec<(bool, &str)> = Vec::new();
        for (spot, names, why) in LIST {
            assert!(!why.is_empty() && !names.is_empty());
            all.extend(names.iter().map(|name| (*spot == Spot::Top, *name)));
        }
        assert!(
            all.iter().all(|(_, name)| name.to_ascii_lowercase() == *name && !name.contains('/'))
        );
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
