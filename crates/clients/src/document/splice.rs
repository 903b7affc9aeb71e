//! Replacements of places in a text.

use std::ops::Range;

/// One replacement in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Splice {
    /// The bytes that are replaced.
    pub range: Range<usize>,
    /// The new text in their place.
    pub with: String,
}

impl Splice {
    /// Replaces a range.
    pub fn new(range: Range<usize>, with: impl Into<String>) -> Splice {
        Splice { range, with: with.into() }
    }

    /// Inserts at a place, and replaces nothing.
    pub fn insert(at: usize, with: impl Into<String>) -> Splice {
        Splice::new(at..at, with)
    }
}

/// All of them at once; several insertions at one place stay in their order. `None` where two overlap.
#[must_use]
pub fn apply(text: &str, mut splices: Vec<Splice>) -> Option<String> {
    splices.sort_by_key(|splice| splice.range.start);
    let mut out = String::with_capacity(text.len() + 256);
    let mut done = 0;
    for splice in &splices {
        if splice.range.start < done || splice.range.end < splice.range.start {
            return None;
        }
        out.push_str(text.get(done..splice.range.start)?);
        out.push_str(&splice.with);
        done = splice.range.end;
    }
    out.push_str(text.get(done..)?);
    Some(out)
}
