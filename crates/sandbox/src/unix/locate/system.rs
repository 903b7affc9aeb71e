//! Programs of the system. Most of what builds use lies in `/usr`, which every command sees, and needs nothing else.
//!
//! `mcp exec` looks for some forty names; what is true of a directory on PATH is found out once for all of them. What
//! is not plain (a link to elsewhere, a script, a stand-in, a place that the command may write) is left to
//! [`locate`](super::locate), and what is plain is located as it would be there.

use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use super::{Located, Search};
use crate::core::request::Link;
use crate::host_files::walk::walk;
use crate::unix::peek;
use crate::unix::writable::Writable;

/// As many links as the longest chain of versions has (`python`, `python3`, `python3.12`) and some more.
const MOST_LINKS: usize = 8;

/// The directories on PATH that have to be looked into.
pub struct SystemPath<'a> {
    directories: Vec<(PathBuf, Kind)>,
    writable: &'a Writable,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    /// Below `/usr`, without links on the way to it, stand-ins in it or a virtual environment around it.
    System,
    Other,
}

/// What is known of a name without looking further.
#[derive(Debug, PartialEq, Eq)]
pub enum Looked {
    Found(Located),
    Missing,
    Unclear,
}

impl<'a> SystemPath<'a> {
    pub fn new(search: &'a Search<'_>) -> SystemPath<'a> {
        let mut directories = Vec::new();
        let mut seen: Vec<PathBuf> = Vec::new();
        for directory in &search.path {
            let at = search.cwd.join(directory);
            let real = match walk(&at) {
                Ok(walked) => Some(walked.real),
                // Nothing is in a directory that is not there.
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(_) => None,
            };
            let is_system = real.as_ref() == Some(&at) && is_system(&at);
            if let Some(real) = real {
                // `/bin` is `/usr/bin`: what was not in the first is not in the second.
                if seen.contains(&real) {
                    continue;
                }
                seen.push(real);
            }
            directories.push((at, if is_system { Kind::System } else { Kind::Other }));
        }
        SystemPath { directories, writable: search.writable }
    }

    pub fn look(&self, name: &OsStr) -> Looked {
        if name.is_empty() || name.as_bytes().contains(&b'/') {
            return Looked::Unclear;
        }
        for (directory, kind) in &self.directories {
            let file = directory.join(name);
            match fs::symlink_metadata(&file) {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Ok(looked) if *kind == Kind::System => {
                    let found = self.plain(directory, file, looked).ok().flatten();
                    return found.map_or(Looked::Unclear, Looked::Found);
                }
                _ => return Looked::Unclear,
            }
        }
        Looked::Missing
    }

    /// A compiled program, or links to one in the same directory.
    fn plain(
        &self,
        directory: &Path,
        program: PathBuf,
        mut looked: Metadata,
    ) -> io::Result<Option<Located>> {
        let mut links = Vec::new();
        let mut real = program.clone();
        while looked.is_symlink() {
            let to = fs::read_link(&real)?;
            let mut parts = to.components();
            let is_beside = matches!(parts.next(), Some(Component::Normal(_)));
            if !is_beside || parts.next().is_some() || links.len() >= MOST_LINKS {
                return Ok(None);
            }
            let next = directory.join(&to);
            links.push(Link { at: std::mem::replace(&mut real, next), to });
            looked = fs::symlink_metadata(&real)?;
        }
        let hops = links.iter().map(|link| &link.at).chain([&real]);
        let is_written = hops.into_iter().any(|hop| self.writable.root_of(hop).is_some());
        let runs = looked.is_file() && looked.permissions().mode() & 0o111 != 0;
        let is_script = || peek::head(&real, 2).is_some_and(|head| head == b"#!");
        if is_written || !runs || is_script() {
            return Ok(None);
        }
        let directories = vec![directory.to_owned()];
        Ok(Some(Located { program, links, directories, ..Located::default() }))
    }
}

/// Of a directory without links on the way to it.
fn is_system(directory: &Path) -> bool {
    let Some(root) = directory.parent() else { return false };
    let is_missing = |path: PathBuf| {
        fs::symlink_metadata(path).is_err_and(|error| error.kind() == ErrorKind::NotFound)
    };
    directory.starts_with("/usr")
        && !directory.ends_with("shims")
        && is_missing(directory.join("rustup"))
        && is_missing(root.join("tools"))
        && is_missing(root.join("pyvenv.cfg"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::error::Error;
    use crate::unix::fixture::Fixture;
    use crate::unix::locate::{Unlocated, locate};

    fn search<'a>(path: &[&str], f: &'a Path, writable: &'a Writable) -> Search<'a> {
        let path = path.iter().map(|at| f.join(at)).collect();
        Search { path, home: Some(f), cwd: f, variable: &|_| None, writable }
    }

    /// Every program of this machine is located as it would be without the short cut.
    #[test]
    fn what_is_plain_is_located_as_by_the_whole_search() {
        let f = Fixture::new();
        let (home, writable) = (f.path(""), Writable::default());
        let search = search(
            &["/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/nowhere"],
            &home,
            &writable,
        );
        let system = SystemPath::new(&search);
        let names = fs::read_dir("/usr/bin").unwrap().map(|entry| entry.unwrap().file_name());
        let (mut found, mut linked) = (0, 0);
        for name in names.take(1_500).chain(["no-such-program".into(), "sh".into()]) {
            match (system.look(&name), locate(&name, &search)) {
                (Looked::Found(quick), Ok(whole)) => {
                    assert_eq!(quick, whole);
                    linked += usize::from(!quick.links.is_empty());
                    found += 1;
                }
                (Looked::Missing, Err(Unlocated::Error(Error::NotFound { .. }))) => {}
                (Looked::Unclear, _) => {}
                (looked, _) => panic!("{name:?}: {looked:?}, and the whole search another"),
            }
        }
        assert!(found > 50 && linked > 0, "{found} found, {linked} of them by a link");
        assert_eq!(system.look(OsStr::new("no-such-program")), Looked::Missing);
    }

    /// A program outside of the system is left to the whole search, and so is one that it hides.
    #[test]
    fn what_comes_first_on_path_is_not_passed_over() {
        let f = Fixture::new();
        let home = f.path("");
        let writable = Writable::default();
        f.program("own/bin/env", "\x7fELF");
        let before = search(&["own/bin", "/usr/bin"], &home, &writable);
        assert_eq!(SystemPath::new(&before).look(OsStr::new("env")), Looked::Unclear);
        let after = search(&["/usr/bin", "own/bin"], &home, &writable);
        assert!(matches!(SystemPath::new(&after).look(OsStr::new("env")), Looked::Found(_)));
        assert_eq!(SystemPath::new(&after).look(OsStr::new("./env")), Looked::Unclear);
    }

    /// What the command may write is judged by the whole search.
    #[test]
    fn what_may_be_written_is_left_to_the_whole_search() {
        use crate::core::request::{Place, PlaceKind};
        let f = Fixture::new();
        let home = f.path("");
        let place = Place { path: "/usr/bin".into(), kind: PlaceKind::Directory };
        let writable = Writable::new(&[], &[place], None);
        let search = search(&["/usr/bin"], &home, &writable);
        assert_eq!(SystemPath::new(&search).look(OsStr::new("env")), Looked::Unclear);
    }
}
