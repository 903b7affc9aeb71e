//! What is at a path, looked up without setting off an automount.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use mcp_learn::FileKind;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, fstat, fstatfs, open, openat, readlinkat};

const MOST_LINKS: usize = 40;
const AUTOFS: i64 = 0x0187;

/// Component by component: one that is opened as a mere handle does not set off an automount.
pub fn find(path: &Path) -> Option<(PathBuf, FileKind)> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut left: VecDeque<OsString> = parts(path);
    let mut real = PathBuf::from("/");
    let mut handles = vec![open("/", flags, Mode::empty()).ok()?];
    let mut links = 0;
    while let Some(part) = left.pop_front() {
        if part == ".." {
            if handles.len() > 1 {
                handles.pop();
                real.pop();
            }
            continue;
        }
        let handle = openat(handles.last()?, &part, flags, Mode::empty()).ok()?;
        if fstatfs(&handle).ok()?.f_type as i64 == AUTOFS {
            return None;
        }
        match FileType::from_raw_mode(fstat(&handle).ok()?.st_mode) {
            FileType::Symlink => {
                links += 1;
                if links > MOST_LINKS {
                    return None;
                }
                let to = readlinkat(&handle, "", Vec::new()).ok()?;
                let to = PathBuf::from(OsString::from_vec(to.into_bytes()));
                if to.is_absolute() {
                    handles.truncate(1);
                    real = PathBuf::from("/");
                }
                for part in parts(&to).into_iter().rev() {
                    left.push_front(part);
                }
            }
            _ => {
                real.push(&part);
                handles.push(handle);
            }
        }
    }
    let found = rustix::fs::statat(handles.last()?, "", AtFlags::EMPTY_PATH).ok()?;
    let kind = match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile => FileKind::File,
        FileType::Directory => FileKind::Directory,
        FileType::Socket => FileKind::Socket,
        // A device or a pipe: nothing that a grant is meant for.
        _ => return None,
    };
    Some((real, kind))
}

fn parts(path: &Path) -> VecDeque<OsString> {
    let part = |part: Component<'_>| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        _ => None,
    };
    path.components().filter_map(part).collect()
}
