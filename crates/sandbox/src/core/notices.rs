//! Lines for the user while a command runs.

use std::io::{IsTerminal, Write};

use mcp_net::broker::Tell;

/// Whether the launcher says on stderr what it refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Notices {
    /// It says nothing; the report has it.
    #[default]
    Silent,
    /// It says it, one line each.
    Stderr,
}

impl Notices {
    pub(crate) fn teller(self) -> Tell {
        match self {
            Notices::Silent => Box::new(|_| {}),
            Notices::Stderr => Box::new(|line| {
                let mut stderr = std::io::stderr();
                // The terminal may be in raw mode while the command has the keyboard. A closed or
                // full stderr is not worth ending a run for.
                let end = if stderr.is_terminal() { "\r\n" } else { "\n" };
                // Names of hosts and files are the command's own words.
                let line = mcp_policy::text::word(line);
                let _ = stderr.write_all(format!("mcp: {line}{end}").as_bytes());
            }),
        }
    }
}
