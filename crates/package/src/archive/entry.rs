//! One entry of an archive, its name checked.

use std::fmt;
use std::io::Read;

use super::Sink;
use crate::error::{Error, Result};

/// A relative path of plain components. Made by [`EntryPath::parse`] only.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryPath(String);

/// An entry of an archive, its name already checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Where it goes, relative to the directory of the package.
    pub path: EntryPath,
    /// The kind of entry.
    pub content: Content,
}

/// The kind of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// A directory.
    Directory,
    /// A regular file.
    File {
        /// Whether the archive marks it as a program.
        is_executable: bool,
        /// Its length in bytes, as the archive states it.
        length: u64,
    },
    /// Where it leads, from the directory it is in: `..` only in front, and never out.
    Link(String),
}

/// The longest name of one file that common file systems have.
const LONGEST_COMPONENT: usize = 255;
const LONGEST: usize = 1024;

/// Names that Windows takes for devices, in any directory and with any extension.
const DEVICES: [&str; 6] = ["con", "prn", "aux", "nul", "com", "lpt"];

impl EntryPath {
    /// From bytes as an archive has them, a trailing slash taken off.
    pub fn parse(name: &[u8]) -> Result<EntryPath> {
        let shown = mcp_policy::text::word(&String::from_utf8_lossy(&name[..name.len().min(200)]));
        let wrong = |why: &str| Error::package(format!("entry \"{shown}\" {why}"));
        let text = std::str::from_utf8(name).map_err(|_| wrong("is not named in UTF-8"))?;
        let text = text.strip_suffix('/').unwrap_or(text);
        if text.is_empty() || text.len() > LONGEST {
            return Err(wrong("has no usable name"));
        }
        if text.starts_with('/') {
            return Err(wrong("is absolute"));
        }
        if text.contains('\\') || text.chars().any(char::is_control) {
            return Err(wrong("has a backslash or control character in its name"));
        }
        for part in text.split('/') {
            match part {
                ".." => return Err(wrong("leads out of the package")),
                "" | "." => return Err(wrong("has an empty part in its name")),
                part if part.len() > LONGEST_COMPONENT => return Err(wrong("has too long a name")),
                part if cfg!(windows) && !windows_takes(part) => {
                    return Err(wrong("has a name that Windows cannot hold"));
                }
                _ => {}
            }
        }
        Ok(EntryPath(text.to_owned()))
    }

    /// The path, with `/` between its parts.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The parts of the path.
    pub fn components(&self) -> impl Iterator<Item = &str> {
        self.0.split('/')
    }

    /// The directory it is in, and its own name.
    #[must_use]
    pub fn split(&self) -> (Option<&str>, &str) {
        match self.0.rsplit_once('/') {
            Some((parent, name)) => (Some(parent), name),
            None => (None, &self.0),
        }
    }

    /// Checks where a link at this path leads. `..` after a name could walk out through another
    /// link, so it is allowed in front only.
    pub fn check_link(&self, target: &str) -> Result<()> {
        let wrong = |why: &str| {
            let target: String = mcp_policy::text::word(target).chars().take(200).collect();
            Error::package(format!("link \"{self}\" to \"{target}\" {why}"))
        };
        if target.is_empty() || target.len() > LONGEST || target.chars().any(char::is_control) {
            return Err(wrong("has no usable target"));
        }
        if target.starts_with('/') || target.contains(['\\', ':']) {
            return Err(wrong("is absolute"));
        }
        let depth = self.components().count() - 1;
        let mut climbed = 0;
        let mut is_down = false;
        for part in target.trim_end_matches('/').split('/') {
            match part {
                ".." if is_down => return Err(wrong("has .. after a name")),
                ".." => climbed += 1,
                "" | "." => return Err(wrong("has an empty part")),
                _ => is_down = true,
            }
        }
        if climbed > depth {
            return Err(wrong("leads out of the package"));
        }
        Ok(())
    }
}

fn windows_takes(part: &str) -> bool {
    let stem = part.split('.').next().unwrap_or(part).to_ascii_lowercase();
    let stem = stem.trim_end_matches(|c: char| c.is_ascii_digit());
    !part.contains(['<', '>', ':', '"', '|', '?', '*'])
        && !part.ends_with(['.', ' '])
        && !DEVICES.contains(&stem)
}

impl fmt::Display for EntryPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Keeps the content of a few named files, and passes over the rest.
#[derive(Debug, Default)]
pub struct Picked {
    wanted: Vec<String>,
    /// The files that were found: name and content.
    pub found: Vec<(String, Vec<u8>)>,
}

impl Picked {
    /// Keeps the files with these names.
    pub fn new(wanted: &[&str]) -> Picked {
        Picked { wanted: wanted.iter().map(|name| (*name).to_owned()).collect(), found: Vec::new() }
    }

    /// The content of a file, once.
    pub fn take(&mut self, name: &str) -> Option<Vec<u8>> {
        let at = self.found.iter().position(|(found, _)| found == name)?;
        Some(self.found.swap_remove(at).1)
    }
}

impl Sink for Picked {
    fn entry(&mut self, entry: &Entry, content: &mut dyn Read) -> Result<()> {
        if !self.wanted.iter().any(|name| name == entry.path.as_str()) {
            return Ok(());
        }
        let Content::File { length, .. } = entry.content else {
            return Ok(());
        };
        if length > crate::manifest::MAX_MANIFEST {
            return Err(Error::package(format!("{} is larger than 1 MiB", entry.path)));
        }
        let mut bytes = Vec::new();
        content
            .read_to_end(&mut bytes)
            .map_err(|e| Error::package(format!("{}: {e}", entry.path)))?;
        self.found.push((entry.path.as_str().to_owned(), bytes));
        Ok(())
    }
}
