//! Whose rules a command is judged by, and what is known about where it runs.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::rules::Rules;

/// The language a text is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Shell {
    /// POSIX shell, bash and near relatives.
    Bash,
    /// PowerShell, of Windows or any other system.
    PowerShell,
    /// `cmd.exe`.
    Cmd,
}

/// Whether a command has any network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NetworkAccess {
    /// The policy gives no network: tools that need it are refused with a word why.
    #[default]
    None,
    /// It has some.
    Given,
}

/// What stands behind the guard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Strictness {
    /// Perhaps nothing: every rule counts.
    #[default]
    Strict,
    /// A sandbox whose boundaries are whole. What it holds anyway (programs given as text,
    /// background processes, tools aimed at the sandbox's own loopback) is allowed and noted.
    Confined,
}

/// What the guard has to know beside the command.
#[derive(Debug, Clone)]
pub struct Context {
    /// Whether the command has any network.
    pub network: NetworkAccess,
    /// How much is refused that a sandbox holds anyway.
    pub strictness: Strictness,
    /// The rules: the built-in ones, or those with your own.
    pub rules: Arc<Rules>,
}

impl Default for Context {
    fn default() -> Context {
        Context {
            network: NetworkAccess::None,
            strictness: Strictness::Strict,
            rules: Rules::built_in(),
        }
    }
}
