//! The messages between launcher and helper: one order in, one reply out, as JSON on the helper's own pipes.

use serde::{Deserialize, Serialize};

/// What the helper is to try, with the number of the plan's step.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HelperOrder {
    pub tasks: Vec<(usize, Task)>,
    pub launcher: u32,
    /// Where the launcher listens.
    pub port: u16,
    /// The number of a handle that the helper must not have …
    pub handle: u64,
    /// … and what its file begins with.
    pub marker: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Task {
    Refused(Attempt),
    /// Make a file in this directory, and remove it.
    Allowed(String),
    /// The relay on this port leads to the launcher's proxy.
    Reached(u16),
    /// The launcher sends the marker to the server on this port.
    Served(u16),
    Identity,
    /// Programs with windows start on the desktop. The answer says why not; it is no failure.
    Desktop,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Attempt {
    Read(String),
    Create(String),
    Connect,
    OpenLauncher,
    Inherit,
    BreakAway,
    Spawn,
    /// Open a path for one of these.
    Open(Purpose, String),
    /// Take this many bytes of memory.
    Allocate(usize),
}

/// What an excluded path is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Purpose {
    Anything,
    Changing,
    Moving,
}

/// The helper sends this before its reply, once it listens where the command's servers will.
pub const READY: &[u8] = b"\n";

#[derive(Debug, Serialize, Deserialize)]
pub enum Reply {
    /// What was seen, for each step.
    Ready(Vec<(usize, String)>),
    Failed(Failed),
}

/// A step that did not come out as planned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failed {
    pub step: usize,
    pub errno: i32,
    pub why: String,
}
