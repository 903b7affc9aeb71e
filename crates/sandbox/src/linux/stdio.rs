//! What stands on the descriptors 0 to 2. Each kind is its own way out:
//! a directory is a place to walk from, a terminal takes TIOCSTI, a read-only file can be
//! opened again for writing through /proc/self/fd, an internet socket is a network, and a file opened for
//! appending can be truncated.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, OFlags, fcntl_getfl, fstat, major, minor};
use rustix::net::{AddressFamily, SocketType, sockopt};

use crate::core::error::Error;
use crate::core::request::Stdio;
use crate::linux::mounts::host_tree;
use crate::linux::step::Access;
use crate::unix::relay::is_append_only;
use crate::unix::terminal::standard;

const MEMORY_DEVICES: u32 = 1;
const NULL_DEVICE: u32 = 3;

pub fn inspect() -> Result<[Stdio; 3], Error> {
    let mut found = [kind(0)?, kind(1)?, kind(2)?];
    // A terminal that only errors go to needs no terminal of its own.
    if found[2] == Stdio::Terminal && found[0] != Stdio::Terminal && found[1] != Stdio::Terminal {
        found[2] = Stdio::Relayed;
    }
    Ok(found)
}

fn kind(number: i32) -> Result<Stdio, Error> {
    let fd = standard(number);
    let refuse = |kind: &str, remedy: &str| Error::Descriptor {
        fd: number,
        kind: kind.to_owned(),
        remedy: remedy.to_owned(),
    };
    let flags = fcntl_getfl(fd).map_err(|e| Error::Io {
        doing: format!("inspect descriptor {number}"),
        source: e.into(),
    })?;
    if flags.contains(OFlags::PATH) {
        return Err(refuse("an O_PATH handle", "open it for reading or writing"));
    }
    let stat = fstat(fd).map_err(|e| Error::Io {
        doing: format!("inspect descriptor {number}"),
        source: e.into(),
    })?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Fifo => Ok(Stdio::Direct),
        FileType::RegularFile => Ok(regular(fd, flags)),
        FileType::Socket => Ok(socket(fd)),
        FileType::CharacterDevice => {
            if (major(stat.st_rdev), minor(stat.st_rdev)) == (MEMORY_DEVICES, NULL_DEVICE) {
                Ok(Stdio::Direct)
            } else if rustix::termios::isatty(fd) {
                Ok(Stdio::Terminal)
            } else {
                Err(refuse("a device", "use a pipe, a file or /dev/null"))
            }
        }
        FileType::Directory => Err(refuse("a directory", "use a pipe, a file or /dev/null")),
        _ => Err(refuse("of an unknown kind", "use a pipe, a file or /dev/null")),
    }
}

/// Writing was given, so there is nothing to take back; reading only must stay reading only, and adding only adding.
fn regular(fd: BorrowedFd<'_>, flags: OFlags) -> Stdio {
    if is_append_only(fd) {
        return Stdio::Relayed;
    }
    if flags & OFlags::ACCMODE != OFlags::RDONLY {
        return Stdio::Direct;
    }
    match path_of(fd) {
        // It could not be mounted read-only before the root is entered.
        Some(_) if !crate::linux::sys::has_tree_attributes() => Stdio::Relayed,
        Some(path) => Stdio::ReadOnlyFile(path),
        // Deleted or never had a name: copied, because it cannot be mounted.
        None => Stdio::Relayed,
    }
}

fn path_of(fd: BorrowedFd<'_>) -> Option<PathBuf> {
    let path = fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).ok()?;
    let (given, found) = (fstat(fd).ok()?, rustix::fs::lstat(&path).ok()?);
    (path.is_absolute() && (given.st_dev, given.st_ino) == (found.st_dev, found.st_ino))
        .then_some(path)
}

fn socket(fd: BorrowedFd<'_>) -> Stdio {
    let unix = sockopt::socket_domain(fd) == Ok(AddressFamily::UNIX);
    let stream = sockopt::socket_type(fd) == Ok(SocketType::STREAM);
    if unix && stream { Stdio::Direct } else { Stdio::Relayed }
}

/// Opens the file behind `fd` once more through a read-only mount of its own, at the same
/// place in the file.
pub fn open_read_only(
    fd: BorrowedFd<'_>,
    path: &Path,
    map: Option<&OwnedFd>,
) -> io::Result<OwnedFd> {
    let tree = host_tree(path, Access::ReadOnly, map)?;
    let (given, found) = (rustix::fs::fstat(fd)?, rustix::fs::fstat(&tree)?);
    if (given.st_dev, given.st_ino) != (found.st_dev, found.st_ino) {
        return Err(io::Error::from_raw_os_error(libc::ESTALE));
    }
    let file = fs::File::open(format!("/proc/self/fd/{}", tree.as_raw_fd()))?;
    let offset = rustix::fs::tell(fd)?;
    rustix::fs::seek(&file, rustix::fs::SeekFrom::Start(offset))?;
    Ok(file.into())
}
