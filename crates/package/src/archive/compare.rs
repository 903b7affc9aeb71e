//! Compares a directory with the archive it was unpacked from: what differs is named.

use std::collections::HashSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::{Content, Entry, Sink};
use crate::error::{Error, Kind, Result};

/// Compares an archive with the files of a directory.
pub struct Compare {
    root: PathBuf,
    seen: HashSet<PathBuf>,
    /// What differs, as paths in the package with how.
    pub differing: Vec<String>,
}

impl Compare {
    /// Compares with the directory `root`.
    pub fn with(root: &Path) -> Compare {
        Compare { root: root.to_owned(), seen: HashSet::new(), differing: Vec::new() }
    }

    /// After all entries: looks for what is there and was not in the archive.
    pub fn finish(mut self) -> Result<Vec<String>> {
        let mut pending = vec![PathBuf::new()];
        while let Some(directory) = pending.pop() {
            let full = self.root.join(&directory);
            let entries = fs::read_dir(&full).map_err(|e| Error::io("read", &full, &e))?;
            for entry in entries {
                let entry = entry.map_err(|e| Error::io("read", &full, &e))?;
                let path = directory.join(entry.file_name());
                if !self.seen.contains(&path) {
                    let names: Vec<_> = path.iter().map(|name| name.to_string_lossy()).collect();
                    self.differing.push(format!("{} was added", names.join("/")));
                    continue;
                }
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    pending.push(path);
                }
            }
        }
        Ok(self.differing)
    }

    fn compare(
        &self,
        entry: &Entry,
        content: &mut dyn Read,
    ) -> std::result::Result<(), &'static str> {
        let path = self.root.join(entry.path.as_str());
        let metadata = fs::symlink_metadata(&path).map_err(|_| "is missing")?;
        let kind = metadata.file_type();
        match &entry.content {
            Content::Directory if kind.is_dir() => Ok(()),
            Content::Link(target) if kind.is_symlink() => {
                let found = fs::read_link(&path).map_err(|_| "cannot be read")?;
                if found == Path::new(target) { Ok(()) } else { Err("leads elsewhere") }
            }
            Content::File { length, is_executable } if kind.is_file() => {
                if metadata.len() != *length {
                    return Err("has another length");
                }
                if is_executable_file(&metadata).is_some_and(|found| found != *is_executable) {
                    return Err("has another mode");
                }
                let mut file = mcp_files::open(&path, mcp_files::Links::Refuse)
                    .map_err(|_| "cannot be read")?;
                same(&mut file, content)
            }
            _ => Err("is of another kind"),
        }
    }
}

#[cfg(unix)]
fn is_executable_file(metadata: &fs::Metadata) -> Option<bool> {
    use std::os::unix::fs::PermissionsExt;
    Some(metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable_file(_: &fs::Metadata) -> Option<bool> {
    None
}

fn same(a: &mut dyn Read, b: &mut dyn Read) -> std::result::Result<(), &'static str> {
    let (mut of_a, mut of_b) = (vec![0; 64 << 10], vec![0; 64 << 10]);
    loop {
        let read = b.read(&mut of_b).map_err(|_| "cannot be compared")?;
        if read == 0 {
            return if a.read(&mut of_a[..1]).is_ok_and(|more| more == 0) {
                Ok(())
            } else {
                Err("was changed")
            };
        }
        a.read_exact(&mut of_a[..read]).map_err(|_| "was changed")?;
        if of_a[..read] != of_b[..read] {
            return Err("was changed");
        }
    }
}

impl Sink for Compare {
    fn entry(&mut self, entry: &Entry, content: &mut dyn Read) -> Result<()> {
        let path = Path::new(entry.path.as_str());
        self.seen.extend(path.ancestors().map(Path::to_owned));
        if let Err(how) = self.compare(entry, content) {
            self.differing.push(format!("{} {how}", entry.path));
            if self.differing.len() > 20 {
                return Err(Error::new(Kind::Untrusted, self.differing.join("; "), ""));
            }
        }
        Ok(())
    }
}
