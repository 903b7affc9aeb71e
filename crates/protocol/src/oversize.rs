//! A line that is too long to be kept is skimmed for the one thing that a client may wait for: its id.

use crate::id::Id;
use crate::json;

/// More is no id anybody uses, and is not kept.
const LONGEST: usize = 256;

#[derive(Debug, Default)]
pub(crate) struct Skimmer {
    bytes: u64,
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// The string or number at the top that is being read.
    word: Vec<u8>,
    name: Vec<u8>,
    id: Option<Id>,
    has_method: bool,
}

/// What is known of a line that was not kept.
pub(crate) struct Skimmed {
    pub(crate) bytes: u64,
    pub(crate) id: Option<Id>,
    pub(crate) has_method: bool,
}

impl Skimmer {
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        for byte in bytes {
            self.step(*byte);
        }
    }

    pub(crate) fn end(mut self) -> Skimmed {
        self.value();
        Skimmed { bytes: self.bytes, id: self.id, has_method: self.has_method }
    }

    fn step(&mut self, byte: u8) {
        let keep = self.depth == 1 && self.word.len() < LONGEST;
        if self.in_string {
            if keep {
                self.word.push(byte);
            }
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return;
        }
        match byte {
            b'"' => {
                self.in_string = true;
                if keep {
                    self.word.push(byte);
                }
            }
            b'{' | b'[' => self.depth += 1,
            b'}' | b']' => {
                if self.depth == 1 {
                    self.value();
                }
                self.depth = self.depth.saturating_sub(1);
            }
            b':' if self.depth == 1 => {
                self.name = std::mem::take(&mut self.word);
                self.has_method |= self.name == b"\"method\"";
            }
            b',' if self.depth == 1 => self.value(),
            _ if keep && !byte.is_ascii_whitespace() => self.word.push(byte),
            _ => {}
        }
    }

    fn value(&mut self) {
        if self.name == b"\"id\"" && json::check(&self.word).is_ok() {
            self.id = Id::read(&self.word, 0..self.word.len());
        }
        self.name.clear();
        self.word.clear();
    }
}
