//! Reads the log back, the rotated parts first.

use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use mcp_files::Links;

use super::Entry;
use super::file::{KEPT, numbered};

/// What was read.
#[derive(Default)]
pub struct Read {
    /// All lines that are whole, as they are and parsed.
    pub entries: Vec<(String, Entry)>,
    /// How many are not: half written by one who died meanwhile, or not ours.
    pub torn: usize,
}

impl Read {
    fn take(&mut self, line: &[u8]) {
        let text = String::from_utf8_lossy(line);
        match serde_json::from_str(&text) {
            Ok(entry) => self.entries.push((text.trim_end().to_owned(), entry)),
            Err(_) if text.trim().is_empty() => {}
            Err(_) => self.torn += 1,
        }
    }
}

pub fn all(path: &Path) -> Read {
    let mut parts: Vec<_> = (1..=KEPT).rev().map(|number| numbered(path, number)).collect();
    parts.push(path.to_owned());
    let mut read = Read::default();
    for part in parts.iter().filter_map(|part| mcp_files::open(part, Links::Follow).ok()) {
        let mut part = BufReader::new(part);
        let mut line = Vec::new();
        while part.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
            read.take(&line);
            line.clear();
        }
    }
    read
}

/// A reader that follows the log as lines come.
pub struct Tail {
    path: PathBuf,
    file: Option<BufReader<File>>,
    /// The start of a line whose end is still to come.
    partial: Vec<u8>,
}

impl Tail {
    /// From the end of what is there now.
    pub fn new(path: &Path) -> Tail {
        let mut file = mcp_files::open(path, Links::Follow).ok();
        if let Some(file) = &mut file {
            let _ = file.seek(SeekFrom::End(0));
        }
        Tail { path: path.to_owned(), file: file.map(BufReader::new), partial: Vec::new() }
    }

    /// What has come since. A log that was rotated is read to its end, and then the next one.
    pub fn news(&mut self) -> Read {
        // Looked at first: what is written until it is read to its end is not missed.
        let is_rotated = match &self.file {
            Some(file) => !is_same(file.get_ref(), &self.path),
            None => true,
        };
        let mut news = Read::default();
        self.read(&mut news);
        if is_rotated && let Ok(next) = mcp_files::open(&self.path, Links::Follow) {
            self.file = Some(BufReader::new(next));
            self.partial.clear();
            self.read(&mut news);
        }
        news
    }

    fn read(&mut self, news: &mut Read) {
        let Some(file) = &mut self.file else {
            return;
        };
        while file.read_until(b'\n', &mut self.partial).is_ok_and(|read| read > 0) {
            if !self.partial.ends_with(b"\n") {
                break;
            }
            news.take(&self.partial);
            self.partial.clear();
        }
    }
}

#[cfg(unix)]
fn is_same(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(open), Ok(named)) => (open.dev(), open.ino()) == (named.dev(), named.ino()),
        // Between two files: the next one is not there yet.
        _ => true,
    }
}

/// Shorter than what was read: another one.
#[cfg(not(unix))]
fn is_same(mut file: &File, path: &Path) -> bool {
    match (file.stream_position(), std::fs::metadata(path)) {
        (Ok(position), Ok(named)) => named.len() >= position,
        _ => true,
    }
}
