//! A root of its own, built with the descriptor-based mount calls (Linux 5.12).
//!
//! Stops: every path that is not in the plan does not exist inside. Sources are opened without
//! following a single symlink and mount points are found beneath the new root in the same way,
//! so neither a link planted in a granted tree nor one swapped in during set-up leads elsewhere.
//! Leaves open: what a granted tree itself holds (its own device files and set-uid bits are
//! switched off by mount flags), and unix sockets in it, which a read-only mount does not stop.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use mcp_policy::Bytes;
use rustix::fs::{self, AtFlags, CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags,
    fsconfig_create, fsconfig_set_string, fsmount, fsopen, move_mount, open_tree, unmount,
};

use crate::linux::step::Access;
use crate::linux::sys;
use crate::request::PlaceKind;

/// Any directory does as the place where the new root first appears; this one exists on every
/// host that can run a sandbox, and no grant may lie below it.
const STAGING: &str = "/proc";

const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// Detached copies of host trees, by their path.
pub type Trees = BTreeMap<PathBuf, OwnedFd>;

pub struct Root {
    top: OwnedFd,
    /// Trees the launcher made beforehand, with rights that init does not have.
    prepared: Trees,
}

impl Root {
    pub fn new(prepared: Trees) -> io::Result<Root> {
        let top = file_system("tmpfs", &[("mode", "0755")], MountAttrFlags::MOUNT_ATTR_NODEV)?;
        attach(&top, &open_host(Path::new(STAGING))?)?;
        Ok(Root { top, prepared })
    }

    pub fn directory(&self, at: &Path) -> io::Result<()> {
        self.place(at, PlaceKind::Directory)?;
        Ok(())
    }

    /// Leaves alone what is already there.
    pub fn link(&self, at: &Path, to: &Path) -> io::Result<()> {
        let (parent, name) = self.parent(at)?;
        match fs::symlinkat(to, parent, name) {
            Err(Errno::EXIST) => Ok(()),
            other => Ok(other?),
        }
    }

    pub fn text(&self, at: &Path, text: &str) -> io::Result<()> {
        let (parent, name) = self.parent(at)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file = fs::openat(parent, name, flags, Mode::from_raw_mode(0o644))?;
        io::Write::write_all(&mut std::fs::File::from(file), text.as_bytes())
    }

    /// Shows a host path at `at`.
    pub fn bind(
        &mut self,
        from: &Path,
        at: &Path,
        kind: PlaceKind,
        access: Access,
    ) -> io::Result<()> {
        let tree = match self.prepared.remove(from) {
            Some(tree) => tree,
            None => host_tree(from, access, None)?,
        };
        attach(&tree, &self.place(at, kind)?)?;
        if access == Access::ReadOnly {
            confirm_read_only(&tree)?;
        }
        Ok(())
    }

    /// One sized tmpfs with a directory for each place.
    pub fn scratch(&self, size: Bytes, places: &[(String, PathBuf)]) -> io::Result<()> {
        // Without a bound, empty files alone would fill the host's memory.
        let inodes = (size.0 / 4096).max(1024).to_string();
        let scratch = file_system(
            "tmpfs",
            &[("size", &size.0.to_string()), ("nr_inodes", &inodes), ("mode", "0755")],
            MountAttrFlags::MOUNT_ATTR_NODEV,
        )?;
        if let Some((_, at)) = places.first() {
            attach(&scratch, &self.place(at, PlaceKind::Directory)?)?;
        }
        for (name, at) in places {
            let mode = if name == "home" { 0o700 } else { 0o1777 };
            fs::mkdirat(&scratch, name, Mode::from_raw_mode(0o700))?;
            // A second call, because the umask applies to the first.
            fs::chmodat(&scratch, name, Mode::from_raw_mode(mode), AtFlags::empty())?;
            let tree = open_tree(
                &scratch,
                name.as_str(),
                OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC,
            )?;
            attach(&tree, &self.place(at, PlaceKind::Directory)?)?;
        }
        Ok(())
    }

    /// A minimal /dev: harmless devices of the host, terminals of our own.
    pub fn devices(&self) -> io::Result<()> {
        for name in DEVICES {
            let path = Path::new("/dev").join(name);
            let tree = clone_tree(&open_host(&path)?)?;
            // Writing to a device is not writing to its file system: read-only only keeps the
            // node's mode and times as they are.
            sys::set_tree_attributes(
                tree.as_fd(),
                sys::ATTR_READ_ONLY | sys::ATTR_NO_SUID,
                sys::Depth::Tree,
                None,
            )?;
            attach(&tree, &self.place(&path, PlaceKind::File)?)?;
        }
        let terminals = file_system(
            "devpts",
            &[("ptmxmode", "0666"), ("mode", "0620")],
            MountAttrFlags::MOUNT_ATTR_NOEXEC,
        )?;
        attach(&terminals, &self.place(Path::new("/dev/pts"), PlaceKind::Directory)?)?;
        for (at, to) in [
            ("/dev/ptmx", "pts/ptmx"),
            ("/dev/fd", "/proc/self/fd"),
            ("/dev/stdin", "/proc/self/fd/0"),
            ("/dev/stdout", "/proc/self/fd/1"),
            ("/dev/stderr", "/proc/self/fd/2"),
        ] {
            self.link(Path::new(at), Path::new(to))?;
        }
        Ok(())
    }

    /// The pid namespace's own /proc. Returns it, for the launcher to count the tree by.
    pub fn proc(&self, hidden: &[PathBuf], read_only: &[PathBuf]) -> io::Result<OwnedFd> {
        let proc = file_system(
            "proc",
            &[],
            MountAttrFlags::MOUNT_ATTR_NODEV | MountAttrFlags::MOUNT_ATTR_NOEXEC,
        )?;
        attach(&proc, &self.place(Path::new("/proc"), PlaceKind::Directory)?)?;
        for path in hidden {
            let Some(at) = self.existing(path)? else { continue };
            let nothing = clone_tree(&self.place(Path::new("/dev/null"), PlaceKind::File)?)?;
            attach(&nothing, &at)?;
        }
        for path in read_only {
            let Some(at) = self.existing(path)? else { continue };
            let tree = clone_tree(&at)?;
            sys::set_tree_attributes(tree.as_fd(), sys::ATTR_READ_ONLY, sys::Depth::Tree, None)?;
            attach(&tree, &at)?;
        }
        Ok(proc)
    }

    /// Makes this the root, lets go of the old one, and seals it.
    pub fn enter(self) -> io::Result<()> {
        sys::set_tree_attributes(self.top.as_fd(), sys::ATTR_READ_ONLY, sys::Depth::One, None)?;
        rustix::process::fchdir(&self.top)?;
        // With both arguments the same, the old root ends up on top of the new one, and the
        // detach uncovers it: no directory for it is needed.
        rustix::process::pivot_root(".", ".")?;
        unmount(".", UnmountFlags::DETACH)?;
        rustix::process::chdir("/")?;
        let (ours, now) = (fs::fstat(&self.top)?, fs::stat("/")?);
        if (ours.st_dev, ours.st_ino) != (now.st_dev, now.st_ino) {
            return Err(Errno::XDEV.into());
        }
        confirm_read_only(&self.top)
    }

    fn existing(&self, at: &Path) -> io::Result<Option<OwnedFd>> {
        match self.beneath(at) {
            Ok(fd) => Ok(Some(fd)),
            Err(Errno::NOENT) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    /// The mount point for `at`, made when it is missing.
    fn place(&self, at: &Path, kind: PlaceKind) -> io::Result<OwnedFd> {
        match self.beneath(at) {
            Err(Errno::NOENT) => {}
            other => return Ok(other?),
        }
        let (parent, name) = self.parent(at)?;
        match kind {
            PlaceKind::Directory => fs::mkdirat(&parent, name, Mode::from_raw_mode(0o755))?,
            PlaceKind::File => {
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
                fs::openat(&parent, name, flags, Mode::from_raw_mode(0o644))?;
            }
        }
        Ok(self.beneath(at)?)
    }

    fn parent<'a>(&self, at: &'a Path) -> io::Result<(OwnedFd, &'a std::ffi::OsStr)> {
        match (at.parent(), at.file_name()) {
            (Some(parent), Some(name)) => Ok((self.place(parent, PlaceKind::Directory)?, name)),
            _ => Err(Errno::INVAL.into()),
        }
    }

    fn beneath(&self, at: &Path) -> rustix::io::Result<OwnedFd> {
        let inside = at.strip_prefix("/").unwrap_or(at);
        let inside = if inside.as_os_str().is_empty() { Path::new(".") } else { inside };
        fs::openat2(
            &self.top,
            inside,
            OFlags::PATH | OFlags::CLOEXEC,
            Mode::empty(),
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS,
        )
    }
}

/// A detached copy of a host tree with the flags every such tree has. `map`: a user namespace
/// whose id map the tree shall have.
pub fn host_tree(from: &Path, access: Access, map: Option<&OwnedFd>) -> io::Result<OwnedFd> {
    let tree = clone_tree(&open_host(from)?)?;
    let mut flags = sys::ATTR_NO_SUID | sys::ATTR_NO_DEVICES;
    if access == Access::ReadOnly {
        flags |= sys::ATTR_READ_ONLY;
    }
    sys::set_tree_attributes(tree.as_fd(), flags, sys::Depth::Tree, map.map(AsFd::as_fd))?;
    Ok(tree)
}

/// The path was made canonical when the request was: a symlink in it now is a race.
fn open_host(path: &Path) -> io::Result<OwnedFd> {
    Ok(fs::openat2(
        CWD,
        path,
        OFlags::PATH | OFlags::CLOEXEC,
        Mode::empty(),
        ResolveFlags::NO_SYMLINKS,
    )?)
}

fn clone_tree(of: &OwnedFd) -> io::Result<OwnedFd> {
    // Recursive, because mounts below that were there before our user namespace are locked in
    // place: a copy without them is refused.
    Ok(open_tree(
        of,
        "",
        OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_EMPTY_PATH
            | OpenTreeFlags::AT_RECURSIVE,
    )?)
}

fn attach(tree: &OwnedFd, at: &OwnedFd) -> io::Result<()> {
    Ok(move_mount(
        tree,
        "",
        at,
        "",
        MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH,
    )?)
}

fn file_system(name: &str, options: &[(&str, &str)], flags: MountAttrFlags) -> io::Result<OwnedFd> {
    let context = fsopen(name, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (key, value) in options {
        fsconfig_set_string(&context, *key, *value)?;
    }
    fsconfig_create(&context)?;
    Ok(fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, flags | MountAttrFlags::MOUNT_ATTR_NOSUID)?)
}

fn confirm_read_only(mount: &OwnedFd) -> io::Result<()> {
    let flags = fs::fstatvfs(mount)?.f_flag;
    if flags.contains(fs::StatVfsMountFlags::RDONLY) { Ok(()) } else { Err(Errno::ROFS.into()) }
}
