//! `[tools.sandbox]` of the user's config: what an agent's own tools may touch. Its roots and patterns are grants
//! and denials like any other, and count for commands of agents alone: an MCP server does not get them.

use std::path::PathBuf;

use serde::Serialize;

use crate::policy::Sourced;

/// `[tools.sandbox]` of the user's config.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tools {
    /// Directories that may be written, besides the project.
    pub allowed_roots: Vec<Sourced<PathBuf>>,
    /// Deny rules.
    pub denied_patterns: Vec<Sourced<PathBuf>>,
    /// Whether file tools take absolute paths outside of the roots.
    pub allow_absolute: Option<Sourced<bool>>,
    /// What to do when a boundary cannot be enforced.
    pub fallback: Option<Sourced<Fallback>>,
    /// How much the guard refuses.
    pub guard: Option<Sourced<GuardMode>>,
}

/// How much the guard refuses while the sandbox's boundaries are whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum GuardMode {
    /// What the sandbox holds anyway is allowed and noted in the report.
    #[default]
    Usual,
    /// Programs given as text, detaching and their like are refused.
    Strict,
}

impl GuardMode {
    /// The words of a config file.
    pub const WORDS: [(&str, GuardMode); 2] =
        [("usual", GuardMode::Usual), ("strict", GuardMode::Strict)];
}

/// What to do when a boundary cannot be enforced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Fallback {
    /// Do not start.
    #[default]
    Deny,
    /// Ask on the terminal.
    Prompt,
    /// Start with a warning.
    Warn,
}

impl Fallback {
    /// The words of a config file.
    pub const WORDS: [(&str, Fallback); 4] = [
        ("deny", Fallback::Deny),
        ("prompt", Fallback::Prompt),
        ("warn", Fallback::Warn),
        ("allow_with_warning", Fallback::Warn),
    ];
}
