//! A caller that was let in, and the servers and tools that it may use.

use std::sync::Arc;

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    pub name: Arc<str>,
    pub may: May,
}

/// What a principal may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum May {
    Everything,
    /// By server; with some tools only where they are named.
    These(Vec<(String, Option<Vec<String>>)>),
}

impl May {
    pub fn server(&self, name: &str) -> bool {
        match self {
            May::Everything => true,
            May::These(these) => these.iter().any(|(server, _)| server == name || server == "*"),
        }
    }

    pub fn tool(&self, server: &str, tool: &str) -> bool {
        let allows = |(name, tools): &(String, Option<Vec<String>>)| {
            (name == server || name == "*")
                && tools.as_ref().is_none_or(|tools| tools.iter().any(|it| it == tool))
        };
        match self {
            May::Everything => true,
            May::These(these) => these.iter().any(allows),
        }
    }
}

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denied {
    /// No token at all.
    Missing,
    /// A token that is none of ours, or no more.
    Invalid,
}
