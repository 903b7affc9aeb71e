//! What the protection of settings knows on every system: which git directories belong to a project, and which of the
//! things that a command made are left where they are.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use mcp_policy::{Origin, Policy, Sourced};

use crate::error::Error;
use crate::file_names;
use crate::request::{DeniedKind, Guarded, Place, Protected, Request};

pub mod git;

pub const GIT_LINK: &str = "git takes its settings from where it leads";
pub const GIT_PLACE: &str = "git looks for its settings in it";
pub const UNREAD: &str = "it could not be searched";

/// Each is a mount or an entry of its own, and looked at from inside; who has more of them grants too much.
const MOST: usize = 4096;

/// What is not protected: it need not be there yet. `real` follows links.
pub fn exceptions<E: Display>(
    policy: &Policy,
    write: &[Place],
    real: impl Fn(&Path) -> Result<PathBuf, E>,
) -> Result<Vec<PathBuf>, Error> {
    let mut paths = Vec::new();
    for Sourced { value: path, origin } in &policy.filesystem.allow_write {
        let flag = match origin {
            Origin::CommandLine { .. } => "--allow-write".to_owned(),
            place => format!("{place}: allow_write"),
        };
        let refuse = |why: String| Error::Grant { flag: flag.clone(), path: path.clone(), why };
        let real = match (path.parent(), path.file_name()) {
            (Some(parent), Some(name)) => real(parent).map(|parent| parent.join(name)),
            _ => real(path),
        };
        let real = real.map_err(|e| refuse(e.to_string()))?;
        if !write.iter().any(|place| real.starts_with(&place.path)) {
            let why = "is not inside what the command may write (add --write)";
            return Err(refuse(why.to_owned()));
        }
        paths.push(real);
    }
    Ok(paths)
}

/// What was found, unless there is too much of it or an exception lies inside.
pub fn checked(protected: Vec<Protected>, allowed: &[PathBuf]) -> Result<Vec<Protected>, Error> {
    let closed = protected.iter().filter(|place| place.guarded == Guarded::ReadOnly);
    for (place, allowed) in closed.flat_map(|place| allowed.iter().map(move |a| (place, a))) {
        if allowed.starts_with(&place.path) {
            return Err(Error::Grant {
                flag: "--allow-write".to_owned(),
                path: allowed.clone(),
                why: format!("is protected with all of {}; allow that", place.path.display()),
            });
        }
    }
    if protected.len() > MOST {
        return Err(Error::Input {
            what: "protect".to_owned(),
            why: format!(
                "more than {MOST} protected paths are in what may be written; grant less, or do without \
                 (--no-protect)"
            ),
        });
    }
    Ok(protected)
}

pub fn is_named_git(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.eq_ignore_ascii_case(".git"))
}

/// Git directories outside of a project that are its own: a worktree's, with all that it shares, or a
/// submodule's. Only those that point back at the project: a `.git` file alone could name anything.
pub fn git_elsewhere(root: &Path) -> Vec<PathBuf> {
    let link = root.join(".git");
    let Some(directory) = git::pointer(&link, "gitdir:").filter(|to| !to.starts_with(root)) else {
        return Vec::new();
    };
    let is_back = |to: Option<PathBuf>| to.is_some_and(|to| to == link || to == root);
    if is_back(git::pointer(&directory.join("gitdir"), "")) {
        let common = git::pointer(&directory.join("commondir"), "");
        let fits = |common: &PathBuf| directory.parent() == Some(&common.join("worktrees"));
        return common.filter(fits).into_iter().collect();
    }
    match is_back(git::work_tree(&directory)) {
        true => vec![directory],
        false => Vec::new(),
    }
}

/// What was there at the start was read-only, with all that is in it.
pub fn is_part_of(new: &Protected, old: &Protected) -> bool {
    match old.guarded {
        Guarded::ReadOnly => new.path.starts_with(&old.path),
        Guarded::InPlace => new.path == old.path && new.kind == old.kind,
    }
}

/// Whether something new does nothing by itself: what `git init`, `git clone` and `git worktree add` make.
pub fn is_harmless(new: &Protected, request: &Request) -> bool {
    let Some(name) = new.path.file_name() else {
        return false;
    };
    // Another name for it could be written to later.
    let is_single = || file_names::count(&new.path).is_ok_and(|count| count == 1);
    let was_repository = |path: &Path| {
        let is = |old: &Protected| old.path == path && old.guarded == Guarded::InPlace;
        let is_granted = request.write.iter().any(|place| place.path == path);
        request.protected.iter().any(is) || is_granted && is_named_git(path)
    };
    match (name.as_encoded_bytes(), new.kind) {
        (b"config", DeniedKind::File) => is_single() && git::is_harmless(&new.path),
        (b"hooks", DeniedKind::Directory) => git::has_only_samples(&new.path),
        (b"commondir", DeniedKind::File) => {
            is_single() && git::pointer(&new.path, "").is_some_and(|to| was_repository(&to))
        }
        (b".git", DeniedKind::File) if new.why == GIT_LINK => {
            let to = git::pointer(&new.path, "gitdir:");
            let worktrees = to.as_deref().and_then(Path::parent);
            let fits = worktrees.is_some_and(|worktrees| {
                worktrees.file_name().is_some_and(|name| name == "worktrees")
                    && worktrees.parent().is_some_and(was_repository)
            });
            is_single() && fits
        }
        _ => false,
    }
}
