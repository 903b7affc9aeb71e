//! Whose rules a command is judged by, and what is known about where it runs.

use std::sync::Arc;

use crate::language::{NetworkAccess, Strictness};
use crate::rules::Rules;

#[derive(Debug, Clone)]
pub struct Context {
    pub network: NetworkAccess,
    pub strictness: Strictness,
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
