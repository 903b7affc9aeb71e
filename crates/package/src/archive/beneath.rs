//! Writes entries beneath a directory, and nowhere else.
//!
//! On Unix every component is opened from the directory above it without following links, which is
//! what RESOLVE_BENEATH with RESOLVE_NO_SYMLINKS gives, on every kernel. On Windows no link is ever
//! made, so names that are checked cannot lead out.

use std::io::Read;

use super::{Content, Entry, Sink};
use crate::error::{Error, Result};

#[cfg(not(unix))]
pub use plain::Unpack;
#[cfg(unix)]
pub use unix::Unpack;

fn failed(entry: &Entry, error: impl std::fmt::Display) -> Error {
    Error::machine(format!("unpack {}: {error}", entry.path), "")
}

#[cfg(unix)]
mod unix {
    use std::fs::File;
    use std::os::fd::OwnedFd;
    use std::path::Path;

    use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat, symlinkat};
    use rustix::io::Errno;

    use super::*;

    /// Unpacks an archive below one directory.
    pub struct Unpack {
        root: OwnedFd,
        /// The directory of the last entry: neighbours come together.
        last: Option<(String, OwnedFd)>,
    }

    const DIRECTORY: OFlags =
        OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
    const CREATE: OFlags = OFlags::WRONLY
        .union(OFlags::CREATE)
        .union(OFlags::EXCL)
        .union(OFlags::NOFOLLOW)
        .union(OFlags::CLOEXEC);

    impl Unpack {
        /// Into an empty directory that is there.
        pub fn into(directory: &Path) -> Result<Unpack> {
            let root = openat(CWD, directory, DIRECTORY, Mode::empty())
                .map_err(|e| Error::io("open", directory, &e.into()))?;
            Ok(Unpack { root, last: None })
        }

        /// The directory at this path beneath the root, made where it is missing.
        fn directory(&mut self, path: Option<&str>) -> rustix::io::Result<&OwnedFd> {
            let Some(path) = path else {
                return Ok(&self.root);
            };
            if self.last.as_ref().is_none_or(|(last, _)| last != path) {
                let mut at = self.root.try_clone().map_err(|_| Errno::MFILE)?;
                for part in path.split('/') {
                    at = enter(&at, part)?;
                }
                self.last = Some((path.to_owned(), at));
            }
            Ok(self.last.as_ref().map_or(&self.root, |(_, directory)| directory))
        }
    }

    fn enter(at: &OwnedFd, name: &str) -> rustix::io::Result<OwnedFd> {
        match openat(at, name, DIRECTORY, Mode::empty()) {
            Err(Errno::NOENT) => {
                mkdirat(at, name, Mode::from_raw_mode(0o755))?;
                openat(at, name, DIRECTORY, Mode::empty())
            }
            other => other,
        }
    }

    impl Sink for Unpack {
        fn entry(&mut self, entry: &Entry, content: &mut dyn Read) -> Result<()> {
            let (parent, name) = entry.path.split();
            let directory = self.directory(parent).map_err(|e| failed(entry, e))?;
            match &entry.content {
                Content::Directory => drop(enter(directory, name).map_err(|e| failed(entry, e))?),
                Content::Link(target) => {
                    symlinkat(target.as_str(), directory, name).map_err(|e| failed(entry, e))?;
                }
                Content::File { is_executable, .. } => {
                    let mode = if *is_executable { 0o555 } else { 0o444 };
                    let file = openat(directory, name, CREATE, Mode::from_raw_mode(mode))
                        .map_err(|e| failed(entry, e))?;
                    let mut file = File::from(file);
                    std::io::copy(content, &mut file).map_err(|e| failed(entry, e))?;
                }
            }
            Ok(())
        }
    }
}

#[cfg(not(unix))]
mod plain {
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::*;

    pub struct Unpack {
        root: PathBuf,
    }

    impl Unpack {
        /// Into an empty directory that is there.
        pub fn into(directory: &Path) -> Result<Unpack> {
            Ok(Unpack { root: directory.to_owned() })
        }
    }

    impl Sink for Unpack {
        fn entry(&mut self, entry: &Entry, content: &mut dyn Read) -> Result<()> {
            let mut path = self.root.clone();
            path.extend(entry.path.components());
            match &entry.content {
                Content::Directory => fs::create_dir_all(&path).map_err(|e| failed(entry, e)),
                Content::Link(_) => Err(failed(entry, "links are not made on this system")),
                Content::File { .. } => {
                    if let Some(parent) = path.parent() {
                        fs::create_dir_all(parent).map_err(|e| failed(entry, e))?;
                    }
                    let mut file = fs::File::create_new(&path).map_err(|e| failed(entry, e))?;
                    std::io::copy(content, &mut file).map_err(|e| failed(entry, e))?;
                    Ok(())
                }
            }
        }
    }
}
