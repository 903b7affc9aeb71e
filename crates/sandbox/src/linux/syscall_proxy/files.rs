//! Opens a file as the asker names it, and does with it what was asked for, through that handle.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Timestamps, XattrFlags};
use rustix::process::{Gid, Uid};

use super::calls::{Follow, Named, ProxiedCall, Room};
use super::errno;
use super::memory::{CallerMemory, LARGEST_VALUE};
use super::places::AttributeAccess;

/// Attributes that a command may change: those of users, and access control lists. All others mean something to
/// the kernel or to the system's administrator.
const OF_USERS: &[u8] = b"user.";
const LISTS: [&str; 2] = ["system.posix_acl_access", "system.posix_acl_default"];

impl ProxiedCall {
    pub fn reach(&self) -> AttributeAccess {
        match self {
            ProxiedCall::ReadAttribute { .. } | ProxiedCall::ListAttributes { .. } => {
                AttributeAccess::Read
            }
            _ => AttributeAccess::Change,
        }
    }

    /// What is said where a file is in no place that allows it. Programs take a file without attributes for one of
    /// a file system that has none.
    pub fn refusal(&self) -> io::Error {
        errno(match self.reach() {
            AttributeAccess::Read => libc::EOPNOTSUPP,
            AttributeAccess::Change => libc::EPERM,
        })
    }
}

/// A handle that nothing can be done with but look and change attributes; opening one blocks on nothing. Where it leads is
/// checked afterwards.
pub fn open(thread: i32, named: &Named) -> io::Result<OwnedFd> {
    let handle = OFlags::PATH | OFlags::CLOEXEC;
    let at = |fd: i32| -> io::Result<OwnedFd> {
        let path = format!("/proc/{thread}/fd/{fd}");
        rustix::fs::open(path, handle, Mode::empty()).map_err(|e| match e {
            rustix::io::Errno::NOENT => errno(libc::EBADF),
            e => e.into(),
        })
    };
    let (directory, path, follow) = match named {
        Named::Descriptor(libc::AT_FDCWD) => {
            let path = format!("/proc/{thread}/cwd");
            return Ok(rustix::fs::open(path, handle, Mode::empty())?);
        }
        Named::Descriptor(fd) => return at(*fd),
        Named::At { directory, path, follow } => (*directory, path, *follow),
    };
    if path.as_os_str().is_empty() {
        return Err(errno(libc::ENOENT));
    }
    let path = of_the_asker(thread, path);
    let flags = match follow {
        Follow::Yes => handle,
        Follow::No => handle | OFlags::NOFOLLOW,
    };
    if path.is_absolute() {
        return Ok(rustix::fs::open(&path, flags, Mode::empty())?);
    }
    let from = match directory {
        libc::AT_FDCWD => rustix::fs::open(format!("/proc/{thread}/cwd"), handle, Mode::empty())?,
        fd => at(fd)?,
    };
    Ok(rustix::fs::openat(from, &path, flags, Mode::empty())?)
}

/// `/proc/self` means the process that looks, and C libraries go that way for changes through a handle.
fn of_the_asker(thread: i32, path: &Path) -> PathBuf {
    for (own, theirs) in [
        ("/proc/self", format!("/proc/{thread}")),
        ("/proc/thread-self", format!("/proc/{thread}")),
        ("/dev/fd", format!("/proc/{thread}/fd")),
    ] {
        if let Ok(below) = path.strip_prefix(own) {
            return Path::new(&theirs).join(below);
        }
    }
    path.to_owned()
}

/// `largest`: how long the command may make a file. Answers as the call would.
pub fn perform(
    file: &OwnedFd,
    act: &ProxiedCall,
    memory: &CallerMemory,
    largest: Option<u64>,
) -> io::Result<i64> {
    let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    match act {
        // The filter has refused set-id modes already.
        ProxiedCall::Mode(mode) => rustix::fs::chmod(&path, Mode::from_raw_mode(mode & 0o1777))?,
        ProxiedCall::Owner(uid, gid) => {
            let uid = (*uid != u32::MAX).then(|| Uid::from_raw(*uid));
            let gid = (*gid != u32::MAX).then(|| Gid::from_raw(*gid));
            rustix::fs::chownat(file, "", uid, gid, AtFlags::EMPTY_PATH)?;
        }
        ProxiedCall::Times(times) => set_times(file, &path, times)?,
        ProxiedCall::SetAttribute { name, value, flags } => {
            check_name(name)?;
            let flags = XattrFlags::from_bits(*flags).ok_or_else(|| errno(libc::EINVAL))?;
            rustix::fs::setxattr(&path, name.as_os_str(), value, flags)?;
        }
        ProxiedCall::RemoveAttribute { name } => {
            check_name(name)?;
            rustix::fs::removexattr(&path, name.as_os_str())?;
        }
        ProxiedCall::Length(length) => set_length(file, &path, *length, largest)?,
        ProxiedCall::ReadAttribute { name, into } => {
            let name = name.as_os_str();
            return answer_in(*into, memory, |room| match room {
                [] => rustix::fs::getxattr_query(&path, name),
                room => rustix::fs::getxattr(&path, name, room),
            });
        }
        ProxiedCall::ListAttributes { into } => {
            return answer_in(*into, memory, |room| match room {
                [] => rustix::fs::listxattr_query(&path),
                room => rustix::fs::listxattr(&path, room),
            });
        }
    }
    Ok(0)
}

fn check_name(name: &OsStr) -> io::Result<()> {
    let is_of_users = name.as_bytes().starts_with(OF_USERS);
    match is_of_users || LISTS.iter().any(|list| name == *list) {
        true => Ok(()),
        false => Err(errno(libc::EPERM)),
    }
}

fn set_times(file: &OwnedFd, path: &Path, times: &Timestamps) -> io::Result<()> {
    let set = match kind(file)? {
        FileType::Symlink => rustix::fs::utimensat(file, "", times, AtFlags::EMPTY_PATH),
        _ => rustix::fs::utimensat(CWD, path, times, AtFlags::empty()),
    };
    Ok(set?)
}

/// Opening anything else could wait for ever: a FIFO for its other end, a device for whatever it likes.
fn set_length(file: &OwnedFd, path: &Path, length: u64, largest: Option<u64>) -> io::Result<()> {
    match kind(file)? {
        FileType::RegularFile => {}
        FileType::Directory => return Err(errno(libc::EISDIR)),
        _ => return Err(errno(libc::EINVAL)),
    }
    if i64::try_from(length).is_err() {
        return Err(errno(libc::EINVAL));
    }
    if largest.is_some_and(|largest| length > largest) {
        return Err(errno(libc::EFBIG));
    }
    // Otherwise open would wait for another process's lease.
    let file: File = OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    file.set_len(length)
}

fn kind(file: &OwnedFd) -> io::Result<FileType> {
    Ok(FileType::from_raw_mode(rustix::fs::fstat(file)?.st_mode))
}

fn answer_in(
    into: Room,
    memory: &CallerMemory,
    ask: impl FnOnce(&mut [u8]) -> rustix::io::Result<usize>,
) -> io::Result<i64> {
    let size = usize::try_from(into.size).unwrap_or(usize::MAX).min(LARGEST_VALUE);
    let mut room = vec![0; size];
    let length = ask(&mut room)?;
    if size > 0 {
        memory.write(into.at, room.get(..length).ok_or_else(|| errno(libc::ERANGE))?)?;
    }
    Ok(length as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::unix::fixture::Fixture;

    fn handle(path: &Path) -> OwnedFd {
        rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap()
    }

    fn told(path: &Path, act: &ProxiedCall, largest: Option<u64>) -> Option<i32> {
        let outcome = perform(&handle(path), act, &CallerMemory::from_descriptor(None), largest);
        outcome.err().map(|error| error.raw_os_error().unwrap())
    }

    /// Before Landlock 3 the syscall proxy truncates by path; what it opened for it could wait for ever.
    #[test]
    fn only_a_regular_file_has_a_length_and_none_is_waited_for() {
        let fixture = Fixture::new();
        let file = fixture.file("file", "text");
        let fifo = fixture.path("fifo");
        rustix::fs::mknodat(CWD, &fifo, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        assert_eq!(told(&fifo, &ProxiedCall::Length(0), None), Some(libc::EINVAL));
        assert_eq!(told(file.parent().unwrap(), &ProxiedCall::Length(0), None), Some(libc::EISDIR));
        assert_eq!(told(&file, &ProxiedCall::Length(u64::MAX), None), Some(libc::EINVAL));
        // A file that the command may not write is not made longer for it.
        assert_eq!(told(&file, &ProxiedCall::Length(9), Some(8)), Some(libc::EFBIG));
        assert_eq!(std::fs::metadata(&file).unwrap().len(), 4);
        assert_eq!(told(&file, &ProxiedCall::Length(8), Some(8)), None);
        assert_eq!(std::fs::metadata(&file).unwrap().len(), 8);
    }

    #[test]
    fn names_of_attributes_are_those_of_users_and_of_lists() {
        for name in ["user.a", "user.", "system.posix_acl_access", "system.posix_acl_default"] {
            assert!(check_name(name.as_ref()).is_ok(), "{name}");
        }
        for name in [
            "",
            "user",
            "users.a",
            "USER.a",
            " user.a",
            "security.capability",
            "security.selinux",
            "trusted.a",
            "system.posix_acl_access.",
            "system.posix_acl",
            "system.nfs4_acl",
        ] {
            let refused = check_name(name.as_ref()).unwrap_err();
            assert_eq!(refused.raw_os_error(), Some(libc::EPERM), "{name}");
        }
    }
}
