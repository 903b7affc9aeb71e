//! Deny rules as mounts: which paths inside are masked, and which directories are held in place
//! so that a mask cannot be moved out of the way. Pure.
//!
//! Stops: a mask is an empty thing that no process may open, mounted over the name. Whatever leads to
//! that name ends at the mask: symlinks, `..`, /proc/self/root. A mount point can be neither
//! removed nor renamed nor linked elsewhere; so that no directory above it can be renamed and another
//! put in its stead, each of them, up to the root of its writable mount, is mounted on itself.
//!
//! Leaves open: what comes to match later, what the host puts in place of a masked name, and the
//! same file under another name. The price: a rename across a held directory is one between file
//! systems (EXDEV).

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::core::plan::Intent;
use crate::core::request::{Denied, DeniedKind, PlaceKind, Request};
use crate::linux::step::{Access, Hold, Mask, Masks, Placed};

/// Places to be closed, and the directories above them that have to stay where they are.
#[derive(Debug)]
pub struct Closing<T> {
    pub hold: Option<Hold>,
    pub closed: T,
}

/// What closes what is denied, once `placed` is in place.
pub fn closing(request: &Request, placed: &[Placed]) -> Option<Closing<Masks>> {
    if request.policy.filesystem.deny.is_empty() {
        return None;
    }
    let mounts: Vec<VisibleMount<'_>> = placed.iter().filter_map(VisibleMount::of).collect();
    // Also without anything to mask: it is what the report rests on.
    Some(masking(masks(&request.denied, &mounts), &mounts))
}

/// What closes unix sockets of the host that no rule allows.
pub fn stray_sockets(request: &Request, placed: &[Placed]) -> Option<Closing<Masks>> {
    if request.stray_sockets.is_empty() {
        return None;
    }
    let mounts: Vec<VisibleMount<'_>> = placed.iter().filter_map(VisibleMount::of).collect();
    let is_denied = |path: &PathBuf| request.denied.iter().any(|d| path.starts_with(&d.path));
    let strays: Vec<Denied> = request
        .stray_sockets
        .iter()
        .filter(|stray| !is_denied(&stray.path))
        .map(|stray| Denied { path: stray.path.clone(), kind: stray.kind, rule: 0 })
        .collect();
    Some(masking(masks(&strays, &mounts), &mounts))
}

fn masking(masks: BTreeSet<Mask>, mounts: &[VisibleMount<'_>]) -> Closing<Masks> {
    let held = held_above(masks.iter().map(|mask| &mask.at), mounts);
    Closing { hold: holding(held), closed: Masks { masks: masks.into_iter().collect() } }
}

/// `None` where there is nothing to hold.
pub fn holding(places: BTreeSet<PathBuf>) -> Option<Hold> {
    (!places.is_empty()).then(|| Hold { places: places.into_iter().collect() })
}

pub fn intent(request: &Request) -> Intent {
    if request.policy.filesystem.deny.is_empty() {
        return Intent::NotRequested;
    }
    let mut by = "empty mounts over what matched at the start".to_owned();
    if !request.withdrawn.is_empty() {
        let paths: Vec<_> = request.withdrawn.iter().map(|p| p.display().to_string()).collect();
        by += &format!("; grants withdrawn: {}", paths.join(", "));
    }
    by += "; not covered: what comes to match later, files that the host replaces meanwhile, \
           other names (hard links) of the same file";
    Intent::enforce(by)
}

/// Something of the host's that can be seen inside.
pub struct VisibleMount<'a> {
    from: &'a Path,
    pub at: &'a Path,
    kind: PlaceKind,
    access: Access,
}

impl<'a> VisibleMount<'a> {
    pub fn of(placed: &'a Placed) -> Option<VisibleMount<'a>> {
        match placed {
            Placed::Show { path, kind } => {
                Some(VisibleMount { from: path, at: path, kind: *kind, access: Access::ReadOnly })
            }
            Placed::Bind { from, at, kind, access, .. } => {
                Some(VisibleMount { from, at, kind: *kind, access: *access })
            }
            _ => None,
        }
    }
}

/// The mount that stands at a path inside: the last of the deepest.
fn over<'a, 'b>(mounts: &'b [VisibleMount<'a>], path: &Path) -> Option<&'b VisibleMount<'a>> {
    let holding = mounts.iter().filter(|mount| path.starts_with(mount.at));
    holding.max_by_key(|mount| mount.at.components().count())
}

fn masks(denied: &[Denied], mounts: &[VisibleMount<'_>]) -> BTreeSet<Mask> {
    let mut masks = BTreeSet::new();
    for denied in denied {
        for mount in mounts {
            if mount.from.starts_with(&denied.path) {
                let kind = match mount.kind {
                    PlaceKind::Directory => DeniedKind::Directory,
                    PlaceKind::File | PlaceKind::Socket => DeniedKind::File,
                };
                masks.insert(Mask { at: mount.at.to_owned(), kind });
            }
        }
        let seen = seen_at(&denied.path, mounts).into_iter();
        masks.extend(seen.map(|at| Mask { at, kind: denied.kind }));
    }
    masks
}

/// Where a path of the host can be seen inside, below what is mounted.
pub fn seen_at(path: &Path, mounts: &[VisibleMount<'_>]) -> Vec<PathBuf> {
    let seen = mounts.iter().filter(|mount| !mount.from.starts_with(path)).filter_map(|mount| {
        let at = mount.at.join(path.strip_prefix(mount.from).ok()?);
        // Something else may stand in front of it.
        let over = over(mounts, &at)?;
        (over.from.join(at.strip_prefix(over.at).ok()?) == path).then_some(at)
    });
    seen.collect()
}

/// Directories above masks that could be renamed: all that are writable and no mount points yet.
pub fn held_above<'a>(
    closed: impl Iterator<Item = &'a PathBuf>,
    mounts: &[VisibleMount<'_>],
) -> BTreeSet<PathBuf> {
    let mut held = BTreeSet::new();
    for at in closed {
        for above in at.ancestors().skip(1) {
            let is_writable =
                over(mounts, above).is_some_and(|m| m.at != above && m.access == Access::ReadWrite);
            if is_writable {
                held.insert(above.to_owned());
            }
        }
    }
    held
}

#[cfg(test)]
mod tests;
