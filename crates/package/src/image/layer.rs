//! A layer: a tar archive with gzip, the same bytes for the same files. Owner root, times zero, names in order.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Component, Path, PathBuf};

use flate2::{Compression, GzBuilder};
use tar::{Builder, EntryType, Header};

use super::{PACKAGE, PROGRAM};
use crate::digest::{Digest, Hashing};
use crate::error::{Error, Result};
use crate::store::{Descriptor, TAR_GZIP};

/// A layer in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    /// What it holds, for the history.
    pub what: String,
    /// Of the compressed archive.
    pub descriptor: Descriptor,
    /// The digest of the archive without compression.
    pub diff_id: Digest,
    /// Where it is.
    pub path: PathBuf,
}

/// The layer of the program.
///
/// # Errors
/// Where a file cannot be read or written.
pub fn program_layer(program: &Path, to: &Path) -> Result<Layer> {
    write("mcp", to, |tar| {
        directory(tar, Path::new("opt/mcp"))?;
        directory(tar, Path::new("opt/mcp/bin"))?;
        file(tar, program, inside(PROGRAM), 0o755)
    })
}

/// The layer of a package's files.
///
/// # Errors
/// Where a file cannot be read or written, or a link leads out of the package.
pub fn package_layer(root: &Path, to: &Path) -> Result<Layer> {
    write("the package", to, |tar| {
        directory(tar, Path::new("opt/mcp"))?;
        directory(tar, inside(PACKAGE))?;
        tree(tar, root, root, inside(PACKAGE))
    })
}

fn inside(path: &'static str) -> &'static Path {
    Path::new(path.trim_start_matches('/'))
}

type Tar<'a> = Builder<&'a mut dyn Write>;

fn write(what: &str, to: &Path, fill: impl FnOnce(&mut Tar<'_>) -> Result<()>) -> Result<Layer> {
    let failed = |e: io::Error| Error::io("write", to, &e);
    let out = BufWriter::new(File::create(to).map_err(failed)?);
    // Without a name and a time in the head. Fast: registries and nodes have room, and people wait for this.
    let packed = GzBuilder::new().mtime(0).write(out, Compression::fast());
    let mut plain = Hashing::new(packed);
    {
        let mut tar = Builder::new(&mut plain as &mut dyn Write);
        fill(&mut tar)?;
        tar.finish().map_err(failed)?;
    }
    let (packed, diff_id) = plain.finish();
    packed.finish().and_then(|mut out| out.flush()).map_err(failed)?;
    let (digest, size) = File::open(to).and_then(Digest::of_reader).map_err(failed)?;
    Ok(Layer {
        what: what.to_owned(),
        descriptor: Descriptor::new(TAR_GZIP, digest, size),
        diff_id,
        path: to.to_owned(),
    })
}

fn header(kind: EntryType, mode: u32, size: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_size(size);
    header
}

fn directory(tar: &mut Tar<'_>, path: &Path) -> Result<()> {
    let mut header = header(EntryType::Directory, 0o755, 0);
    tar.append_data(&mut header, path, io::empty()).map_err(|e| Error::io("pack", path, &e))
}

fn file(tar: &mut Tar<'_>, from: &Path, to: &Path, mode: u32) -> Result<()> {
    let failed = |e: io::Error| Error::io("read", from, &e);
    let opened = mcp_files::open(from, mcp_files::Links::Refuse).map_err(failed)?;
    let size = opened.metadata().map_err(failed)?.len();
    let mut header = header(EntryType::Regular, mode, size);
    // A file that grows meanwhile would be read beyond its entry.
    tar.append_data(&mut header, to, opened.take(size)).map_err(failed)
}

/// Everything below a directory, by name.
fn tree(tar: &mut Tar<'_>, root: &Path, from: &Path, to: &Path) -> Result<()> {
    let failed = |e: io::Error| Error::io("read", from, &e);
    let entries: io::Result<Vec<_>> = std::fs::read_dir(from).map_err(failed)?.collect();
    let mut entries = entries.map_err(failed)?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().map_err(failed)?;
        if kind.is_dir() {
            directory(tar, &to)?;
            tree(tar, root, &path, &to)?;
        } else if kind.is_file() {
            let mode = if is_executable(&path).map_err(failed)? { 0o755 } else { 0o644 };
            file(tar, &path, &to, mode)?;
        } else if kind.is_symlink() {
            link(tar, root, &path, &to)?;
        } else {
            return Err(Error::package(format!(
                "{}: is neither a file nor a directory",
                path.display()
            )));
        }
    }
    Ok(())
}

/// A link within the package; one that leads elsewhere would mean another file in the image.
fn link(tar: &mut Tar<'_>, root: &Path, path: &Path, to: &Path) -> Result<()> {
    let target = std::fs::read_link(path).map_err(|e| Error::io("read", path, &e))?;
    let mut depth = path.strip_prefix(root).map_or(0, |below| below.components().count() - 1);
    for part in target.components() {
        depth = match part {
            Component::Normal(_) => depth + 1,
            Component::CurDir => depth,
            Component::ParentDir if depth > 0 => depth - 1,
            _ => {
                return Err(Error::package(format!(
                    "{}: is a link that leads out of the package",
                    path.display()
                )));
            }
        };
    }
    let mut header = header(EntryType::Symlink, 0o777, 0);
    tar.append_link(&mut header, to, target).map_err(|e| Error::io("pack", path, &e))
}

#[cfg(unix)]
fn is_executable(path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::PermissionsExt;
    Ok(path.symlink_metadata()?.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(_: &Path) -> io::Result<bool> {
    Ok(false)
}
