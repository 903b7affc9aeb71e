//! The one string that Windows hands to a program for its arguments. Pure.
//!
//! Ordinary programs take it apart by the rules of Microsoft's C library. Batch files get it through cmd.exe,
//! which has rules of its own, and has been made to run what was meant as an argument; what cannot be said to it
//! safely is refused.

use std::ffi::{OsStr, OsString};

/// Why an argument cannot be given.
pub type QuotingError = &'static str;

/// For a program that is started itself.
pub fn of_program(program: &OsStr, arguments: &[OsString]) -> Result<OsString, QuotingError> {
    let mut line = OsString::new();
    // Nothing is escaped in the first word: it ends at the next quote.
    let name = program.to_string_lossy();
    if name.contains(['"', '\0']) {
        return Err("has a quote or a NUL in its name");
    }
    line.push("\"");
    line.push(program);
    line.push("\"");
    for argument in arguments {
        line.push(" ");
        append_quoted(&mut line, argument)?;
    }
    Ok(line)
}

/// For a batch file, run by cmd.exe: `cmd /d /s /c ""script" "argument""`.
pub fn of_batch(script: &OsStr, arguments: &[OsString]) -> Result<OsString, QuotingError> {
    let mut line = OsString::from("cmd.exe /d /v:off /s /c \"");
    for (number, word) in
        std::iter::once(script).chain(arguments.iter().map(OsString::as_os_str)).enumerate()
    {
        let text =
            word.to_str().ok_or("is not valid Unicode, which a batch file cannot be given")?;
        if text.contains(['"', '%', '\r', '\n', '\0']) {
            return Err(
                "has a quote, a percent sign or a line break in it, which cmd.exe would obey; \
                        start the program behind the batch file instead",
            );
        }
        if text.ends_with('\\') {
            return Err(
                "ends in a backslash, which a batch file's program would take for an escape",
            );
        }
        if number > 0 {
            line.push(" ");
        }
        line.push("\"");
        line.push(text);
        line.push("\"");
    }
    line.push("\"");
    Ok(line)
}

/// The words of a text for cmd.exe, which takes it apart itself: `cmd /d /v:off /s /c "text"`. `None` for other words.
pub fn of_shell(program: &OsStr, arguments: &[OsString]) -> Option<Result<OsString, QuotingError>> {
    let [flags @ .., text] = arguments else { return None };
    let name = program.to_str()?.rsplit(['\\', '/']).next()?;
    let is_text = name.eq_ignore_ascii_case("cmd.exe") && flags == ["/d", "/v:off", "/s", "/c"];
    is_text.then(|| {
        let text = text.to_str().ok_or("is not valid Unicode, which cmd.exe cannot be given")?;
        if text.contains(['\r', '\n', '\0']) {
            return Err(
                "has a line break in it, behind which cmd.exe reads nothing; join lines with &&",
            );
        }
        let program = program.to_string_lossy();
        Ok(format!("\"{program}\" /d /v:off /s /c \"{text}\"").into())
    })
}

fn append_quoted(line: &mut OsString, argument: &OsStr) -> Result<(), QuotingError> {
    let bytes = argument.as_encoded_bytes();
    if bytes.contains(&0) {
        return Err("has a NUL in it");
    }
    let is_plain = !bytes.is_empty() && !bytes.iter().any(|byte| b" \t\n\x0b\"".contains(byte));
    if is_plain {
        line.push(argument);
        return Ok(());
    }
    // Split at quotes only, so that text of any kind stays as it is.
    let Some(text) = argument.to_str() else {
        if bytes.contains(&b'"') {
            return Err("is not valid Unicode and has a quote in it");
        }
        line.push("\"");
        line.push(argument);
        line.push("\\".repeat(trailing_backslashes(bytes)));
        line.push("\"");
        return Ok(());
    };
    line.push("\"");
    let mut pieces = text.split('"').peekable();
    while let Some(piece) = pieces.next() {
        line.push(piece);
        line.push("\\".repeat(trailing_backslashes(piece.as_bytes())));
        if pieces.peek().is_some() {
            line.push("\\\"");
        }
    }
    line.push("\"");
    Ok(())
}

fn trailing_backslashes(bytes: &[u8]) -> usize {
    bytes.iter().rev().take_while(|byte| **byte == b'\\').count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What Microsoft's C library makes of a command line (since 2008).
    fn taken_apart(line: &str) -> Vec<String> {
        let mut words = Vec::new();
        let rest = line.strip_prefix('"').unwrap();
        let (program, rest) = rest.split_once('"').unwrap();
        words.push(program.to_owned());
        let mut rest = rest.chars().peekable();
        loop {
            while rest.next_if(|c| *c == ' ' || *c == '\t').is_some() {}
            if rest.peek().is_none() {
                return words;
            }
            let (mut word, mut quoted) = (String::new(), false);
            loop {
                let mut backslashes = 0;
                while rest.next_if_eq(&'\\').is_some() {
                    backslashes += 1;
                }
                if rest.peek() == Some(&'"') {
                    word.push_str(&"\\".repeat(backslashes / 2));
                    rest.next();
                    let is_escaped = backslashes % 2 == 1;
                    if is_escaped || (quoted && rest.next_if_eq(&'"').is_some()) {
                        word.push('"');
                    } else {
                        quoted = !quoted;
                    }
                    continue;
                }
                word.push_str(&"\\".repeat(backslashes));
                match rest.peek() {
                    None => break,
                    Some(' ' | '\t') if !quoted => break,
                    Some(c) => word.push(*c),
                }
                rest.next();
            }
            words.push(word);
        }
    }

    proptest! {
        #[test]
        fn every_argument_arrives(arguments in prop::collection::vec(r#"[ab"\\ \t^&%!]{0,8}"#, 0..6)) {
            let given: Vec<OsString> = arguments.iter().map(OsString::from).collect();
            let line = of_program(OsStr::new(r"C:\a b\x.exe"), &given).unwrap();
            let heard = taken_apart(line.to_str().unwrap());
            prop_assert_eq!(&heard[0], r"C:\a b\x.exe");
            prop_assert_eq!(&heard[1..], &arguments[..]);
        }

        /// Between the outer quotes there are only quoted words: nothing that cmd.exe would obey.
        #[test]
        fn a_batch_file_hears_words_only(arguments in prop::collection::vec(r#"[ab"\\ ^&|<>%!\n()]{0,8}"#, 0..6)) {
            let given: Vec<OsString> = arguments.iter().map(OsString::from).collect();
            if let Ok(line) = of_batch(OsStr::new(r"C:\x y\npx.cmd"), &given) {
                let line = line.into_string().unwrap();
                let inner = line.strip_prefix("cmd.exe /d /v:off /s /c \"").unwrap().strip_suffix('"').unwrap();
                let outside: String = inner.split('"').step_by(2).collect();
                prop_assert!(outside.chars().all(|c| c == ' '), "{}", inner);
                prop_assert!(!inner.contains(['%', '\n']));
            }
        }
    }

    #[test]
    fn what_cannot_be_said_is_refused() {
        let words = |word: &str| vec![OsString::from(word)];
        assert!(of_program(OsStr::new("a\"b"), &[]).is_err());
        assert!(of_program(OsStr::new("a"), &words("a\0b")).is_err());
        for word in ["%PATH%", "a\"&calc", "a\nb", "a\\"] {
            assert!(of_batch(OsStr::new("x.cmd"), &words(word)).is_err(), "{word:?}");
        }
        let shell = |text: &str| {
            let flags = ["/d", "/v:off", "/s", "/c", text].map(OsString::from);
            of_shell(OsStr::new(r"C:\Windows\System32\cmd.exe"), &flags)
        };
        let line = shell(r#"echo "a" && exit 3"#).unwrap().unwrap();
        assert_eq!(line, r#""C:\Windows\System32\cmd.exe" /d /v:off /s /c "echo "a" && exit 3""#);
        assert!(shell("a\nb").unwrap().is_err());
        assert!(of_shell(OsStr::new(r"C:\x.exe"), &words("a")).is_none());
        let line = of_batch(OsStr::new(r"C:\x.cmd"), &words("a & b")).unwrap();
        assert_eq!(line, r#"cmd.exe /d /v:off /s /c ""C:\x.cmd" "a & b"""#);
    }
}
