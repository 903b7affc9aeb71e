//! Whose rules a command is judged by, and what is known about where it runs.

use std::sync::Arc;

use crate::language::{NetworkAccess, Strictness};
use crate::rules::Rules;

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
