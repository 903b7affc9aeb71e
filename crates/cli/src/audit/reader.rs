//! Reads the log back, the rotated parts first.

use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom};
use std::path::Path;

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

/// What is behind a position, and the new position. A log that became shorter was rotated.
pub fn since(path: &Path, position: u64) -> (Vec<(String, Entry)>, u64) {
    let Ok(mut file) = File::open(path) else {
        return (Vec::new(), 0);
    };
    let length = file.metadata().map_or(0, |metadata| metadata.len());
    let from = if length < position { 0 } else { position };
    if file.seek(SeekFrom::Start(from)).is_err() {
        return (Vec::new(), position);
    }
    (lines(&mut BufReader::new(file)), length)
}
