//! From rules to a domain of the calling thread and of all that it starts.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fcntl_getfl, fstat, open, openat2};
use rustix::io::Errno;

use crate::core::request::PlaceKind;
use crate::linux::failure::StepFailure;
use crate::linux::landlock::{Allowed, Ports, Rule, Ruleset};
use crate::linux::sys;

/// Restricts the calling thread for good. Needs no_new_privs.
pub fn restrict(
    abi: u32,
    rules: &[Rule],
    ports: Ports,
    stdio: &[BorrowedFd<'_>; 3],
) -> Result<(), StepFailure> {
    let ruleset = Ruleset::of(abi);
    let ports = if ports == Ports::Closed { ruleset.ports } else { 0 };
    let fd = sys::landlock_create(ruleset.files, ports, ruleset.scopes)?;
    for Rule { path, kind, allowed } in rules {
        let rights = ruleset.rights(*allowed, *kind);
        if rights == 0 {
            // Nothing that this version refuses, such as sockets.
            continue;
        }
        place(path)
            .and_then(|at| sys::landlock_allow(&fd, at.as_fd(), rights))
            .map_err(|error| StepFailure { part: path.display().to_string(), error })?;
    }
    for descriptor in stdio {
        if let Some(allowed) = given(*descriptor)? {
            let rights = ruleset.rights(allowed, PlaceKind::File);
            match sys::landlock_allow(&fd, *descriptor, rights) {
                // Anonymous memory, which no rule can name and Landlock leaves alone.
                Err(e) if e.raw_os_error() == Some(libc::EBADFD) => {}
                other => other?,
            }
        }
    }
    Ok(sys::landlock_restrict(&fd, ruleset.flags)?)
}

/// A place of the plan has no symlink in its path, in here as outside.
pub fn place(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    match openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        // In another sandbox: looked at afterwards, since no process can change what was opened.
        Err(Errno::NOSYS) => {
            let place = open(path, flags | OFlags::NOFOLLOW, Mode::empty())?;
            let real = std::fs::read_link(format!("/proc/self/fd/{}", place.as_raw_fd()))?;
            if real == path { Ok(place) } else { Err(Errno::LOOP.into()) }
        }
        other => Ok(other?),
    }
}

/// What opening a standard descriptor again, through /dev/stdout and the like, shall allow: what
/// it was opened for. Landlock leaves pipes and sockets alone.
fn given(descriptor: BorrowedFd<'_>) -> io::Result<Option<Allowed>> {
    let kind = FileType::from_raw_mode(fstat(descriptor)?.st_mode);
    if !matches!(kind, FileType::RegularFile | FileType::CharacterDevice) {
        return Ok(None);
    }
    let mode = fcntl_getfl(descriptor)? & OFlags::ACCMODE;
    Ok(Some(if mode == OFlags::RDONLY {
        Allowed::Input
    } else if mode == OFlags::WRONLY {
        Allowed::Output
    } else {
        Allowed::InputOutput
    }))
}

/// Closes every file to this process and tells whether it did. Throw-away children only.
pub fn refuses_all() -> io::Result<bool> {
    rustix::thread::set_no_new_privs(true)?;
    let ruleset = Ruleset::of(1);
    let fd = sys::landlock_create(ruleset.files, 0, ruleset.scopes)?;
    sys::landlock_restrict(&fd, ruleset.flags)?;
    Ok(File::open("/dev/null").is_err_and(|e| e.raw_os_error() == Some(libc::EACCES)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unix::fixture::Fixture;

    /// Between the look at a grant and its rule another process may have put a link in its place.
    #[test]
    fn a_place_that_became_a_link_is_refused() {
        let fixture = Fixture::new();
        let file = fixture.file("real/file", "");
        fixture.link("link", fixture.path("real"));
        let top = fixture.path("real").canonicalize().unwrap();
        assert!(place(&top).is_ok() && place(&file.canonicalize().unwrap()).is_ok());
        for name in ["link", "link/file"] {
            let error = place(&top.with_file_name(name)).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::ELOOP), "{name}");
        }
    }
}
