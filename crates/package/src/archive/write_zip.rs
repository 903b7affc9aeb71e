//! Writes zip archives that depend on names, modes and contents alone: no times, no owners, one
//! order, one compressor.

use std::io::{Read, Write};

use flate2::write::DeflateEncoder;
use flate2::{Compression, Crc};

use super::EntryPath;
use crate::error::{Error, Result};

/// 1980-01-01, the first day that zip knows.
const DATE: u16 = (1 << 5) | 1;
const UTF8: u16 = 1 << 11;
const VERSION: u16 = 20;
const MADE_BY: u16 = (3 << 8) | VERSION;

/// How much work compression is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Effort {
    /// For what stays on this machine.
    Quick,
    /// For what is sent to others.
    Thorough,
}

/// What is written for an entry.
#[non_exhaustive]
pub enum ZipContent<'a> {
    /// A directory.
    Directory,
    /// A symlink with this target.
    Link(&'a str),
    /// A regular file.
    File {
        /// Whether it is marked as a program.
        is_executable: bool,
        /// Its bytes.
        content: &'a mut dyn Read,
    },
}

/// Writes a zip archive that is the same for the same input.
pub struct ZipWriter<W> {
    out: W,
    effort: Effort,
    written: u64,
    directory: Vec<u8>,
    entries: u32,
}

impl<W: Write> ZipWriter<W> {
    /// An archive that is written to `out`.
    pub fn new(out: W, effort: Effort) -> ZipWriter<W> {
        ZipWriter { out, effort, written: 0, directory: Vec::new(), entries: 0 }
    }

    /// Adds an entry.
    pub fn add(&mut self, path: &EntryPath, source: ZipContent<'_>) -> Result<()> {
        let failed = |e: std::io::Error| Error::machine(format!("pack {path}: {e}"), "");
        let (name, mode, content): (String, u32, Vec<u8>) = match source {
            ZipContent::Directory => (format!("{path}/"), 0o040_755, Vec::new()),
            ZipContent::Link(target) => {
                path.check_link(target)?;
                (path.to_string(), 0o120_777, target.as_bytes().to_vec())
            }
            ZipContent::File { is_executable, content } => {
                let mut bytes = Vec::new();
                content.read_to_end(&mut bytes).map_err(failed)?;
                (path.to_string(), if is_executable { 0o100_755 } else { 0o100_644 }, bytes)
            }
        };
        let mut crc = Crc::new();
        crc.update(&content);
        let packed = self.compress(&content).map_err(failed)?;
        let (method, data): (u16, &[u8]) =
            if packed.len() < content.len() { (8, &packed) } else { (0, &content) };
        let too_large =
            || Error::package(format!("{path}: packages of more than 4 GiB cannot be packed"));
        let size = |length: usize| {
            u32::try_from(length).ok().filter(|s| *s != u32::MAX).ok_or_else(too_large)
        };
        let offset = u32::try_from(self.written).map_err(|_| too_large())?;
        let name_length = u16::try_from(name.len()).map_err(|_| too_large())?;

        let mut common = Vec::new();
        for half in [VERSION, UTF8, method, 0, DATE] {
            common.extend(half.to_le_bytes());
        }
        for word in [crc.sum(), size(data.len())?, size(content.len())?] {
            common.extend(word.to_le_bytes());
        }
        common.extend(name_length.to_le_bytes());
        common.extend(0u16.to_le_bytes());

        self.write(b"PK\x03\x04").and_then(|()| self.write(&common)).map_err(failed)?;
        self.write(name.as_bytes()).and_then(|()| self.write(data)).map_err(failed)?;

        self.directory.extend(b"PK\x01\x02");
        self.directory.extend(MADE_BY.to_le_bytes());
        self.directory.extend(&common);
        self.directory.extend([0; 6]);
        self.directory.extend((mode << 16).to_le_bytes());
        self.directory.extend(offset.to_le_bytes());
        self.directory.extend(name.as_bytes());
        self.entries += 1;
        let most = super::ArchiveLimits::DEFAULT.entries;
        match u64::from(self.entries) > most {
            true => Err(Error::package(format!("has more than {most} entries"))),
            false => Ok(()),
        }
    }

    /// Writes the central directory, and gives the output back.
    pub fn finish(mut self) -> Result<W> {
        let failed = |e: std::io::Error| Error::machine(format!("pack: {e}"), "");
        let too_large = || Error::package("packages of more than 4 GiB cannot be packed");
        let offset = u32::try_from(self.written).map_err(|_| too_large())?;
        let directory = std::mem::take(&mut self.directory);
        let size = u32::try_from(directory.len()).map_err(|_| too_large())?;
        self.write(&directory).map_err(failed)?;
        let mut end = Vec::new();
        // The last record has two bytes for the number of entries; more of them are told by records of zip64.
        let entries = u16::try_from(self.entries).unwrap_or(u16::MAX);
        if entries == u16::MAX {
            end.extend(self.zip64_end(u64::from(size), u64::from(offset)));
        }
        end.extend(b"PK\x05\x06\0\0\0\0");
        end.extend(entries.to_le_bytes());
        end.extend(entries.to_le_bytes());
        end.extend(size.to_le_bytes());
        end.extend(offset.to_le_bytes());
        end.extend([0; 2]);
        self.write(&end).map_err(failed)?;
        self.out.flush().map_err(failed)?;
        Ok(self.out)
    }

    /// The end record of zip64, and the record that leads to it.
    fn zip64_end(&self, size: u64, offset: u64) -> Vec<u8> {
        let mut end = b"PK\x06\x06".to_vec();
        end.extend(44u64.to_le_bytes());
        end.extend((3u16 << 8 | 45).to_le_bytes());
        end.extend(45u16.to_le_bytes());
        end.extend([0; 8]);
        for number in [self.entries.into(), self.entries.into(), size, offset] {
            end.extend(u64::to_le_bytes(number));
        }
        end.extend(b"PK\x06\x07\0\0\0\0");
        end.extend((offset + size).to_le_bytes());
        end.extend(1u32.to_le_bytes());
        end
    }

    fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.written += bytes.len() as u64;
        self.out.write_all(bytes)
    }

    fn compress(&self, content: &[u8]) -> std::io::Result<Vec<u8>> {
        let level = match self.effort {
            Effort::Quick => Compression::new(1),
            Effort::Thorough => Compression::new(6),
        };
        let mut encoder = DeflateEncoder::new(Vec::new(), level);
        encoder.write_all(content)?;
        encoder.finish()
    }
}
