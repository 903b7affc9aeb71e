//! Words from outside (names of files, hosts and packages, what servers say, errors that quote them) on their way to a
//! terminal. A terminal obeys control characters, and shows what it has in another order, or not at all, for others.

/// A control character, one that changes the direction of the text around it, or an invisible one.
pub fn is_unseen(c: char) -> bool {
    !c.is_ascii_graphic() && c != ' ' && (c.is_control() || is_invisible(c))
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

/// A word: what is not seen is written out, the end of a line too, which could pass for a line of ours.
pub fn word(text: &str) -> String {
    escaped(text, |c| is_unseen(c).then(|| c.escape_default().to_string()))
}

/// A text of several lines, with its ends of lines.
pub fn lines(text: &str) -> String {
    escaped(text, |c| (c != '\n' && is_unseen(c)).then(|| c.escape_default().to_string()))
}

/// JSON that was written by a serializer: such characters can only be in strings, and mean the same there when
/// they are written out.
pub fn serialized(text: &str) -> String {
    let unit = |c: char| {
        let mut units = [0; 2];
        c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")).collect::<String>()
    };
    escaped(text, |c| (!matches!(c, '\n' | '\t' | '\r') && is_unseen(c)).then(|| unit(c)))
}

fn escaped(text: &str, escape: impl Fn(char) -> Option<String>) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match escape(c) {
            Some(written) => out.push_str(&written),
            None => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_not_seen_is_written_out() {
        for (text, shown) in [
            ("plain name-1.txt", "plain name-1.txt"),
            ("ä 名 🦀", "ä 名 🦀"),
            ("\x1b[2J\x1b]0;x\x07", "\\u{1b}[2J\\u{1b}]0;x\\u{7}"),
            ("a\nmcp: b\r\tc", "a\\nmcp: b\\r\\tc"),
            ("txt.\u{202e}gpj.exe", "txt.\\u{202e}gpj.exe"),
            ("\u{9b}31m\u{7f}", "\\u{9b}31m\\u{7f}"),
            ("a\u{200b}b\u{2066}c\u{e0041}\u{feff}", "a\\u{200b}b\\u{2066}c\\u{e0041}\\u{feff}"),
        ] {
            assert_eq!(word(text), shown);
        }
        assert_eq!(lines("a\nb\u{202e}"), "a\nb\\u{202e}");
    }

    proptest! {
        #[test]
        fn nothing_unseen_is_left(text: String) {
            prop_assert!(!word(&text).chars().any(is_unseen));
            prop_assert!(!lines(&text).chars().any(|c| c != '\n' && is_unseen(c)));
            let json = serialized(&serde_json::to_string(&text).unwrap());
            prop_assert!(!json.chars().any(is_unseen));
            prop_assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
        }
    }
}
