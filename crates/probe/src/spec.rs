//! A row of the table of acts: its name, its arguments, what it does with them.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;

use crate::errno;

/// The `errno` of an act that could not be tried because of its arguments.
pub(crate) const USAGE: &str = "USAGE";

/// What an act does: a line to report, or why it failed.
pub(crate) type Said = Result<String, Failure>;

/// One row of the table of acts.
pub(crate) struct Spec {
    pub name: &'static str,
    /// The arguments in the notation of a usage line: `PATH [TEXT]`, `PATH ARGS…`.
    pub usage: &'static str,
    pub perform: fn(Args<'_>) -> Said,
}

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

/// The arguments of an act; the required ones are known to be there.
#[derive(Clone, Copy)]
pub(crate) struct Args<'a>(pub &'a [OsString]);

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
    fn numbers_are_registers() {
        let words = ["0x100005412".into(), "-1".into(), "7".into(), "x".into()];
        let args = Args(&words);
        assert_eq!(args.number(0).ok(), Some(0x1_0000_5412));
        assert_eq!(args.number(1).ok(), Some(u64::MAX));
        assert_eq!(args.number(2).ok(), Some(7));
        assert!(args.number(3).is_err());
    }
}
