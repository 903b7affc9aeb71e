//! Read and write grants as places without symlinks in their paths.
//!
//! Stops: a grant that leads out of a place which the command may write, by a symlink that an earlier run may have left
//! there; it would be a grant of the command's own choice.

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use mcp_policy::{Origin, Policy, Sourced};

use crate::core::error::Error;
use crate::core::request::{HOME, Link, Place, PlaceKind};
use crate::host_files::walk::{Walked, walk};
use crate::unix::writable::Writable;

/// A grant as it was written, and where it leads.
struct Grant<'a> {
    flag: String,
    path: &'a Path,
    way: Walked,
    place: Place,
}

impl Grant<'_> {
    fn refuse(&self, why: String) -> Error {
        Error::Grant { flag: self.flag.clone(), path: self.path.to_owned(), why }
    }
}

/// The places of read and of write grants. `home` is a directory of the host that is the command's HOME.
pub fn resolve(
    policy: &Policy,
    home: Option<&Path>,
    links: &mut Vec<Link>,
) -> Result<(Vec<Place>, Vec<Place>), Error> {
    let read = find(&policy.filesystem.read, "read")?;
    let write = find(&policy.filesystem.write, "write")?;
    stay_inside(&read, &write, home)?;
    let places = |grants: &[Grant<'_>]| grants.iter().map(|grant| grant.place.clone()).collect();
    let found = (places(&read), places(&write));
    links.extend(read.into_iter().chain(write).flat_map(|grant| grant.way.links));
    Ok(found)
}

fn find<'a>(paths: &'a [Sourced<PathBuf>], key: &str) -> Result<Vec<Grant<'a>>, Error> {
    let mut grants = Vec::new();
    for Sourced { value: path, origin } in paths {
        let flag = match origin {
            Origin::CommandLine { .. } => format!("--{key}"),
            place => format!("{place}: {key}"),
        };
        let refuse = |why: String| Error::Grant { flag: flag.clone(), path: path.clone(), why };
        let way = walk(path).map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound if key == "write" => refuse(format!(
                "does not exist (create it first: mkdir {}, or leave it out)",
                path.display()
            )),
            _ => refuse(reason(&e)),
        })?;
        if let Some(why) = forbidden(&way.real) {
            return Err(refuse(why));
        }
        let place = place(&way.real).map_err(refuse)?;
        grants.push(Grant { flag, path, way, place });
    }
    Ok(grants)
}

/// A grant by way of a writable place counts where the same is granted by a way that the command has no hand in: for
/// writing, if it is to be written.
fn stay_inside(read: &[Grant<'_>], write: &[Grant<'_>], home: Option<&Path>) -> Result<(), Error> {
    let roots: Vec<Place> = write.iter().map(|grant| grant.place.clone()).collect();
    let all = Writable::new(&[], &roots, home);
    let is_straight =
        |grant: &&Grant<'_>| !grant.way.links.iter().any(|link| all.root_of(&link.at).is_some());
    let straight = |grants: &[Grant<'_>]| -> Vec<Place> {
        grants.iter().filter(is_straight).map(|grant| grant.place.clone()).collect()
    };
    let (readable, writable) = (straight(read), straight(write));
    let is_given =
        |places: &[Place], path: &Path| places.iter().any(|place| path.starts_with(&place.path));
    for (grant, is_read) in
        read.iter().map(|grant| (grant, true)).chain(write.iter().map(|grant| (grant, false)))
    {
        let real = &grant.way.real;
        if is_straight(&grant) || is_given(&writable, real) || is_read && is_given(&readable, real)
        {
            continue;
        }
        return Err(grant.refuse(format!(
            "leads to {} by way of a symlink in a place that the command may write; grant that path itself",
            real.display()
        )));
    }
    Ok(())
}

/// Why a host path is never shown.
pub fn forbidden(real: &Path) -> Option<String> {
    for own in ["/proc", "/dev"] {
        if real.starts_with(own) {
            return Some(format!(
                "the sandbox has a {own} of its own, and the host's is a way out"
            ));
        }
    }
    if real == Path::new("/") {
        return Some("the whole host is no sandbox; name directories below /".to_owned());
    }
    let hides_home = Path::new(HOME).starts_with(real) && real != Path::new(HOME);
    hides_home.then(|| "would hide the command's own HOME; name directories below it".to_owned())
}

fn reason(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => {
            "does not exist (create it first, or leave it out)".to_owned()
        }
        std::io::ErrorKind::NotADirectory => "a part of it is not a directory".to_owned(),
        _ => error.to_string(),
    }
}

pub fn place(path: &Path) -> Result<Place, String> {
    let kind = fs::symlink_metadata(path).map_err(|e| reason(&e))?.file_type();
    let kind = if kind.is_dir() {
        PlaceKind::Directory
    } else if kind.is_file() {
        PlaceKind::File
    } else if kind.is_socket() {
        return Err("is a unix socket; allow it with --allow-unix".to_owned());
    } else {
        return Err("is neither a file nor a directory".to_owned());
    };
    Ok(Place { path: path.to_owned(), kind })
}

#[cfg(test)]
mod tests;
