//! Which tests a switch may name, by the word in front of them: `lib:request::tests::…`.
//!
//! Without a word it is an escape test.

use std::collections::BTreeMap;

use crate::Result;

/// Tests of mcp-cli that are driven from outside: they run against the programs of an edited tree.
pub const STAGED: [&str; 3] = ["escape", "exec", "packages"];

/// Tests that have the edit in them, and are built with it.
const BUILT: [(&str, Built); 8] = [
    ("lib", Built { package: "mcp-sandbox", part: "--lib" }),
    ("net", Built { package: "mcp-net", part: "--lib" }),
    ("seccomp", Built { package: "mcp-seccomp", part: "--lib" }),
    ("policy", Built { package: "mcp-policy", part: "--lib" }),
    ("guard", Built { package: "mcp-guard", part: "--tests" }),
    ("package", Built { package: "mcp-package", part: "--lib" }),
    ("files", Built { package: "mcp-files", part: "--lib" }),
    ("cli", Built { package: "mcp-cli", part: "--bin=mcp" }),
];

/// What part of which package is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Built {
    pub package: &'static str,
    pub part: &'static str,
}

/// Where named tests are run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// On this machine, as root and as an ordinary user.
    Staged(&'static str),
    Built(Built),
    /// Escape tests in a virtual machine, which has cgroups of version 2.
    Guest(GuestUser),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum GuestUser {
    Ordinary,
    Root,
}

impl Place {
    /// From the word in front of a test's name.
    fn of(word: &str) -> Option<Place> {
        let guest = match word {
            "guest" => Some(Place::Guest(GuestUser::Ordinary)),
            "guest-root" => Some(Place::Guest(GuestUser::Root)),
            _ => None,
        };
        let staged = || STAGED.into_iter().find(|name| *name == word).map(Place::Staged);
        let built = || BUILT.iter().find(|(name, _)| *name == word);
        guest.or_else(staged).or_else(|| built().map(|(_, built)| Place::Built(*built)))
    }

    /// Where the sources of its tests are.
    #[cfg(test)]
    pub fn sources(self) -> String {
        match self {
            Place::Staged(name) => format!("crates/cli/tests/{name}"),
            Place::Guest(_) => "crates/cli/tests/escape".to_owned(),
            Place::Built(built) => {
                let crate_name = built.package.trim_start_matches("mcp-");
                let below = if built.part == "--tests" { "" } else { "/src" };
                format!("crates/{crate_name}{below}")
            }
        }
    }

    /// The word in front of the names of its tests.
    pub fn prefix(self) -> String {
        match self {
            Place::Staged("escape") => String::new(),
            Place::Staged(name) => format!("{name}:"),
            Place::Guest(GuestUser::Ordinary) => "guest:".to_owned(),
            Place::Guest(GuestUser::Root) => "guest-root:".to_owned(),
            Place::Built(built) => {
                let name = BUILT.iter().find(|(_, of)| *of == built).map_or("", |(name, _)| name);
                format!("{name}:")
            }
        }
    }
}

/// Names of tests by where they are run.
pub fn by_place<'a>(names: &[&'a str]) -> Result<BTreeMap<Place, Vec<&'a str>>> {
    let mut places: BTreeMap<Place, Vec<&str>> = BTreeMap::new();
    for name in names {
        // The names of tests have colons too, but in pairs.
        let (place, test) = match name.split_once(':') {
            Some((word, rest)) if !rest.starts_with(':') => (
                Place::of(word).ok_or_else(|| format!("{name}: no tests are called {word}"))?,
                rest,
            ),
            _ => (Place::Staged("escape"), *name),
        };
        places.entry(place).or_default().push(test);
    }
    Ok(places)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_in_front_says_where() {
        let names = ["deny::globs", "lib:report::tests::a", "guest:cgroup::b", "exec:tools::c"];
        let places = by_place(&names).unwrap();
        assert_eq!(places[&Place::Staged("escape")], ["deny::globs"]);
        assert_eq!(places[&Place::Guest(GuestUser::Ordinary)], ["cgroup::b"]);
        for (place, tests) in places {
            assert!(names.contains(&format!("{}{}", place.prefix(), tests[0]).as_str()));
        }
        assert!(by_place(&["nowhere:a::b"]).is_err());
    }
}
