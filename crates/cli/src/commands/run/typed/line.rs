//! The line that a person typed, for messages that say what to type instead.

use std::ffi::OsString;

use crate::args::words_of_run;
use crate::commands::run::quoted;

/// `mcp run` with the options that were typed, and others after them. A value of a variable is left out: it may be a
/// secret, and the message may end in a client's log.
pub fn run_with(more: &[String]) -> String {
    let (options, _) = words_of_run();
    let mut words = vec!["mcp run".to_owned()];
    words.extend(masked(&options));
    words.extend(more.iter().cloned());
    words.join(" ")
}

fn masked(options: &[OsString]) -> Vec<String> {
    let mut is_variable = false;
    let mut words = Vec::new();
    for option in options {
        let text = option.to_string_lossy();
        let is_glued = text.starts_with("--env=") || text.starts_with("-e") && text != "-e";
        let skipped = if text.starts_with("--env=") { "--env=".len() } else { 0 };
        let value_at = text[skipped..].find('=').map(|at| skipped + at);
        words.push(match value_at {
            Some(at) if is_variable || is_glued => format!("{}=…", &text[..at]),
            _ => quoted(option),
        });
        is_variable = text == "-e" || text == "--env";
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_variables_are_left_out() {
        for (typed, shown) in [
            ("-r . -e A=secret -q", "-r . -e A=… -q"),
            ("--env A=secret", "--env A=…"),
            ("--env=A=secret", "--env=A=…"),
            ("-eA=secret", "-eA=…"),
            ("-e A --max-memory=64M", "-e A --max-memory=64M"),
        ] {
            let words: Vec<OsString> = typed.split(' ').map(OsString::from).collect();
            assert_eq!(masked(&words).join(" "), shown);
        }
    }
}
