//! `*` and `?` over texts whose parts may be unknown.

use crate::tri::Tri;
use crate::value::{Piece, Value};

/// Stands for an unknown part: a private-use character that no text of ours holds.
const UNKNOWN: char = '\u{f8ff}';

/// Beyond it an unknown part is not weighed against a pattern, only taken for possible.
const LONGEST_WEIGHED: usize = 4096;

/// Whether it matters that something unknown could match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weigh {
    SureOnly,
    Possible,
}

/// Whether a text matches: `*` is any run, `?` any character.
pub fn matches(pattern: &str, text: &str) -> bool {
    if !pattern.contains(['*', '?']) {
        return pattern == text;
    }
    run(pattern, text)
}

fn run(pattern: &str, text: &str) -> bool {
    mcp_policy::wildcard::matches(
        pattern.chars(),
        text.chars(),
        |wanted| *wanted == '*',
        |wanted, found| *found != UNKNOWN && (*wanted == '?' || wanted == found),
    )
}

/// Whether a value matches whatever its unknown parts are, or could.
pub fn matches_value(pattern: &str, value: &Value, weigh: Weigh) -> Tri {
    if let Some(known) = value.known() {
        return matches(pattern, &known).into();
    }
    let mut text = String::new();
    let mut open = false;
    for piece in &value.pieces {
        match piece {
            Piece::Text(known) => text.push_str(known),
            Piece::Glob(glob) => {
                // A glob that matches nothing stays as it is written.
                open = true;
                text.extend(glob.chars().map(|_| UNKNOWN));
            }
            Piece::Home => text.push('~'),
            Piece::Name | Piece::Unknown | Piece::Many | Piece::Fetched => {
                open = true;
                text.push(UNKNOWN);
            }
        }
    }
    if run(pattern, &text) {
        return Tri::Yes;
    }
    if !open || weigh == Weigh::SureOnly {
        return Tri::No;
    }
    if text.len() > LONGEST_WEIGHED {
        return Tri::Maybe;
    }
    let (pattern, text): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), text.chars().collect());
    if could_meet(&pattern, &text) { Tri::Maybe } else { Tri::No }
}

/// Whether two texts with gaps (`*` in one, unknown in the other) have a common reading.
fn could_meet(pattern: &[char], text: &[char]) -> bool {
    // Row by row over the pattern: which prefixes of the text it can meet.
    let mut row = vec![false; text.len() + 1];
    row[0] = true;
    for t in 0..text.len() {
        row[t + 1] = row[t] && text[t] == UNKNOWN;
    }
    for &p in pattern {
        let mut next = vec![false; text.len() + 1];
        next[0] = p == '*' && row[0];
        for (t, &c) in text.iter().enumerate() {
            next[t + 1] = match (p, c) {
                ('*', _) => row[t + 1] || next[t] || row[t],
                (_, UNKNOWN) => row[t + 1] || next[t] || row[t],
                ('?', _) => row[t],
                (p, c) => row[t] && p == c,
            };
        }
        row = next;
    }
    row[text.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain() {
        assert!(matches("mkfs*", "mkfs.ext4"));
        assert!(matches("a?c", "abc"));
        assert!(!matches("a?c", "ac"));
        assert!(matches("*x*", "axb"));
        assert!(!matches("*x", "xa"));
    }

    #[test]
    fn with_gaps() {
        let value = |pieces: &[Piece]| Value { pieces: pieces.to_vec() };
        let text = |text: &str| Piece::Text(text.to_owned());
        let is =
            |pattern, pieces: &[Piece]| matches_value(pattern, &value(pieces), Weigh::Possible);
        assert_eq!(is("*a(*", &[text("a("), Piece::Unknown]), Tri::Yes);
        assert_eq!(is("ab", &[text("a"), Piece::Unknown]), Tri::Maybe);
        assert_eq!(is("xb", &[text("a"), Piece::Unknown]), Tri::No);
        assert_eq!(is("", &[Piece::Unknown]), Tri::Maybe);
    }
}
