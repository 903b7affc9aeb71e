//! Characters that make a text look like another than it is.

use std::ops::Range;

use crate::context::Shell;

/// Rules and the places they are about.
pub fn suspicious(text: &str, shell: Shell) -> Vec<(&'static str, Range<usize>)> {
    if text.bytes().all(|byte| matches!(byte, b'\t' | b'\n' | 0x20..=0x7e)) {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut before = None;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map(|(_, c)| *c);
        let span = at..at + c.len_utf8();
        let line_end = c == '\r' && next == Some('\n') && shell != Shell::Bash;
        if is_control(c) && !line_end {
            found.push(("control-character", span));
        } else if is_invisible(c) && !joins(c, before, next) {
            found.push(("invisible-character", span));
        }
        before = Some(c);
    }
    // One of each tells as much as a thousand.
    found.dedup_by_key(|(rule, _)| *rule);
    found
}

fn is_control(c: char) -> bool {
    c.is_control() && !matches!(c, '\t' | '\n')
}

/// Nothing to see, or the order of what is seen changed.
pub fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// Emoji and some scripts are written with joiners and selectors between characters of theirs.
fn joins(c: char, before: Option<char>, next: Option<char>) -> bool {
    let foreign = |c: Option<char>| c.is_some_and(|c| !c.is_ascii() && !is_control(c));
    match c {
        '\u{fe0e}' | '\u{fe0f}' => {
            foreign(before) || before.is_some_and(|c| "0123456789#*".contains(c))
        }
        '\u{200c}' | '\u{200d}' => foreign(before) && foreign(next),
        _ => false,
    }
}

/// Whether the name of a program has letters that look like those of another.
pub fn look_alike(name: &str) -> bool {
    if name.is_ascii() {
        return false;
    }
    name.chars().any(|c| {
        // Blanks that are none to a shell, letters of other alphabets that look Latin, and the
        // styled and wide forms of Latin letters.
        c.is_whitespace()
            || is_invisible(c)
            || "аеорсухіјѕԁԛԝһӏАВЕКМНОРСТХІЈЅ".contains(c)
            || "αινορυχϲϳΑΒΕΖΗΙΚΜΝΟΡΤΥΧ".contains(c)
            || matches!(c,
                '\u{ff01}'..='\u{ff5e}' | '\u{1d400}'..='\u{1d7ff}' | '\u{24b6}'..='\u{24e9}'
                | '\u{2100}'..='\u{214f}' | '\u{1f130}'..='\u{1f189}' | '\u{2170}'..='\u{217f}'
                | 'ı' | 'ɡ' | 'ɑ' | 'ո' | 'ս' | 'օ' | 'ꜱ' | 'ᴍ' | 'ʀ' | '∕' | '⁄')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(text: &str) -> Vec<&'static str> {
        suspicious(text, Shell::Bash).into_iter().map(|(rule, _)| rule).collect()
    }

    #[test]
    fn what_hides() {
        assert_eq!(rules("ls \u{202e}txt"), ["invisible-character"]);
        assert_eq!(rules("r\u{200b}m"), ["invisible-character"]);
        assert_eq!(rules("echo \u{1b}[2K"), ["control-character"]);
        assert_eq!(rules("echo a\u{e0041}"), ["invisible-character"]);
        assert!(look_alike("сurl"));
        assert!(look_alike("ｒｍ"));
        assert!(look_alike("rm\u{a0}-rf"));
    }

    #[test]
    fn what_people_write() {
        assert!(rules("git commit -m '✔️ fertig 👩‍💻 größer'").is_empty());
        assert!(rules("echo 1️⃣").is_empty());
        assert!(!look_alike("größe.sh"));
        assert!(!look_alike("ls"));
    }
}
