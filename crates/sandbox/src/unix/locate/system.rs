//! Programs of the system. Most of what builds use lies in `/usr`, which every command sees, and needs nothing else.
//!
//! `mcp exec` looks for some forty names; what is true of a directory on PATH, or of a name on the way, is found out once for
//! all of them. What is not plain (a link out of the system, an interpreter elsewhere, a stand-in, a place that the
//! command may write) is left to [`locate`](super::locate), and what is plain is located as it would be there.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::{COMPILED, Located, MOST_INTERPRETERS, ProgramSearch, push_new};
use crate::host_files::walk::{Walked, walk, walk_by};
use crate::unix::peek;
use crate::unix::writable::Writable;

/// Where Debian's links between programs of one purpose are; shown to every command.
const ALTERNATIVES: &str = "/etc/alternatives";

/// What a directory with few names takes on most file systems, in bytes.
const SMALL: u64 = 4096;

/// The directories on PATH that have to be looked into.
pub struct SystemPath<'a> {
    directories: Vec<PathDirectory>,
    writable: &'a Writable,
    /// Where names lead that are links; `None` for others.
    links: RefCell<HashMap<PathBuf, Option<PathBuf>>>,
    /// Interpreters, which many programs share.
    interpreters: RefCell<HashMap<PathBuf, Option<Located>>>,
}

struct PathDirectory {
    at: PathBuf,
    kind: DirectoryKind,
    /// All names in it, where they are few: one look instead of one for each program.
    names: Option<Vec<OsString>>,
}

impl PathDirectory {
    fn new(at: PathBuf, kind: DirectoryKind) -> PathDirectory {
        let is_small = fs::metadata(&at).is_ok_and(|directory| directory.len() <= SMALL);
        let names = || -> io::Result<Vec<OsString>> {
            fs::read_dir(&at)?.map(|entry| Ok(entry?.file_name())).collect()
        };
        let names = if is_small { names().ok() } else { None };
        PathDirectory { at, kind, names }
    }

    /// Whether a program may be in it. Some file systems do not tell cases apart.
    fn may_have(&self, name: &OsStr) -> bool {
        let names = self.names.as_ref();
        names.is_none_or(|names| names.iter().any(|known| known.eq_ignore_ascii_case(name)))
    }
}

#[derive(Clone, Copy, PartialEq)]
enum DirectoryKind {
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
    pub fn new(search: &'a ProgramSearch<'_>) -> SystemPath<'a> {
        let mut directories = Vec::new();
        let mut seen: Vec<PathBuf> = Vec::new();
        for directory in &search.path {
            let at = search.cwd.join(directory);
            let real = match walk(&at) {
                Ok(walked) => Some(walked.real),
                // Nothing is in a directory that is not there, and one that may not be looked into is passed over.
                Err(error) if is_passed_over(&error) => continue,
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
            let kind = if is_system { DirectoryKind::System } else { DirectoryKind::Other };
            directories.push(PathDirectory::new(at, kind));
        }
        let (links, interpreters) = (RefCell::default(), RefCell::default());
        SystemPath { directories, writable: search.writable, links, interpreters }
    }

    pub fn look(&self, name: &OsStr) -> Looked {
        self.look_for(name, 0)
    }

    fn look_for(&self, name: &OsStr, depth: usize) -> Looked {
        if name.is_empty() || name.as_bytes().contains(&b'/') || depth >= MOST_INTERPRETERS {
            return Looked::Unclear;
        }
        for directory in self.directories.iter().filter(|directory| directory.may_have(name)) {
            let file = directory.at.join(name);
            match fs::metadata(&file) {
                Err(error) if is_passed_over(&error) => {}
                Ok(looked) if directory.kind == DirectoryKind::System => {
                    let runs = looked.is_file() && looked.permissions().mode() & 0o111 != 0;
                    let found = if runs { self.found(&file, depth) } else { None };
                    return found.map_or(Looked::Unclear, Looked::Found);
                }
                _ => return Looked::Unclear,
            }
        }
        Looked::Missing
    }

    fn found(&self, program: &Path, depth: usize) -> Option<Located> {
        if depth == 0 {
            return self.plain(program, depth);
        }
        if let Some(known) = self.interpreters.borrow().get(program) {
            return known.clone();
        }
        let found = self.plain(program, depth);
        self.interpreters.borrow_mut().insert(program.to_owned(), found.clone());
        found
    }

    /// A program whose way, and its interpreter's, lies in the system.
    fn plain(&self, program: &Path, depth: usize) -> Option<Located> {
        let Walked { real, links } = self.walk(program).ok()?;
        let is_shown =
            |at: &Path| at.starts_with("/usr") || at.parent() == Some(ALTERNATIVES.as_ref());
        let is_plain = |at: &Path| is_shown(at) && self.writable.root_of(at).is_none();
        let is_ours = links.iter().all(|link| is_plain(&link.at)) && is_plain(&real);
        if !is_ours || !real.starts_with("/usr") {
            return None;
        }
        let head = peek::head(&real, 256).unwrap_or_default();
        let is_program =
            head.starts_with(b"#!") || COMPILED.iter().any(|magic| head.starts_with(magic));
        if depth > 0 && !is_program {
            return None;
        }
        let directories = vec![program.parent()?.to_owned()];
        let mut found =
            Located { program: program.to_owned(), links, directories, ..Located::default() };
        if let Some(line) = head.strip_prefix(b"#!") {
            match self.interpreter(line, depth)? {
                Looked::Found(interpreter) => {
                    interpreter
                        .directories
                        .into_iter()
                        .for_each(|at| push_new(&mut found.directories, at));
                    found.links.extend(interpreter.links);
                }
                Looked::Missing => {}
                Looked::Unclear => return None,
            }
        }
        Some(found)
    }

    /// Of `#!/usr/bin/python3` and `#!/usr/bin/env node`; what has options is not plain.
    fn interpreter(&self, line: &[u8], depth: usize) -> Option<Looked> {
        let line = line.split(|byte| *byte == b'\n').next()?;
        let mut words =
            line.split(|byte| matches!(byte, b' ' | b'\t')).filter(|word| !word.is_empty());
        let program = Path::new(OsStr::from_bytes(words.next()?));
        let (directory, name) = (program.parent()?, program.file_name()?);
        let known = self.directories.iter().find(|known| known.at == directory);
        if !known.is_some_and(|known| known.kind == DirectoryKind::System) || !program.is_absolute()
        {
            return None;
        }
        if name != "env" {
            let runs = fs::metadata(program).is_ok_and(|looked| looked.is_file());
            let found = if runs { self.found(program, depth + 1) } else { None };
            return Some(found.map_or(Looked::Unclear, Looked::Found));
        }
        let command = words.next()?;
        let is_name = !command.starts_with(b"-") && !command.contains(&b'=');
        is_name.then(|| self.look_for(OsStr::from_bytes(command), depth + 1))
    }

    fn walk(&self, path: &Path) -> io::Result<Walked> {
        walk_by(path, |name| {
            if let Some(known) = self.links.borrow().get(name) {
                return Ok(known.clone());
            }
            let link = match fs::read_link(name) {
                Ok(to) => Some(to),
                // It is there, and no link.
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) => None,
                Err(error) => return Err(error),
            };
            self.links.borrow_mut().insert(name.to_owned(), link.clone());
            Ok(link)
        })
    }
}

/// As shells do: what is not there, or may not be looked at, is looked for elsewhere.
fn is_passed_over(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied)
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

    fn search<'a>(path: &[&str], f: &'a Path, writable: &'a Writable) -> ProgramSearch<'a> {
        let path = path.iter().map(|at| f.join(at)).collect();
        ProgramSearch { path, home: Some(f), cwd: f, variable: &|_| None, writable }
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
        let (mut found, mut linked, mut unclear) = (0, 0, 0);
        for name in names.take(1_500).chain(["no-such-program".into(), "sh".into()]) {
            match (system.look(&name), locate(&name, &search)) {
                (Looked::Found(quick), Ok(whole)) => {
                    assert_eq!(quick, whole);
                    linked += usize::from(!quick.links.is_empty());
                    found += 1;
                }
                (Looked::Missing, Err(Unlocated::Error(Error::NotFound { .. }))) => {}
                (Looked::Unclear, _) => unclear += 1,
                (looked, _) => panic!("{name:?}: {looked:?}, and the whole search another"),
            }
        }
        assert!(found > 50 && linked > 0, "{found} found, {linked} of them by a link");
        // Most of a system's programs are plain, or this would save nothing.
        assert!(found > unclear, "{found} found, {unclear} left to the whole search");
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

    /// A directory with few names is read once; what is in it is found all the same, and what is not is not.
    #[test]
    fn a_small_directory_is_read_once() {
        let f = Fixture::new();
        let home = f.path("");
        let writable = Writable::default();
        f.program("own/bin/tool", "\x7fELF");
        let search = search(&["own/bin"], &home, &writable);
        let system = SystemPath::new(&search);
        assert!(system.directories[0].names.is_some());
        assert_eq!(system.look(OsStr::new("tool")), Looked::Unclear);
        assert_eq!(system.look(OsStr::new("other")), Looked::Missing);
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
