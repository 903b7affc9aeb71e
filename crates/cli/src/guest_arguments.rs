//! How this program is told to act as a guest in a sandbox of its own.

/// The first argument of a guest. Not a verb: it is no interface for people.
pub const GUEST: &str = "__guest";
/// The guest that is a whole MCP server; any other word is an act of the probe.
pub const SERVER: &str = "server";
