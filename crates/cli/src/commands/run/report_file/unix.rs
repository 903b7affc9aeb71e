//! By descriptors of directories: every name is looked up once, and no link is followed.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path};

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, chmodat, fstat, openat, renameat, statat, unlinkat,
};

/// What lets a directory be passed through without being read.
#[cfg(target_os = "linux")]
const PASS: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const PASS: OFlags = OFlags::RDONLY;

/// The directory of a file, and the file's name in it.
pub struct Directory {
    fd: OwnedFd,
    name: OsString,
}

impl Directory {
    /// `path` is absolute. A symlink directly below `/` is the system's (`/home`, `/tmp`); any other is refused: a command
    /// that may write there could have made it.
    pub fn of(path: &Path) -> io::Result<Directory> {
        let name = match path.components().next_back() {
            Some(Component::Normal(name)) => name.to_owned(),
            _ => return Err(io::Error::other("is not the name of a file")),
        };
        let mut fd = open_top()?;
        for (depth, part) in path.parent().into_iter().flat_map(Path::components).enumerate() {
            match part {
                Component::Normal(part) => fd = enter(&fd, part, depth == 1)?,
                // There was no link before it, so this is the directory that it means.
                Component::ParentDir => fd = enter(&fd, "..".as_ref(), false)?,
                _ => {}
            }
        }
        Ok(Directory { fd, name })
    }

    /// The file, made where there is none, and empty.
    pub fn empty_file(&self) -> io::Result<File> {
        let flags = OFlags::WRONLY
            | OFlags::CREATE
            | OFlags::NOFOLLOW
            // A pipe without a reader is refused instead of waited for.
            | OFlags::NONBLOCK
            | OFlags::CLOEXEC;
        let file = match openat(&self.fd, &self.name, flags, Mode::from_raw_mode(0o666)) {
            Err(rustix::io::Errno::LOOP) => return Err(io::Error::other("is a symlink")),
            Err(rustix::io::Errno::NXIO) => return Err(io::Error::other("is not a regular file")),
            other => File::from(other?),
        };
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("is not a regular file"));
        }
        file.set_len(0)?;
        Ok(file)
    }

    /// A new file in the place of whatever is there. `first` is the one that was there at the start.
    pub fn replace(&self, bytes: &[u8], first: &File, permissions: Permissions) -> io::Result<()> {
        let temporary = format!(".mcp-report-{}", std::process::id());
        let _opened = Opened::again(&self.fd);
        let _ = unlinkat(&self.fd, &temporary, AtFlags::empty());
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = match openat(&self.fd, &temporary, flags, Mode::from_raw_mode(0o600)) {
            Ok(fd) => File::from(fd),
            // Where no file can be made, none can be replaced either, by us or by the command.
            Err(error) => return self.overwrite(bytes, first).map_err(|_| error.into()),
        };
        let written = super::write_all(&file, bytes)
            .and_then(|()| file.set_permissions(permissions))
            .and_then(|()| self.clear())
            .and_then(|()| Ok(renameat(&self.fd, &temporary, &self.fd, &self.name)?));
        if written.is_err() {
            let _ = unlinkat(&self.fd, &temporary, AtFlags::empty());
        }
        written
    }

    /// A directory at the name would keep a file from being put there.
    fn clear(&self) -> io::Result<()> {
        match statat(&self.fd, &self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) if FileType::from_raw_mode(found.st_mode) == FileType::Directory => {
                let aside = format!(".mcp-aside-{}", std::process::id());
                Ok(renameat(&self.fd, &self.name, &self.fd, &aside)?)
            }
            _ => Ok(()),
        }
    }

    fn overwrite(&self, bytes: &[u8], first: &File) -> io::Result<()> {
        let (named, opened) =
            (statat(&self.fd, &self.name, AtFlags::SYMLINK_NOFOLLOW)?, fstat(first)?);
        if (named.st_dev, named.st_ino) != (opened.st_dev, opened.st_ino) {
            return Err(io::Error::other("was replaced"));
        }
        super::write_all(first, bytes)
    }
}

/// A directory that its owner could not write, and can until this is dropped: the command may have closed it.
struct Opened<'a> {
    fd: &'a OwnedFd,
    mode: Mode,
}

impl Opened<'_> {
    fn again(fd: &OwnedFd) -> Option<Opened<'_>> {
        let mode = Mode::from_raw_mode(fstat(fd).ok()?.st_mode);
        if mode.contains(Mode::RWXU) {
            return None;
        }
        chmodat(fd, ".", mode | Mode::RWXU, AtFlags::empty()).ok()?;
        Some(Opened { fd, mode })
    }
}

impl Drop for Opened<'_> {
    fn drop(&mut self) {
        let _ = chmodat(self.fd, ".", self.mode, AtFlags::empty());
    }
}

fn open_top() -> io::Result<OwnedFd> {
    Ok(rustix::fs::open("/", PASS | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?)
}

fn enter(fd: &OwnedFd, part: &OsStr, may_be_link: bool) -> io::Result<OwnedFd> {
    let links = if may_be_link { OFlags::empty() } else { OFlags::NOFOLLOW };
    let flags = PASS | OFlags::DIRECTORY | OFlags::CLOEXEC | links;
    openat(fd, part, flags, Mode::empty()).map_err(|error| match is_link(fd, part) {
        true => io::Error::other(format!(
            "{} is a symlink on the way to it, and a command may have made it; write the path without it",
            Path::new(part).display()
        )),
        false => error.into(),
    })
}

fn is_link(fd: &OwnedFd, part: &OsStr) -> bool {
    statat(fd, part, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Symlink)
}

/// Removes the first symlink on the way to a file, if there is one below the top. It was not there at the start.
pub fn remove_links(path: &Path) {
    let Ok(mut fd) = open_top() else { return };
    for (depth, part) in path.components().enumerate() {
        let Component::Normal(part) = part else { continue };
        if depth > 1 && is_link(&fd, part) {
            let _ = unlinkat(&fd, part, AtFlags::empty());
            return;
        }
        match enter(&fd, part, depth == 1) {
            Ok(next) => fd = next,
            Err(_) => return,
        }
    }
}
