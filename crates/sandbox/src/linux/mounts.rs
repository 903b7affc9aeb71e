//! A root of its own, built with the descriptor-based mount calls (Linux 5.12).
//!
//! Stops: every path that is not in the plan does not exist inside. Sources are opened without
//! following a single symlink and mount points are found beneath the new root in the same way,
//! so neither a link planted in a granted tree nor one swapped in during set-up leads elsewhere.
//! Leaves open: what a granted tree itself holds (its own device files and set-uid bits are
//! switched off by mount flags), and unix sockets in it, which a read-only mount does not stop.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
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

use self::classic::{Devices, Wanted};
pub use self::mask::{Again, MaskOutcome};
use crate::core::request::PlaceKind;
use crate::linux::step::{Access, ProcView};
use crate::linux::sys;

mod classic;
mod folding;
mod layer;
mod mask;

pub use self::layer::STAGED_LAYER;

/// Any directory does as the place where the new root first appears; this one exists on every
/// host that can run a sandbox, and no grant may lie below it.
const STAGING: &str = PROC;

const PROC: &str = "/proc";

/// The machine has a number of terminals for everybody together.
const TERMINALS: &str = "64";

const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// Detached copies of host trees, by the place they are for.
pub type Trees = BTreeMap<PathBuf, OwnedFd>;

pub struct Root {
    /// One tmpfs for the root and for all that is writable and temporary in it: read-only or
    /// not is a matter of the mount, not of the file system.
    top: OwnedFd,
    /// The directory that the last place was made in; the next one mostly is there too.
    parent: Option<(PathBuf, OwnedFd)>,
    /// Trees the launcher made beforehand, with rights that init does not have.
    prepared: Trees,
    /// Flags to be set in the end, where the kernel cannot set them beforehand.
    later: Option<Vec<Wanted>>,
    /// Paths whose names are not there in the other case.
    one_case: BTreeSet<PathBuf>,
}

/// What the root's own few files need of the tmpfs, on top of the size that was asked for.
const SKELETON_BYTES: u64 = 64 * 1024;
const SKELETON_INODES: u64 = 256;

impl Root {
    /// `scratch`: how much may be written to temporary places. `places`: how many mount points
    /// will be made.
    pub fn new(prepared: Trees, scratch: Bytes, places: usize) -> io::Result<Root> {
        let size = scratch.0.saturating_add(SKELETON_BYTES).to_string();
        // Without a bound, empty files alone would fill the host's memory.
        let inodes = (scratch.0 / 4096).max(1024) + SKELETON_INODES + 8 * places as u64;
        let top = file_system(
            "tmpfs",
            &[("mode", "0755"), ("size", &size), ("nr_inodes", &inodes.to_string())],
            MountAttrFlags::MOUNT_ATTR_NODEV,
        )?;
        let later = match sys::has_tree_attributes() {
            true => None,
            false => {
                classic::make_private()?;
                Some(Vec::new())
            }
        };
        move_onto(&top, CWD, STAGING.as_ref())?;
        Ok(Root { top, parent: None, prepared, later, one_case: BTreeSet::new() })
    }

    /// The root of a sandbox that this process has entered.
    pub fn of_this_process() -> io::Result<Root> {
        if !sys::has_tree_attributes() {
            return Err(Errno::NOSYS.into());
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let top = fs::openat(CWD, "/", flags, Mode::empty())?;
        let (prepared, one_case) = (Trees::new(), BTreeSet::new());
        Ok(Root { top, parent: None, prepared, later: None, one_case })
    }

    pub fn directory(&mut self, at: &Path) -> io::Result<()> {
        self.place(at, PlaceKind::Directory)?;
        Ok(())
    }

    /// Leaves alone what is already there.
    pub fn link(&mut self, at: &Path, to: &Path) -> io::Result<()> {
        let (parent, name) = self.parent(at)?;
        match fs::symlinkat(to, parent, name) {
            Err(Errno::EXIST) => Ok(()),
            other => Ok(other?),
        }
    }

    pub fn text(&mut self, at: &Path, text: &str, mode: u32) -> io::Result<()> {
        let (parent, name) = self.parent(at)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file = fs::openat(parent, name, flags, Mode::from_raw_mode(mode))?;
        io::Write::write_all(&mut std::fs::File::from(file), text.as_bytes())
    }

    /// Shows a piece of the system at its own place.
    pub fn show(&mut self, path: &Path, kind: PlaceKind) -> io::Result<()> {
        let tree = clone_tree(CWD, path)?;
        restrict(&tree, Access::ReadOnly, None)?;
        self.attach(&tree, path, kind)?;
        if self.is_left_for_later(path, Access::ReadOnly, Devices::Off) {
            return Ok(());
        }
        confirm_read_only(&tree)
    }

    /// Whether flags cannot be set yet, and are noted for the end instead.
    fn is_left_for_later(&mut self, at: &Path, access: Access, devices: Devices) -> bool {
        if let Some(later) = &mut self.later {
            later.push(Wanted { at: at.to_owned(), access, devices });
        }
        self.later.is_some()
    }

    /// Shows a host path at `at`.
    pub fn bind(
        &mut self,
        from: &Path,
        at: &Path,
        kind: PlaceKind,
        access: Access,
    ) -> io::Result<()> {
        let tree = match self.prepared.remove(at) {
            Some(tree) => tree,
            None => host_tree(from, access, None)?,
        };
        self.attach(&tree, at, kind)?;
        if !self.is_left_for_later(at, access, Devices::Off) && access == Access::ReadOnly {
            confirm_read_only(&tree)?;
        }
        Ok(())
    }

    /// Writable places of the root's own tmpfs, which itself will be read-only.
    pub fn scratch(&mut self, places: &[(PathBuf, u32)]) -> io::Result<()> {
        for (at, mode) in places {
            self.place(at, PlaceKind::Directory)?;
            let (parent, name) = self.parent(at)?;
            // After the fact, because the umask applies to making it.
            fs::chmodat(parent, name, Mode::from_raw_mode(*mode), AtFlags::empty())?;
            let tree = clone_tree(parent, Path::new(name))?;
            self.attach(&tree, at, PlaceKind::Directory)?;
        }
        Ok(())
    }

    /// A minimal /dev: harmless devices of the host, terminals of our own.
    pub fn devices(&mut self) -> io::Result<()> {
        for name in DEVICES {
            let path = Path::new("/dev").join(name);
            let tree = clone_tree(CWD, &path)?;
            // Writing to a device is not writing to its file system: this only keeps the
            // times of the node as they are.
            let flags = sys::ATTR_READ_ONLY | sys::ATTR_NO_SUID;
            if !self.is_left_for_later(&path, Access::ReadOnly, Devices::On) {
                sys::set_tree_attributes(tree.as_fd(), flags, sys::Depth::Tree, None)?;
            }
            self.attach(&tree, &path, PlaceKind::File)?;
        }
        let terminals = file_system(
            "devpts",
            &[("ptmxmode", "0666"), ("mode", "0620"), ("max", TERMINALS)],
            MountAttrFlags::MOUNT_ATTR_NOEXEC,
        )?;
        self.attach(&terminals, Path::new("/dev/pts"), PlaceKind::Directory)?;
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

    /// The pid namespace's own /proc, or what stands in for it. Returns the own one, for the
    /// launcher to count the tree by.
    pub fn proc(&mut self, hidden: &[&str], view: ProcView) -> io::Result<Option<OwnedFd>> {
        let proc = match view {
            ProcView::Own => file_system("proc", &[], PROC_FLAGS)?,
            ProcView::OwnTraceable => {
                // Before Linux 5.8 there is no such value, and the one for processes of others must do.
                file_system("proc", &[("hidepid", "4")], PROC_FLAGS)
                    .or_else(|_| file_system("proc", &[("hidepid", "2")], PROC_FLAGS))?
            }
            ProcView::Host => return self.host_proc(hidden),
            ProcView::Empty => {
                self.place(Path::new("/proc"), PlaceKind::Directory)?;
                return Ok(None);
            }
        };
        self.attach(&proc, Path::new("/proc"), PlaceKind::Directory)?;
        // Not every kernel has every part. Looked up first: closing a copy that was never
        // attached waits for every processor.
        let is_there = |name: &&&str| {
            fs::accessat(&proc, **name, fs::Access::EXISTS, AtFlags::empty()).is_ok()
        };
        for name in hidden.iter().filter(is_there) {
            let nothing = clone_tree(&self.top, Path::new("dev/null"))?;
            move_onto(&nothing, &proc, name.as_ref())?;
            // A copy has the flags of /dev/null, if that has its own already.
            let at = Path::new(PROC).join(name);
            self.is_left_for_later(&at, Access::ReadOnly, Devices::On);
        }
        // The descriptor of the mount itself cannot be read.
        Ok(Some(fs::openat(
            &proc,
            ".",
            OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )?))
    }

    /// The /proc that is there, with all that hides parts of it.
    fn host_proc(&mut self, hidden: &[&str]) -> io::Result<Option<OwnedFd>> {
        // The new root stands on top of it until it is entered: it was taken before that.
        let Some(proc) = self.prepared.remove(Path::new(PROC)) else {
            return Err(Errno::NOENT.into());
        };
        self.attach(&proc, Path::new("/proc"), PlaceKind::Directory)?;
        for name in hidden {
            if fs::accessat(&proc, *name, fs::Access::EXISTS, AtFlags::empty()).is_ok() {
                let nothing = clone_tree(&self.top, Path::new("dev/null"))?;
                move_onto(&nothing, &proc, name.as_ref())?;
            }
        }
        if !self.is_left_for_later(Path::new(PROC), Access::ReadOnly, Devices::Off) {
            confirm_read_only(&proc)?;
        }
        Ok(None)
    }

    /// Makes this the root, lets go of the old one, and seals it.
    pub fn enter(self) -> io::Result<()> {
        if self.later.is_none() {
            let flags = sys::ATTR_READ_ONLY;
            sys::set_tree_attributes(self.top.as_fd(), flags, sys::Depth::One, None)?;
        }
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
        if let Some(later) = &self.later {
            classic::apply(later)?;
            classic::seal_root()?;
        }
        confirm_read_only(&self.top)
    }

    /// Puts a detached tree at a place, which is made when it is missing.
    fn attach(&mut self, tree: &OwnedFd, at: &Path, kind: PlaceKind) -> io::Result<()> {
        self.place(at, kind)?;
        let (parent, name) = self.parent(at)?;
        move_onto(tree, parent, name)?;
        // What was opened there before is now below the mount.
        if self.parent.as_ref().is_some_and(|(cached, _)| cached.starts_with(at)) {
            self.parent = None;
        }
        Ok(())
    }

    /// Makes a mount point, if it is not there.
    fn place(&mut self, at: &Path, kind: PlaceKind) -> io::Result<()> {
        let (parent, name) = self.parent(at)?;
        let made = match kind {
            PlaceKind::Directory => fs::mkdirat(parent, name, Mode::from_raw_mode(0o755)),
            PlaceKind::File | PlaceKind::Socket => {
                let mode = Mode::from_raw_mode(0o644);
                fs::mknodat(parent, name, fs::FileType::RegularFile, mode, 0)
            }
        };
        match made {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }

    /// The directory of a place, and its name there. The directory is found beneath the new
    /// root without following links, so a name in it can lead nowhere else.
    fn parent<'a>(&mut self, at: &'a Path) -> io::Result<(&OwnedFd, &'a OsStr)> {
        let (Some(path), Some(name)) = (at.parent(), at.file_name()) else {
            return Err(Errno::INVAL.into());
        };
        if self.parent.as_ref().is_none_or(|(cached, _)| cached != path) {
            let fd = match beneath(&self.top, path) {
                Err(Errno::NOENT) => {
                    self.place(path, PlaceKind::Directory)?;
                    beneath(&self.top, path)?
                }
                other => other?,
            };
            self.parent = Some((path.to_owned(), fd));
        }
        match &self.parent {
            Some((_, fd)) => Ok((fd, name)),
            None => Err(Errno::INVAL.into()),
        }
    }
}

fn beneath(top: &OwnedFd, at: &Path) -> rustix::io::Result<OwnedFd> {
    let inside = at.strip_prefix("/").unwrap_or(at);
    let inside = if inside.as_os_str().is_empty() { Path::new(".") } else { inside };
    fs::openat2(
        top,
        inside,
        OFlags::PATH | OFlags::CLOEXEC,
        Mode::empty(),
        ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS,
    )
}

/// Sets the host's /proc aside for [`Root::proc`].
pub fn keep_host_proc(trees: &mut Trees) -> io::Result<()> {
    let proc = host_tree(Path::new(PROC), Access::ReadOnly, None)?;
    trees.insert(PROC.into(), proc);
    Ok(())
}

/// A detached copy of a host tree with the flags every such tree has. `map`: a user namespace
/// whose id map the tree shall have.
pub fn host_tree(from: &Path, access: Access, map: Option<&OwnedFd>) -> io::Result<OwnedFd> {
    let tree = clone_tree(&open_host(from)?, Path::new(""))?;
    restrict(&tree, access, map)?;
    Ok(tree)
}

fn restrict(tree: &OwnedFd, access: Access, map: Option<&OwnedFd>) -> io::Result<()> {
    let mut flags = sys::ATTR_NO_SUID | sys::ATTR_NO_DEVICES;
    if access == Access::ReadOnly {
        flags |= sys::ATTR_READ_ONLY;
    }
    match sys::set_tree_attributes(tree.as_fd(), flags, sys::Depth::Tree, map.map(AsFd::as_fd)) {
        // Set when the new root is entered.
        Err(e) if e.raw_os_error() == Some(libc::ENOSYS) && map.is_none() => Ok(()),
        other => other,
    }
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

/// A detached copy of the tree at `path`, which must not be a symlink.
fn clone_tree(directory: impl AsFd, path: &Path) -> io::Result<OwnedFd> {
    // Recursive, because mounts below that were there before our user namespace are locked in
    // place: a copy without them is refused.
    Ok(open_tree(
        directory,
        path,
        OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_EMPTY_PATH
            | OpenTreeFlags::AT_SYMLINK_NOFOLLOW
            | OpenTreeFlags::AT_RECURSIVE,
    )?)
}

/// Mounts onto a name in a directory; a symlink there is not followed.
fn move_onto(tree: &OwnedFd, directory: impl AsFd, name: &OsStr) -> io::Result<()> {
    Ok(move_mount(tree, "", directory, name, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?)
}

const PROC_FLAGS: MountAttrFlags = MountAttrFlags::MOUNT_ATTR_RDONLY
    .union(MountAttrFlags::MOUNT_ATTR_NODEV)
    .union(MountAttrFlags::MOUNT_ATTR_NOEXEC);

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
