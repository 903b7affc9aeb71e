//! Unix sockets of the host: those that are allowed, and those that happen to lie in granted
//! directories, where neither a read-only mount nor Landlock before version 9 stops a connection.
#![cfg_attr(not(any(target_os = "linux", test)), allow(dead_code))]

use std::collections::VecDeque;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use mcp_policy::{Origin, Sourced};
use rustix::fs::{Access, access};

use crate::core::error::Error;
use crate::core::request::{DeniedKind, Link, Place, PlaceKind, Stray};
use crate::host_files::walk::walk;
use crate::unix::writable::Writable;

/// Names that are looked at; larger trees would be a start that people notice.
const MOST_NAMES: usize = 8192;
/// Each is a mount inside.
const MOST_SOCKETS: usize = 256;

/// The sockets that may be used, by their real paths.
pub fn allowed(
    paths: &[Sourced<PathBuf>],
    writable: &Writable,
    links: &mut Vec<Link>,
) -> Result<Vec<Place>, Error> {
    let mut places: Vec<Place> = Vec::new();
    for Sourced { value: path, origin } in paths {
        let flag = match origin {
            Origin::CommandLine { .. } => "--allow-unix".to_owned(),
            place => format!("{place}: unix"),
        };
        let refuse = |why: String| Error::Grant { flag: flag.clone(), path: path.clone(), why };
        let walked = walk(path).map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound => {
                refuse("does not exist (start the server that makes it first)".to_owned())
            }
            _ => refuse(e.to_string()),
        })?;
        let kind = fs::symlink_metadata(&walked.real).map_err(|e| refuse(e.to_string()))?;
        if !kind.file_type().is_socket() {
            return Err(refuse("is not a unix socket (grant files with --read)".to_owned()));
        }
        if let Some(root) = writable.left_by(&walked) {
            return Err(refuse(format!(
                "leads to {} by way of {}, which the command may write; allow that path itself",
                walked.real.display(),
                root.display()
            )));
        }
        links.extend(walked.links);
        let place = Place { path: walked.real, kind: PlaceKind::Socket };
        if !places.contains(&place) {
            places.push(place);
        }
    }
    Ok(places)
}

/// Sockets in granted directories that no user allowed, as far as a short search finds them. One
/// that no server listens on is left alone where it may be written to: its owner removes it when it
/// starts, and could not remove a mask.
///
/// A directory of the caller's that can be neither listed nor entered is closed as a whole where the command, as its
/// owner, could open it again with chmod.
pub fn found(read: &[Place], write: &[Place], allowed: &[Place]) -> Vec<Stray> {
    let mut left = MOST_NAMES;
    let mut found = strays(read, ModeChanges::Fixed, &mut left);
    let lives = |stray: &Stray| stray.kind == DeniedKind::Directory || is_alive(&stray.path);
    found.extend(strays(write, ModeChanges::Free, &mut left).into_iter().filter(lives));
    found.retain(|stray| !allowed.iter().any(|allowed| allowed.path.starts_with(&stray.path)));
    found.sort();
    found.dedup();
    found.truncate(MOST_SOCKETS);
    found
}

/// Whether the command may change the modes of its own files.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ModeChanges {
    Fixed,
    Free,
}

/// Breadth first: what a server offers is seldom deep.
fn strays(places: &[Place], modes: ModeChanges, left: &mut usize) -> Vec<Stray> {
    let mut found = Vec::new();
    let stray = |path: PathBuf, kind: DeniedKind| Stray { path, kind };
    let directories = places.iter().filter(|place| place.kind == PlaceKind::Directory);
    let mut pending: VecDeque<PathBuf> = directories.map(|place| place.path.clone()).collect();
    while let Some(directory) = pending.pop_front() {
        let entries = match fs::read_dir(&directory) {
            Ok(entries) => entries,
            // A grant itself is what the user wants to be seen.
            Err(e)
                if e.kind() == ErrorKind::PermissionDenied
                    && modes == ModeChanges::Free
                    && is_shut(&directory)
                    && !places.iter().any(|place| place.path == directory) =>
            {
                found.push(stray(directory, DeniedKind::Directory));
                continue;
            }
            Err(_) => continue,
        };
        for entry in entries.flatten() {
            if *left == 0 {
                return found;
            }
            *left -= 1;
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => pending.push_back(entry.path()),
                Ok(kind) if kind.is_socket() => found.push(stray(entry.path(), DeniedKind::File)),
                _ => {}
            }
        }
    }
    found
}

/// Whether a directory can be entered only after its mode is changed, and the caller may change it.
fn is_shut(directory: &Path) -> bool {
    let owner = fs::symlink_metadata(directory).map(|looked| looked.uid());
    let is_own = owner.is_ok_and(|owner| owner == rustix::process::geteuid().as_raw());
    is_own && access(directory, Access::EXEC_OK).is_err()
}

/// Whether a process listens. A datagram socket answers that it is of another kind.
fn is_alive(path: &Path) -> bool {
    match UnixStream::connect(path) {
        Ok(_) => true,
        Err(e) => e.kind() != std::io::ErrorKind::ConnectionRefused,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::{UnixDatagram, UnixListener};

    use super::*;
    use crate::unix::fixture::Fixture;

    fn place(path: &Path) -> Vec<Place> {
        vec![Place { path: path.to_owned(), kind: PlaceKind::Directory }]
    }

    #[test]
    fn sockets_in_grants_are_found() {
        let fixture = Fixture::new();
        let top = fixture.directory("sockets");
        fixture.directory("sockets/a/b");
        let [live, dead, datagrams] =
            ["a/b/live", "a/dead", "datagrams"].map(|name| top.join(name));
        let _listener = UnixListener::bind(&live).unwrap();
        drop(UnixListener::bind(&dead).unwrap());
        let _receiver = UnixDatagram::bind(&datagrams).unwrap();
        let root = place(&top);
        let stray = |path: &PathBuf| Stray { path: path.clone(), kind: DeniedKind::File };
        let mut all = [&dead, &live, &datagrams].map(stray).to_vec();
        all.sort();
        assert_eq!(found(&root, &[], &[]), all);
        all.retain(|stray| stray.path != dead);
        assert_eq!(found(&[], &root, &[]), all);
        let allowed = [Place { path: live, kind: PlaceKind::Socket }];
        assert_eq!(found(&[], &root, &allowed), [stray(&datagrams)]);
    }

    #[test]
    fn a_directory_that_its_owner_could_open_again_is_closed() {
        use std::os::unix::fs::PermissionsExt;
        if rustix::process::geteuid().is_root() {
            println!("SKIP: root lists every directory");
            return;
        }
        let fixture = Fixture::new();
        let top = fixture.directory("sockets");
        let shut = fixture.directory("sockets/shut");
        fs::set_permissions(&shut, fs::Permissions::from_mode(0o300)).unwrap();
        assert_eq!(found(&[], &place(&top), &[]), []);
        fs::set_permissions(&shut, fs::Permissions::from_mode(0o200)).unwrap();
        let stray = Stray { path: shut.clone(), kind: DeniedKind::Directory };
        assert_eq!(found(&[], &place(&top), &[]), [stray]);
        // No mode changes in a read grant, and a grant itself is never closed.
        assert_eq!(found(&place(&top), &[], &[]), []);
        assert_eq!(found(&[], &place(&shut), &[]), []);
        fs::set_permissions(&shut, fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(found(&[], &place(&top), &[]), []);
    }
}
