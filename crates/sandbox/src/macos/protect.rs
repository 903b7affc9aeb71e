//! Protected places as rules of a profile. Pure.
//!
//! Stops: writing, making, renaming and removing what is on the list, at the top of writable directories and in the
//! git directories that are there at the start, in any case; what was found elsewhere at the start. New ones
//! elsewhere are removed when the command has ended, as on Linux.
//!
//! Leaves open: other names (hard links) that a protected file had already.

use mcp_policy::glob::Part;
use mcp_policy::protect::{LIST, Spot};

use crate::core::plan::Intent;
use crate::core::request::{Guarded, Request};
use crate::macos::deny::ProfileDenials;
use crate::macos::pattern;

pub fn intent(request: &Request) -> Intent {
    if !request.protects() {
        return Intent::NotRequested;
    }
    let by = "Seatbelt rules at the top of writable directories and in their git directories; what is new elsewhere \
         is removed when the command has ended; not covered: the time until then, a launcher that is killed \
         before";
    match request.told_other_names() {
        None => Intent::enforce(by),
        Some(missing) => Intent::partial(by, missing),
    }
}

/// What must not be written, and what must stay where it is.
pub fn closed(request: &Request) -> ProfileDenials {
    let mut closed = ProfileDenials::default();
    if !request.protects() {
        return closed;
    }
    for protected in &request.protected {
        match protected.guarded {
            Guarded::ReadOnly => closed.places.push(protected.path.clone()),
            Guarded::InPlace => closed.held.push(protected.path.clone()),
        }
        for root in request.write.iter().filter(|root| protected.path.starts_with(&root.path)) {
            let above = protected.path.ancestors().skip(1);
            closed.held.extend(above.take_while(|above| *above != root.path).map(Into::into));
        }
    }
    let tops = request.write.iter().map(|place| (&place.path, Spot::Top));
    let git = request.protected.iter().filter(|place| place.guarded == Guarded::InPlace);
    for (root, spot) in tops.chain(git.map(|place| (&place.path, Spot::GitDirectory))) {
        let counts = |place: Spot| place == spot || place == Spot::Anywhere && spot == Spot::Top;
        let listed =
            LIST.iter().filter(|(place, ..)| counts(*place)).flat_map(|(_, names, _)| *names);
        for name in listed {
            let is_allowed =
                request.unprotected.iter().any(|open| root.join(name).starts_with(open));
            // The search finds names with wildcards.
            if !is_allowed && !name.contains('*') {
                let part = |name: &str| Part::Name(name.as_bytes().to_vec());
                let parts: Vec<Part> = name.split('/').map(part).collect();
                closed.shapes.push((root.clone(), pattern::below(&parts)));
            }
        }
    }
    closed.held.sort();
    closed.held.dedup();
    closed
}
