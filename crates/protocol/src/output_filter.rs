//! A server's standard output on the way to its client: what is no JSON breaks clients, and goes to standard error.

use crate::json;

/// Where a piece goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Destination {
    /// To the client.
    Client,
    /// To standard error.
    Stderr,
}

/// Parts lines that are JSON from lines that are not, byte for byte and in order.
///
/// A line that is longer than the bound cannot be kept until its end: it passes where it begins as an object does.
#[derive(Debug)]
pub struct OutputFilter {
    max: usize,
    partial: Vec<u8>,
    /// Where the rest of a line goes whose beginning is gone already.
    going: Option<Destination>,
    diverted: u64,
}

impl OutputFilter {
    /// A line of up to `max` bytes is judged as a whole.
    #[must_use]
    pub fn new(max: usize) -> OutputFilter {
        OutputFilter { max, partial: Vec::new(), going: None, diverted: 0 }
    }

    /// How many lines were no JSON up to now.
    #[must_use]
    pub fn diverted(&self) -> u64 {
        self.diverted
    }

    /// Hands on what can be judged now. The pieces of both destinations together are the input.
    pub fn feed(&mut self, bytes: &[u8], mut each: impl FnMut(Destination, &[u8])) {
        let mut rest = bytes;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            let (line, after) = rest.split_at(end + 1);
            rest = after;
            self.line(line, &mut each);
        }
        self.keep(rest, &mut each);
    }

    /// The end of the output: what stands there without a line feed passes if it is JSON.
    pub fn end(&mut self, mut each: impl FnMut(Destination, &[u8])) {
        self.going = None;
        if !self.partial.is_empty() {
            let partial = std::mem::take(&mut self.partial);
            each(self.judge(&partial), &partial);
        }
    }

    fn line(&mut self, line: &[u8], each: &mut impl FnMut(Destination, &[u8])) {
        if self.going.is_none() && self.partial.is_empty() && line.len() <= self.max {
            return each(self.judge(line), line);
        }
        self.keep(line, each);
        if self.going.take().is_none() {
            let whole = std::mem::take(&mut self.partial);
            each(self.judge(&whole), &whole);
        }
    }

    fn keep(&mut self, bytes: &[u8], each: &mut impl FnMut(Destination, &[u8])) {
        if let Some(going) = self.going {
            if !bytes.is_empty() {
                each(going, bytes);
            }
            return;
        }
        self.partial.extend_from_slice(bytes);
        if self.partial.len() > self.max {
            let begun = std::mem::take(&mut self.partial);
            let going = if begins_as_message(&begun) {
                Destination::Client
            } else {
                self.diverted += 1;
                Destination::Stderr
            };
            self.going = Some(going);
            each(going, &begun);
        }
    }

    /// An empty line is no message and does no harm: clients skip it.
    fn judge(&mut self, line: &[u8]) -> Destination {
        let is_empty = line.iter().all(u8::is_ascii_whitespace);
        if is_empty || (begins_as_message(line) && json::check(line).is_ok()) {
            return Destination::Client;
        }
        self.diverted += 1;
        Destination::Stderr
    }
}

/// A bare number or string is JSON, and still no message.
fn begins_as_message(line: &[u8]) -> bool {
    matches!(line.iter().find(|byte| !byte.is_ascii_whitespace()), Some(b'{' | b'['))
}
