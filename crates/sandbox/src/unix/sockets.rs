//! Unix sockets of the host: those that are allowed, and those that happen to lie in granted
//! directories, where neither a read-only mount nor Landlock before version 9 stops a connection.
#![cfg_attr(not(any(target_os = "linux", test)), allow(dead_code))]

use std::collections::VecDeque;
use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use mcp_policy::{Origin, Sourced};

use crate::error::Error;
use crate::request::{Link, Place, PlaceKind};
use crate::unix::walk::walk;

/// Names that are looked at; larger trees would be a start that people notice.
const MOST_NAMES: usize = 8192;
/// Each is a mount inside.
const MOST_SOCKETS: usize = 256;

/// The sockets that may be used, by their real paths.
pub fn allowed(paths: &[Sourced<PathBuf>], links: &mut Vec<Link>) -> Result<Vec<Place>, Error> {
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
        links.extend(walked.links);
        let place = Place { path: walked.real, kind: PlaceKind::Socket };
        if !places.contains(&place) {
            places.push(place);
        }
    }
    Ok(places)
}

/// Sockets in granted directories that nobody allowed, as far as a short search finds them. One
/// that nobody listens on is left alone where it may be written to: its owner removes it when it
/// starts, and could not remove a mask.
pub fn found(read: &[Place], write: &[Place], allowed: &[Place]) -> Vec<PathBuf> {
    let mut left = MOST_NAMES;
    let mut found = sockets(read, &mut left);
    found.extend(sockets(write, &mut left).into_iter().filter(|path| is_alive(path)));
    found.retain(|path| !allowed.iter().any(|allowed| allowed.path == *path));
    found.sort();
    found.dedup();
    found.truncate(MOST_SOCKETS);
    found
}

/// Breadth first: what a server offers is seldom deep.
fn sockets(places: &[Place], left: &mut usize) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let directories = places.iter().filter(|place| place.kind == PlaceKind::Directory);
    let mut pending: VecDeque<PathBuf> = directories.map(|place| place.path.clone()).collect();
    while let Some(directory) = pending.pop_front() {
        let Ok(entries) = fs::read_dir(&directory) else {
            continue;
        };
        for entry in entries.flatten() {
            if *left == 0 {
                return found;
            }
            *left -= 1;
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => pending.push_back(entry.path()),
                Ok(kind) if kind.is_socket() => found.push(entry.path()),
                _ => {}
            }
        }
    }
    found
}

/// Whether somebody listens. One who takes datagrams answers that it is of another kind.
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
        let mut all = vec![dead.clone(), live.clone(), datagrams.clone()];
        all.sort();
        assert_eq!(found(&root, &[], &[]), all);
        all.retain(|path| *path != dead);
        assert_eq!(found(&[], &root, &[]), all);
        let allowed = [Place { path: live, kind: PlaceKind::Socket }];
        assert_eq!(found(&[], &root, &allowed), [datagrams]);
    }
}
