//! Reads the log back, the rotated parts first.

use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::Entry;
use super::file::{KEPT, numbered};

/// All lines that are whole, as they are and parsed; what is not ours is passed over.
pub fn all(path: &Path) -> Vec<(String, Entry)> {
    let mut parts: Vec<_> = (1..=KEPT).rev().map(|number| numbered(path, number)).collect();
    parts.push(path.to_owned());
    parts
        .iter()
        .filter_map(|part| File::open(part).ok())
        .flat_map(|file| lines(&mut BufReader::new(file)))
        .collect()
}

fn lines(from: &mut impl BufRead) -> Vec<(String, Entry)> {
    let mut found = Vec::new();
    let mut line = String::new();
    while from.read_line(&mut line).is_ok_and(|read| read > 0) {
        if let Ok(entry) = serde_json::from_str(&line) {
            found.push((line.trim_end().to_owned(), entry));
        }
        line.clear();
    }
    found
}

/// Somebody who reads on as lines come.
pub struct Tail {
    path: PathBuf,
    file: Option<BufReader<File>>,
    /// The start of a line whose end is still to come.
    partial: String,
}

impl Tail {
    /// From the end of what is there now.
    pub fn new(path: &Path) -> Tail {
        let mut file = File::open(path).ok();
        if let Some(file) = &mut file {
            let _ = file.seek(SeekFrom::End(0));
        }
        Tail { path: path.to_owned(), file: file.map(BufReader::new), partial: String::new() }
    }

    /// What has come since. A log that was rotated is read to its end, and then the next one.
    pub fn news(&mut self) -> Vec<(String, Entry)> {
        // Looked at first: what is written until it is read to its end is not missed.
        let is_rotated = match &self.file {
            Some(file) => !is_same(file.get_ref(), &self.path),
            None => true,
        };
        let mut news = self.read();
        if is_rotated && let Ok(next) = File::open(&self.path) {
            self.file = Some(BufReader::new(next));
            self.partial.clear();
            news.extend(self.read());
        }
        news
    }

    fn read(&mut self) -> Vec<(String, Entry)> {
        let mut found = Vec::new();
        let Some(file) = &mut self.file else {
            return found;
        };
        while file.read_line(&mut self.partial).is_ok_and(|read| read > 0) {
            if !self.partial.ends_with('\n') {
                break;
            }
            if let Ok(entry) = serde_json::from_str(&self.partial) {
                found.push((self.partial.trim_end().to_owned(), entry));
            }
            self.partial.clear();
        }
        found
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
