//! Characters that make a text look like another than it is.

use std::ops::Range;

use mcp_policy::text::is_invisible;

use crate::language::Shell;

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
///
/// Accented Latin letters, and names wholly in another script, are what people use. Mixed with
/// ASCII letters, or made of look-alikes alone, another script is a disguise; and so are the
/// styled, small and wide forms of Latin letters and blanks that are none to a shell.
pub fn look_alike(name: &str) -> bool {
    if name.is_ascii() {
        return false;
    }
    let foreign: Vec<char> =
        name.chars().filter(|c| !c.is_ascii() && !is_accented_latin(*c)).collect();
    let has_ascii_letter = name.chars().any(|c| c.is_ascii_alphabetic());
    let disguises =
        |c: &char| c.is_whitespace() || is_invisible(*c) || is_combining(*c) || is_styled_latin(*c);
    foreign.iter().any(disguises)
        || has_ascii_letter && foreign.iter().any(|c| c.is_alphanumeric() && !is_ideograph(*c))
        || !foreign.is_empty()
            && foreign.iter().filter(|c| c.is_alphabetic()).all(|c| looks_latin(*c))
}

/// `é`, `ß`, `ž`: other letters than `e`, `B`, `z` to everybody. Not the dotless ones.
fn is_accented_latin(c: char) -> bool {
    matches!(c, '\u{c0}'..='\u{17f}') && !matches!(c, '×' | '÷' | 'ı' | 'ſ' | 'ĸ' | 'ŀ' | 'ŉ')
}

/// Marks that are drawn over the letter before them.
fn is_combining(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{1ab0}'..='\u{1aff}' | '\u{20d0}'..='\u{20ff}')
}

/// Chinese, Japanese and Korean look like no Latin letter.
fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}'
        | '\u{20000}'..='\u{323af}')
}

/// Latin letters in other clothes: small capitals, wide, mathematical, circled, Roman numerals.
fn is_styled_latin(c: char) -> bool {
    matches!(c,
        '\u{131}' | '\u{138}' | '\u{17f}' | '\u{180}'..='\u{2ff}' | '\u{1d00}'..='\u{1dbf}'
        | '\u{2100}'..='\u{218f}' | '\u{2460}'..='\u{24ff}' | '\u{2c60}'..='\u{2c7f}'
        | '\u{a720}'..='\u{a7ff}' | '\u{ab30}'..='\u{ab6f}' | '\u{ff01}'..='\u{ff5e}'
        | '\u{1d400}'..='\u{1d7ff}' | '\u{1f100}'..='\u{1f1ff}' | '∕' | '⁄' | '․' | '‐'..='―')
}

/// Letters of other alphabets that are drawn as Latin ones are.
fn looks_latin(c: char) -> bool {
    "аеорсухіјѕԁԛԝһӏгпктмнвьАВЕКМНОРСТХІЈЅУ".contains(c)
        || "αινορυχϲϳκτωΑΒΕΖΗΙΚΜΝΟΡΤΥΧ".contains(c)
        || "ոսօհցքԼՕՍ".contains(c)
        || matches!(c, '\u{13a0}'..='\u{13ff}' | '\u{a4d0}'..='\u{a4ff}' | '\u{2c80}'..='\u{2cff}')
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
        for name in [
            "ϲurl",
            "сurl",
            "гm",
            "вash",
            "ꓳpenssl",
            "ᎡᎷ",
            "ɢit",
            "sսdo",
            "ｂａｓｈ",
            "r\u{301}m",
            "ѕһ",
            "𝗋𝗆",
        ] {
            assert!(look_alike(name), "{name}");
        }
    }

    #[test]
    fn what_people_write() {
        assert!(rules("git commit -m '✔️ fertig 👩‍💻 größer'").is_empty());
        assert!(rules("echo 1️⃣").is_empty());
        assert!(!look_alike("größe.sh"));
        assert!(!look_alike("ls"));
        for name in ["größe.sh", "café", "naïve.py", "запуск", "ビルド.sh", "빌드", "构建.sh"]
        {
            assert!(!look_alike(name), "{name}");
        }
    }
}
