//! Replacements of places in a text.

use std::ops::Range;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Splice {
    pub range: Range<usize>,
    pub with: String,
}

impl Splice {
    pub fn new(range: Range<usize>, with: impl Into<String>) -> Splice {
        Splice { range, with: with.into() }
    }

    pub fn insert(at: usize, with: impl Into<String>) -> Splice {
        Splice::new(at..at, with)
    }
}

/// All of them at once; several insertions at one place stay in their order. `None` where two overlap.
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
