//! The path of a call, read from the memory of the thread that waits.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use crate::core::watched::WatchedAct;
use crate::linux::sys::{self, Notification};
use mcp_seccomp::watch::{Act, Links, PathArgument};

const LONGEST: usize = 4096;
const PAGE: u64 = 4096;
/// The kernel refuses longer addresses of unix sockets.
const LONGEST_ADDRESS: usize = 110;

/// What a call wants with a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathCall {
    /// Absolute, as seen inside.
    pub path: PathBuf,
    pub act: WatchedAct,
    pub follows: bool,
}

/// `None` for a call without a path that could be missing.
pub fn wanted(
    notification: &Notification,
    argument: &PathArgument,
) -> io::Result<Option<PathCall>> {
    let value = |at: u8| notification.arguments[usize::from(at)];
    let bytes = match argument.act {
        Act::Connect { length } => {
            match address(notification.thread, value(argument.path), value(length))? {
                Some(bytes) => bytes,
                None => return Ok(None),
            }
        }
        _ => string(notification.thread, value(argument.path))?,
    };
    if bytes.is_empty() {
        return Ok(None);
    }
    let path = PathBuf::from(OsString::from_vec(bytes));
    let path = match path.is_absolute() {
        true => path,
        false => {
            start(notification.thread, argument.directory.map(|at| value(at) as i32))?.join(path)
        }
    };
    let (act, follows) = act(argument.act, &notification.arguments);
    let path = plain(&path);
    Ok((!is_own(&path)).then_some(PathCall { path, act, follows }))
}

/// The sandbox has its own of these. A process by its number may be one of the host's.
fn is_own(path: &Path) -> bool {
    let Ok(in_proc) = path.strip_prefix("/proc") else {
        return path.starts_with("/dev") || path.starts_with("/sys");
    };
    let name = in_proc.components().next().map(|first| first.as_os_str().as_encoded_bytes());
    name.is_none_or(|name| !name.iter().all(u8::is_ascii_digit))
}

fn act(act: Act, arguments: &[u64; 6]) -> (WatchedAct, bool) {
    match act {
        Act::Look(links) => (WatchedAct::Look, links.are_followed(arguments)),
        Act::Open { flags } => opened(arguments[usize::from(flags)] as i32),
        Act::Use => (WatchedAct::Read, Links::Followed.are_followed(arguments)),
        Act::Write => (WatchedAct::Write, true),
        Act::Create => (WatchedAct::Create, false),
        Act::MakeDirectory => (WatchedAct::MadeInstead, false),
        Act::Remove => (WatchedAct::Remove, false),
        Act::Connect { .. } => (WatchedAct::Connect, true),
    }
}

fn opened(flags: i32) -> (WatchedAct, bool) {
    let follows = flags & libc::O_NOFOLLOW == 0;
    let writes = flags & libc::O_ACCMODE != libc::O_RDONLY || flags & libc::O_TRUNC != 0;
    let act = if flags & libc::O_PATH != 0 {
        WatchedAct::Look
    } else if flags & libc::O_TMPFILE == libc::O_TMPFILE {
        // An entry of the directory that is named.
        WatchedAct::Create
    } else if flags & libc::O_CREAT != 0 {
        WatchedAct::Create
    } else if writes {
        WatchedAct::Write
    } else {
        WatchedAct::Read
    };
    (act, follows)
}

/// Where a relative path begins.
fn start(thread: i32, directory: Option<i32>) -> io::Result<PathBuf> {
    let link = match directory {
        None | Some(libc::AT_FDCWD) => format!("/proc/{thread}/cwd"),
        Some(descriptor) => format!("/proc/{thread}/fd/{descriptor}"),
    };
    let start = std::fs::read_link(link)?;
    match start.is_absolute() {
        true => Ok(start),
        // A pipe or a socket.
        false => Err(io::Error::from_raw_os_error(libc::ENOTDIR)),
    }
}

/// Without `.`, `..` and double slashes. What a link in the middle would make of `..` is not looked at.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::from("/");
    for part in path.components() {
        match part {
            Component::Normal(name) => plain.push(name),
            Component::ParentDir => drop(plain.pop()),
            _ => {}
        }
    }
    plain
}

/// A string that ends with a zero, read page by page: the next page may not be there.
fn string(thread: i32, at: u64) -> io::Result<Vec<u8>> {
    let fault = || io::Error::from_raw_os_error(libc::EFAULT);
    let mut text = Vec::new();
    while text.len() < LONGEST {
        let from = at.checked_add(text.len() as u64).ok_or_else(fault)?;
        let size = ((PAGE - from % PAGE) as usize).min(LONGEST - text.len());
        let mut part = vec![0; size];
        let read = sys::read_memory(thread, from, &mut part)?;
        let part = part.get(..read).filter(|part| !part.is_empty()).ok_or_else(fault)?;
        match part.iter().position(|byte| *byte == 0) {
            Some(end) => {
                text.extend(&part[..end]);
                return Ok(text);
            }
            None => text.extend(part),
        }
    }
    Err(io::Error::from_raw_os_error(libc::ENAMETOOLONG))
}

/// The path of a unix socket that has one.
fn address(thread: i32, at: u64, length: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = [0; LONGEST_ADDRESS];
    let length = (length as u32 as usize).min(bytes.len());
    let read = sys::read_memory(thread, at, &mut bytes[..length])?;
    let Some((family, path)) = bytes[..read].split_at_checked(2) else { return Ok(None) };
    let is_unix = family == (libc::AF_UNIX as u16).to_ne_bytes();
    // One that begins with a zero is abstract, and not a file.
    let end = path.iter().position(|byte| *byte == 0).unwrap_or(path.len());
    Ok((is_unix && end > 0).then(|| path[..end].to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_plain() {
        for (path, expected) in [
            ("/a/../b", "/b"),
            ("/../x", "/x"),
            ("//a//./b/", "/a/b"),
            ("/", "/"),
            ("/a/b/..", "/a"),
        ] {
            assert_eq!(plain(Path::new(path)), Path::new(expected), "{path}");
        }
    }

    #[test]
    fn flags_say_what_is_wanted() {
        for (flags, expected) in [
            (libc::O_RDONLY, (WatchedAct::Read, true)),
            (libc::O_RDONLY | libc::O_DIRECTORY, (WatchedAct::Read, true)),
            (libc::O_RDONLY | libc::O_NOFOLLOW, (WatchedAct::Read, false)),
            (libc::O_PATH, (WatchedAct::Look, true)),
            (libc::O_WRONLY, (WatchedAct::Write, true)),
            (libc::O_RDWR | libc::O_CREAT, (WatchedAct::Create, true)),
            (libc::O_RDONLY | libc::O_TRUNC, (WatchedAct::Write, true)),
        ] {
            assert_eq!(opened(flags), expected, "{flags:o}");
        }
    }

    #[test]
    fn memory_is_read_within_bounds() {
        let own = rustix::process::getpid().as_raw_nonzero().get();
        let text = c"/srv/notes";
        assert_eq!(string(own, text.as_ptr() as u64).unwrap(), b"/srv/notes");
        assert!(string(own, 0).is_err());
        assert!(string(own, u64::MAX - 3).is_err());
        let long = vec![b'a'; 3 * LONGEST];
        assert!(string(own, long.as_ptr() as u64).is_err());
        let mut socket = [0_u8; 110];
        socket[0] = 1;
        socket[2..9].copy_from_slice(b"/run/x\0");
        let at = |bytes: &[u8]| address(own, bytes.as_ptr() as u64, bytes.len() as u64).unwrap();
        assert_eq!(at(&socket), Some(b"/run/x".to_vec()));
        assert_eq!(at(&[1, 0, 0, b'x']), None);
        assert_eq!(at(&[2, 0, 0, 80]), None);
        assert_eq!(at(&[1]), None);
    }
}
