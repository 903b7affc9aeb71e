//! A cgroup as an open directory: its files read and written, its lock, its children.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, Dir, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

/// More than any file of a cgroup that we read.
const LARGEST_TEXT: usize = 64 << 10;

pub struct Cgroup {
    fd: OwnedFd,
    /// Where it was opened, for messages and for the launcher's record.
    pub path: PathBuf,
}

impl Cgroup {
    /// Opens a directory that must lie in a cgroup file system of version 2.
    pub fn open(path: &Path) -> io::Result<Cgroup> {
        let fd = rustix::fs::open(path, directory(), Mode::empty())?;
        if rustix::fs::fstatfs(&fd)?.f_type != libc::CGROUP2_SUPER_MAGIC {
            return Err(io::Error::from_raw_os_error(libc::ENODEV));
        }
        Ok(Cgroup { fd, path: path.to_owned() })
    }

    pub fn child(&self, name: &str) -> io::Result<Cgroup> {
        let fd = rustix::fs::openat(&self.fd, name, directory(), Mode::empty())?;
        Ok(Cgroup { fd, path: self.path.join(name) })
    }

    pub fn make(&self, name: &str) -> io::Result<Cgroup> {
        rustix::fs::mkdirat(&self.fd, name, Mode::from_raw_mode(0o755))?;
        self.child(name)
    }

    /// Removes an empty child.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.fd, name, AtFlags::REMOVEDIR)?)
    }

    pub fn read(&self, file: &str) -> io::Result<String> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let fd = rustix::fs::openat(&self.fd, file, flags, Mode::empty())?;
        let mut text = Vec::new();
        let mut part = [0; 4096];
        while text.len() < LARGEST_TEXT {
            match rustix::io::read(&fd, &mut part)? {
                0 => break,
                count => text.extend(&part[..count]),
            }
        }
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    pub fn write(&self, file: &str, value: &str) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let fd = rustix::fs::openat(&self.fd, file, flags, Mode::empty())?;
        // One write is one order to the kernel.
        rustix::io::write(&fd, value.as_bytes())?;
        Ok(())
    }

    /// Whether this process may move processes across here.
    pub fn admits_moves(&self) -> bool {
        let flags = AtFlags::EACCESS;
        rustix::fs::accessat(&self.fd, "cgroup.procs", Access::WRITE_OK, flags).is_ok()
    }

    /// The mark that systemd sets on what it has handed over.
    pub fn is_marked_delegated(&self) -> bool {
        ["user.delegate", "trusted.delegate"].iter().any(|name| {
            let mut value = [0; 2];
            rustix::fs::fgetxattr(&self.fd, *name, &mut value).is_ok_and(|n| &value[..n] == b"1")
        })
    }

    /// Turns on what children shall have. Gives those of the wanted that they now have.
    pub fn enable(&self, wanted: &[&str]) -> io::Result<Vec<String>> {
        let has = |text: &str, name: &str| text.split_whitespace().any(|word| word == name);
        let (offered, on) =
            (self.read("cgroup.controllers")?, self.read("cgroup.subtree_control")?);
        let mut enabled = Vec::new();
        for name in wanted {
            let is_on = has(&on, name)
                || has(&offered, name)
                    && self.write("cgroup.subtree_control", &format!("+{name}")).is_ok();
            if is_on {
                enabled.push((*name).to_owned());
            }
        }
        Ok(enabled)
    }

    /// Moves this process here.
    pub fn enter(&self) -> io::Result<()> {
        self.write("cgroup.procs", "0")
    }

    /// Whether this process alone is here.
    pub fn holds_only_us(&self) -> bool {
        let us = std::process::id().to_string();
        self.read("cgroup.procs").is_ok_and(|list| list.lines().all(|line| line == us))
    }

    /// Takes the lock that says a process uses this; the kernel drops it with the last descriptor.
    pub fn lock(&self) -> io::Result<bool> {
        match rustix::fs::flock(&self.fd, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(true),
            Err(Errno::WOULDBLOCK) => Ok(false),
            Err(e) => Err(e.into()),
        }
    }

    /// Whether this is still the directory of that name: it may have been removed meanwhile.
    pub fn is_child_of(&self, parent: &Cgroup, name: &str) -> bool {
        let named = rustix::fs::statat(&parent.fd, name, AtFlags::SYMLINK_NOFOLLOW);
        match (named, rustix::fs::fstat(&self.fd)) {
            (Ok(named), Ok(own)) => (named.st_dev, named.st_ino) == (own.st_dev, own.st_ino),
            _ => false,
        }
    }

    /// Up to `most` children whose name starts with this.
    pub fn children(&self, prefix: &str, most: usize) -> Vec<String> {
        let Ok(entries) = Dir::read_from(&self.fd) else {
            return Vec::new();
        };
        entries
            .filter_map(|entry| entry.ok()?.file_name().to_str().ok().map(str::to_owned))
            .filter(|name| name.starts_with(prefix))
            .take(most)
            .collect()
    }
}

impl AsFd for Cgroup {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn directory() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Files that are called `memory.max` can be anywhere.
    #[test]
    fn only_a_cgroup_of_version_2_is_one() {
        for path in ["/", "/proc", "/tmp"] {
            let error = Cgroup::open(Path::new(path)).err().expect(path);
            assert_eq!(error.raw_os_error(), Some(libc::ENODEV), "{path}");
        }
    }
}
