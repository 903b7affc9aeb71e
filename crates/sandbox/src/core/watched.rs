//! What a run in learning mode looked for. Watching judges nothing: what is here came too late to change what happened.

use serde::{Deserialize, Serialize};

/// Whether a run notes the paths that the command looks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Watching {
    /// It does not: nothing but `mcp learn` needs it, and it costs time for each file.
    #[default]
    Off,
    /// It does, where the host can: Linux by seccomp notification, macOS by its log of refusals.
    Paths,
    /// It looks back when the command has failed, where the host keeps a log of refusals (macOS). That takes about a
    /// second, and nothing before.
    Failure,
}

/// What was looked for, as far as it was not there inside.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Watched {
    /// Places that were missing inside, or could only be read there, in the order in which they were first wanted.
    #[serde(default)]
    pub missing: Vec<MissingPath>,
    /// Granted places that were used.
    #[serde(default)]
    pub used: Vec<UsedGrant>,
    /// How many calls were announced.
    pub calls: u64,
    /// Calls whose path could not be read.
    #[serde(default)]
    pub unread: u64,
    /// Missing places whose names are not UTF-8, which neither a report nor a policy can hold.
    #[serde(default)]
    pub not_utf8: u64,
    /// Why watching ended before the command did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_off: Option<String>,
}

/// A place that was wanted and was not to be had.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MissingPath {
    /// As the command named it, absolute.
    pub path: String,
    /// What for.
    pub act: WatchedAct,
    /// How often.
    pub times: u64,
    /// When first, in seconds since 1970.
    pub first: f64,
}

/// What a place was wanted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum WatchedAct {
    /// To be looked at.
    Look,
    /// To be read, listed, executed or entered.
    Read,
    /// To be written where it is.
    Write,
    /// To be made.
    Create,
    /// It was made, as a directory of the sandbox's own temporary space. Only worth a thought where the host has one there.
    MadeInstead,
    /// To be removed or renamed.
    Remove,
    /// To be connected to.
    Connect,
}

/// A granted place that was used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct UsedGrant {
    /// The place, as it was resolved.
    pub path: String,
    /// Whether something in it was written, made or removed.
    pub written: bool,
}
