//! What stays as it is inside writable directories, because other programs act on it unasked: git runs
//! hooks at every commit, editors and agents start what a project's settings name, shells read their
//! rc files, build tools take programs from their settings. One list, with the reason for each.
//!
//! Not on it:
//! - files that a person runs on purpose (a Makefile, the scripts of a package);
//! - what is only read, as every other file of a project is: AGENTS.md, CLAUDE.md, GEMINI.md. Agents are asked to keep them
//!   up to date, and an agent that obeys them would obey a comment in the code as well;
//! - names of versions (`.nvmrc`, `.ruby-version`) and `.gitattributes`, which choose among programs that the user
//!   set up (a `.python-version` can name one by its path: to uv, which runs the project's own code anyway);
//! - the project's own programs, which an editor may run as well: `eslint.config.js`, `conftest.py`, `build.rs`, `.venv/bin`.

use std::cmp::Ordering;
use std::sync::OnceLock;

use serde::{Serialize, Serializer};

mod list;

pub use list::LIST;

/// Whether settings that other programs act on stay as they are inside what may be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protect {
    /// What is on the list.
    Usual,
    /// They may be written.
    Nothing,
}

impl Serialize for Protect {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bool(*self == Protect::Usual)
    }
}

/// The flag that makes an exception.
pub const EXCEPTION: &str = "--unprotect";

/// Where a name is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Spot {
    /// At the top of a writable directory, and of every repository in it.
    Top,
    /// There, and in every other directory but those of [`is_of_others`]: editors, agents and build tools are started in
    /// subdirectories too.
    Anywhere,
    /// In every git directory: `.git`, those of worktrees and submodules, bare repositories.
    GitDirectory,
}

/// Directories that hold the work of others and are not opened as projects of their own. Packages bring settings of
/// editors and services along by the thousand, and some are checked against a digest.
const OF_OTHERS: &[&str] = &[
    "__pypackages__",
    ".nox",
    ".pnpm-store",
    ".tox",
    ".venv",
    "bower_components",
    "dist-packages",
    "node_modules",
    "site-packages",
    "target",
    "vendor",
    "venv",
];

/// Whether names that count anywhere do not count in a directory of this name, and below.
pub fn is_of_others(directory: &[u8]) -> bool {
    OF_OTHERS.iter().any(|own| directory.eq_ignore_ascii_case(own.as_bytes()))
}

/// Why a name is protected in such a place; `None` where it is not.
pub fn reason(spot: Spot, name: &[u8]) -> Option<&'static str> {
    reason_in(spot, b"", name)
}

/// As [`reason`], in a directory whose path ends like this, with `/` between its names.
pub fn reason_in(spot: Spot, directory: &[u8], name: &[u8]) -> Option<&'static str> {
    let names = names();
    let [near, far] = ways(directory, name);
    let listed = [Some(name), near.as_deref(), far.as_deref()].into_iter().flatten();
    let listed = listed.into_iter().find_map(|name| {
        let compare = |own: &&Name| compare(own.text.as_bytes(), name);
        let from = names.partition_point(|own| compare(&own).is_lt());
        let same = names.iter().skip(from).take_while(|own| compare(own).is_eq());
        same.filter(|own| own.spot == spot).map(|own| own.why).next()
    });
    listed.or_else(|| of_suffix(spot, name))
}

/// The name with that of its directory, and with those of two, where the list has names in such directories.
fn ways(directory: &[u8], name: &[u8]) -> [Option<Vec<u8>>; 2] {
    let mut above = directory.rsplit(|byte| *byte == b'/');
    let (parent, next) = (above.next().unwrap_or_default(), above.next().unwrap_or_default());
    let near = is_above(parent).then(|| [parent, name].join(&b'/'));
    let far = is_above(next).then(|| [next, parent, name].join(&b'/'));
    [near, far]
}

/// What the list has below a directory of this name: a link of that name leads there. What is left of each path, and the reason.
pub fn beyond(directory: &[u8], name: &[u8]) -> Vec<(&'static str, &'static str)> {
    let [near, _] = ways(directory, name);
    let is_name = is_above(name).then_some(name);
    let mut found = Vec::new();
    for way in [is_name, near.as_deref()].into_iter().flatten() {
        for own in names() {
            if let Some((start, rest)) = own.text.split_at_checked(way.len())
                && start.as_bytes().eq_ignore_ascii_case(way)
                && let Some(rest) = rest.strip_prefix('/')
            {
                found.push((rest, own.why));
            }
        }
    }
    found
}

/// Whether the list has names in a directory of this name.
fn is_above(directory: &[u8]) -> bool {
    static ABOVE: OnceLock<Vec<&'static str>> = OnceLock::new();
    let above = ABOVE.get_or_init(|| {
        let all = names().iter().filter_map(|name| name.text.split_once('/'));
        let mut above: Vec<&str> = all.map(|(above, _)| above).collect();
        above.dedup();
        above
    });
    above.iter().any(|own| directory.eq_ignore_ascii_case(own.as_bytes()))
}

fn of_suffix(spot: Spot, name: &[u8]) -> Option<&'static str> {
    let ends = |own: &str| {
        own.strip_prefix('*').is_some_and(|suffix| {
            let start = name.len().saturating_sub(suffix.len());
            name.get(start..).is_some_and(|end| end.eq_ignore_ascii_case(suffix.as_bytes()))
        })
    };
    let suffixes = names().iter().take_while(|name| name.text.starts_with('*'));
    suffixes.filter(|own| own.spot == spot).find(|own| ends(own.text)).map(|own| own.why)
}

struct Name {
    text: &'static str,
    spot: Spot,
    why: &'static str,
}

/// In order: every name in a project is looked for.
fn names() -> &'static [Name] {
    static NAMES: OnceLock<Vec<Name>> = OnceLock::new();
    NAMES.get_or_init(|| {
        let of = |(spot, names, why): &(Spot, &'static [&'static str], &'static str)| {
            let (spot, why) = (*spot, *why);
            names.iter().map(move |text| Name { text, spot, why }).collect::<Vec<_>>()
        };
        let mut all: Vec<Name> = LIST.iter().flat_map(of).collect();
        all.sort_by(|a, b| a.text.cmp(b.text));
        all
    })
}

/// A name of the list, in lower case, with one in any case.
fn compare(own: &[u8], name: &[u8]) -> Ordering {
    own.iter().copied().cmp(name.iter().map(u8::to_ascii_lowercase))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_count_in_any_case_and_in_their_place_alone() {
        assert!(reason(Spot::Anywhere, b".VSCode").is_some());
        assert!(reason(Spot::GitDirectory, b"Config").is_some());
        assert!(reason(Spot::Top, b"config").is_none());
        assert!(reason(Spot::GitDirectory, b".vscode").is_none());
        assert!(reason(Spot::Anywhere, b".vscode2").is_none());
        assert!(reason(Spot::Anywhere, b"app.Code-Workspace").is_some());
        assert!(reason(Spot::Anywhere, b"code-workspace").is_none());
        assert!(reason_in(Spot::Anywhere, b"/x/.Cargo", b"config.toml").is_some());
        assert!(reason_in(Spot::Anywhere, b".github", b"CODEOWNERS").is_none());
        for plain in [&b"config.toml"[..], b"workflows", b".cargo", b".github", b"", b"*"] {
            assert!(reason(Spot::Anywhere, plain).is_none(), "{plain:?}");
        }
        assert!(reason_in(Spot::Anywhere, b"/x/.jj/repo", b"config.toml").is_some());
        assert!(reason_in(Spot::Anywhere, b"/x/repo", b"config.toml").is_none());
        assert!(reason_in(Spot::Anywhere, b"/.jj/x/repo", b"config.toml").is_none());
        let rests = |directory: &[u8], name: &[u8]| -> Vec<&str> {
            beyond(directory, name).into_iter().map(|(rest, _)| rest).collect()
        };
        assert_eq!(rests(b"", b".Cargo"), ["config", "config.toml"]);
        assert_eq!(rests(b"/x/.jj", b"repo"), ["config-id", "config.toml"]);
        assert!(rests(b"", b".jj").contains(&"repo/config.toml"));
        assert!(rests(b"/x", b"repo").is_empty() && rests(b"", b".vscode").is_empty());
        assert!(is_of_others(b"Node_Modules") && !is_of_others(b"src"));
    }

    #[test]
    fn every_name_of_the_list_is_found() {
        for (spot, names, why) in LIST {
            for name in *names {
                let name = name.replace('*', "x");
                let (directory, last) = name.rsplit_once('/').unwrap_or(("", &name));
                let upper = last.to_ascii_uppercase();
                assert_eq!(
                    reason_in(*spot, directory.as_bytes(), upper.as_bytes()),
                    Some(*why),
                    "{name}"
                );
            }
        }
    }

    #[test]
    fn the_list_is_in_lower_case_and_has_each_name_once() {
        let mut all: Vec<(Spot, &str)> = Vec::new();
        for (spot, names, why) in LIST {
            assert!(!why.is_empty() && !names.is_empty());
            all.extend(names.iter().map(|name| (*spot, *name)));
        }
        for (spot, name) in &all {
            let (slashes, stars) = (name.matches('/').count(), name.matches('*').count());
            assert_eq!(name.to_ascii_lowercase(), **name);
            assert!(
                slashes <= 2 && slashes * stars == 0 && (stars == 0 || name.starts_with('*')),
                "{name}"
            );
            assert!(slashes == 0 || *spot == Spot::Anywhere, "{name}");
        }
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
        assert!(OF_OTHERS.iter().all(|name| name.to_ascii_lowercase() == **name));
    }
}
