//! What the protection of settings knows on every system: which git directories belong to a project, and which of the
//! things that a command made are left where they are.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use mcp_policy::protect::{EXCEPTION, beyond};
use mcp_policy::{Origin, Policy, Sourced};

use crate::core::error::Error;
use crate::core::report::{MoreUndone, Undone};
use crate::core::request::{DeniedKind, Guarded, Place, Protected, Request};
use crate::host_files::names as file_names;

pub mod git;
pub mod git_config;
pub mod git_leads;
mod inner_links;
mod link_chain;
mod undone;
pub mod user_settings;

pub const GIT_LINK: &str = "git takes its settings from where it leads";
/// As the list of names (`mcp_policy::protect`) says it, too.
pub const GIT_SETTINGS: &str = "git runs programs that it names";
pub const GIT_PLACE: &str = "git looks for its settings in it";
pub const TO_SETTINGS: &str = "it leads to settings that other programs act on";
pub const UNREAD: &str = "it could not be searched";

/// Each is a mount or an entry of its own, and looked at from inside; who has more of them grants too much.
const MOST: usize = 4096;

/// What is told of each kind; a command can make any number.
const MOST_TOLD: usize = 100;

/// Bytes of a path in a report, of its end: no call takes a longer one, but a command can make one.
const LONGEST_TOLD: usize = 4096;

/// What became of things that a command made in protected places.
#[derive(Debug, Default)]
pub struct Undoings {
    removed: Vec<Undone>,
    left: Vec<Undone>,
    /// Protected, but others than before: by whom is not known.
    pub replaced: Vec<String>,
    /// How many more there are of each kind.
    pub more: MoreUndone,
}

impl Undoings {
    pub fn removed(&mut self, path: &Path, why: &str) {
        match self.removed.len() < MOST_TOLD {
            true => self.removed.push(undone(path, why)),
            false => self.more.removed += 1,
        }
    }

    /// It could not be removed.
    pub fn left(&mut self, path: &Path, why: &str, failed: String) {
        match self.left.len() < MOST_TOLD {
            true => self.left.push(Undone { failed: Some(failed), ..undone(path, why) }),
            false => self.more.left += 1,
        }
    }

    /// It has another name now.
    pub fn set_aside(&mut self, path: &Path, aside: &Path) {
        let why = "it was replaced while the command ran, by the command or by another program (git \
                   checkout and some editors do so)";
        let aside = Some(aside.to_string_lossy().into_owned());
        self.left.push(Undone { aside, ..undone(path, why) });
    }

    /// A program replaced it, and it was closed to the command again.
    #[cfg(unix)]
    pub fn replaced(&mut self, path: &Path) {
        self.replaced.push(path.to_string_lossy().into_owned());
    }

    /// What could not be undone first.
    pub fn told(self) -> Vec<Undone> {
        self.left.into_iter().chain(self.removed).collect()
    }
}

fn undone(path: &Path, why: &str) -> Undone {
    let mut path = path.to_string_lossy().into_owned();
    if let Some(cut) = path.len().checked_sub(LONGEST_TOLD).filter(|cut| *cut > 0) {
        let cut = (cut..path.len()).find(|at| path.is_char_boundary(*at)).unwrap_or(0);
        path.replace_range(..cut, "…");
    }
    Undone { path, why: why.to_owned(), failed: None, aside: None }
}

/// What is not protected: it need not be there yet. `real` follows links.
pub fn exceptions<E: Display>(
    policy: &Policy,
    write: &[Place],
    real: impl Fn(&Path) -> Result<PathBuf, E>,
) -> Result<Vec<PathBuf>, Error> {
    let mut paths = Vec::new();
    for Sourced { value: path, origin } in &policy.filesystem.allow_write {
        let flag = match origin {
            Origin::CommandLine { .. } => EXCEPTION.to_owned(),
            place => format!("{place}: allow_write"),
        };
        let refuse = |why: String| Error::Grant { flag: flag.clone(), path: path.clone(), why };
        let real = match (path.parent(), path.file_name()) {
            (Some(parent), Some(name)) => real(parent).map(|parent| parent.join(name)),
            _ => real(path),
        };
        let real = real.map_err(|e| refuse(e.to_string()))?;
        if !write.iter().any(|place| real.starts_with(&place.path)) {
            return Err(refuse(format!(
                "is not inside what the command may write (to let it write there: --write {})",
                path.display()
            )));
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
                flag: EXCEPTION.to_owned(),
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

/// The last two names of a path, as the list of protected names has them.
pub fn end_of(directory: &Path) -> Vec<u8> {
    let mut names = directory.iter().rev().map(std::ffi::OsStr::as_encoded_bytes);
    let last = names.next().unwrap_or_default();
    [names.next().unwrap_or_default(), last].join(&b'/')
}

/// Settings beyond a link that bears the name of a directory in which names count, such as `.cargo`, and why they are.
pub fn settings_beyond(link: &Path) -> impl Iterator<Item = (PathBuf, &'static str)> {
    let name = link.file_name().unwrap_or_default().as_encoded_bytes();
    let directory = link.parent().map(end_of).unwrap_or_default();
    let rests = beyond(&directory, name).into_iter();
    rests.map(|(rest, why)| (link.join(rest), why))
}

/// Git directories outside of a project that are its own: a worktree's, with all that it shares, or a
/// submodule's. Only those that point back at the project: a `.git` file alone could name anything.
pub fn git_elsewhere(root: &Path) -> Vec<PathBuf> {
    let link = root.join(".git");
    let pointed = |file: &Path, label: &str| {
        git::pointer(file, label).map(|to| link_chain::link_chain(&to).end)
    };
    let Some(directory) = pointed(&link, git::GITDIR).filter(|to| !to.starts_with(root)) else {
        return Vec::new();
    };
    let is_back = |to: Option<PathBuf>| to.is_some_and(|to| to == link || to == root);
    if is_back(pointed(&directory.join("gitdir"), "")) {
        let common = pointed(&directory.join("commondir"), "");
        let fits = |common: &PathBuf| directory.parent() == Some(&common.join("worktrees"));
        return common.filter(fits).into_iter().collect();
    }
    match is_back(git::work_tree(&directory)) {
        true => vec![directory],
        false => Vec::new(),
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
    // Nor may a link on the way lead elsewhere later.
    let pointed = |label: &str| {
        let chain = link_chain::link_chain(&git::pointer_itself(&new.path, label)?);
        let is_ours = |link: &PathBuf| request.write.iter().any(|at| link.starts_with(&at.path));
        (!chain.links.iter().any(is_ours)).then_some(chain.end)
    };
    match (name.as_encoded_bytes(), new.kind) {
        // It is closed in the next run, with what it will lead to.
        (_, DeniedKind::Link) if new.why == TO_SETTINGS => {
            settings_beyond(&new.path).all(|(path, _)| path.symlink_metadata().is_err())
        }
        (b"config", DeniedKind::File) => is_single() && git::is_harmless(&new.path),
        (b"hooks", DeniedKind::Directory) => git::has_only_samples(&new.path),
        // Older versions of git make one.
        (b"branches", DeniedKind::Directory) => git::is_empty(&new.path),
        (b"commondir", DeniedKind::File) => {
            is_single() && pointed("").is_some_and(|to| was_repository(&to))
        }
        (b".git", DeniedKind::File) if new.why == GIT_LINK => {
            let to = pointed(git::GITDIR);
            // Or this work tree would be unknown, where settings of the repository hold as well.
            let to = to.filter(|to| git::top_of_worktree(to).as_deref() == new.path.parent());
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
