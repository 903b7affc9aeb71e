//! Protected places as mounts: what is there is mounted on itself read-only, and each directory above it is held
//! in place. Pure.
//!
//! Stops: changing, replacing, renaming and removing what was there at the start, by whatever name inside; hard
//! links to it (another mount, EXDEV).
//!
//! Leaves open: the moment after a program outside removes or replaces what a mount stands on, until it is closed again
//! (`linux/replaced`), and what is made where nothing was. A mount needs something to stand on, and nothing is put on the
//! host for it: what is new is found and removed when the command has ended (`unix/protect/undo`).

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::core::plan::Intent;
use crate::core::request::{Guarded, Request};
use crate::linux::deny::{Closing, VisibleMount, held_above, holding, seen_at};
use crate::linux::step::{Placed, Protect};

/// What protects, once `placed` is in place.
pub fn closing(request: &Request, placed: &[Placed]) -> Option<Closing<Protect>> {
    if !request.protects() {
        return None;
    }
    let mounts: Vec<VisibleMount<'_>> = placed.iter().filter_map(VisibleMount::of).collect();
    let mut read_only: BTreeSet<PathBuf> = BTreeSet::new();
    let mut in_place: BTreeSet<PathBuf> = BTreeSet::new();
    for protected in &request.protected {
        let seen = seen_at(&protected.path, &mounts);
        match protected.guarded {
            Guarded::ReadOnly => read_only.extend(seen),
            Guarded::InPlace => in_place.extend(seen),
        }
    }
    let mut held = held_above(read_only.iter().chain(&in_place), &mounts);
    held.extend(in_place.into_iter().filter(|at| !mounts.iter().any(|mount| mount.at == at)));
    // Also without anything to protect: it is what the report rests on.
    let closed = Protect { places: read_only.into_iter().collect() };
    Some(Closing { hold: holding(held), closed })
}

pub fn intent(request: &Request) -> Intent {
    if !request.protects() {
        return Intent::NotRequested;
    }
    let by = "read-only mounts over what was there at the start; what is new is removed when the command has \
         ended; not covered: the time until then, and the moment until a file that another program replaces is \
         closed again";
    match request.told_other_names() {
        None => Intent::enforce(by),
        Some(missing) => Intent::partial(by, missing),
    }
}
