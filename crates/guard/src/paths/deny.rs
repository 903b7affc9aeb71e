//! Deny rules over the names of a path. Case is ignored on every system: on one that tells `.ENV`
//! from `.env` a file too many stays closed, on one that does not none too few.

use std::path::Path;

use mcp_policy::glob::{self, Glob, Part};

#[derive(Debug, Clone)]
pub struct Deny {
    rules: Vec<(String, Vec<Glob>)>,
}

impl Deny {
    pub fn new(patterns: &[String]) -> Result<Deny, String> {
        let mut rules = Vec::new();
        for pattern in patterns {
            let globs = glob::parse(Path::new(&folded(pattern)))
                .map_err(|why| format!("deny rule {pattern}: {why}"))?;
            rules.push((pattern.clone(), globs));
        }
        Ok(Deny { rules })
    }

    /// The rule that closes the last of these names; `root` is where they begin.
    pub fn rule(&self, root: &Path, names: &[String]) -> Option<&str> {
        let names: Vec<String> = names.iter().map(|name| folded(name)).collect();
        let head: Vec<String> = root
            .components()
            .filter_map(|component| match component {
                std::path::Component::Normal(name) => Some(folded(&name.to_string_lossy())),
                _ => None,
            })
            .collect();
        let closes = |glob: &Glob| match glob.floating {
            true => {
                // A rule without a directory means every place below the root.
                (0..names.len()).any(|from| matches(&glob.tail, &names[from..]))
            }
            false => {
                let own: Vec<String> = head.iter().chain(&names).cloned().collect();
                let wanted: Vec<String> = glob
                    .head
                    .iter()
                    .skip(1)
                    .map(|name| name.to_string_lossy().into_owned())
                    .collect();
                own.strip_prefix(&wanted[..]).is_some_and(|rest| matches(&glob.tail, rest))
            }
        };
        let rule = self.rules.iter().find(|(_, globs)| globs.iter().any(closes));
        rule.map(|(pattern, _)| pattern.as_str())
    }
}

/// As file systems that ignore case compare: `ſ` is `s`, `K` is `k`.
fn folded(text: &str) -> String {
    text.to_uppercase().to_lowercase()
}

/// Follows all readings of `**` at once.
fn matches(tail: &[Part], names: &[String]) -> bool {
    let mut states = vec![false; tail.len() + 1];
    states[0] = true;
    skip_any_depth(tail, &mut states);
    for name in names {
        let mut next = vec![false; tail.len() + 1];
        for (at, part) in tail.iter().enumerate().filter(|(at, _)| states[*at]) {
            match part {
                Part::AnyDepth => next[at] = true,
                part if part.matches(name.as_bytes()) => next[at + 1] = true,
                _ => {}
            }
        }
        skip_any_depth(tail, &mut next);
        states = next;
    }
    states[tail.len()]
}

/// Any number of names may be none.
fn skip_any_depth(tail: &[Part], states: &mut [bool]) {
    for (at, part) in tail.iter().enumerate() {
        if states[at] && *part == Part::AnyDepth {
            states[at + 1] = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn closed(pattern: &str, path: &str) -> bool {
        let names: Vec<String> = path.split('/').map(str::to_owned).collect();
        Deny::new(&[pattern.to_owned()]).unwrap().rule(Path::new("/srv/app"), &names).is_some()
    }

    #[test]
    fn what_is_closed() {
        for (pattern, path) in [
            ("**/.env", ".env"),
            ("**/.env", "a/b/.env"),
            (".env", "a/.env"),
            ("**/.env", "a/.ENV"),
            ("*.pem", "keys/x.PEM"),
            ("**/.git/hooks", "a/.git/hooks"),
            ("**/.git/**", ".git/x/y"),
            ("/srv/app/secret", "secret"),
            ("/srv/*/secret", "secret"),
            ("/SRV/app/x", "x"),
            ("secrets/*.txt", "a/secrets/b.txt"),
            ("**/.ENV", ".env"),
            ("K", "\u{212a}"),
        ] {
            assert!(closed(pattern, path), "{pattern} {path}");
        }
        for (pattern, path) in
            [("**/.env", ".envrc"), ("/srv/other/x", "x"), ("**/.git/**", ".git"), ("*.pem", "pem")]
        {
            assert!(!closed(pattern, path), "{pattern} {path}");
        }
    }
}
