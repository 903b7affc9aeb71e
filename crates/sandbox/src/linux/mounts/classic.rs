//! Mount flags where the kernel has no mount_setattr (before Linux 5.12): set once everything stands,
//! mount by mount, with the old call.
//!
//! Until then nothing but init is inside. What was set is read back from the kernel's own list of mounts.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags, mount_change, mount_remount};

use crate::linux::step::Access;

/// A place inside, and what all mounts at and below it shall be.
pub struct Wanted {
    pub at: PathBuf,
    pub access: Access,
    pub devices: Devices,
}

/// Whether device files work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Devices {
    Off,
    On,
}

/// Keeps what the host mounts from now on out of the copies.
pub fn make_private() -> io::Result<()> {
    let flags = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    Ok(mount_change("/", flags)?)
}

pub fn apply(wanted: &[Wanted]) -> io::Result<()> {
    let all = mounts()?;
    for (mount, Wanted { access, devices, .. }) in chosen(wanted, &all) {
        let mut flags = mount.flags | MountFlags::BIND | MountFlags::NOSUID;
        if *access == Access::ReadOnly {
            flags |= MountFlags::RDONLY;
        }
        if *devices == Devices::Off {
            flags |= MountFlags::NODEV;
        }
        mount_remount(&mount.at, flags, c"")?;
    }
    confirm(wanted)
}

/// What each mount shall be. A place below another one has its own flags: the nearest counts. Looked up
/// and not compared, since there may be thousands of both.
fn chosen<'a>(wanted: &'a [Wanted], mounts: &'a [Mount]) -> Vec<(&'a Mount, &'a Wanted)> {
    let mut places: BTreeMap<&Path, Vec<&Wanted>> = BTreeMap::new();
    for one in wanted {
        places.entry(&one.at).or_default().push(one);
    }
    let nearest = |mount: &Mount| mount.at.ancestors().find_map(|place| places.get(place));
    let with_wanted = |mount| nearest(mount).into_iter().flatten().map(move |one| (mount, *one));
    mounts.iter().flat_map(with_wanted).collect()
}

/// The root itself, but nothing that stands in it.
pub fn seal_root() -> io::Result<()> {
    let flags = MountFlags::BIND | MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV;
    let root = mounts()?.into_iter().rev().find(|mount| mount.at == Path::new("/"));
    let has = root.map_or(MountFlags::empty(), |root| root.flags);
    Ok(mount_remount("/", flags | has, c"")?)
}

fn confirm(wanted: &[Wanted]) -> io::Result<()> {
    let now = mounts()?;
    // The last one at a place is the one that is seen.
    let seen: BTreeMap<&Path, &Mount> =
        now.iter().map(|mount| (mount.at.as_path(), mount)).collect();
    for Wanted { at, access, .. } in wanted {
        let Some(mount) = seen.get(at.as_path()) else {
            return Err(Errno::NOENT.into());
        };
        let is_read_only = mount.flags.contains(MountFlags::RDONLY);
        if !mount.flags.contains(MountFlags::NOSUID)
            || (*access == Access::ReadOnly && !is_read_only)
        {
            return Err(Errno::ROFS.into());
        }
    }
    Ok(())
}

struct Mount {
    at: PathBuf,
    /// What it has already; much of it cannot be taken away in a user namespace.
    flags: MountFlags,
}

fn mounts() -> io::Result<Vec<Mount>> {
    let table = fs::read("/proc/self/mountinfo")?;
    Ok(table.split(|byte| *byte == b'\n').filter_map(parse).collect())
}

fn parse(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|byte| *byte == b' ').skip(4);
    let at = unescaped(fields.next()?);
    let options = fields.next()?;
    let mut flags = MountFlags::empty();
    let mut has_time = false;
    for option in options.split(|byte| *byte == b',') {
        flags |= match option {
            b"ro" => MountFlags::RDONLY,
            b"nosuid" => MountFlags::NOSUID,
            b"nodev" => MountFlags::NODEV,
            b"noexec" => MountFlags::NOEXEC,
            b"noatime" => MountFlags::NOATIME,
            b"nodiratime" => MountFlags::NODIRATIME,
            b"relatime" => MountFlags::RELATIME,
            _ => continue,
        };
        has_time |= matches!(option, b"noatime" | b"relatime");
    }
    if !has_time {
        flags |= MountFlags::STRICTATIME;
    }
    Some(Mount { at, flags })
}

/// Blanks and the like are written as `\040`.
fn unescaped(text: &[u8]) -> PathBuf {
    let mut plain = Vec::new();
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        let code = (*first == b'\\' && after.len() >= 3)
            .then(|| std::str::from_utf8(&after[..3]).ok())
            .flatten()
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match code {
            Some(byte) => {
                plain.push(byte);
                rest = &after[3..];
            }
            None => {
                plain.push(*first);
                rest = after;
            }
        }
    }
    Path::new(&OsString::from_vec(plain)).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_place_counts() {
        let wanted = |at: &str, access| Wanted { at: at.into(), access, devices: Devices::Off };
        let wanted = [
            wanted("/grant", Access::ReadOnly),
            wanted("/grant/own", Access::ReadWrite),
            wanted("/elsewhere", Access::ReadOnly),
        ];
        let mounts = ["/", "/grant", "/grant/below", "/grant/own", "/grant/own/x", "/grants"]
            .map(|at| Mount { at: at.into(), flags: MountFlags::empty() });
        let chosen = chosen(&wanted, &mounts);
        let named: Vec<_> = chosen
            .iter()
            .map(|(mount, one)| (mount.at.to_str().unwrap(), one.at.to_str().unwrap()))
            .collect();
        let expected = [
            ("/grant", "/grant"),
            ("/grant/below", "/grant"),
            ("/grant/own", "/grant/own"),
            ("/grant/own/x", "/grant/own"),
        ];
        assert_eq!(named, expected);
    }

    #[test]
    fn a_line_of_mountinfo() {
        let line =
            b"36 35 98:0 /mnt1 /mnt\\0402\\134 rw,noatime,nodev master:1 - ext3 /dev/root rw";
        let mount = parse(line).unwrap();
        assert_eq!(mount.at, Path::new("/mnt 2\\"));
        assert_eq!(mount.flags, MountFlags::NOATIME | MountFlags::NODEV);
        let strict = parse(b"1 2 0:1 / /x ro - proc proc rw").unwrap();
        assert_eq!(strict.flags, MountFlags::RDONLY | MountFlags::STRICTATIME);
        assert!(parse(b"").is_none());
    }
}
