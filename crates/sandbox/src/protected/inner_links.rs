//! The links in a directory that is protected with all that is in it. Shared by all systems.

use std::fs;
use std::path::{Path, PathBuf};

/// How far is looked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchDepth {
    /// Everywhere in it.
    All,
    /// Outside of what may be written, where a setting can name any directory: not below the places that git has for
    /// hooks and templates.
    Near,
}

const NEAR: usize = 3;
/// No longer path can be looked up.
const LONGEST: usize = 3000;

/// None is followed. What cannot be listed is closed to its owner as well.
pub fn of(directory: &Path, reach: SearchDepth) -> Vec<PathBuf> {
    let mut links = Vec::new();
    let mut pending = vec![(directory.to_owned(), 1)];
    while let Some((directory, depth)) = pending.pop() {
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_symlink() => links.push(entry.path()),
                Ok(kind) if kind.is_dir() && (reach == SearchDepth::All || depth < NEAR) => {
                    let path = entry.path();
                    if path.as_os_str().len() <= LONGEST {
                        pending.push((path, depth + 1));
                    }
                }
                _ => {}
            }
        }
    }
    links
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use crate::unix::fixture::Fixture;

    #[test]
    fn links_are_found_and_not_followed() {
        let fixture = Fixture::new();
        fixture.directory("d/1/2/3/4");
        fixture.directory("elsewhere");
        fixture.link("elsewhere/unseen", "x");
        fixture.link("d/dangling", "nowhere");
        fixture.link("d/away", fixture.path("elsewhere"));
        fixture.link("d/1/2/3/4/deep", "x");
        let found = |reach| {
            let mut found = of(&fixture.path("d"), reach);
            found.sort();
            found
        };
        let near = [fixture.path("d/away"), fixture.path("d/dangling")];
        assert_eq!(found(SearchDepth::Near), near);
        assert_eq!(found(SearchDepth::All)[0], fixture.path("d/1/2/3/4/deep"));
        assert_eq!(found(SearchDepth::All)[1..], near);
    }
}
