//! What stays closed, read-only or in its place inside of what a container is let at. Pure.
//!
//! A container has what entries allow it (`access_list`), so what is denied gets none, and what is protected one
//! for reading. Every directory above such a thing gets an entry of its own instead of one that everything below
//! inherits, without the right to delete what is in it: else the thing could be moved away and another put in its
//! place. What is made there later inherits as usual.

use mcp_policy::WindowsPath;
use serde::Serialize;

use crate::windows::access::Access;
use crate::windows::dacl::{BELOW, BELOW_ONLY, Entry, INHERITED};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kept {
    /// Denied, with all that is in it.
    Closed,
    /// Protected, with all that is in it.
    ReadOnly,
    /// A directory that can be written, but neither removed nor renamed.
    InPlace,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Keep {
    pub path: WindowsPath,
    pub kept: Kept,
}

/// What a container gets of one file or directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Share {
    Nothing,
    Whole(Access),
    /// Something below is kept.
    OnTheWay(Access),
}

/// What there is of a path inside of a grant.
pub fn share(path: &WindowsPath, access: Access, keeps: &[Keep]) -> Share {
    let over =
        |kept: Kept| keeps.iter().any(|keep| keep.kept == kept && path.is_within(&keep.path));
    if over(Kept::Closed) {
        return Share::Nothing;
    }
    let access = if over(Kept::ReadOnly) { access.min(Access::Read) } else { access };
    let holds = |keep: &Keep| {
        keep.path.is_within(path) && (keep.kept == Kept::InPlace || keep.path != *path)
    };
    match keeps.iter().any(holds) {
        true => Share::OnTheWay(access),
        false => Share::Whole(access),
    }
}

/// Whether an object is a granted path itself, or below one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    Granted,
    Below,
}

const DELETE: u32 = 0x1_0000;
const DELETE_CHILD: u32 = 0x40;

/// The entries for a share. Those below are marked as inherited, so that whatever puts the lists of a tree in
/// order removes them when the one above is gone.
pub fn entries(share: Share, is_directory: bool, depth: Depth, sid: &[u8]) -> Vec<Entry> {
    let came = if depth == Depth::Below { INHERITED } else { 0 };
    match share {
        Share::Nothing => Vec::new(),
        Share::Whole(access) => {
            let below = if is_directory && access.is_inherited() { BELOW } else { 0 };
            vec![Entry::allow(sid, access.mask(), came | below)]
        }
        Share::OnTheWay(access) => {
            let own = access.mask() & !(DELETE | DELETE_CHILD);
            vec![
                Entry::allow(sid, own, came),
                Entry::allow(sid, access.mask(), came | BELOW | BELOW_ONLY),
            ]
        }
    }
}

/// What an object gives a container that has this share.
pub fn mask(share: Share) -> u32 {
    match share {
        Share::Nothing => 0,
        Share::Whole(access) => access.mask(),
        Share::OnTheWay(access) => access.mask() & !(DELETE | DELETE_CHILD),
    }
}
