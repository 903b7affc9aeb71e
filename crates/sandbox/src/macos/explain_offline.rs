//! A macOS plan made on another system, or without a look at this one: paths are taken as they are
//! written, and the Mac as it usually is. For `--explain --platform macos`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use mcp_policy::Sourced;

use crate::core::error::Error;
use crate::core::plan::Plan;
use crate::core::request::{HOME, Home, Link, Place, PlaceKind, Request};
use crate::core::run_spec::RunSpec;
use crate::macos::deny::{SYSTEM_LINKS, resolved};
use crate::macos::facts::MacFacts;
use crate::macos::plan::plan;
use crate::macos::step::Step;

pub fn explain(spec: RunSpec) -> Result<Plan<Step>, Error> {
    Ok(plan(&request(spec)?, &MacFacts::usual()))
}

/// What a spec comes to where every grant is a directory that exists.
fn request(spec: RunSpec) -> Result<Request, Error> {
    let RunSpec { policy, command, cwd, home, .. } = spec;
    let program = command.first().ok_or(Error::NotFound { command: String::new() })?;
    let links: Vec<Link> =
        SYSTEM_LINKS.iter().map(|(at, to)| Link { at: at.into(), to: to.into() }).collect();
    let places = |paths: &[Sourced<PathBuf>]| -> Vec<Place> {
        let place = |path: &Sourced<PathBuf>| Place {
            path: resolved(&path.value, &links),
            kind: PlaceKind::Directory,
        };
        paths.iter().map(place).collect()
    };
    let (read, write) = (places(&policy.filesystem.read), places(&policy.filesystem.write));
    let program = match Path::new(program) {
        path if path.has_root() => resolved(path, &links),
        // Where most of them are.
        name => Path::new("/opt/homebrew/bin").join(name),
    };
    let cwd = cwd.unwrap_or_else(|| HOME.into());
    let set = policy.env.set.iter();
    let env = set.map(|(name, value)| (OsString::from(name.as_ref()), value.value.clone().into()));
    Ok(Request {
        env: env.collect(),
        read,
        write,
        home: home.map_or(Home::Ephemeral, Home::Kept),
        cwd,
        ..Request::bare(policy, program, command)
    })
}
