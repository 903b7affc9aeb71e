//! What a machine can do, and who asks it: what the facts of every system are made of.

use serde::Serialize;

/// Whether a mechanism worked when it was tried, and the system's answer when it did not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Fact {
    /// Tried on this machine, and it held.
    Works,
    /// Tried on this machine, and it did not.
    Fails {
        /// The system's answer.
        why: String,
    },
    /// Not tried yet: the run itself will find out, and stops if it fails.
    Assumed,
}

impl Fact {
    /// Whether it worked, or may work.
    pub fn usable(&self) -> bool {
        !matches!(self, Fact::Fails { .. })
    }
}

/// A user, by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Ids {
    /// The user.
    pub uid: u32,
    /// The user's group.
    pub gid: u32,
}

/// Who starts the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Caller {
    /// The user.
    pub uid: u32,
    /// The user's group.
    pub gid: u32,
    /// Who became root to start it, by sudo's word.
    pub invoker: Option<Ids>,
    /// For uid 0 of a user namespace that does not have every id, as in a rootless container or below `unshare -r`:
    /// who it is on the machine.
    pub rootless: Option<Rootless>,
}

/// Who root of a rootless container is to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rootless {
    /// An ordinary user of the machine.
    OrdinaryUser,
    /// The machine's own root, in a user namespace of its own making.
    Root,
}

impl Caller {
    /// Root of the machine, or of a namespace that has every id of it.
    pub fn is_root(self) -> bool {
        self.uid == 0 && self.rootless.is_none()
    }

    /// Whether it is root of a rootless container.
    pub fn is_rootless(self) -> bool {
        self.rootless.is_some()
    }
}
