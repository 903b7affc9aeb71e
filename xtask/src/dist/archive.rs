//! Archives that depend on names, modes and contents alone: one order, one owner, one time.

use std::collections::BTreeMap;
use std::io::Write;

use flate2::{Compression, GzBuilder};
use mcp_package::zip::{Effort, EntryPath, ZipContent, ZipWriter};
use sha2::{Digest, Sha256};

use crate::Result;

enum Entry {
    File { mode: u32, content: Vec<u8> },
    Link(String),
}

/// What an archive holds, by path.
#[derive(Default)]
pub struct Files(BTreeMap<String, Entry>);

impl Files {
    pub fn file(&mut self, path: impl Into<String>, content: impl Into<Vec<u8>>) {
        self.0.insert(path.into(), Entry::File { mode: 0o644, content: content.into() });
    }

    pub fn program(&mut self, path: impl Into<String>, content: impl Into<Vec<u8>>) {
        self.0.insert(path.into(), Entry::File { mode: 0o755, content: content.into() });
    }

    pub fn link(&mut self, path: impl Into<String>, to: &str) {
        self.0.insert(path.into(), Entry::Link(to.to_owned()));
    }

    /// Paths and contents of files.
    pub fn contents(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.0.iter().filter_map(|(path, entry)| match entry {
            Entry::File { content, .. } => Some((path.as_str(), content.as_slice())),
            Entry::Link(_) => None,
        })
    }

    pub fn tar_gz(&self, epoch: u64) -> Result<Vec<u8>> {
        gzip(&self.tar(epoch, &[])?)
    }

    /// `directories` as entries of their own, where a format wants them.
    pub fn tar(&self, epoch: u64, directories: &[String]) -> Result<Vec<u8>> {
        let mut archive = tar::Builder::new(Vec::new());
        let header = |kind, mode, size| {
            let mut header = tar::Header::new_ustar();
            header.set_entry_type(kind);
            header.set_mode(mode);
            header.set_size(size);
            header.set_mtime(epoch);
            header.set_uid(0);
            header.set_gid(0);
            header
        };
        for directory in directories {
            let mut header = header(tar::EntryType::Directory, 0o755, 0);
            archive.append_data(&mut header, format!("{directory}/"), &[][..])?;
        }
        for (path, entry) in &self.0 {
            match entry {
                Entry::File { mode, content } => {
                    let size = u64::try_from(content.len())?;
                    let mut header = header(tar::EntryType::Regular, *mode, size);
                    archive.append_data(&mut header, path, content.as_slice())?;
                }
                Entry::Link(to) => {
                    let mut header = header(tar::EntryType::Symlink, 0o777, 0);
                    archive.append_link(&mut header, path, to)?;
                }
            }
        }
        Ok(archive.into_inner()?)
    }

    /// With the first day that zip knows for a time.
    pub fn zip(&self) -> Result<Vec<u8>> {
        let mut archive = ZipWriter::new(Vec::new(), Effort::Thorough);
        for (path, entry) in &self.0 {
            let name = EntryPath::parse(path.as_bytes()).map_err(|error| error.to_string())?;
            let added = match entry {
                Entry::File { mode, content } => {
                    let is_executable = mode & 0o111 != 0;
                    archive
                        .add(&name, ZipContent::File { is_executable, content: &mut &content[..] })
                }
                Entry::Link(to) => archive.add(&name, ZipContent::Link(to)),
            };
            added.map_err(|error| error.to_string())?;
        }
        archive.finish().map_err(|error| error.to_string().into())
    }

    /// Every directory above a file, parents first.
    pub fn directories(&self) -> Vec<String> {
        let mut all = std::collections::BTreeSet::new();
        for path in self.0.keys() {
            let above = path.match_indices('/').map(|(at, _)| &path[..at]);
            all.extend(above.filter(|it| !it.is_empty()).map(str::to_owned));
        }
        all.into_iter().collect()
    }
}

/// Without a name or a time in its header.
pub fn gzip(content: &[u8]) -> Result<Vec<u8>> {
    let mut packed = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    packed.write_all(content)?;
    Ok(packed.finish()?)
}

pub fn hex_sha256(content: &[u8]) -> String {
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(order: &[&str]) -> Files {
        let mut files = Files::default();
        for path in order {
            files.file(*path, *path);
        }
        files.program("bin/a", "program");
        files.link("bin/b", "a");
        files
    }

    #[test]
    fn the_same_content_gives_the_same_bytes_in_any_order() {
        let (one, other) = (files(&["x", "y/z"]), files(&["y/z", "x"]));
        assert_eq!(one.tar_gz(7).unwrap(), other.tar_gz(7).unwrap());
        assert_eq!(one.zip().unwrap(), other.zip().unwrap());
        assert_ne!(one.tar_gz(7).unwrap(), one.tar_gz(8).unwrap());
    }

    #[test]
    fn modes_and_links_are_kept() {
        let archive = files(&["x"]).tar(7, &["bin".to_owned()]).unwrap();
        let mut archive = tar::Archive::new(archive.as_slice());
        let seen: Vec<_> = archive
            .entries()
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let header = entry.header();
                let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
                (path, header.mode().unwrap(), header.mtime().unwrap())
            })
            .collect();
        let expected = [("bin/", 0o755), ("bin/a", 0o755), ("bin/b", 0o777), ("x", 0o644)];
        assert_eq!(seen, expected.map(|(path, mode)| (path.to_owned(), mode, 7)));
    }

    #[test]
    fn directories_come_parents_first() {
        let mut files = Files::default();
        files.file("a/b/c", "");
        files.file("a/d", "");
        assert_eq!(files.directories(), ["a", "a/b"]);
    }
}
