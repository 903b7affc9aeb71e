//! A cheap answer to "is it still as it was unpacked?": inode, size and ctime of every file and
//! directory. The kernel sets ctime on every change of content, name, owner or mode, and no call
//! sets it back; what is added or removed changes the ctime of its directory. Whoever can set the
//! machine's clock, or write to its disk directly, can fool it, and `mcp verify` reads every byte.
//!
//! On Windows there is no ctime: size and time of the last write stand in, which a program can set.

use std::fmt::Write;
use std::path::Path;

use crate::error::{Error, Result};

const HEADER: &str = "mcp record 1\n";

/// A change within one tick of the clock that follows would have the same ctime: wait it out.
pub fn settle() {
    std::thread::sleep(std::time::Duration::from_millis(20));
}

/// The record of a tree: a line for each directory, and below it one for each entry.
pub fn of(root: &Path) -> Result<String> {
    let mut text = HEADER.to_owned();
    let mut pending = vec![String::new()];
    while let Some(directory) = pending.pop() {
        let path = if directory.is_empty() { root.to_owned() } else { root.join(&directory) };
        let failed = |e: std::io::Error| Error::io("read", &path, &e);
        let stamp = mark::of_path(&path).map_err(failed)?;
        let _ = writeln!(text, "{stamp}/{directory}");
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry
                .file_name()
                .into_string()
                .map_err(|_| Error::package("a name is not UTF-8"))?;
            names.push((name, entry.file_type().map_err(failed)?.is_dir()));
        }
        names.sort();
        for (name, is_directory) in names {
            if is_directory {
                pending.push(if directory.is_empty() {
                    name
                } else {
                    format!("{directory}/{name}")
                });
            } else {
                let stamp = mark::of_path(&path.join(&name)).map_err(failed)?;
                let _ = writeln!(text, "{stamp} {name}");
            }
        }
    }
    Ok(text)
}

/// Whether everything is as recorded. Any doubt is a no, and costs a full comparison.
pub fn holds(root: &Path, record: &Path) -> bool {
    let Ok(text) = std::fs::read_to_string(record) else {
        return false;
    };
    match text.strip_prefix(HEADER) {
        Some(lines) => mark::all_hold(root, lines),
        None => false,
    }
}

#[cfg(unix)]
mod mark {
    use std::os::unix::fs::MetadataExt;
    use std::path::Path;

    use rustix::fs::{AtFlags, CWD, Mode, OFlags, fstat, openat, statat};

    pub fn of_path(path: &Path) -> std::io::Result<String> {
        let metadata = std::fs::symlink_metadata(path)?;
        Ok(mark(metadata.ino(), metadata.size(), metadata.ctime(), metadata.ctime_nsec()))
    }

    fn mark(inode: u64, size: u64, seconds: i64, nanoseconds: i64) -> String {
        format!("{inode:x} {size:x} {seconds:x}.{nanoseconds:x} ")
    }

    fn of_stat(stat: &rustix::fs::Stat) -> [i128; 4] {
        [
            stat.st_ino as i128,
            stat.st_size as i128,
            stat.st_ctime as i128,
            stat.st_ctime_nsec as i128,
        ]
    }

    /// The numbers at the start of a line, and the rest of it.
    fn parse(line: &str) -> Option<([i128; 4], &str)> {
        let mut parts = line.splitn(4, ' ');
        let number = |text: &str| i128::from_str_radix(text, 16).ok();
        let (inode, size) = (number(parts.next()?)?, number(parts.next()?)?);
        let (seconds, nanoseconds) = parts.next()?.split_once('.')?;
        Some(([inode, size, number(seconds)?, number(nanoseconds)?], parts.next()?))
    }

    pub fn all_hold(root: &Path, lines: &str) -> bool {
        const DIRECTORY: OFlags =
            OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
        let Ok(root) = openat(CWD, root, DIRECTORY, Mode::empty()) else {
            return false;
        };
        let mut directory = None;
        for line in lines.lines() {
            let Some((recorded, name)) = parse(line) else {
                return false;
            };
            let found = if let Some(path) = name.strip_prefix('/') {
                let path = if path.is_empty() { "." } else { path };
                let Ok(opened) = openat(&root, path, DIRECTORY, Mode::empty()) else {
                    return false;
                };
                let found = fstat(&opened);
                directory = Some(opened);
                found
            } else {
                let (Some(directory), Some(name)) = (&directory, name.strip_prefix(' ')) else {
                    return false;
                };
                statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
            };
            if !found.is_ok_and(|stat| of_stat(&stat) == recorded) {
                return false;
            }
        }
        directory.is_some()
    }
}

#[cfg(not(unix))]
mod mark {
    use std::path::Path;

    pub fn of_path(path: &Path) -> std::io::Result<String> {
        let metadata = std::fs::symlink_metadata(path)?;
        let time = metadata.modified()?.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        // The size of a directory means nothing there.
        let size = if metadata.is_dir() { 0 } else { metadata.len() };
        Ok(format!("{size:x} {:x} ", time.as_nanos()))
    }

    pub fn all_hold(root: &Path, lines: &str) -> bool {
        let mut directory = root.to_owned();
        let holds = |line: &str| {
            let mut parts = line.splitn(3, ' ');
            let (Some(size), Some(time), Some(name)) = (parts.next(), parts.next(), parts.next())
            else {
                return false;
            };
            let path = match (name.strip_prefix('/'), name.strip_prefix(' ')) {
                (Some(path), _) => {
                    directory = root.join(path);
                    directory.clone()
                }
                (None, Some(name)) => directory.join(name),
                (None, None) => return false,
            };
            of_path(&path).is_ok_and(|found| found == format!("{size} {time} "))
        };
        lines.lines().all(holds) && !lines.is_empty()
    }
}
