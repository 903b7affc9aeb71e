//! Takes things out of protected places: at once, by a rename in the same directory, and then for good.
//!
//! A tree is first given a name that no program acts on, so that nothing of it counts while it is being removed, or
//! when that fails. However deep it is, a few descriptors do. No link is followed.

use std::ffi::{CStr, CString};
use std::fmt;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;

use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, Uid, fchmod, fchown, fstat, openat, renameat, statat,
    unlinkat,
};
use rustix::io::Errno;

use super::descent::Descent;
use super::opening::Force;
use crate::unix::listing::{self, Lister};

/// How many names are tried; others may have taken some.
const TRIES: usize = 64;

/// What could not be done.
#[derive(Debug)]
pub enum RemovalError {
    /// It is where it was.
    Still(io::Error),
    /// It has another name, in the same directory.
    Aside(CString, io::Error),
}

impl fmt::Display for RemovalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RemovalError::Still(error) => error.fmt(f),
            RemovalError::Aside(name, error) => {
                write!(f, "renamed to {}, but not removed: {error}", name.to_string_lossy())
            }
        }
    }
}

/// Removes what has a name in a directory.
pub fn remove_at(parent: impl AsFd, name: &CStr, lister: &mut Lister) -> Result<(), RemovalError> {
    let parent = parent.as_fd();
    match listing::kind_at(parent, name).map_err(|e| RemovalError::Still(e.into()))? {
        None => Ok(()),
        Some(FileType::Directory) => {
            let aside = set_aside(parent, name, "mcp-removed").map_err(RemovalError::Still)?;
            let removed = remove_tree(parent, &aside, lister);
            removed.map_err(|error| RemovalError::Aside(aside, error))
        }
        Some(_) => {
            let removed = with_writable(parent, || unlinkat(parent, name, AtFlags::empty()));
            removed.map_err(RemovalError::Still)
        }
    }
}

/// Gives something a name that no program acts on, `NAME.WORD`, and a number where there is such a one.
pub fn set_aside(parent: impl AsFd, name: &CStr, word: &str) -> io::Result<CString> {
    let parent = parent.as_fd();
    for number in 0..TRIES {
        let mut aside = name.to_bytes().to_vec();
        // Together no longer than any file system's names.
        aside.truncate(200);
        aside.extend_from_slice(format!(".{word}").as_bytes());
        if number > 0 {
            aside.extend_from_slice(format!("-{number}").as_bytes());
        }
        let aside = CString::new(aside)?;
        match with_writable(parent, || rename_new(parent, name, &aside)) {
            Ok(()) => return Ok(aside),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e),
        }
    }
    Err(Errno::EXIST.into())
}

/// Writes a file anew whose other version was set aside, for the same owner and with the same mode.
pub fn put_back(parent: impl AsFd, name: &CStr, aside: &CStr, text: &[u8]) -> io::Result<()> {
    let parent = parent.as_fd();
    let like = statat(parent, aside, AtFlags::SYMLINK_NOFOLLOW)?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(parent, name, flags, Mode::RUSR | Mode::WUSR)?;
    let (user, group) = (Uid::from_raw(like.st_uid), Gid::from_raw(like.st_gid));
    // Only root may, and only root needs to.
    let _ = fchown(&file, Some(user), Some(group));
    fchmod(&file, Mode::from_raw_mode(like.st_mode & 0o777))?;
    File::from(file).write_all(text)
}

/// Renames to a name that is not taken.
fn rename_new(parent: impl AsFd, name: &CStr, new: &CStr) -> rustix::io::Result<()> {
    let parent = parent.as_fd();
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{RenameFlags, renameat_with};
        match renameat_with(parent, name, parent, new, RenameFlags::NOREPLACE) {
            // Not every file system has it.
            Err(Errno::INVAL | Errno::NOSYS) => {}
            other => return other,
        }
    }
    match statat(parent, new, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => renameat(parent, name, parent, new),
        Ok(_) => Err(Errno::EXIST),
        Err(e) => Err(e),
    }
}

/// Does something in a directory that may be closed for writing.
fn with_writable(directory: impl AsFd, act: impl Fn() -> rustix::io::Result<()>) -> io::Result<()> {
    match act() {
        Err(Errno::ACCESS) => {
            let before = Mode::from_raw_mode(fstat(&directory)?.st_mode);
            fchmod(&directory, before | Mode::RWXU)?;
            let done = act();
            fchmod(&directory, before)?;
            Ok(done?)
        }
        other => Ok(other?),
    }
}

/// Removes a directory with all that is in it, from the bottom.
fn remove_tree(parent: impl AsFd, name: &CStr, lister: &mut Lister) -> io::Result<()> {
    let parent = parent.as_fd();
    let mut descent = Descent::at(parent.try_clone_to_owned()?, Force::Yes)?;
    descent.down(name)?;
    // The names of the directories on the way, and those that are left in each.
    let mut way: Vec<CString> = vec![name.to_owned()];
    let mut left: Vec<Vec<CString>> = vec![empty_of_files(&descent, lister)?];
    while let Some(pending) = left.last_mut() {
        if let Some(name) = pending.pop() {
            descent.down(&name)?;
            way.push(name);
            left.push(empty_of_files(&descent, lister)?);
            continue;
        }
        left.pop();
        descent.up()?;
        if let Some(name) = way.pop() {
            let here = descent.here()?;
            with_writable(here, || match unlinkat(here, &name, AtFlags::REMOVEDIR) {
                Err(Errno::NOENT) => Ok(()),
                other => other,
            })?;
        }
    }
    Ok(())
}

/// Removes all but directories, whose names it gives.
fn empty_of_files(descent: &Descent, lister: &mut Lister) -> io::Result<Vec<CString>> {
    let here = descent.here()?;
    let (mut directories, mut files) = (Vec::new(), Vec::new());
    lister.each(here, |name, kind| match kind {
        FileType::Directory => directories.push(name.to_owned()),
        _ => files.push(name.to_owned()),
    })?;
    if !(directories.is_empty() && files.is_empty()) {
        // It goes, so its mode need not be kept.
        let mode = Mode::from_raw_mode(fstat(here)?.st_mode);
        if !mode.contains(Mode::RWXU) {
            fchmod(here, mode | Mode::RWXU)?;
        }
    }
    for name in files {
        match unlinkat(here, &name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(e) => return Err(e.into()),
        }
    }
    Ok(directories)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    use super::*;
    use crate::unix::fixture::Fixture;

    fn remove(path: &Path) -> Result<(), RemovalError> {
        let parent = listing::open_real(path.parent().unwrap()).unwrap();
        let name = CString::new(path.file_name().unwrap().as_encoded_bytes()).unwrap();
        remove_at(&parent, &name, &mut Lister::default())
    }

    #[test]
    fn links_in_a_tree_are_removed_and_not_followed() {
        let fixture = Fixture::new();
        let kept = fixture.file("elsewhere/file", "content");
        fixture.file("top/hooks/a/b/c", "content");
        fixture.link("top/hooks/a/link", fixture.path("elsewhere"));
        for shut in ["top/hooks/a/b", "top/hooks/a", "top/hooks", "top"] {
            let mode = fs::Permissions::from_mode(0o100);
            fs::set_permissions(fixture.path(shut), mode).unwrap();
        }
        fs::set_permissions(fixture.path("top"), fs::Permissions::from_mode(0o500)).unwrap();
        remove(&fixture.path("top/hooks")).unwrap();
        remove(&fixture.path("top/hooks")).unwrap();
        assert!(kept.exists());
        let mode = fs::metadata(fixture.path("top")).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o500);
        fs::set_permissions(fixture.path("top"), fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(fs::read_dir(fixture.path("top")).unwrap().count(), 0);
    }

    #[test]
    fn what_is_set_aside_takes_nobodys_name() {
        let fixture = Fixture::new();
        fixture.file("top/.vscode.word", "other");
        fixture.file("top/.vscode/x", "content");
        let top = listing::open_real(&fixture.path("top")).unwrap();
        assert_eq!(set_aside(&top, c".vscode", "word").unwrap().as_c_str(), c".vscode.word-1");
        assert_eq!(fs::read_to_string(fixture.path("top/.vscode.word")).unwrap(), "other");
        assert_eq!(fs::read_to_string(fixture.path("top/.vscode.word-1/x")).unwrap(), "content");
    }
}
