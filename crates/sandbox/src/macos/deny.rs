//! Deny rules as rules of a profile. Pure.
//!
//! Stops: reading, writing, mapping and executing what a rule matches, whenever it comes to match:
//! the kernel compares the path at every use. So that nothing is moved out from under a rule, what
//! a match's path is made of cannot be renamed or removed: of `**/a/b` the directories named `a`,
//! and none above them, since `**` finds those wherever they are.
//!
//! Leaves open: the same file under another name (a hard link that exists already).

use std::path::{Component, Path, PathBuf};

use mcp_policy::glob::{self, Glob, Part};

use crate::core::lexical_path::lexical;
use crate::core::plan::Intent;
use crate::core::request::{Link, Place, PlaceKind, Request};
use crate::macos::pattern;

/// What the rules close, as a profile can say it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProfileDenials {
    /// ProfileDenials with everything in them.
    pub places: Vec<PathBuf>,
    /// ProfileDenials below a directory: an expression without anchors.
    pub shapes: Vec<(PathBuf, String)>,
    /// Must stay where they are.
    pub held: Vec<PathBuf>,
    /// Must stay where they are, below a directory.
    pub held_shapes: Vec<(PathBuf, String)>,
}

/// Every Mac has these; what is written through them is meant behind them.
pub const SYSTEM_LINKS: [(&str, &str); 3] =
    [("/tmp", "/private/tmp"), ("/var", "/private/var"), ("/etc", "/private/etc")];

pub fn intent(request: &Request) -> Intent {
    if request.policy.filesystem.deny.is_empty() {
        return Intent::NotRequested;
    }
    let mut by = "Seatbelt rules behind the grants, for all that matches now or later".to_owned();
    if !request.withdrawn.is_empty() {
        let paths: Vec<_> = request.withdrawn.iter().map(|p| p.display().to_string()).collect();
        by += &format!("; grants withdrawn: {}", paths.join(", "));
    }
    by += "; not covered: other names (hard links) of the same file";
    Intent::enforce(by)
}

/// `home` is a directory of the command's own that is kept between runs.
pub fn closed(request: &Request, home: Option<&Path>) -> ProfileDenials {
    let mut closed = ProfileDenials::default();
    let writable: Vec<&Path> = directories(&request.write).chain(home).collect();
    let readable = directories(&request.read).chain(directories(&request.shown));
    let roots: Vec<&Path> = writable.iter().copied().chain(readable).collect();
    for rule in &request.policy.filesystem.deny {
        if rule.value.is_absolute() || rule.value.has_root() {
            push_new(&mut closed.places, resolved(&rule.value, &request.links));
        }
        // What is no glob was refused when the request was made.
        for glob in glob::parse(&rule.value).unwrap_or_default() {
            closed.add(&glob, &roots, &request.links);
        }
    }
    for denied in &request.denied {
        push_new(&mut closed.places, denied.path.clone());
        // Found behind a link, or in a directory that cannot be listed: by its path alone.
        if !closed.reaches(&denied.path, request) {
            for root in writable.iter().filter(|root| denied.path.starts_with(root)) {
                let above = denied.path.ancestors().skip(1);
                let between = above.take_while(|above| above != root);
                between.for_each(|above| push_new(&mut closed.held, above.to_owned()));
            }
        }
    }
    closed
}

fn directories(places: &[Place]) -> impl Iterator<Item = &Path> {
    let is_directory = |place: &&Place| place.kind == PlaceKind::Directory;
    places.iter().filter(is_directory).map(|place| place.path.as_path())
}

impl ProfileDenials {
    fn add(&mut self, glob: &Glob, roots: &[&Path], links: &[Link]) {
        let head = resolved(&glob.head, links);
        if glob.floating {
            for root in roots {
                self.shape(root, &glob.tail);
            }
            return;
        }
        if glob.tail.is_empty() {
            push_new(&mut self.places, head.clone());
        } else {
            self.shape(&head, &glob.tail);
        }
        for root in roots {
            match (below(&head, root), below(root, &head)) {
                // From the root on, so that its directories are held and the case of its
                // names does not matter.
                (Some(between), _) if !between.is_empty() => {
                    let names = between.into_iter().map(Part::Name);
                    self.shape(root, &names.chain(glob.tail.iter().cloned()).collect::<Vec<_>>());
                }
                (_, Some(between)) => {
                    for tail in remaining(&glob.tail, &between) {
                        self.shape(root, tail);
                    }
                }
                _ => {}
            }
        }
    }

    fn shape(&mut self, root: &Path, tail: &[Part]) {
        if tail.is_empty() {
            return;
        }
        push_new(&mut self.shapes, (root.to_owned(), pattern::below(tail)));
        for length in 1..tail.len() {
            let held = &tail[..length];
            if held.iter().any(|part| *part != Part::AnyDepth) {
                push_new(&mut self.held_shapes, (root.to_owned(), pattern::below(held)));
            }
        }
    }

    /// Whether a shape closes this path, so that it may be moved.
    fn reaches(&self, path: &Path, request: &Request) -> bool {
        request.policy.filesystem.deny.iter().any(|rule| {
            glob::parse(&rule.value).unwrap_or_default().iter().any(|glob| {
                let head = resolved(&glob.head, &request.links);
                let below = below(path, if glob.floating { Path::new("/") } else { &head });
                let whole = |names: Vec<Vec<u8>>| {
                    (1..=names.len()).any(|end| is_whole(&glob.tail, &names[..end]))
                };
                !glob.tail.is_empty() && below.is_some_and(whole)
            })
        })
    }
}

/// The names of `path` below `above`; case is ignored, as the file system does.
fn below(path: &Path, above: &Path) -> Option<Vec<Vec<u8>>> {
    let (names, above) = (names(path), names(above));
    let starts = names.len() >= above.len()
        && names.iter().zip(&above).all(|(name, above)| name.eq_ignore_ascii_case(above));
    starts.then(|| names[above.len()..].to_vec())
}

fn names(path: &Path) -> Vec<Vec<u8>> {
    let normal = path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.as_encoded_bytes().to_vec()),
        _ => None,
    });
    normal.collect()
}

/// What is left of `tail` for what lies below these names.
fn remaining<'a>(tail: &'a [Part], names: &[Vec<u8>]) -> Vec<&'a [Part]> {
    let places = advance(tail, names);
    let is_implied =
        |at: usize| at > 0 && tail[at - 1] == Part::AnyDepth && places.contains(&(at - 1));
    places
        .iter()
        .filter(|at| **at < tail.len() && !is_implied(**at))
        .map(|at| &tail[*at..])
        .collect()
}

fn is_whole(tail: &[Part], names: &[Vec<u8>]) -> bool {
    advance(tail, names).contains(&tail.len())
}

/// Where in `tail` one can be after these names.
fn advance(tail: &[Part], names: &[Vec<u8>]) -> Vec<usize> {
    let mut places = Vec::new();
    reach(tail, 0, &mut places);
    for name in names {
        let before = std::mem::take(&mut places);
        for at in before {
            match tail.get(at) {
                Some(Part::AnyDepth) => reach(tail, at, &mut places),
                Some(part) if part.matches(name) => reach(tail, at + 1, &mut places),
                _ => {}
            }
        }
    }
    places
}

/// Any depth may be none at all.
fn reach(tail: &[Part], at: usize, places: &mut Vec<usize>) {
    push_new(places, at);
    if tail.get(at) == Some(&Part::AnyDepth) {
        reach(tail, at + 1, places);
    }
}

/// Where a path leads through the links that are known: those met on the way to grants, and the
/// system's own.
pub fn resolved(path: &Path, links: &[Link]) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..=links.len() + SYSTEM_LINKS.len() {
        let own = links.iter().map(|link| {
            let to = link.at.parent().unwrap_or(&link.at).join(&link.to);
            (link.at.clone(), to)
        });
        let system = SYSTEM_LINKS.map(|(at, to)| (PathBuf::from(at), PathBuf::from(to)));
        let step = own.chain(system).find_map(|(at, to)| {
            let rest = path.strip_prefix(&at).ok()?;
            Some(if rest.as_os_str().is_empty() { to } else { to.join(rest) })
        });
        match step {
            Some(next) => path = lexical(&next),
            None => break,
        }
    }
    path
}

fn push_new<T: PartialEq>(list: &mut Vec<T>, item: T) {
    if !list.contains(&item) {
        list.push(item);
    }
}

#[cfg(test)]
mod tests;
