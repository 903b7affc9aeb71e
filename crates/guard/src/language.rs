//! What a text is written in, and what stands around the one who runs it.

use serde::{Deserialize, Serialize};

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
