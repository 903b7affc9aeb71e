//! Replaces spans of a text; every other byte stays.

use std::ops::Range;

/// `text` with each span replaced. The spans do not overlap; their order does not matter.
///
/// ```
/// let text = br#"{"id":1,"x":[ 1 ]}"#;
/// assert_eq!(mcp_protocol::edit::replace(text, vec![(6..7, b"42".to_vec())]), br#"{"id":42,"x":[ 1 ]}"#);
/// ```
#[must_use]
pub fn replace(text: &[u8], mut edits: Vec<(Range<usize>, Vec<u8>)>) -> Vec<u8> {
    edits.sort_by_key(|(span, _)| span.start);
    let mut out = Vec::with_capacity(text.len() + 32);
    let mut at = 0;
    for (span, new) in edits {
        out.extend_from_slice(&text[at..span.start]);
        out.extend_from_slice(&new);
        at = span.end;
    }
    out.extend_from_slice(&text[at..]);
    out
}
