//! Which names an archive has used: each once, whatever the file system thinks of case.

use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;

use super::{ArchiveLimits, Content, Entry};
use crate::error::{Error, Result};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    /// Only as the parent of something.
    Implied,
    Directory,
    /// A file or link: nothing can be below it.
    Leaf,
}

/// Checks each entry against those before it, and counts.
pub struct Names {
    limits: ArchiveLimits,
    budget: u64,
    seen: HashMap<String, (String, Use)>,
    entries: u64,
    total: u64,
}

impl Names {
    /// For an archive of this packed length.
    pub fn new(limits: ArchiveLimits, packed: u64) -> Names {
        Names { limits, budget: limits.budget(packed), seen: HashMap::new(), entries: 0, total: 0 }
    }

    pub fn admit(&mut self, entry: &Entry) -> Result<()> {
        self.entries += 1;
        if self.entries > self.limits.entries {
            return Err(Error::package(format!("has more than {} entries", self.limits.entries)));
        }
        if let Content::File { length, .. } = entry.content {
            if length > self.limits.file {
                return Err(Error::package(format!(
                    "{} is larger than {} bytes",
                    entry.path, self.limits.file
                )));
            }
            self.total = self.total.saturating_add(length);
            if self.total > self.budget {
                return Err(Error::package(format!(
                    "unpacks to more than {} bytes, which no real package does",
                    self.budget
                )));
            }
        }
        if let Content::Link(target) = &entry.content {
            entry.path.check_link(target)?;
        }
        self.claim(entry)
    }

    fn claim(&mut self, entry: &Entry) -> Result<()> {
        let path = entry.path.as_str();
        for (at, _) in path.match_indices('/') {
            self.use_name(&path[..at], Use::Implied)?;
        }
        let how = if entry.content == Content::Directory { Use::Directory } else { Use::Leaf };
        self.use_name(path, how)
    }

    fn use_name(&mut self, path: &str, how: Use) -> Result<()> {
        match self.seen.entry(path.to_lowercase()) {
            Slot::Vacant(slot) => drop(slot.insert((path.to_owned(), how))),
            Slot::Occupied(mut slot) => {
                let (spelt, used) = slot.get_mut();
                if spelt != path {
                    return Err(Error::package(format!(
                        "{spelt:?} and {path:?} are one name on some systems"
                    )));
                }
                match (*used, how) {
                    (Use::Implied, Use::Directory) => *used = Use::Directory,
                    (Use::Implied | Use::Directory, Use::Implied) => {}
                    (Use::Leaf, Use::Implied) => {
                        return Err(Error::package(format!(
                            "{path:?} is a file or link with entries below it"
                        )));
                    }
                    _ => return Err(Error::package(format!("{path:?} is there twice"))),
                }
            }
        }
        Ok(())
    }
}
