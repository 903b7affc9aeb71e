//! Configuration files with all that they include, in the order in which git reads them. Every `includeIf` counts as
//! true.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::grammar::{self, Setting};
use super::pathname::{Homes, Pathname, interpolate};

/// Larger than any that people have.
pub const LARGEST: u64 = 16 * 1024 * 1024;
/// As deep as git goes.
const DEEPEST: usize = 10;
/// No user has as many, and files that include each other grow without end.
const MOST_FILES: usize = 512;

/// What files hold.
#[derive(Debug, Default)]
pub struct Settings {
    /// With the file that each is in.
    pub settings: Vec<(PathBuf, Setting)>,
    /// Every file that git reads or would read if it were there.
    pub files: Vec<PathBuf>,
    /// Files that it reads and that are below a directory that is not known.
    pub elsewhere: Vec<Pathname>,
    /// Files that the caller may not read.
    pub closed: Vec<PathBuf>,
    /// Where git gives up, and so must we.
    pub unreadable: Vec<(PathBuf, String)>,
}

impl Settings {
    /// Adds what a file holds. `may_read` says which of them are read at all.
    pub fn read(&mut self, file: &Path, homes: &Homes, may_read: &dyn Fn(&Path) -> bool) {
        self.read_at(file, homes, may_read, 0);
    }

    fn read_at(
        &mut self,
        file: &Path,
        homes: &Homes,
        may_read: &dyn Fn(&Path) -> bool,
        depth: usize,
    ) {
        self.files.push(file.to_owned());
        let mut refuse = |why: String| self.unreadable.push((file.to_owned(), why));
        if !may_read(file) {
            return;
        }
        let text = match contents(file) {
            Ok(Some(text)) => text,
            Ok(None) => return,
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return self.closed.push(file.to_owned());
            }
            Err(error) => return refuse(error.to_string()),
        };
        if depth > DEEPEST || self.files.len() > MOST_FILES {
            return refuse("it is one of too many that include each other".to_owned());
        }
        let parsed = grammar::parse(&text);
        for setting in parsed.settings {
            let path = is_include(&setting.key).then(|| setting.value.clone());
            self.settings.push((file.to_owned(), setting));
            match path {
                Some(Some(path)) => self.include(file, &path, homes, may_read, depth),
                Some(None) => {
                    self.unreadable.push((file.to_owned(), "an include has no path".to_owned()));
                }
                None => {}
            }
        }
        if let Some(line) = parsed.bad_line {
            self.unreadable
                .push((file.to_owned(), format!("git does not understand line {line} of it")));
        }
    }

    fn include(
        &mut self,
        file: &Path,
        path: &[u8],
        homes: &Homes,
        may_read: &dyn Fn(&Path) -> bool,
        depth: usize,
    ) {
        for name in interpolate(path, homes) {
            match name {
                Pathname::At(path) => {
                    let beside = file.parent().unwrap_or(Path::new("/"));
                    self.read_at(&beside.join(path), homes, may_read, depth + 1);
                }
                // git gives up on a user whom it does not know; it may know more of them than we do.
                Pathname::Below(_) | Pathname::Within(_) if path.starts_with(b"~") => {
                    let why = "it includes a file in a home directory that is not known";
                    self.unreadable.push((file.to_owned(), why.to_owned()));
                }
                Pathname::Below(_) | Pathname::Within(_) => self.elsewhere.push(name),
            }
        }
    }

    /// All values of a key, the one that counts last.
    pub fn values<'a>(&'a self, key: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        let of_key = self.settings.iter().filter(move |(_, setting)| setting.key == key);
        of_key.filter_map(|(_, setting)| setting.value.as_deref())
    }
}

fn is_include(key: &[u8]) -> bool {
    key == b"include.path"
        || key.starts_with(b"includeif.") && key.ends_with(b".path") && key.len() > 15
}

/// All of a regular file, links followed; `None` where there is none.
pub fn contents(path: &Path) -> io::Result<Option<Vec<u8>>> {
    // What people give as no configuration.
    if path == Path::new(if cfg!(windows) { "NUL" } else { "/dev/null" }) {
        return Ok(None);
    }
    let file = match open(path) {
        Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        opened => opened?,
    };
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other(
            "git reads settings from it, and it is no regular file; take it out of your git settings, or give --no-protect",
        ));
    }
    // One byte more than there are: a short read then says that it was the end.
    let mut text = Vec::with_capacity(metadata.len().min(LARGEST) as usize + 1);
    file.take(LARGEST + 1).read_to_end(&mut text)?;
    match text.len() as u64 > LARGEST {
        true => Err(io::Error::other("it is too large")),
        false => Ok(Some(text)),
    }
}

/// A pipe in its place must not make the launcher wait.
#[cfg(unix)]
fn open(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    File::options().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)
}

#[cfg(windows)]
fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}
