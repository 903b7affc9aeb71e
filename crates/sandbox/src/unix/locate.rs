//! Finds the program a command means, and what must be shown for it to run: through PATH,
//! symlinks, version managers' stand-ins, `#!` lines and virtual environments.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use crate::core::error::Error;
use crate::core::request::{Link, Unshown};
use crate::host_files::walk::{Walked, walk};
use crate::unix::shim::{Behind, Variable, behind};
use crate::unix::writable::Writable;
use crate::unix::{layout, peek};

mod needed_by;
mod system;

use needed_by::NeededBy;
pub use system::{Looked, SystemPath};

/// A script of a script of a script … ends here, as in the kernel.
pub const MOST_INTERPRETERS: usize = 5;

/// Where to look.
pub struct ProgramSearch<'a> {
    pub path: Vec<PathBuf>,
    pub home: Option<&'a Path>,
    pub cwd: &'a Path,
    pub variable: Variable<'a>,
    pub writable: &'a Writable,
}

impl ProgramSearch<'_> {
    /// The same without the directories in which the command may put programs of its own.
    pub fn untouched(&self) -> ProgramSearch<'_> {
        let path = self.path.iter().filter(|at| self.writable.is_untouched(&self.cwd.join(at)));
        ProgramSearch { path: path.cloned().collect(), ..*self }
    }

    /// In full, and without `..` but where it leads out of a writable place: the way there is still to be judged.
    pub fn absolute(&self, path: &Path) -> PathBuf {
        let path = self.cwd.join(path);
        let is_plain = !path.components().any(|part| part == Component::ParentDir);
        match is_plain || walk(&path).is_ok_and(|way| self.writable.left_by(&way).is_some()) {
            true => path,
            false => without_parents(path),
        }
    }

    /// What stands behind a stand-in. One that the command may have written is a program like any other: what it
    /// looks up would be what the command wants to be shown.
    fn behind(&self, file: &Path) -> Option<Behind> {
        behind(file, self.cwd, self.variable).filter(|_| self.writable.is_untouched(file))
    }

    fn surroundings(&self, file: &Path) -> Vec<PathBuf> {
        layout::surroundings(file, self.real_home().as_deref(), self.writable)
    }

    /// What is found is compared with it, and that has no symlinks in its path.
    fn real_home(&self) -> Option<PathBuf> {
        let home = self.home?;
        Some(walk(home).map_or_else(|_| home.to_owned(), |walked| walked.real))
    }
}

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Located {
    /// What to execute.
    pub program: PathBuf,
    /// Canonical paths that must be visible.
    pub shown: Vec<PathBuf>,
    pub links: Vec<Link>,
    /// Directories that belong on PATH inside, in order.
    pub directories: Vec<PathBuf>,
    /// What would have been shown, had not something writable led to it.
    pub unshown: Vec<Unshown>,
}

/// Why a program was not located.
pub enum Unlocated {
    Error(Error),
    /// It is there, but not the command's to choose.
    Unshown(Unshown),
}

impl From<Error> for Unlocated {
    fn from(error: Error) -> Unlocated {
        Unlocated::Error(error)
    }
}

impl From<Unlocated> for Error {
    fn from(unlocated: Unlocated) -> Error {
        match unlocated {
            Unlocated::Error(error) => error,
            Unlocated::Unshown(unshown) => Error::NotExecutable {
                why: format!("{} (add --read {})", unshown.why(), unshown.read.display()),
                path: unshown.at,
            },
        }
    }
}

pub fn locate(command: &OsStr, search: &ProgramSearch<'_>) -> Result<Located, Unlocated> {
    let program = find(command, search)?;
    let mut found = Located { program: program.clone(), ..Located::default() };
    // What the user named is shown. What a file says belongs to it may be a trap: a package can
    // write what it likes into its own files.
    let way = way_to(&program)?;
    let needed_by = NeededBy::Elsewhere.on(&program, &way, search);
    if let Some(unshown) = needed_by.unshown(&program, &way, search) {
        return Err(Unlocated::Unshown(unshown));
    }
    let real = match asked_for(command, &program, search) {
        true => Some(found.add(&program, way, &needed_by, search, 0)),
        false => found.add_found(&program, needed_by, search, 0)?,
    };
    let mut real = real.ok_or_else(|| Error::NotExecutable {
        path: program,
        why: "is not part of an installation (run it by its own path, or add --read)".to_owned(),
    })?;
    for depth in 1..MOST_INTERPRETERS {
        let Some(next) = interpreter(&real, search) else { break };
        let needed_by = NeededBy::by(&real, search);
        match found.add_found(&next, needed_by, search, depth)? {
            Some(next) => real = next,
            None => break,
        }
    }
    Ok(found)
}

fn way_to(file: &Path) -> Result<Walked, Error> {
    walk(file).map_err(|e| Error::NotExecutable { path: file.to_owned(), why: e.to_string() })
}

/// Whether the program is what was named, and not what a stand-in leads to.
fn asked_for(command: &OsStr, program: &Path, search: &ProgramSearch<'_>) -> bool {
    match command.as_bytes().contains(&b'/') {
        true => program == search.absolute(Path::new(command)),
        false => {
            search.path.iter().any(|directory| program == search.absolute(&directory.join(command)))
        }
    }
}

const COMPILED: [&[u8]; 4] =
    [b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"\xfe\xed\xfa\xcf"];

fn is_compiled(file: &Path) -> bool {
    peek::head(file, 4).is_some_and(|head| COMPILED.iter().any(|magic| head.starts_with(magic)))
}

/// Whether the kernel could execute it; a key or a note is no program.
fn is_program(file: &Path) -> bool {
    is_compiled(file) || peek::head(file, 2).is_some_and(|head| head == b"#!")
}

impl Located {
    /// Adds what another program needs.
    pub fn also(&mut self, more: Located) {
        more.shown.into_iter().for_each(|path| push_new(&mut self.shown, path));
        more.directories.into_iter().for_each(|path| push_new(&mut self.directories, path));
        more.links.into_iter().for_each(|link| push_new(&mut self.links, link));
        more.unshown.into_iter().for_each(|unshown| push_new(&mut self.unshown, unshown));
    }

    /// Adds a program that something in a file led to, if it is one that may be shown: of the
    /// system, on the user's PATH, beside what is shown already, or part of an installation. Then
    /// the file it is in the end.
    fn add_found(
        &mut self,
        file: &Path,
        needed_by: NeededBy,
        search: &ProgramSearch<'_>,
        depth: usize,
    ) -> Result<Option<PathBuf>, Error> {
        let walked = way_to(file)?;
        let real = &walked.real;
        let on_path = |place: &Path| {
            search.path.iter().any(|directory| place.parent() == Some(directory.as_path()))
        };
        let fits = real.starts_with("/usr")
            || self.shown.iter().any(|shown| real.starts_with(shown))
            || on_path(file)
            || on_path(real)
            || search.surroundings(real) != [real.as_path()];
        if !fits || !is_program(real) || depth >= MOST_INTERPRETERS {
            return Ok(None);
        }
        let needed_by = needed_by.on(file, &walked, search);
        if let Some(unshown) = needed_by.unshown(file, &walked, search) {
            push_new(&mut self.unshown, unshown);
            return Ok(None);
        }
        Ok(Some(self.add(file, walked, &needed_by, search, depth)))
    }

    /// Adds a program, every symlink on the way to it, and what is around each. The file it is in the end.
    fn add(
        &mut self,
        file: &Path,
        walked: Walked,
        needed_by: &NeededBy,
        search: &ProgramSearch<'_>,
        depth: usize,
    ) -> PathBuf {
        if let Some(directory) = file.parent() {
            push_new(&mut self.directories, directory.to_owned());
        }
        for hop in walked.links.iter().map(|link| &link.at).chain([&walked.real]) {
            // What is part of the system is shown anyway; a link in the middle of the path is a
            // directory, and needs nothing around it.
            if hop.starts_with("/usr") || hop.is_dir() {
                continue;
            }
            // Another environment of the user's is not the command's to choose, even where it leads to the system.
            if !matches!(needed_by, NeededBy::Elsewhere)
                && !needed_by::may_be_chosen(search, None, hop)
            {
                continue;
            }
            let is_writable = search.writable.root_of(hop).is_some();
            for place in search.surroundings(hop) {
                let is_own = !is_writable || search.writable.is_given(&place);
                // A link itself cannot be mounted; it is made again from `links`.
                if is_own && fs::symlink_metadata(&place).is_ok_and(|m| !m.is_symlink()) {
                    push_new(&mut self.shown, place);
                }
            }
        }
        if let Some((base, config)) = virtual_environment_base(&walked.real, file) {
            // A base that is not there is the environment's own problem.
            let needed_by = match needed_by {
                NeededBy::Elsewhere => NeededBy::by(&config, search),
                chosen => chosen.clone(),
            };
            let _ = self.add_found(&base, needed_by, search, depth + 1);
        }
        self.links.extend(walked.links);
        walked.real
    }
}

fn push_new<T: PartialEq>(list: &mut Vec<T>, item: T) {
    if !list.contains(&item) {
        list.push(item);
    }
}

pub fn find(command: &OsStr, search: &ProgramSearch<'_>) -> Result<PathBuf, Error> {
    let name = command.to_string_lossy().into_owned();
    if command.is_empty() {
        return Err(Error::NotFound { command: "\"\"".to_owned() });
    }
    if command.as_bytes().contains(&b'/') {
        let path = search.absolute(Path::new(command));
        return match executable(&path) {
            Ok(()) => Ok(real_program(path, search)),
            Err(Why::Missing) => Err(Error::NotFound { command: name }),
            Err(Why::Not(why)) => Err(Error::NotExecutable { path, why: why.to_owned() }),
        };
    }
    let mut refused = None;
    let mut last_resort = None;
    for directory in &search.path {
        let path = search.absolute(&directory.join(command));
        match executable(&path) {
            Ok(()) => match search.behind(&path) {
                Some(Behind::Program(program)) => return Ok(program),
                Some(Behind::Elsewhere(program)) => _ = last_resort.get_or_insert(program),
                None => return Ok(path),
            },
            // A directory that may not be looked into is passed over, as shells do.
            Err(Why::Missing | Why::Not(UNREACHABLE)) => {}
            Err(Why::Not(why)) => {
                refused.get_or_insert(Error::NotExecutable { path, why: why.to_owned() });
            }
        }
    }
    last_resort.ok_or_else(|| refused.unwrap_or(Error::NotFound { command: name }))
}

/// What a `..` stands on may not be visible inside.
pub fn without_parents(path: PathBuf) -> PathBuf {
    if !path.components().any(|part| part == Component::ParentDir) {
        return path;
    }
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return walk(&path).map_or(path, |walked| walked.real);
    };
    walk(parent).map_or_else(|_| path.clone(), |walked| walked.real.join(name))
}

pub fn real_program(path: PathBuf, search: &ProgramSearch<'_>) -> PathBuf {
    match search.behind(&path) {
        Some(Behind::Program(program) | Behind::Elsewhere(program)) => program,
        None => path,
    }
}

const UNREACHABLE: &str = "permission denied";

enum Why {
    Missing,
    Not(&'static str),
}

fn executable(path: &Path) -> Result<(), Why> {
    match fs::metadata(path) {
        Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => Err(Why::Not(UNREACHABLE)),
        Err(_) => Err(Why::Missing),
        Ok(meta) if meta.is_dir() => Err(Why::Not("is a directory")),
        Ok(meta) if !meta.is_file() => Err(Why::Not("is not a regular file")),
        Ok(meta) if meta.permissions().mode() & 0o111 == 0 => {
            Err(Why::Not("is not executable (chmod +x would make it so)"))
        }
        Ok(_) => Ok(()),
    }
}

/// What follows `#!` on the first line, as far as the kernel reads it.
pub fn shebang(script: &Path) -> Option<Vec<u8>> {
    let head = peek::head(script, 256)?;
    let line = head.strip_prefix(b"#!")?;
    line.split(|byte| *byte == b'\n').next().map(<[u8]>::to_vec)
}

/// The program of a `#!` line; for `env`, the program that env would start.
fn interpreter(script: &Path, search: &ProgramSearch<'_>) -> Option<PathBuf> {
    let line = shebang(script)?;
    let mut words = line
        .split(|byte| *byte == b' ' || *byte == b'\t')
        .filter(|word| !word.is_empty())
        .map(|word| OsString::from_vec(word.to_vec()));
    let program = search.absolute(Path::new(&words.next()?));
    if program.file_name() != Some(OsStr::new("env")) {
        return Some(real_program(program, search));
    }
    // Only what env does with it for certain: another option may take the next word for itself.
    let command = words.find(|word| word != "-S" && !word.as_bytes().contains(&b'='))?;
    if command.as_bytes().starts_with(b"-") {
        return None;
    }
    find(&command, search).ok()
}

/// The interpreter behind a Python virtual environment, which its links may not lead to, and the file that says so.
fn virtual_environment_base(real: &Path, file: &Path) -> Option<(PathBuf, PathBuf)> {
    let config = file.parent()?.parent()?.join("pyvenv.cfg");
    let home = peek::text(&config)?.lines().find_map(|line| {
        let (key, value) = line.split_once('=')?;
        (key.trim() == "home").then(|| PathBuf::from(value.trim()))
    })?;
    let base = home.join("python3");
    // When the links already lead there, there is nothing to add.
    (base.is_file() && walk(&base).is_ok_and(|walked| walked.real != real))
        .then_some((base, config))
}

#[cfg(test)]
mod tests;
