//! A directory → a bundle. The same names, modes and contents give the same bytes, anywhere.

use std::fs;
use std::io::Write;
use std::path::Path;

use crate::archive::{
    ArchiveLimits, Content, Effort, Entry, EntryPath, Names, ZipContent, ZipWriter,
};
use crate::error::{Error, Result};

/// What of a directory becomes part of a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Take {
    /// All but what belongs to the author alone: version control, `.env` files, other bundles.
    Sources,
    /// All of it.
    Everything,
}

/// What was packed, for a line to the author.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Packed {
    /// How many files.
    pub files: u64,
    /// Their bytes, before compression.
    pub bytes: u64,
    /// What was left out on purpose.
    pub left_out: Vec<String>,
}

const LEFT_OUT: [&str; 6] = [".git", ".hg", ".svn", ".DS_Store", "Thumbs.db", ".mcpbignore"];

/// Packs a directory into a bundle. The same files give the same bytes.
pub fn pack(directory: &Path, take: Take, effort: Effort, out: impl Write) -> Result<Packed> {
    // What no reader would take is not packed: how small it gets is seen at the end.
    let names = Names::new(ArchiveLimits::DEFAULT, u64::MAX);
    let zip = ZipWriter::new(out, effort);
    let mut packing = Packing { zip, names, take, packed: Packed::default() };
    packing.directory(directory, "")?;
    let Packing { zip, packed, .. } = packing;
    zip.finish()?;
    Ok(packed)
}

struct Packing<W> {
    zip: ZipWriter<W>,
    names: Names,
    take: Take,
    packed: Packed,
}

impl<W: Write> Packing<W> {
    fn directory(&mut self, directory: &Path, within: &str) -> Result<()> {
        let failed = |e: std::io::Error| Error::io("read", directory, &e);
        let mut names = Vec::new();
        for entry in fs::read_dir(directory).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            let name = name.into_string().map_err(|name| {
                Error::package(format!("{}: is not named in UTF-8", directory.join(name).display()))
            })?;
            names.push(name);
        }
        names.sort_unstable();
        let is_empty = names.is_empty();
        for name in names {
            let inner = if within.is_empty() { name.clone() } else { format!("{within}/{name}") };
            if self.take == Take::Sources && is_private(&name, within) {
                self.packed.left_out.push(inner);
                continue;
            }
            self.one(&directory.join(&name), &inner)?;
        }
        if is_empty && !within.is_empty() {
            let path = EntryPath::parse(within.as_bytes())?;
            let entry = Entry { path, content: Content::Directory };
            self.names.admit(&entry)?;
            self.zip.add(&entry.path, ZipContent::Directory)?;
        }
        Ok(())
    }

    fn one(&mut self, path: &Path, inner: &str) -> Result<()> {
        let failed = |e: std::io::Error| Error::io("read", path, &e);
        let metadata = fs::symlink_metadata(path).map_err(failed)?;
        let kind = metadata.file_type();
        if kind.is_dir() {
            return self.directory(path, inner);
        }
        let name = EntryPath::parse(inner.as_bytes())?;
        if kind.is_symlink() {
            let target = fs::read_link(path).map_err(failed)?;
            let target = target
                .to_str()
                .ok_or_else(|| Error::package(format!("link {inner}: leads to no UTF-8")))?;
            let entry = Entry { path: name, content: Content::Link(target.to_owned()) };
            self.names.admit(&entry)?;
            return self.zip.add(&entry.path, ZipContent::Link(target));
        }
        if !kind.is_file() {
            return Err(Error::package(format!(
                "{inner}: is neither a file, a directory nor a link"
            )));
        }
        if metadata.len() > ArchiveLimits::DEFAULT.file {
            return Err(Error::package(format!(
                "{inner}: is larger than a package's file can be (1 GiB)"
            )));
        }
        let mut file = mcp_files::open(path, mcp_files::Links::Refuse).map_err(failed)?;
        let is_executable = is_executable(&metadata, inner);
        let content = Content::File { is_executable, length: metadata.len() };
        let entry = Entry { path: name, content };
        self.names.admit(&entry)?;
        self.packed.files += 1;
        self.packed.bytes += metadata.len();
        self.zip.add(&entry.path, ZipContent::File { is_executable, content: &mut file })
    }
}

fn is_private(name: &str, within: &str) -> bool {
    let is_bundle = within.is_empty() && (name.ends_with(".mcpb") || name.ends_with(".dxt"));
    LEFT_OUT.contains(&name) || name == ".env" || name.starts_with(".env.") || is_bundle
}

#[cfg(unix)]
fn is_executable(metadata: &fs::Metadata, _: &str) -> bool {
    use std::os::unix::fs::PermissionsExt;
    metadata.permissions().mode() & 0o111 != 0
}

/// There are no modes; what Windows would run is what can be run.
#[cfg(not(unix))]
fn is_executable(_: &fs::Metadata, name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.ends_with(".exe")
        || name.ends_with(".sh")
        || !name.rsplit('/').next().unwrap_or("").contains('.')
}
