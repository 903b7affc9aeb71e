//! A writable layer over a read-only tree: overlayfs, in user namespaces since Linux 5.11, over trees with mapped
//! owners since 5.19.
//!
//! Stops: what is written inside never reaches the tree below, and is found in one directory of the launcher's.
//! The overlay's own attributes are of `user.overlay` (`userxattr`), so that nothing it keeps needs a privilege and
//! no redirection is followed. Leaves open: the size of what is written, as of every directory on the host's disk.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{self, AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, UnmountFlags, fsconfig_create, fsconfig_set_flag,
    fsconfig_set_string, fsmount, fsopen, unmount,
};

use super::{Root, STAGING, beneath, host_tree};
use crate::core::request::PlaceKind;
use crate::linux::step::Access;

/// Where the kept directory stands in the new root while the overlay is made: the kernel wants paths of layers, and
/// this one has no character that overlayfs takes for its own.
pub const STAGED_LAYER: &str = "/.mcp-layer";

impl Root {
    /// Puts an overlay over what is shown at `at`. The inner error is the kernel's refusal of it: then nothing has
    /// changed. The outer one means that the root is not what it should be.
    pub fn layer(
        &mut self,
        at: &Path,
        kept_in: &Path,
        access: Access,
    ) -> io::Result<io::Result<()>> {
        let staged = Path::new(STAGED_LAYER);
        let kept = self.prepared.remove(staged);
        if self.later.is_some() {
            return Ok(Err(Errno::NOSYS.into()));
        }
        let kept = match kept.map_or_else(|| host_tree(kept_in, Access::ReadWrite, None), Ok) {
            Ok(kept) => kept,
            Err(refused) => return Ok(Err(refused)),
        };
        self.attach(&kept, staged, PlaceKind::Directory)?;
        let made = self.overlay(at, access);
        // Before anything else: left there, it could be written without the overlay.
        unmount(PathBuf::from(format!("{STAGING}{STAGED_LAYER}")), UnmountFlags::DETACH)?;
        fs::unlinkat(&self.top, STAGED_LAYER.trim_start_matches('/'), AtFlags::REMOVEDIR)?;
        match made {
            Ok(overlay) => self.attach(&overlay, at, PlaceKind::Directory).map(Ok),
            Err(refused) => Ok(Err(refused)),
        }
    }

    fn overlay(&self, at: &Path, access: Access) -> io::Result<OwnedFd> {
        // The launcher made them; a link in their place would put the layer elsewhere.
        let staged = Path::new(STAGED_LAYER);
        beneath(&self.top, &staged.join("upper"))?;
        beneath(&self.top, &staged.join("work"))?;
        let below = beneath(&self.top, at)?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let before = fs::openat(CWD, ".", flags, Mode::empty())?;
        // By the descriptor: the path to it may hold characters that overlayfs takes for its own.
        rustix::process::fchdir(below.as_fd())?;
        let upper = format!("{STAGING}{STAGED_LAYER}/upper");
        let made = match access {
            Access::ReadWrite => {
                let work = format!("{STAGING}{STAGED_LAYER}/work");
                let layers = [("lowerdir", "."), ("upperdir", &upper), ("workdir", &work)];
                mounted(&layers, MountAttrFlags::empty())
            }
            Access::ReadOnly => {
                let both = format!("{upper}:.");
                mounted(&[("lowerdir", &both)], MountAttrFlags::MOUNT_ATTR_RDONLY)
            }
        };
        rustix::process::fchdir(&before)?;
        made
    }
}

fn mounted(layers: &[(&str, &str)], flags: MountAttrFlags) -> io::Result<OwnedFd> {
    let context = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (key, value) in layers {
        fsconfig_set_string(&context, *key, *value)?;
    }
    fsconfig_set_flag(&context, "userxattr")?;
    fsconfig_create(&context)?;
    let flags = flags | MountAttrFlags::MOUNT_ATTR_NODEV | MountAttrFlags::MOUNT_ATTR_NOSUID;
    Ok(fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, flags)?)
}
