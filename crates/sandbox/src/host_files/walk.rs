//! Follows a path component by component and keeps every symlink met, so that the same path
//! can be made to work inside, where only the places it leads to are shown.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::core::request::Link;

/// As many as the kernel follows.
const MOST_LINKS: usize = 40;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Walked {
    /// The same file without any symlink in its path.
    pub real: PathBuf,
    pub links: Vec<Link>,
}

/// `path` must be absolute.
pub fn walk(path: &Path) -> io::Result<Walked> {
    walk_by(path, |name| {
        let is_link = fs::symlink_metadata(name)?.file_type().is_symlink();
        is_link.then(|| fs::read_link(name)).transpose()
    })
}

/// As [`walk`], by a function that tells where a name leads that is a symlink.
pub fn walk_by(
    path: &Path,
    mut link: impl FnMut(&Path) -> io::Result<Option<PathBuf>>,
) -> io::Result<Walked> {
    let mut real = PathBuf::from("/");
    let mut links = Vec::new();
    let mut rest: VecDeque<OsString> = names(path).collect();
    while let Some(name) = rest.pop_front() {
        if name == ".." {
            if !fs::symlink_metadata(&real)?.is_dir() {
                return Err(io::Error::from_raw_os_error(libc::ENOTDIR));
            }
            real.pop();
            continue;
        }
        let next = real.join(&name);
        let Some(to) = link(&next)? else {
            real = next;
            continue;
        };
        if links.len() >= MOST_LINKS {
            return Err(io::Error::from_raw_os_error(libc::ELOOP));
        }
        for name in names(&to).collect::<Vec<_>>().into_iter().rev() {
            rest.push_front(name);
        }
        if to.is_absolute() {
            real = PathBuf::from("/");
        }
        links.push(Link { at: next, to });
    }
    Ok(Walked { real, links })
}

fn names(path: &Path) -> impl Iterator<Item = OsString> {
    path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    })
}

#[cfg(test)]
mod tests;
