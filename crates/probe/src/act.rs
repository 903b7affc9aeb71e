//! An act and its arguments, parsed once from the command line.

use std::ffi::OsString;
use std::fmt::Write;

use crate::acts::ACTS;
use crate::spec::{Args, Said, Spec};

const SEPARATOR: &str = "--then";

/// One thing to try, known to exist and to have the right number of arguments.
#[derive(Clone)]
pub struct Act {
    spec: &'static Spec,
    args: Vec<OsString>,
}

/// A command line that names no act, or gives one too few or too many arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageError(String);

impl std::fmt::Display for UsageError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}

impl std::fmt::Debug for Act {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} {}", self.spec.name, self.argument_text())
    }
}

impl Act {
    /// Parses `ACT ARGS… [--then ACT ARGS…]…`.
    ///
    /// After `exec` everything belongs to the new program, `--then` included.
    ///
    /// # Errors
    /// When an act is unknown or has the wrong number of arguments.
    pub fn parse<I>(words: I) -> Result<Vec<Act>, UsageError>
    where
        I: IntoIterator,
        I::Item: Into<OsString>,
    {
        let mut words = words.into_iter().map(Into::into).peekable();
        let mut acts = Vec::new();
        loop {
            let name = words.next().ok_or_else(|| UsageError("an act is missing".into()))?;
            let spec = ACTS
                .iter()
                .find(|spec| name == spec.name)
                .ok_or_else(|| UsageError(format!("no act is named {}", name.display())))?;
            let takes_all = spec.usage.ends_with('…');
            let mut args = Vec::new();
            while let Some(word) = words.next_if(|word| takes_all || word != SEPARATOR) {
                args.push(word);
            }
            check_count(spec, args.len())?;
            acts.push(Act { spec, args });
            if words.next().is_none() {
                return Ok(acts);
            }
        }
    }

    pub fn name(&self) -> &'static str {
        self.spec.name
    }

    /// Whether success prints the act's own text and no line of JSON.
    pub fn speaks_for_itself(&self) -> bool {
        matches!(self.spec.name, "write-stdout" | "write-stderr")
    }

    pub(crate) fn argument_text(&self) -> String {
        let words: Vec<_> = self.args.iter().map(|arg| arg.to_string_lossy()).collect();
        words.join(" ")
    }

    pub(crate) fn perform(&self) -> Said {
        (self.spec.perform)(Args(&self.args))
    }
}

fn check_count(spec: &Spec, count: usize) -> Result<(), UsageError> {
    let words: Vec<&str> = spec.usage.split_whitespace().collect();
    let needed = words.iter().filter(|word| !word.starts_with('[') && !word.ends_with('…')).count();
    let most = if spec.usage.ends_with('…') { usize::MAX } else { words.len() };
    if (needed..=most).contains(&count) {
        Ok(())
    } else {
        Err(UsageError(format!("usage: mcp-probe {} {}", spec.name, spec.usage)))
    }
}

/// All acts with their arguments, for people.
pub fn usage() -> String {
    let mut text = String::from("usage: mcp-probe ACT ARGS… [--then ACT ARGS…]…\n\n");
    for spec in ACTS {
        let _ = writeln!(text, "  {} {}", spec.name, spec.usage);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acts_are_separated_by_then() {
        let acts = Act::parse(["read", "/a", "--then", "list", "/b"]).unwrap();
        assert_eq!(format!("{acts:?}"), "[read /a, list /b]");
    }

    #[test]
    fn exec_takes_every_word() {
        let acts = Act::parse(["exec", "/bin/true", "--then", "list"]).unwrap();
        assert_eq!(acts.len(), 1);
    }

    #[test]
    fn wrong_command_lines_are_refused() {
        for words in [
            &[][..],
            &["fly"],
            &["read"],
            &["read", "a", "b"],
            &["read", "a", "--then"],
            &["--then", "cwd"],
        ] {
            assert!(Act::parse(words).is_err(), "{words:?}");
        }
    }

    #[test]
    fn no_act_is_listed_twice() {
        let mut names: Vec<_> = ACTS.iter().map(|spec| spec.name).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
