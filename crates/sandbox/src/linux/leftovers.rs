//! What a command leaves in places that go with the sandbox: how full its temporary space is, and what lies in a HOME
//! that is not kept. Init looks when the last process is dead, so that a write that failed for want of space, and a
//! file that is gone, can be told. Names are the command's own words, so a few are taken and each is cut.

use rustix::fs::{Dir, Mode, OFlags};
use serde::{Deserialize, Serialize};

use crate::core::request::{HOME, Home, Link, Request};

/// The most names that are told, and the most characters of each.
const MOST_NAMES: usize = 3;
const LONGEST_NAME: usize = 60;
/// A directory may hold more entries than anybody wants to wait for.
const MOST_ENTRIES: usize = 200;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leftovers {
    /// Of the temporary space, in bytes.
    pub temporary: Option<u64>,
    /// Visible names at the top of a HOME that goes now.
    pub lost: Vec<String>,
}

/// Init's look, from inside a root of its own.
pub fn look(request: &Request) -> Leftovers {
    let goes = request.home == Home::Ephemeral;
    Leftovers { temporary: used(), lost: if goes { names(request) } else { Vec::new() } }
}

/// The root is the file system that /tmp, /dev/shm and HOME share.
fn used() -> Option<u64> {
    let found = rustix::fs::statvfs("/").ok()?;
    Some(found.f_blocks.saturating_sub(found.f_bfree).saturating_mul(found.f_frsize))
}

fn names(request: &Request) -> Vec<String> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(entries) = rustix::fs::open(HOME, flags, Mode::empty()).and_then(Dir::new) else {
        return Vec::new();
    };
    let name = |entry: rustix::fs::DirEntry| {
        let name = entry.file_name().to_string_lossy();
        let is_ours =
            |link: &Link| link.at.strip_prefix(HOME).is_ok_and(|at| at.starts_with(&*name));
        if request.links.iter().any(is_ours) {
            return None;
        }
        (!name.starts_with('.')).then(|| name.chars().take(LONGEST_NAME).collect::<String>())
    };
    let found = entries.take(MOST_ENTRIES).filter_map(|entry| name(entry.ok()?));
    found.take(MOST_NAMES).collect()
}
