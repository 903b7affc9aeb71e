//! The words that have a shell run a text.
//!
//! PowerShell runs it in constrained language mode: no .NET types but a few, no COM, no methods of the
//! system's. The mode is set and read back in the session itself before the text is even parsed there, and
//! cannot be left from inside it. It is a hurdle, not a boundary: a text can start another PowerShell, which the
//! guard refuses and only the sandbox bounds.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::Shell;

/// What a session says that could not be constrained.
const NOT_CONSTRAINED: u8 = 125;

/// Where the caller does not say which: bash, and on Windows PowerShell.
pub fn default_shell() -> Shell {
    if !cfg!(windows) {
        return Shell::Bash;
    }
    if powershell().is_some() { Shell::PowerShell } else { Shell::Cmd }
}

/// The words that have a shell run a command.
pub fn words(command: &str, shell: Shell) -> Vec<OsString> {
    let constrained;
    let words: &[&str] = match shell {
        // A text that begins with a dash is no option.
        Shell::Bash if has_bash() => &["bash", "-c", "--", command],
        Shell::Bash => &["sh", "-c", "--", command],
        Shell::PowerShell => {
            constrained = self::constrained(command);
            let name =
                if powershell().is_some_and(|path| is_old(&path)) { "powershell" } else { "pwsh" };
            &[name, "-NoLogo", "-NoProfile", "-NonInteractive", "-Command", constrained.as_str()]
        }
        Shell::Cmd => &["cmd", "/d", "/v:off", "/s", "/c", command],
    };
    words.iter().map(OsString::from).collect()
}

fn has_bash() -> bool {
    cfg!(windows) || ["/bin/bash", "/usr/bin/bash"].iter().any(|path| Path::new(path).exists())
}

/// A text that constrains its session, and then runs the command in it. The exit code is that of the last
/// program, else 1 where the last command failed, as people expect of a shell.
fn constrained(command: &str) -> String {
    // A statement of its own behind the text, even where that ends in a line continuation.
    let text = literal(&format!("{command}\n\n$global:mcpWorked = $?"));
    format!(
        "$ExecutionContext.SessionState.LanguageMode = 'ConstrainedLanguage'; \
         if ($ExecutionContext.SessionState.LanguageMode -ne 'ConstrainedLanguage') \
         {{ exit {NOT_CONSTRAINED} }}; \
         $global:mcpWorked = $false; \
         Invoke-Expression -Command {text}; \
         if ($global:mcpWorked) {{ exit 0 }}; \
         if ($LASTEXITCODE) {{ exit $LASTEXITCODE }}; \
         exit 1"
    )
}

/// A string of PowerShell's in which nothing is special. Five characters are single quotes to it.
fn literal(text: &str) -> String {
    let mut literal = String::with_capacity(text.len() + 2);
    literal.push('\'');
    for c in text.chars() {
        if matches!(c, '\'' | '\u{2018}' | '\u{2019}' | '\u{201a}' | '\u{201b}') {
            literal.push(c);
        }
        literal.push(c);
    }
    literal.push('\'');
    literal
}

/// Words as one text for a shell that stands for just these words; or why it cannot.
///
/// # Errors
///
/// Where the shell would take a word for something else.
pub fn joined(words: &[String], shell: Shell) -> Result<String, &'static str> {
    let is_plain = |word: &str| {
        !word.is_empty()
            && word.chars().all(|c| c.is_ascii_alphanumeric() || "/._-+=:@,~\\".contains(c))
    };
    let quoted = |word: &String| -> Result<String, &'static str> {
        match shell {
            Shell::Bash if is_plain(word) && !word.contains('\\') => Ok(word.clone()),
            Shell::Bash => Ok(format!("'{}'", word.replace('\'', r"'\''"))),
            Shell::PowerShell => Ok(literal(word)),
            Shell::Cmd if word.contains(['"', '%', '\r', '\n']) => {
                Err("has a quote, a percent sign or a line break in it, which cmd.exe would obey; \
                     give the command as one text")
            }
            Shell::Cmd if is_plain(word) => Ok(word.clone()),
            Shell::Cmd => Ok(format!("\"{word}\"")),
        }
    };
    let quoted: Vec<String> = words.iter().map(quoted).collect::<Result<_, _>>()?;
    let text = quoted.join(" ");
    // A quoted word is a string; to call it takes a sign.
    Ok(if shell == Shell::PowerShell { format!("& {text}") } else { text })
}

/// The PowerShell of this machine: the newer one where it is installed, else what Windows brings along.
pub(super) fn powershell() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let names: &[&str] = if cfg!(windows) { &["pwsh.exe", "powershell.exe"] } else { &["pwsh"] };
    names.iter().find_map(|name| {
        let directories = std::env::split_paths(&path).filter(|directory| directory.is_absolute());
        directories.map(|directory| directory.join(name)).find(|file| file.is_file())
    })
}

fn is_old(path: &Path) -> bool {
    path.file_stem().is_some_and(|name| name.eq_ignore_ascii_case("powershell"))
}

#[cfg(test)]
mod tests {
    use mcp_guard::{Context, Decision};
    use proptest::prelude::*;

    use super::*;

    /// What PowerShell makes of a string that begins here: its value, and what is behind it.
    fn value(text: &str) -> (String, &str) {
        let is_quote = |c: char| "'\u{2018}\u{2019}\u{201a}\u{201b}".contains(c);
        let mut rest = text.chars();
        assert!(rest.next().is_some_and(is_quote));
        let mut value = String::new();
        loop {
            match rest.next().expect("the string ends") {
                c if is_quote(c) && rest.clone().next().is_some_and(is_quote) => {
                    rest.next();
                    value.push(c);
                }
                c if is_quote(c) => return (value, rest.as_str()),
                c => value.push(c),
            }
        }
    }

    proptest! {
        /// Whatever the text, it is a string's content, and the statements around it stand.
        #[test]
        fn no_text_gets_out_of_its_string(command in "[a-z'‘’‚‛\"`$;{}\n#@ ]{0,40}") {
            let script = constrained(&command);
            let (before, after) = script.split_once("Invoke-Expression -Command ").unwrap();
            prop_assert!(before.starts_with("$ExecutionContext.SessionState.LanguageMode = 'Constrained"));
            let (text, rest) = value(after);
            prop_assert_eq!(text, format!("{command}\n\n$global:mcpWorked = $?"));
            let stands = rest.starts_with("; if ($global:mcpWorked) { exit 0 }");
            prop_assert!(stands);
        }

        #[test]
        fn words_stay_words(words in prop::collection::vec("[a-z'‘’\"$ ;&]{1,8}", 1..4)) {
            let text = joined(&words, Shell::PowerShell).unwrap();
            let mut rest = text.strip_prefix('&').unwrap();
            for word in &words {
                let (heard, behind) = value(rest.strip_prefix(' ').unwrap());
                prop_assert_eq!(&heard, word);
                rest = behind;
            }
            prop_assert_eq!(rest, "");
        }
    }

    #[test]
    fn the_mode_is_read_back_before_the_text_is_parsed() {
        let script = constrained("x");
        let order = ["LanguageMode = 'C", "exit 125", "Invoke-Expression"];
        let places: Vec<usize> = order.iter().map(|part| script.find(part).unwrap()).collect();
        assert!(places.is_sorted(), "{script}");
    }

    #[test]
    fn words_for_cmd_are_safe_or_refused() {
        let words =
            |words: &[&str]| -> Vec<String> { words.iter().map(|w| (*w).to_owned()).collect() };
        assert_eq!(joined(&words(&["echo", "a & b"]), Shell::Cmd).unwrap(), "echo \"a & b\"");
        for odd in ["%PATH%", "a\"b", "a\nb"] {
            assert!(joined(&words(&["echo", odd]), Shell::Cmd).is_err(), "{odd}");
        }
        assert_eq!(joined(&words(&["echo", "it's"]), Shell::Bash).unwrap(), r"echo 'it'\''s'");
    }

    #[test]
    fn a_second_powershell_is_refused_by_the_guard_or_read_by_it() {
        let verdict = mcp_guard::judge(
            "powershell -Command \"Start-Process calc\"",
            Shell::PowerShell,
            &Context::default(),
        );
        assert_eq!(verdict.decision, Decision::Refuse);
    }
}
