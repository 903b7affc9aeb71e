//! A way down into a tree of directories and up again, however deep the tree is: by descriptors, so that no path is
//! looked up and no link followed, and with a few of them at a time.

use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, fchmod, fstat};
use rustix::io::Errno;

use super::opening::{self, Force};
use crate::unix::listing;

/// Directories that are open at a time, besides the top.
const OPEN: usize = 32;

/// Modes that were changed on the way are put back on the way up, and when this goes.
pub struct Descent {
    /// From the top to where we are; never empty.
    levels: Vec<Level>,
    /// Where we are, in bytes.
    path: Vec<u8>,
    force: Force,
}

struct Level {
    name: CString,
    /// `None` where it was closed to save descriptors.
    directory: Option<OwnedFd>,
    /// Device and inode.
    id: (u64, u64),
    /// The mode that is put back.
    before: Option<Mode>,
    /// How much of the path leads to it.
    length: usize,
}

impl Descent {
    /// Begins at a path, no part of which may be a symlink: where others write, one can take the place of a
    /// directory at any moment.
    pub fn open(top: &Path, force: Force) -> io::Result<Descent> {
        let (parent, name) = match (top.parent(), top.file_name()) {
            (Some(parent), Some(name)) => (Some(parent), CString::new(name.as_bytes())?),
            _ => (None, CString::new(top.as_os_str().as_bytes())?),
        };
        let (directory, before) = match parent {
            Some(parent) => opening::open(listing::open_without_links(parent)?, &name, force)?,
            None => opening::open(CWD, &name, force)?,
        };
        Descent::begin(directory, before, top.as_os_str().as_bytes().to_vec(), force)
    }

    /// Begins at an open directory, whose path does not matter.
    pub fn at(directory: OwnedFd, force: Force) -> io::Result<Descent> {
        Descent::begin(directory, None, Vec::new(), force)
    }

    fn begin(
        directory: OwnedFd,
        before: Option<Mode>,
        path: Vec<u8>,
        force: Force,
    ) -> io::Result<Descent> {
        let id = id(&directory)?;
        let length = path.len();
        let top =
            Level { name: CString::default(), directory: Some(directory), id, before, length };
        Ok(Descent { levels: vec![top], path, force })
    }

    /// Where we are.
    pub fn here(&self) -> io::Result<&OwnedFd> {
        let open = self.levels.last().and_then(|level| level.directory.as_ref());
        open.ok_or_else(|| Errno::STALE.into())
    }

    pub fn path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.path))
    }

    /// Device and inode of where we are.
    pub fn id(&self) -> (u64, u64) {
        self.levels.last().map_or((0, 0), |level| level.id)
    }

    /// Leaves it to the caller to put the mode back, if it was changed.
    pub fn keep_open(&mut self) -> Option<((u64, u64), Mode)> {
        let level = self.levels.last_mut()?;
        Some((level.id, level.before.take()?))
    }

    /// How many levels below the top we are.
    pub fn depth(&self) -> usize {
        self.levels.len() - 1
    }

    pub fn down(&mut self, name: &CStr) -> io::Result<()> {
        let (directory, before) = opening::open(self.here()?, name, self.force)?;
        let id = id(&directory)?;
        self.path.push(b'/');
        self.path.extend_from_slice(name.to_bytes());
        let (name, length) = (name.to_owned(), self.path.len());
        self.levels.push(Level { name, directory: Some(directory), id, before, length });
        // The top stays open: it is what a way that was lost is found from again.
        if let Some(far) = self.levels.len().checked_sub(OPEN + 1).filter(|far| *far > 0) {
            self.levels[far].directory = None;
        }
        Ok(())
    }

    /// Back to the directory that this one was found in. An error where that is gone, or another stands there.
    pub fn up(&mut self) -> io::Result<()> {
        if self.levels.len() < 2 {
            return Err(Errno::INVAL.into());
        }
        let Some(left) = self.levels.pop() else {
            return Err(Errno::INVAL.into());
        };
        let opened = self.open_again(left.directory.as_ref());
        left.put_back();
        self.path.truncate(self.levels.last().map_or(0, |level| level.length));
        opened
    }

    fn open_again(&mut self, below: Option<&OwnedFd>) -> io::Result<()> {
        let Some(level) = self.levels.last().filter(|level| level.directory.is_none()) else {
            return Ok(());
        };
        // Another process may have moved the directory that we come from.
        let parent = below.and_then(|below| listing::open(below, c"..").ok());
        let parent = parent.filter(|parent| id(parent).is_ok_and(|id| id == level.id));
        let parent = match parent {
            Some(parent) => parent,
            None => self.walk_again()?,
        };
        if let Some(level) = self.levels.last_mut() {
            level.directory = Some(parent);
        }
        Ok(())
    }

    /// From the top by the names that led here.
    fn walk_again(&self) -> io::Result<OwnedFd> {
        let mut levels = self.levels.iter();
        let top = levels.next().and_then(|top| top.directory.as_ref());
        let mut at = top.ok_or(Errno::STALE)?.try_clone()?;
        for level in levels {
            at = listing::open(&at, level.name.as_c_str())?;
            if id(&at)? != level.id {
                return Err(Errno::STALE.into());
            }
        }
        Ok(at)
    }
}

impl Level {
    fn put_back(&self) {
        if let (Some(directory), Some(mode)) = (&self.directory, self.before) {
            // We changed it a moment ago; a change since then is another program's, and stays.
            let _ = fchmod(directory, mode);
        }
    }
}

impl Drop for Descent {
    fn drop(&mut self) {
        while self.up().is_ok() {}
        self.levels.iter().for_each(Level::put_back);
    }
}

fn id(directory: &OwnedFd) -> io::Result<(u64, u64)> {
    let stat = fstat(directory)?;
    // Their types differ between systems.
    #[allow(clippy::unnecessary_cast, clippy::cast_sign_loss)]
    Ok((stat.st_dev as u64, stat.st_ino as u64))
}

/// The path of a name in a directory.
pub fn below(path: &Path, name: &CStr) -> PathBuf {
    path.join(OsStr::from_bytes(name.to_bytes()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::super::removal::remove_at;
    use super::*;
    use crate::unix::fixture::Fixture;

    #[test]
    fn the_way_back_is_found_however_deep() {
        let fixture = Fixture::new();
        let top = fixture.directory("top");
        let mut descent = Descent::open(&top, Force::Yes).unwrap();
        for _ in 0..3000 {
            rustix::fs::mkdirat(descent.here().unwrap(), c"d", Mode::from_raw_mode(0o700)).unwrap();
            descent.down(c"d").unwrap();
        }
        assert_eq!(descent.depth(), 3000);
        assert_eq!(descent.path().as_os_str().len(), top.as_os_str().len() + 2 * 3000);
        while descent.depth() > 0 {
            descent.up().unwrap();
        }
        assert_eq!(descent.path(), top);
        drop(descent);
        let parent = listing::open_real(top.parent().unwrap()).unwrap();
        remove_at(&parent, c"top", &mut listing::Lister::default()).unwrap();
        assert!(!top.exists());
    }

    /// Between the search and what is done about it another run can swap any directory on the way.
    #[test]
    fn no_link_is_followed() {
        let fixture = Fixture::new();
        fixture.directory("elsewhere/deep/.git");
        fixture.link("project/a", fixture.path("elsewhere"));
        for path in ["project/a", "project/a/deep", "project/a/deep/.git"] {
            assert!(Descent::open(&fixture.path(path), Force::Yes).is_err(), "{path}");
        }
        let mut descent = Descent::open(&fixture.path("project"), Force::Yes).unwrap();
        descent.down(c"a").unwrap_err();
        Descent::open(&fixture.path("elsewhere/deep/.git"), Force::Yes).unwrap();
    }

    #[test]
    fn a_moved_directory_leads_nowhere_else() {
        let fixture = Fixture::new();
        let deep: PathBuf = (0..OPEN + 8).map(|_| "d").collect();
        let top = fixture.directory("top");
        fixture.directory(Path::new("top").join(&deep));
        fixture.directory("elsewhere");
        let mut descent = Descent::open(&top, Force::No).unwrap();
        (0..OPEN + 8).for_each(|_| descent.down(c"d").unwrap());
        // The parent of this one has been closed meanwhile; going up by `..` would lead out of the tree.
        (0..OPEN - 1).for_each(|_| descent.up().unwrap());
        let moved: PathBuf = (0..9).map(|_| "d").collect();
        fs::rename(top.join(moved), fixture.path("elsewhere/d")).unwrap();
        descent.up().unwrap();
        assert_eq!(descent.depth(), 8);
        assert!(descent.path().starts_with(&top));
        let there = fs::metadata(descent.path()).unwrap();
        let stat = fstat(descent.here().unwrap()).unwrap();
        assert_eq!(std::os::unix::fs::MetadataExt::ino(&there), stat.st_ino);
    }

    #[test]
    fn modes_are_put_back_when_it_ends_in_the_middle() {
        let fixture = Fixture::new();
        let inner = fixture.directory("top/a/b");
        for path in [&inner, &fixture.path("top/a")] {
            fs::set_permissions(path, fs::Permissions::from_mode(0o000)).unwrap();
        }
        let mut descent = Descent::open(&fixture.path("top"), Force::Yes).unwrap();
        descent.down(c"a").unwrap();
        descent.down(c"b").unwrap();
        drop(descent);
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&fixture.path("top/a")), 0);
        fs::set_permissions(fixture.path("top/a"), fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(mode(&inner), 0);
        fs::set_permissions(&inner, fs::Permissions::from_mode(0o700)).unwrap();
    }
}
