//! PowerShell and cmd, read lightly: enough to see through quoting tricks, aliases, encoded
//! commands and texts handed on. What is no plain command is unknown.

mod aliases;
mod bomb;
mod cmd;
mod cmd_for;
mod cmd_lines;
mod handed;
mod listing;
mod loops;
mod objects;
mod parsed;
mod passed_on;
mod portable;
mod powershell;
mod tokens;
mod types;

pub use parsed::{PARSE_SCRIPT, Parsed, may_be_parsed};
