//! Where the records are: `$XDG_RUNTIME_DIR/mcp`, or a directory of the user's own in memory or among
//! the temporary files. One that others own or may write is not used.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags};

pub struct Directory(OwnedFd);

impl Directory {
    /// The first that is there or can be made.
    pub fn for_writing() -> Option<Directory> {
        candidates().iter().find_map(|path| {
            open(path).or_else(|| {
                rustix::fs::mkdirat(CWD, path, Mode::from_raw_mode(0o700)).ok()?;
                open(path)
            })
        })
    }

    /// Every one that is there: a run may have been started in other surroundings.
    pub fn all() -> Vec<Directory> {
        let mut found: Vec<(_, Directory)> = Vec::new();
        for directory in candidates().iter().filter_map(|path| open(path)) {
            let place = rustix::fs::fstat(&directory.0).map(|stat| (stat.st_dev, stat.st_ino));
            if found.iter().all(|(seen, _)| *seen != place) {
                found.push((place, directory));
            }
        }
        found.into_iter().map(|(_, directory)| directory).collect()
    }

    pub fn names(&self, most: usize) -> Vec<String> {
        let Ok(entries) = Dir::read_from(&self.0) else {
            return Vec::new();
        };
        entries
            .filter_map(|entry| entry.ok()?.file_name().to_str().ok().map(str::to_owned))
            .filter(|name| name.ends_with(".json"))
            .take(most)
            .collect()
    }

    pub fn remove(&self, name: &str) -> rustix::io::Result<()> {
        rustix::fs::unlinkat(&self.0, name, AtFlags::empty())
    }
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn candidates() -> Vec<PathBuf> {
    let uid = rustix::process::getuid().as_raw();
    // `su -m` leaves the variable of another user, in whose directory root makes none.
    let is_ours = |path: &PathBuf| std::fs::metadata(path).is_ok_and(|found| found.uid() == uid);
    let named = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(is_ours);
    let runtime =
        [named.filter(|path| path.is_absolute()), Some(format!("/run/user/{uid}").into())];
    let mut paths: Vec<PathBuf> =
        runtime.into_iter().flatten().map(|path| path.join("mcp")).collect();
    if uid == 0 {
        paths.push("/run/mcp".into());
    }
    paths.push(format!("/dev/shm/mcp-{uid}").into());
    paths.push(std::env::temp_dir().join(format!("mcp-{uid}")));
    paths
}

/// Only what is a directory, ours, and closed to everybody else.
pub fn open(path: &Path) -> Option<Directory> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = rustix::fs::open(path, flags, Mode::empty()).ok()?;
    let stat = rustix::fs::fstat(&fd).ok()?;
    let is_ours = stat.st_uid == rustix::process::getuid().as_raw() && stat.st_mode & 0o077 == 0;
    is_ours.then_some(Directory(fd))
}
