//! Finds what is protected inside writable directories: once before a run, to be mounted read-only, and
//! once after it, to see what is new.
//!
//! Every directory is listed, so that repositories in repositories, worktrees, submodules and bare
//! repositories count as well: a git directory is known by what is in it, not by its name alone. No
//! symlink is followed; what a protected link, a `.git` file or git's settings lead to is protected too, where
//! it lies in a writable directory (`protected/git_leads`).
//!
//! Leaves open: what variables and flags of a later git name, and other names (hard links) of a protected file that
//! exist already, which are told.

use std::io;
use std::path::PathBuf;

use mcp_policy::{Policy, Protect};

use crate::core::error::Error;
use crate::core::request::{Link, Place, Protected};
use crate::host_files::walk::walk;
use crate::protected;

mod descent;
mod links;
mod names;
mod opening;
mod removal;
mod search;
pub mod undo;

use search::{Mode, Search};

/// What a policy protects in the places that it gives for writing.
pub fn find(
    policy: &Policy,
    write: &[Place],
    allowed: &[PathBuf],
) -> Result<Vec<Protected>, Error> {
    if policy.protect.value == Protect::Nothing || write.is_empty() {
        return Ok(Vec::new());
    }
    let search = Search::run(write, allowed, Mode::Find);
    if let Some((path, why)) = search.unread.first() {
        let doing = format!("search {} for what is protected", path.display());
        return Err(Error::Io { doing, source: io::Error::other(why.clone()) });
    }
    protected::checked(search.protected(), allowed)
}

/// Protected files that can be changed by another name, as pairs.
pub fn other_names(protected: &[Protected], write: &[Place]) -> Vec<(PathBuf, PathBuf)> {
    links::find(protected, write)
}

/// What is not protected: it need not be there yet.
pub fn exceptions(policy: &Policy, write: &[Place]) -> Result<Vec<PathBuf>, Error> {
    protected::exceptions(policy, write, |path| {
        let walked = walk(path)?;
        let is_written = |link: &Link| write.iter().any(|place| link.at.starts_with(&place.path));
        match walked.links.iter().find(|link| is_written(link)) {
            // An earlier run may have made it, to have something else excepted.
            Some(link) => Err(io::Error::other(format!("{} is a symlink", link.at.display()))),
            None => Ok(walked.real),
        }
    })
}
