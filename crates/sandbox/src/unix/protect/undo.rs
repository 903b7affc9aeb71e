//! Undoes what a command made in protected places that were not there before.
//!
//! Stops: hooks, settings and rc files that are left for other programs to act on. Everything of the run is
//! dead by then, but another run may write to the same place and put a symlink where a directory was: none is
//! followed, on no part of a path, or it would choose what is removed.
//!
//! Leaves open: the time between their making and the end of the command. On Linux a process of its own does it
//! for a launcher that was killed (`linux/sweeper`). New settings of a repository stay if they run nothing, or `git init` could not be used.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, fchmod, fstat, unlinkat};
use rustix::io::Errno;

use super::opening;
use super::opening::Force;
use super::search::{Search, Unlisted};
use crate::protected::{is_harmless, is_part_of};
use crate::report::Undone;
use crate::request::{Guarded, Request};
use crate::unix::listing::{self, Lister};

/// Looks for what is new in protected places, and removes it. Empty where nothing is protected.
pub fn undo(request: &Request) -> Vec<Undone> {
    if !request.protects() {
        return Vec::new();
    }
    let search =
        Search::run(&request.write, &request.unprotected, Unlisted::Open(&request.protected));
    let mut undone = Vec::new();
    for new in search.protected() {
        let was_there = request.protected.iter().any(|old| is_part_of(&new, old));
        if was_there || new.guarded == Guarded::InPlace || is_harmless(&new, request) {
            continue;
        }
        let failed = remove(&new.path).err().map(|error| error.to_string());
        undone.push(Undone { path: shown(&new.path), why: new.why, failed });
    }
    for (path, why) in &search.unread {
        undone.push(Undone {
            path: shown(path),
            why: "it may hold settings that were not there before".to_owned(),
            failed: Some(format!("could not be searched: {why}")),
        });
    }
    undone
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Removes a file, a link, or a directory with all that is in it.
fn remove(path: &Path) -> io::Result<()> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(Errno::INVAL.into());
    };
    let name = CString::new(name.as_bytes())?;
    let parent = listing::open_real(parent)?;
    remove_in(parent.as_fd(), &name, &mut Lister::default())
}

fn remove_in(parent: BorrowedFd<'_>, name: &CStr, lister: &mut Lister) -> io::Result<()> {
    let flags = match listing::kind_at(parent, name)? {
        None => return Ok(()),
        Some(FileType::Directory) => {
            let opened = opening::open(parent, name, Force::Yes)?;
            let mut names = Vec::new();
            lister.each(&opened.directory, |name, _| names.push(name.to_owned()))?;
            for name in names {
                remove_in(opened.directory.as_fd(), &name, lister)?;
            }
            AtFlags::REMOVEDIR
        }
        Some(_) => AtFlags::empty(),
    };
    match unlinkat(parent, name, flags) {
        // The directory itself may be closed for writing.
        Err(Errno::ACCESS) => {
            let before = Mode::from_raw_mode(fstat(parent)?.st_mode);
            fchmod(parent, before | Mode::RWXU)?;
            let removed = unlinkat(parent, name, flags);
            fchmod(parent, before)?;
            Ok(removed?)
        }
        other => Ok(other?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unix::fixture::Fixture;

    /// Between the search and the removal another run can swap any directory on the way.
    #[test]
    fn nothing_is_removed_through_a_link() {
        let fixture = Fixture::new();
        let kept = fixture.file("elsewhere/deep/.vscode/tasks.json", "{}");
        fixture.link("project/a", fixture.path("elsewhere"));
        let swapped = fixture.path("project/a/deep/.vscode");
        remove(&swapped).unwrap_err();
        assert!(kept.exists());
        remove(&fixture.path("elsewhere/deep/.vscode")).unwrap();
        assert!(!kept.exists() && fixture.path("elsewhere/deep").is_dir());
    }
}
