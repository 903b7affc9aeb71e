//! One line of text with a caret under a part of it, safe to print on a terminal.
//!
//! The text is foreign: control and bidirectional characters are replaced, tabs widened,
//! long lines cut around the span, and secret values masked.

use std::ops::Range;

use crate::text::is_unseen;

/// Terminal columns shown of a long line.
const WINDOW: usize = 100;

/// A printable line and the columns of the bad part in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Excerpt {
    pub line: String,
    start: usize,
    width: usize,
}

impl Excerpt {
    /// `span` and `masks` are byte ranges of `text`; the line shown is the one `span`
    /// starts in.
    pub fn new(text: &str, span: Range<usize>, masks: &[Range<usize>]) -> Self {
        let at = floor_char(text, span.start);
        let line_start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let line_end = text[at..].find('\n').map_or(text.len(), |newline| at + newline);
        let line = text[line_start..line_end].trim_end_matches('\r');

        // A line may be a megabyte long; only this much of it can end up in the window.
        let near = floor_char(line, (at - line_start).saturating_sub(4 * WINDOW))
            ..floor_char(line, at - line_start + 8 * WINDOW);

        let mut cells = Vec::new();
        let mut bad = None;
        let mut bad_end = 0;
        for (offset, c) in line[near.clone()].char_indices() {
            let here = line_start + near.start + offset;
            let (c, width) =
                if masks.iter().any(|mask| mask.contains(&here)) { ('*', 1) } else { printable(c) };
            if here >= at && (here < span.end || bad.is_none()) {
                bad.get_or_insert(cells.len());
                bad_end = cells.len() + 1;
            }
            cells.push((c, width));
        }
        let bad = bad.map_or(cells.len()..cells.len(), |start| start..bad_end);
        Self::windowed(&cells, bad, near.start > 0, near.end < line.len())
    }

    fn windowed(
        cells: &[(char, usize)],
        bad: Range<usize>,
        cut_before: bool,
        cut_after: bool,
    ) -> Self {
        let columns = |range: &[(char, usize)]| range.iter().map(|(_, width)| width).sum::<usize>();
        let (mut from, mut to) = (0, cells.len());
        if columns(cells) > WINDOW {
            from = bad.start.saturating_sub(WINDOW / 3);
            to = (from + WINDOW).min(cells.len());
        }
        let mut line = String::new();
        let mut start = 0;
        if from > 0 || cut_before {
            line.push('…');
            start = 1;
        }
        for (c, width) in &cells[from..to] {
            match c {
                '\t' => (0..*width).for_each(|_| line.push(' ')),
                c => line.push(*c),
            }
        }
        if to < cells.len() || cut_after {
            line.push('…');
        }
        start += columns(&cells[from..bad.start]);
        // At the end of a line there is nothing to point at, but one caret still shows where.
        let width = columns(&cells[bad.start..bad.end.min(to)]).max(1);
        Self { line, start, width }
    }

    /// The line below: carets, then the remedy.
    pub fn carets(&self, hint: &str) -> String {
        let mut below = " ".repeat(self.start) + &"^".repeat(self.width);
        if !hint.is_empty() {
            below.push(' ');
            below.push_str(hint);
        }
        below
    }
}

fn printable(c: char) -> (char, usize) {
    match c {
        '\t' => ('\t', 4),
        c if is_unseen(c) => ('\u{FFFD}', 1),
        c => (c, width(c)),
    }
}

/// Columns a terminal gives to a character: close enough to place a caret, without tables.
fn width(c: char) -> usize {
    match u32::from(c) {
        0x300..=0x36F | 0x200B..=0x200D | 0xFE00..=0xFE0F => 0,
        0x1100..=0x115F
        | 0x2E80..=0xA4CF
        | 0xAC00..=0xD7A3
        | 0xF900..=0xFAFF
        | 0xFE30..=0xFE6F
        | 0xFF00..=0xFF60
        | 0xFFE0..=0xFFE6
        | 0x1F300..=0x1F64F
        | 0x1F900..=0x1F9FF
        | 0x20000..=0x3FFFD => 2,
        _ => 1,
    }
}

/// The largest character boundary that is not behind `at`.
pub(crate) fn floor_char(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(text: &str, bad: &str) -> String {
        let start = text.find(bad).unwrap();
        let excerpt = Excerpt::new(text, start..start + bad.len(), &[]);
        format!("{}\n{}", excerpt.line, excerpt.carets(""))
    }

    #[test]
    fn tabs_and_wide_characters_keep_the_caret_in_place() {
        assert_eq!(shown("\tx = 'bad'", "bad"), "    x = 'bad'\n         ^^^");
        assert_eq!(shown("日本 bad", "bad"), "日本 bad\n     ^^^");
        assert_eq!(shown("e\u{301} bad", "bad"), "e\u{301} bad\n  ^^^");
    }

    #[test]
    fn carriage_return_is_not_part_of_the_line() {
        assert_eq!(shown("one\r\ntwo bad\r\nthree", "bad"), "two bad\n    ^^^");
    }

    #[test]
    fn long_lines_are_cut_around_the_span() {
        let text = format!("{}bad{}", "a".repeat(5000), "b".repeat(5000));
        let shown = shown(&text, "bad");
        let (line, carets) = shown.split_once('\n').unwrap();
        assert!(line.chars().count() <= WINDOW + 2, "{line}");
        let column = carets.find('^').unwrap();
        let under: String = line.chars().skip(column).take(3).collect();
        assert_eq!(under, "bad");
    }

    #[test]
    fn escape_sequences_do_not_reach_the_terminal() {
        assert!(!shown("\u{1b}[2J bad \u{202E}", "bad").contains(['\u{1b}', '\u{202E}']));
    }

    #[test]
    fn masked_text_is_not_shown() {
        let excerpt = Excerpt::new("k = 'hunter2'", 0..1, std::slice::from_ref(&(5..12)));
        assert_eq!(excerpt.line, "k = '*******'");
    }

    proptest! {
        #[test]
        fn any_span_of_any_text_can_be_shown(text in "\\PC*|.*\n.*", a in 0usize..80, b in 0usize..80) {
            let excerpt = Excerpt::new(&text, a.min(b)..a.max(b), &[]);
            prop_assert!(excerpt.carets("x").contains('^'));
        }
    }
}
