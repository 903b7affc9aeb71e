//! The exclusions that a request asks for, and what the report says about them. Pure.

use mcp_policy::WindowsPath;
use mcp_policy::windows_path::Spelling;

use crate::core::control::Control;
use crate::core::plan::Intent;
use crate::core::request::{Guarded, Request};
use crate::windows::exclusion::{Exclusion, ExclusionKind};
use crate::windows::step::Act;

/// The exclusions, each with the control it serves, and the paths that cannot be excluded, each with the reason.
pub fn exclusions(request: &Request) -> (Vec<(Exclusion, Control)>, Vec<String>) {
    let denied =
        request.denied.iter().map(|denied| (&denied.path, ExclusionKind::NoAccess, Control::Deny));
    let protected = request.protected.iter().map(|protected| {
        let kind = match protected.guarded {
            Guarded::ReadOnly => ExclusionKind::ReadOnly,
            Guarded::InPlace => ExclusionKind::NoRename,
        };
        (&protected.path, kind, Control::Protect)
    });
    let (mut exclusions, mut refused) = (Vec::new(), Vec::new());
    for (path, kind, control) in denied.chain(protected) {
        let parsed = path.to_str().ok_or("is not valid Unicode");
        match parsed.and_then(|text| WindowsPath::parse(text, Spelling::Resolved)) {
            Ok(path) => exclusions.push((Exclusion { path, kind }, control)),
            Err(why) => refused.push(format!("{} {why}", path.display())),
        }
    }
    (exclusions, refused)
}

/// What the self-test tries on it.
pub fn act(exclusion: &Exclusion) -> Act {
    let path = exclusion.path.clone();
    match exclusion.kind {
        ExclusionKind::NoAccess => Act::Reach { path },
        ExclusionKind::ReadOnly => Act::Change { path },
        ExclusionKind::NoRename => Act::Move { path },
    }
}

pub fn deny_intent(request: &Request) -> Intent {
    if request.policy.filesystem.deny.is_empty() {
        return Intent::NotRequested;
    }
    let mut by = "the container's SID is in no DACL of a path that matched at the start, under any of its hard links; the \
                  self-test tried each"
        .to_owned();
    if !request.withdrawn.is_empty() {
        let paths: Vec<_> = request.withdrawn.iter().map(|p| p.display().to_string()).collect();
        by += &format!("; grants withdrawn: {}", paths.join(", "));
    }
    by += "; not covered: files that match only later, files that a program outside replaces during the run, a program \
           outside that recomputes the inheritance of the tree (icacls /t)";
    enforced(request, by)
}

pub fn protect_intent(request: &Request) -> Intent {
    if !request.protects() {
        return Intent::NotRequested;
    }
    let by = "DACL entries for reading only on the paths that existed at the start, each tried by the self-test; the \
              launcher removes new ones after the command has ended; not covered: the time until then, and a launcher \
              that is killed before";
    enforced(request, by.to_owned())
}

fn enforced(request: &Request, by: String) -> Intent {
    let (_, refused) = exclusions(request);
    match refused.is_empty() {
        true => Intent::enforce(by),
        false => Intent::unavailable(
            format!("these paths cannot be excluded: {}", refused.join("; ")),
            "grant directories that do not contain them",
        ),
    }
}
