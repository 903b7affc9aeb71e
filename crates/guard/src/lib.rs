//! Judges what an agent is about to do: commands, paths, environment variables.
//!
//! The guard explains; the kernel enforces. A command that is allowed here can still do harm
//! through a program that the text does not show; a sandbox is the boundary, this is the early,
//! readable refusal in front of it.
//!
//! ```
//! use mcp_guard::{Context, Decision, Shell, judge};
//!
//! let verdict = judge("sudo r''m -rf $HOME/", Shell::Bash, &Context::default());
//! assert_eq!(verdict.decision, Decision::Refuse);
//! assert_eq!(verdict.reason().unwrap().rule, "delete-everything");
//! ```

#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod characters;
mod context;
mod decode;
pub mod environment;
mod evaluate;
mod examples;
mod judge;
mod language;
mod options;
pub mod paths;
mod place;
mod rules;
mod shell;
mod tri;
mod value;
mod verdict;
mod wildcard;
mod windows;
mod windows_place;

pub use context::Context;
pub use judge::{LONGEST_COMMAND, judge, judge_parsed};
pub use language::{NetworkAccess, Shell, Strictness};
pub use rules::{Confined, Group, Rule, Rules, RulesError};
pub use verdict::{Decision, Finding, Verdict};
pub use windows::{PARSE_SCRIPT, Parsed, may_be_parsed};
