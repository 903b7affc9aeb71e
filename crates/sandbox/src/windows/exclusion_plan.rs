//! From a request to what is kept from its container, and what the report says about it. Pure.

use mcp_policy::WindowsPath;
use mcp_policy::windows_path::Spelling;

use crate::control::Control;
use crate::plan::Intent;
use crate::request::{Guarded, Request};
use crate::windows::exclusion::{Keep, Kept};
use crate::windows::step::Act;

/// What is kept, each with the control it is for, and the paths that cannot be.
pub fn kept(request: &Request) -> (Vec<(Keep, Control)>, Vec<String>) {
    let denied = request.denied.iter().map(|denied| (&denied.path, Kept::Closed, Control::Deny));
    let protected = request.protected.iter().map(|protected| {
        let kept = match protected.guarded {
            Guarded::ReadOnly => Kept::ReadOnly,
            Guarded::InPlace => Kept::InPlace,
        };
        (&protected.path, kept, Control::Protect)
    });
    let (mut keeps, mut refused) = (Vec::new(), Vec::new());
    for (path, kept, control) in denied.chain(protected) {
        let parsed = path.to_str().ok_or("is not valid Unicode");
        match parsed.and_then(|text| WindowsPath::parse(text, Spelling::Resolved)) {
            Ok(path) => keeps.push((Keep { path, kept }, control)),
            Err(why) => refused.push(format!("{} {why}", path.display())),
        }
    }
    (keeps, refused)
}

/// What is tried from inside.
pub fn act(keep: &Keep) -> Act {
    let path = keep.path.clone();
    match keep.kept {
        Kept::Closed => Act::Reach { path },
        Kept::ReadOnly => Act::Change { path },
        Kept::InPlace => Act::Move { path },
    }
}

pub fn deny_intent(request: &Request) -> Intent {
    if request.policy.filesystem.deny.is_empty() {
        return Intent::NotRequested;
    }
    let mut by = "no entry for the container on what matched at the start, by none of its names; each tried \
                  from inside"
        .to_owned();
    if !request.withdrawn.is_empty() {
        let paths: Vec<_> = request.withdrawn.iter().map(|p| p.display().to_string()).collect();
        by += &format!("; grants withdrawn: {}", paths.join(", "));
    }
    by += "; not covered: what comes to match later, files that the host replaces meanwhile, somebody who puts \
           the access lists of the tree in order meanwhile";
    enforced(request, by)
}

pub fn protect_intent(request: &Request) -> Intent {
    if !request.protects() {
        return Intent::NotRequested;
    }
    let by = "entries for reading only on what was there at the start, each tried from inside; what is new is removed \
              when the command has ended; not covered: the time until then, a launcher that is killed before";
    enforced(request, by.to_owned())
}

fn enforced(request: &Request, by: String) -> Intent {
    let (_, refused) = kept(request);
    match refused.is_empty() {
        true => Intent::enforce(by),
        false => Intent::unavailable(
            format!("cannot be kept from the command: {}", refused.join("; ")),
            "grant directories that do not hold it",
        ),
    }
}
