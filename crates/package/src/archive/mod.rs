//! Archives are parsed, never "unpacked": every entry is checked before a byte of it is written, and
//! written beneath a directory that was opened once.
//!
//! Refused: names that lead out (`..`, absolute, drive letters, backslashes), links that lead out,
//! hard links, devices, set-uid and set-gid modes, names twice or equal but for case, files below
//! files or links, more than the [`ArchiveLimits`], lengths or checksums that do not match, data after the
//! end. What is left open: names that differ only in Unicode normalisation collide on macOS.

mod beneath;
mod compare;
mod entry;
mod exact_length;
mod names;
mod tar;
mod write_zip;
mod zip;

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use crate::error::{Error, Result};

pub use beneath::Unpack;
pub use compare::Compare;
pub use entry::{Content, Entry, EntryPath, Picked};
pub use names::Names;
pub use write_zip::{Effort, ZipContent, ZipWriter};

/// What an archive may hold. Far above any real package, far below what hurts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArchiveLimits {
    /// The most entries.
    pub entries: u64,
    /// The most bytes of one file.
    pub file: u64,
    /// The most bytes of all files.
    pub total: u64,
    /// Unpacked to packed; small archives may have any.
    pub ratio: u64,
}

impl ArchiveLimits {
    /// The limits of `mcp run` and `mcp add`.
    pub const DEFAULT: ArchiveLimits =
        ArchiveLimits { entries: 200_000, file: 1 << 30, total: 4 << 30, ratio: 200 };
    /// Up to here no ratio is suspicious.
    const SMALL: u64 = 16 << 20;

    /// How many bytes may come out of a packed length.
    pub(crate) fn budget(&self, packed: u64) -> u64 {
        self.total.min(packed.saturating_mul(self.ratio).max(ArchiveLimits::SMALL))
    }
}

/// The formats of archives that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Zip, as MCPB bundles are.
    Zip,
    /// A tar archive compressed with gzip.
    TarGzip,
    /// A tar archive compressed with zstd.
    TarZstd,
}

impl Format {
    /// By its first bytes: names lie.
    pub fn of(start: &[u8]) -> Option<Format> {
        match start {
            [b'P', b'K', 3, 4, ..] => Some(Format::Zip),
            [0x1f, 0x8b, ..] => Some(Format::TarGzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Format::TarZstd),
            _ => None,
        }
    }
}

/// Is given each entry once, in the archive's order, already checked.
pub trait Sink {
    /// Takes an entry; `content` is empty but for files.
    fn entry(&mut self, entry: &Entry, content: &mut dyn Read) -> Result<()>;
}

/// Reads a whole archive into a sink. Nothing in it counts before this has returned `Ok`.
pub fn read(archive: &mut File, limits: &ArchiveLimits, sink: &mut dyn Sink) -> Result<()> {
    let io = |e: std::io::Error| Error::package(format!("the archive cannot be read: {e}"));
    let length = archive.seek(SeekFrom::End(0)).map_err(io)?;
    archive.seek(SeekFrom::Start(0)).map_err(io)?;
    let mut start = Vec::new();
    Read::by_ref(archive).take(4).read_to_end(&mut start).map_err(io)?;
    archive.seek(SeekFrom::Start(0)).map_err(io)?;
    match Format::of(&start) {
        Some(Format::Zip) => zip::read(archive, length, limits, sink),
        Some(Format::TarGzip) => tar::read_gzip(BufReader::new(archive), length, limits, sink),
        Some(Format::TarZstd) => tar::read_zstd(BufReader::new(archive), length, limits, sink),
        None => Err(Error::package("is neither a zip (.mcpb) nor a gzip or zstd archive")),
    }
}

/// Reads an archive by its path.
pub fn read_path(path: &Path, limits: &ArchiveLimits, sink: &mut dyn Sink) -> Result<()> {
    let mut file =
        mcp_files::open(path, mcp_files::Links::Follow).map_err(|e| Error::io("open", path, &e))?;
    read(&mut file, limits, sink).map_err(|error| error.within(path.display()))
}

#[cfg(test)]
mod tests;
