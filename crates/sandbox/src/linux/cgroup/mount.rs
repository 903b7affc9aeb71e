//! Where this process stands in the version 2 hierarchy, from the kernel's two lists:
//! `/proc/self/mountinfo` and `/proc/self/cgroup`. Never from a path that is usual.
//!
//! Pure. Version 1 lines are passed over: a limit set there would not cover what we promise.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// Our own cgroup, as a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// The mount point it is reached through.
    pub mount: PathBuf,
    pub own: PathBuf,
}

/// Finds our own cgroup. The last mount that shows it counts: what was mounted later at the same
/// place hides the earlier one.
pub fn standing(mountinfo: &[u8], membership: &[u8]) -> Option<Standing> {
    let own = own_path(membership)?;
    let mounts: Vec<CgroupMount> =
        mountinfo.split(|b| *b == b'\n').filter_map(CgroupMount::parse).collect();
    mounts.iter().enumerate().rev().find_map(|(index, mount)| {
        if !mount.is_cgroup2 || mounts[index + 1..].iter().any(|later| later.hides(mount)) {
            return None;
        }
        let below = own.strip_prefix(&mount.root).ok()?;
        // A path out of our cgroup namespace can be shown by no mount but one of the same root.
        let stays = below.components().all(|part| matches!(part, Component::Normal(_)));
        let join = || match below == Path::new("") {
            true => mount.point.clone(),
            false => mount.point.join(below),
        };
        stays.then(|| Standing { mount: mount.point.clone(), own: join() })
    })
}

/// Whether version 2 is mounted anywhere, for an explanation.
#[cfg(target_os = "linux")]
pub fn is_mounted(mountinfo: &[u8]) -> bool {
    mountinfo.split(|b| *b == b'\n').filter_map(CgroupMount::parse).any(|mount| mount.is_cgroup2)
}

/// The path of the one line that names no controller: `0::/path`.
pub fn own_path(membership: &[u8]) -> Option<PathBuf> {
    let line = membership.split(|b| *b == b'\n').find_map(|line| line.strip_prefix(b"0::"))?;
    // It was removed around us.
    let line = line.strip_suffix(b" (deleted)").unwrap_or(line);
    line.starts_with(b"/").then(|| path(line.to_vec())).flatten()
}

/// Those of the wanted controllers that version 1 has, by their names there: what it has, version 2
/// has not.
pub fn held_by_version_1<'a>(membership: &[u8], wanted: &[&'a str]) -> Vec<&'a str> {
    let is_there = |name: &str| {
        let name = if name == "io" { "blkio" } else { name };
        membership.split(|b| *b == b'\n').any(|line| {
            let controllers = line.split(|b| *b == b':').nth(1).unwrap_or_default();
            controllers.split(|b| *b == b',').any(|word| word == name.as_bytes())
        })
    };
    wanted.iter().copied().filter(|name| is_there(name)).collect()
}

struct CgroupMount {
    /// Which directory of the file system is mounted.
    root: PathBuf,
    point: PathBuf,
    is_cgroup2: bool,
}

impl CgroupMount {
    /// `ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [TAG…] - TYPE SOURCE SUPER-OPTIONS`
    fn parse(line: &[u8]) -> Option<CgroupMount> {
        let mut words = line.split(|b| *b == b' ');
        let root = path(unescaped(words.nth(3)?))?;
        let point = path(unescaped(words.next()?))?;
        let mut rest = words.skip_while(|word| *word != b"-");
        rest.next()?;
        Some(CgroupMount { root, point, is_cgroup2: rest.next()? == b"cgroup2" })
    }

    fn hides(&self, other: &CgroupMount) -> bool {
        other.point.starts_with(&self.point)
    }
}

/// The kernel writes blanks, tabs, line ends and backslashes as three octal digits.
fn unescaped(word: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(word.len());
    let mut rest = word;
    while let [first, after @ ..] = rest {
        let octal = match (first, after) {
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', ..]) => {
                Some((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'))
            }
            _ => None,
        };
        bytes.push(octal.unwrap_or(*first));
        rest = if octal.is_some() { &after[3..] } else { after };
    }
    bytes
}

#[cfg(unix)]
#[expect(clippy::unnecessary_wraps, reason = "other systems have no path for some bytes")]
fn path(bytes: Vec<u8>) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStringExt;
    Some(PathBuf::from(OsString::from_vec(bytes)))
}

#[cfg(not(unix))]
fn path(bytes: Vec<u8>) -> Option<PathBuf> {
    String::from_utf8(bytes).ok().map(OsString::from).map(PathBuf::from)
}

/// The cgroup above, where that is still below the mount.
#[cfg(target_os = "linux")]
pub fn parent<'a>(standing: &'a Standing, of: &'a Path) -> Option<&'a Path> {
    of.parent().filter(|parent| parent.starts_with(&standing.mount))
}

#[cfg(test)]
mod tests;
