//! An act and its arguments, parsed once from the command line.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fmt::Write;
use std::io;
use std::path::Path;

use crate::acts::ACTS;
use crate::errno;

/// The `errno` of an act that could not be tried because of its arguments.
pub(crate) const USAGE: &str = "USAGE";
const SEPARATOR: &str = "--then";

/// What an act does: a line to report, or why it failed.
pub(crate) type Said = Result<String, Failure>;

/// One row of the table of acts.
pub(crate) struct Spec {
    pub name: &'static str,
    /// The arguments in the notation of a usage line: `PATH [TEXT]`, `PATH ARGS…`.
    pub usage: &'static str,
    pub perform: fn(Args<'_>) -> Said,
}

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

/// Why an act did not work.
pub(crate) struct Failure {
    pub errno: String,
    pub detail: String,
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure { errno: errno::name(&error), detail: error.to_string() }
    }
}

impl Failure {
    /// A failure that still has something to show, such as how far it came.
    pub fn after(error: &io::Error, detail: impl Into<String>) -> Self {
        Failure { errno: errno::name(error), detail: detail.into() }
    }

    pub fn usage(detail: impl Into<String>) -> Self {
        Failure { errno: USAGE.into(), detail: detail.into() }
    }
}

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

/// The arguments of an act; the required ones are known to be there.
#[derive(Clone, Copy)]
pub(crate) struct Args<'a>(&'a [OsString]);

impl<'a> Args<'a> {
    pub fn get(&self, index: usize) -> Option<&'a OsStr> {
        self.0.get(index).map(OsString::as_os_str)
    }

    pub fn path(&self, index: usize) -> &'a Path {
        Path::new(self.get(index).unwrap_or_default())
    }

    pub fn text(&self, index: usize) -> Cow<'a, str> {
        self.get(index).unwrap_or_default().to_string_lossy()
    }

    pub fn text_or(&self, index: usize, default: &'static str) -> Cow<'a, str> {
        self.get(index).map_or(Cow::Borrowed(default), OsStr::to_string_lossy)
    }

    pub fn rest(&self, from: usize) -> &'a [OsString] {
        self.0.get(from..).unwrap_or_default()
    }

    /// A number as a 64-bit register holds it: decimal, negative or `0x…`.
    pub fn number(&self, index: usize) -> Result<u64, Failure> {
        let text = self.text(index);
        let parsed = match (text.strip_prefix("0x"), text.strip_prefix('-')) {
            (Some(hex), _) => u64::from_str_radix(hex, 16),
            (_, Some(_)) => text.parse::<i64>().map(i64::cast_unsigned),
            _ => text.parse(),
        };
        parsed.map_err(|_| Failure::usage(format!("not a number: {text}")))
    }

    pub fn number_or(&self, index: usize, default: u64) -> Result<u64, Failure> {
        if self.get(index).is_some() { self.number(index) } else { Ok(default) }
    }

    /// A number that is used as a count, size or file descriptor.
    pub fn count(&self, index: usize) -> Result<usize, Failure> {
        usize::try_from(self.number(index)?).map_err(|_| Failure::usage("number too large"))
    }

    pub fn seconds(&self, index: usize) -> Result<std::time::Duration, Failure> {
        let text = self.text(index);
        text.parse()
            .ok()
            .and_then(|seconds| std::time::Duration::try_from_secs_f64(seconds).ok())
            .ok_or_else(|| Failure::usage(format!("not a number of seconds: {text}")))
    }

    pub fn millis_or(&self, index: usize, default: u64) -> Result<std::time::Duration, Failure> {
        Ok(std::time::Duration::from_millis(self.number_or(index, default)?))
    }
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
    fn numbers_are_registers() {
        let words = ["0x100005412".into(), "-1".into(), "7".into(), "x".into()];
        let args = Args(&words);
        assert_eq!(args.number(0).ok(), Some(0x1_0000_5412));
        assert_eq!(args.number(1).ok(), Some(u64::MAX));
        assert_eq!(args.number(2).ok(), Some(7));
        assert!(args.number(3).is_err());
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
