//! Closing parts of what is shown: masks over names, and directories held where they are.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{
    self, AtFlags, FileType, Mode, OFlags, ResolveFlags, StatxAttributes, StatxFlags,
};
use rustix::io::Errno;
use rustix::mount::{MoveMountFlags, move_mount};

use super::classic::Devices;
use super::{Root, clone_tree, confirm_read_only};
use crate::core::request::DeniedKind;
use crate::linux::step::{Access, Mask};
use crate::linux::sys;

/// What masks are copies of, in the root's own file system, until all are in place.
const NO_FILE: &str = ".mcp-no-file";
const NO_DIRECTORY: &str = ".mcp-no-directory";

/// How a path was found when it was to be closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MaskOutcome {
    Now,
    /// Removed since it was found.
    Gone,
    /// It lies behind a directory that init may not enter. That directory was closed instead: its owner could
    /// open it again with chmod, and the command mostly is its owner.
    Above,
}

impl Root {
    /// Masks every path; `each` is told what became of it. The error names the one it happened at.
    pub fn mask<'a>(
        &mut self,
        masks: &'a [Mask],
        mut each: impl FnMut(MaskOutcome),
    ) -> Result<(), (&'a Path, io::Error)> {
        if masks.is_empty() {
            return Ok(());
        }
        let first = &masks[0].at;
        self.make_nothing().map_err(|e| (first.as_path(), e))?;
        for Mask { at, kind } in masks {
            each(self.mask_one(at, *kind).map_err(|e| (at.as_path(), e))?);
        }
        // A mount keeps what it shows, so no name for it is needed, and no process inside has one.
        fs::unlinkat(&self.top, NO_FILE, AtFlags::empty())
            .and_then(|()| fs::unlinkat(&self.top, NO_DIRECTORY, AtFlags::REMOVEDIR))
            .map_err(|e| (first.as_path(), e.into()))
    }

    fn make_nothing(&self) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        fs::openat(&self.top, NO_FILE, flags, Mode::empty())?;
        fs::mkdirat(&self.top, NO_DIRECTORY, Mode::empty())?;
        Ok(())
    }

    fn mask_one(&mut self, at: &Path, kind: DeniedKind) -> io::Result<MaskOutcome> {
        let (place, nothing) = match (find(&self.top, at)?, kind) {
            (MaskTarget::Nothing, _) => return Ok(MaskOutcome::Gone),
            (MaskTarget::Behind(above), _) => {
                self.mask_one(&above, DeniedKind::Directory)?;
                return Ok(MaskOutcome::Above);
            }
            (MaskTarget::There(place, FileType::Directory), DeniedKind::Directory) => {
                (place, NO_DIRECTORY)
            }
            (MaskTarget::There(place, FileType::Symlink), DeniedKind::Link) => (place, NO_FILE),
            (MaskTarget::There(_, FileType::Directory | FileType::Symlink), _)
            | (MaskTarget::There(..), DeniedKind::Directory | DeniedKind::Link) => {
                return Err(Errno::STALE.into());
            }
            (MaskTarget::There(place, _), DeniedKind::File) => (place, NO_FILE),
        };
        let mask = clone_tree(&self.top, Path::new(nothing))?;
        let flags = sys::ATTR_READ_ONLY | sys::ATTR_NO_SUID | sys::ATTR_NO_DEVICES;
        let later = self.later.is_some();
        if !later {
            let mask = std::os::fd::AsFd::as_fd(&mask);
            sys::set_tree_attributes(mask, flags, sys::Depth::One, None)?;
        }
        if attach(&mask, &place)? == MaskOutcome::Gone {
            return Ok(MaskOutcome::Gone);
        }
        if later {
            self.is_left_for_later(at, Access::ReadOnly, Devices::Off);
        } else {
            confirm_read_only(&mask)?;
        }
        let (ours, now) = (fs::fstat(&mask)?, find(&self.top, at)?);
        let MaskTarget::There(now, _) = now else {
            return Err(Errno::STALE.into());
        };
        let now = fs::fstat(&now)?;
        match (ours.st_dev, ours.st_ino) == (now.st_dev, now.st_ino) {
            true => self.has_one_case(at).map(|()| MaskOutcome::Now),
            false => Err(Errno::STALE.into()),
        }
    }

    /// Mounts something on itself, read-only with all that is mounted in it.
    pub fn protect(&mut self, at: &Path) -> io::Result<MaskOutcome> {
        self.parent = None;
        let (place, kind) = match find(&self.top, at)? {
            MaskTarget::Nothing => return Ok(MaskOutcome::Gone),
            MaskTarget::Behind(above) => return self.protect_above(&above),
            MaskTarget::There(place, kind) => (place, kind),
        };
        let depth = if kind == FileType::Directory { sys::Depth::Tree } else { sys::Depth::One };
        let tree = clone_tree(&place, Path::new(""))?;
        let later = self.later.is_some();
        if !later {
            let fixed = sys::ATTR_READ_ONLY | sys::ATTR_NO_SUID | sys::ATTR_NO_DEVICES;
            sys::set_tree_attributes(std::os::fd::AsFd::as_fd(&tree), fixed, depth, None)?;
        }
        if attach(&tree, &place)? == MaskOutcome::Gone {
            return Ok(MaskOutcome::Gone);
        }
        match (later, kind) {
            // It holds nothing to be changed, and the old call would follow it.
            (true, FileType::Symlink) => {}
            (true, _) => {
                self.is_left_for_later(at, Access::ReadOnly, Devices::Off);
            }
            (false, _) => confirm_read_only(&tree)?,
        }
        let MaskTarget::There(now, _) = find(&self.top, at)? else {
            return Err(Errno::STALE.into());
        };
        match is_mount_root(&now)? {
            true => self.has_one_case(at).map(|()| MaskOutcome::Now),
            false => Err(Errno::STALE.into()),
        }
    }

    /// Makes a directory read-only that stands in the way to something protected; its mode, too, stays as it is.
    fn protect_above(&mut self, at: &Path) -> io::Result<MaskOutcome> {
        if !self.is_fixed(at)? {
            self.protect(at)?;
        }
        Ok(MaskOutcome::Above)
    }

    /// Whether a read-only mount stands at a path already, or will.
    fn is_fixed(&self, at: &Path) -> io::Result<bool> {
        if let Some(later) = &self.later {
            return Ok(later.iter().any(|one| one.at == at && one.access == Access::ReadOnly));
        }
        let MaskTarget::There(place, _) = find(&self.top, at)? else {
            return Ok(false);
        };
        Ok(is_mount_root(&place)? && confirm_read_only(&place).is_ok())
    }

    /// Mounts a directory on itself: a mount point cannot be renamed or removed.
    pub fn hold(&mut self, at: &Path) -> io::Result<MaskOutcome> {
        // What is kept open may be below.
        self.parent = None;
        let place = match find(&self.top, at)? {
            MaskTarget::Nothing => return Ok(MaskOutcome::Gone),
            MaskTarget::Behind(above) => return self.protect_above(&above),
            MaskTarget::There(place, FileType::Directory) => place,
            MaskTarget::There(..) => return Err(Errno::STALE.into()),
        };
        let tree = clone_tree(&place, Path::new(""))?;
        if attach(&tree, &place)? == MaskOutcome::Gone {
            return Ok(MaskOutcome::Gone);
        }
        let MaskTarget::There(now, _) = find(&self.top, at)? else {
            return Err(Errno::STALE.into());
        };
        match is_mount_root(&now)? {
            true => self.has_one_case(at).map(|()| MaskOutcome::Now),
            false => Err(Errno::STALE.into()),
        }
    }
}

/// What became of a place that may have lost its mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Again {
    /// Nothing was to be done, or there is nothing.
    Fixed,
    Closed,
    /// What is there is just being replaced: nothing can be mounted on it any more.
    Fleeting,
}

impl Root {
    /// Holds a directory again whose mount is gone.
    pub fn hold_again(&mut self, at: &Path) -> io::Result<Again> {
        match find(&self.top, at)? {
            MaskTarget::There(place, FileType::Directory) if !is_mount_root(&place)? => {
                self.hold(at).map(Again::from)
            }
            _ => Ok(Again::Fixed),
        }
    }

    /// Protects again what is not any more.
    pub fn protect_again(&mut self, at: &Path) -> io::Result<Again> {
        let is_fixed = match find(&self.top, at)? {
            MaskTarget::Nothing => true,
            MaskTarget::There(..) => self.is_fixed(at)?,
            MaskTarget::Behind(above) => self.is_fixed(&above)?,
        };
        match is_fixed {
            true => Ok(Again::Fixed),
            false => self.protect(at).map(Again::from),
        }
    }
}

impl From<MaskOutcome> for Again {
    fn from(closed: MaskOutcome) -> Again {
        match closed {
            MaskOutcome::Now | MaskOutcome::Above => Again::Closed,
            MaskOutcome::Gone => Again::Fleeting,
        }
    }
}

enum MaskTarget {
    There(OwnedFd, FileType),
    Nothing,
    /// A directory on the way may not be entered: the path of the first such one, which itself is there.
    Behind(PathBuf),
}

/// What is at a path inside, no link followed. One in the middle of it was put there since the
/// path was found, and is an error.
fn find(top: &OwnedFd, at: &Path) -> io::Result<MaskTarget> {
    match open_inside(top, at) {
        Ok(place) => {
            let kind = FileType::from_raw_mode(fs::fstat(&place)?.st_mode);
            Ok(MaskTarget::There(place, kind))
        }
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(MaskTarget::Nothing),
        Err(Errno::ACCESS) => {
            let above = at.ancestors().skip(1).filter(|above| above.parent().is_some());
            for above in above {
                match open_inside(top, above) {
                    Ok(_) => return Ok(MaskTarget::Behind(above.to_owned())),
                    Err(Errno::ACCESS) => {}
                    // It changes while we look, which modes do not.
                    Err(e) => return Err(e.into()),
                }
            }
            Err(Errno::ACCESS.into())
        }
        Err(e) => Err(e.into()),
    }
}

pub(super) fn open_inside(top: &OwnedFd, at: &Path) -> rustix::io::Result<OwnedFd> {
    fs::openat2(
        top,
        at.strip_prefix("/").unwrap_or(at),
        OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        Mode::empty(),
        ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS,
    )
}

pub(super) fn is_mount_root(place: &OwnedFd) -> io::Result<bool> {
    let now = fs::statx(place, "", AtFlags::EMPTY_PATH, StatxFlags::empty())?;
    Ok(now.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

/// Mounts onto what was opened, whatever its name is by now.
fn attach(tree: &OwnedFd, place: &OwnedFd) -> io::Result<MaskOutcome> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    match move_mount(tree, "", place, "", flags) {
        Ok(()) => Ok(MaskOutcome::Now),
        Err(Errno::NOENT) => Ok(MaskOutcome::Gone),
        Err(e) => Err(e.into()),
    }
}
