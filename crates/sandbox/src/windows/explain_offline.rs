//! A Windows plan made on another system, or without a look at this one: paths are taken as they are written
//! (without a drive: on C:), and the machine as it usually is. For `--explain --platform windows`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use mcp_policy::Sourced;

use crate::core::error::Error;
use crate::core::plan::Plan;
use crate::core::request::{HOME, Home, Place, PlaceKind, Request};
use crate::core::run_spec::RunSpec;
use crate::windows::facts::WindowsFacts;
use crate::windows::plan::{local, plan};
use crate::windows::step::Step;

pub fn explain(spec: RunSpec) -> Result<Plan<Step>, Error> {
    let facts = WindowsFacts::usual()
        .map_err(|why| Error::Input { what: "usual facts".to_owned(), why: why.to_owned() })?;
    Ok(plan(&request(spec)?, &facts))
}

/// What a spec comes to where every grant is a directory that exists.
pub(super) fn request(spec: RunSpec) -> Result<Request, Error> {
    let RunSpec { policy, command, cwd, home, .. } = spec;
    let program = command.first().ok_or(Error::NotFound { command: String::new() })?;
    let places = |paths: &[Sourced<PathBuf>]| -> Vec<Place> {
        let place = |path: &Sourced<PathBuf>| Place {
            path: local(&path.value),
            kind: PlaceKind::Directory,
        };
        paths.iter().map(place).collect()
    };
    let (read, write) = (places(&policy.filesystem.read), places(&policy.filesystem.write));
    let name = program.to_string_lossy();
    let program = match name.contains(['/', '\\']) {
        true => local(Path::new(program)),
        // Where most of them are.
        false => PathBuf::from(format!(r"C:\Program Files\{name}\{name}.exe")),
    };
    let set = policy.env.set.iter();
    let env = set.map(|(name, value)| (OsString::from(name.as_ref()), value.value.clone().into()));
    Ok(Request {
        env: env.collect(),
        read,
        write,
        home: home.map_or(Home::Ephemeral, |home| Home::Kept(local(&home))),
        cwd: cwd.map_or_else(|| HOME.into(), |cwd| local(&cwd)),
        ..Request::bare(policy, program, command)
    })
}
