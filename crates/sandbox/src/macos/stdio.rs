//! What stands on the descriptors 0 to 2. A file opened for reading stays so: opening `/dev/fd/0` is
//! the same description again, and its path is closed by the profile.

use std::os::fd::BorrowedFd;

use rustix::fs::{FileType, fstat, stat};
use rustix::net::{AddressFamily, SocketType, getsockname, sockopt};

use crate::core::error::Error;
use crate::core::request::Stdio;
use crate::unix::relay::is_append_only;
use crate::unix::terminal::standard;

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
    let refuse = |kind: &str| Error::Descriptor {
        fd: number,
        kind: kind.to_owned(),
        remedy: "use a pipe, a file or /dev/null".to_owned(),
    };
    let found = fstat(fd).map_err(|e| Error::Io {
        doing: format!("inspect descriptor {number}"),
        source: e.into(),
    })?;
    match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile if is_append_only(fd) => Ok(Stdio::Relayed),
        FileType::Fifo | FileType::RegularFile => Ok(Stdio::Direct),
        FileType::Socket => Ok(socket(fd)),
        FileType::CharacterDevice => {
            let is_null = stat("/dev/null").is_ok_and(|null| null.st_rdev == found.st_rdev);
            if is_null {
                Ok(Stdio::Direct)
            } else if rustix::termios::isatty(fd) {
                Ok(Stdio::Terminal)
            } else {
                Err(refuse("a device"))
            }
        }
        FileType::Directory => Err(refuse("a directory")),
        _ => Err(refuse("of an unknown kind")),
    }
}

fn socket(fd: BorrowedFd<'_>) -> Stdio {
    let is_unix = getsockname(fd).is_ok_and(|name| name.address_family() == AddressFamily::UNIX);
    let is_stream = sockopt::socket_type(fd) == Ok(SocketType::STREAM);
    if is_unix && is_stream { Stdio::Direct } else { Stdio::Relayed }
}
