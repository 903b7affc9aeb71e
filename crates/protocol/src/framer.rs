//! Cuts a stream into lines, of which none takes more memory than the bound.

use crate::Id;
use crate::oversize::{Skimmed, Skimmer};

/// Collects bytes until a line is whole.
#[derive(Debug)]
pub struct Framer {
    max: usize,
    partial: Vec<u8>,
    skimming: Option<Skimmer>,
}

/// What a line turned out to be.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Frame<'a> {
    /// A whole line, without its line feed.
    Line(&'a [u8]),
    /// A line beyond the bound, which was not kept.
    TooLong {
        /// How long it was.
        bytes: u64,
        /// The id at its top, and whether it named a method, for whoever waits for an answer.
        id: Option<Id>,
        /// Whether it was a request or a notification, not an answer.
        has_method: bool,
    },
    /// What stood at the end of the stream without a line feed.
    Unfinished(&'a [u8]),
}

impl From<Skimmed> for Frame<'_> {
    fn from(Skimmed { bytes, id, has_method }: Skimmed) -> Self {
        Frame::TooLong { bytes, id, has_method }
    }
}

impl Framer {
    /// No line may be longer than `max` bytes.
    #[must_use]
    pub fn new(max: usize) -> Framer {
        Framer { max, partial: Vec::new(), skimming: None }
    }

    /// Hands every line that is whole now to `each`, in order.
    pub fn feed(&mut self, mut bytes: &[u8], mut each: impl FnMut(Frame<'_>)) {
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            let (line, rest) = (&bytes[..end], &bytes[end + 1..]);
            bytes = rest;
            if self.partial.is_empty() && self.skimming.is_none() && line.len() <= self.max {
                each(Frame::Line(line));
                continue;
            }
            self.add(line);
            match self.skimming.take() {
                Some(skimmer) => each(skimmer.end().into()),
                None => each(Frame::Line(&self.partial)),
            }
            self.forget();
        }
        self.add(bytes);
    }

    /// The end of the stream: what was left without a line feed.
    pub fn end(&mut self, each: impl FnOnce(Frame<'_>)) {
        match self.skimming.take() {
            Some(skimmer) => each(skimmer.end().into()),
            None if self.partial.is_empty() => {}
            None => each(Frame::Unfinished(&self.partial)),
        }
        self.forget();
    }

    /// Keeps nothing of the line that is not whole: it comes out as [`Frame::TooLong`], with its id.
    pub fn give_up(&mut self) {
        if self.skimming.is_none() && !self.partial.is_empty() {
            self.skim(&[]);
        }
    }

    /// How many bytes are kept now.
    #[must_use]
    pub fn held(&self) -> usize {
        self.partial.len()
    }

    fn add(&mut self, bytes: &[u8]) {
        if let Some(skimmer) = &mut self.skimming {
            return skimmer.feed(bytes);
        }
        if self.partial.len() + bytes.len() <= self.max {
            return self.partial.extend_from_slice(bytes);
        }
        self.skim(bytes);
    }

    fn skim(&mut self, bytes: &[u8]) {
        let mut skimmer = Skimmer::default();
        skimmer.feed(&self.partial);
        skimmer.feed(bytes);
        self.forget();
        self.skimming = Some(skimmer);
    }

    /// A large message must not leave its room taken for the rest of a long connection.
    fn forget(&mut self) {
        self.partial.clear();
        self.partial.shrink_to(64 << 10);
    }
}
