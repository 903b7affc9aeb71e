//! The links that the kernel follows when it resolves a path, and where the path ends.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// As many as the kernel follows.
const MOST_LINKS: usize = 40;

/// What changes where a path leads, if it is changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct LinkChain {
    /// Each without links above it, in the order in which they are met.
    pub links: Vec<PathBuf>,
    /// Without links. What is not there yet counts as a directory that is to be made.
    pub end: PathBuf,
}

/// `path` is absolute. One that goes round in circles ends at the last link.
pub fn link_chain(path: &Path) -> LinkChain {
    let mut chain = LinkChain::default();
    let mut rest: VecDeque<OsString> = VecDeque::new();
    push_front(path, &mut rest);
    while let Some(name) = rest.pop_front() {
        match Path::new(&name).components().next() {
            Some(Component::Prefix(_) | Component::RootDir) => chain.end = PathBuf::from(&name),
            Some(Component::ParentDir) => drop(chain.end.pop()),
            Some(Component::Normal(_)) => {
                let next = chain.end.join(&name);
                let Ok(to) = std::fs::read_link(&next) else {
                    chain.end = next;
                    continue;
                };
                chain.links.push(next.clone());
                if chain.links.len() >= MOST_LINKS {
                    chain.end = next;
                    return chain;
                }
                push_front(&to, &mut rest);
            }
            _ => {}
        }
    }
    chain
}

/// A prefix and the root behind it are one, or the root alone would take another prefix.
fn push_front(path: &Path, rest: &mut VecDeque<OsString>) {
    let mut start = PathBuf::new();
    let mut names: Vec<OsString> = Vec::new();
    for part in path.components() {
        match part {
            Component::Prefix(_) | Component::RootDir => start.push(part),
            Component::CurDir => {}
            part => names.push(part.as_os_str().to_owned()),
        }
    }
    names.into_iter().rev().for_each(|name| rest.push_front(name));
    if !start.as_os_str().is_empty() {
        rest.push_front(start.into_os_string());
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::unix::fixture::Fixture;

    #[test]
    fn every_link_of_a_chain_is_told() {
        let fixture = Fixture::new();
        fixture.directory("p/real/hooks");
        fixture.link("p/first", "second/./x/..");
        fixture.link("p/second", fixture.path("p/real"));
        fixture.directory("p/real/x");
        let found = link_chain(&fixture.path("p/first/hooks/../new"));
        assert_eq!(found.links, [fixture.path("p/first"), fixture.path("p/second")]);
        assert_eq!(found.end, fixture.path("p/real/new"));
        fixture.link("p/round", "round");
        assert_eq!(link_chain(&fixture.path("p/round/x")).end, fixture.path("p/round"));
    }
}
