//! Root's stand-in: what root runs here has ids of its own, and what it writes belongs to root.
//!
//! The mount of a granted tree shows owners through the maps of a user namespace. Such a namespace takes a
//! process to make, so it is made for the first tree that needs it.

use std::cell::OnceCell;
use std::fs;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Gid, Uid};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::core::host::Ids;
use crate::linux::phases::LinuxPlan;
use crate::linux::step::MapIds;
use crate::linux::sys;
use crate::linux::well_known::ROOT_BECOMES_OUTSIDE;

/// The ids of the sandbox, and whose files are shown as theirs.
pub struct OwnerMap {
    root: Namespace,
    /// By sudo: the files of who called it, where a granted place is theirs.
    invoker: Option<(Ids, Namespace)>,
    uid: u32,
    gid: u32,
    outside_uid: u32,
    outside_gid: u32,
}

impl OwnerMap {
    /// `None` for an ordinary user, and for root of a rootless container: they need no stand-in.
    pub fn for_plan(plan: &LinuxPlan) -> Option<OwnerMap> {
        let MapIds { uid, gid, outside_uid, outside_gid, invoker } = plan.ids()?.step;
        if outside_uid != ROOT_BECOMES_OUTSIDE {
            return None;
        }
        let all_but_root = |outside: u32| format!("0 {outside} 1\n1 1 {}\n", outside - 1);
        let root = Namespace::new(all_but_root(outside_uid), all_but_root(outside_gid));
        let invoker = invoker.map(|ids| {
            let uids = in_the_place_of(ids.uid, outside_uid);
            (ids, Namespace::new(uids, in_the_place_of(ids.gid, outside_gid)))
        });
        Some(OwnerMap { root, invoker, uid, gid, outside_uid, outside_gid })
    }

    /// The map for a granted place: what is written there belongs to who owns it already.
    pub fn of(&self, place: &Path) -> io::Result<&OwnedFd> {
        let owner = fs::symlink_metadata(place).map(|metadata| metadata.uid());
        match &self.invoker {
            Some((ids, namespace)) if owner.is_ok_and(|owner| owner == ids.uid) => namespace.get(),
            _ => self.of_root(),
        }
    }

    pub fn of_root(&self) -> io::Result<&OwnedFd> {
        self.root.get()
    }

    /// Makes the stand-in the owner of a pipe, who may open it by name (`/dev/stdout`). Where that cannot be, only the
    /// name does not work.
    pub fn give(&self, pipe: BorrowedFd<'_>) {
        let (uid, gid) = (Uid::from_raw(self.outside_uid), Gid::from_raw(self.outside_gid));
        let _ = rustix::fs::fchown(pipe, Some(uid), Some(gid));
    }

    pub fn write_for(&self, pid: i32) -> io::Result<()> {
        let line = |inside: u32, outside: u32| format!("{inside} {outside} 1");
        fs::write(format!("/proc/{pid}/gid_map"), line(self.gid, self.outside_gid))?;
        fs::write(format!("/proc/{pid}/uid_map"), line(self.uid, self.outside_uid))
    }
}

/// A user namespace, made when it is first asked for.
struct Namespace {
    uid_map: String,
    gid_map: String,
    made: OnceCell<OwnedFd>,
}

impl Namespace {
    fn new(uid_map: String, gid_map: String) -> Namespace {
        Namespace { uid_map, gid_map, made: OnceCell::new() }
    }

    fn get(&self) -> io::Result<&OwnedFd> {
        if let Some(made) = self.made.get() {
            return Ok(made);
        }
        let made = user_namespace(&self.uid_map, &self.gid_map)?;
        Ok(self.made.get_or_init(|| made))
    }
}

/// A map of ids in which `outside` stands for `id`, and everybody else for themselves.
fn in_the_place_of(id: u32, outside: u32) -> String {
    let after = id + 1;
    let mut map = format!("0 0 {id}\n{id} {outside} 1\n");
    if after < outside {
        map += &format!("{after} {after} {}\n", outside - after);
    }
    map
}

/// A user namespace with these maps and no process in it.
pub fn user_namespace(uid_map: &str, gid_map: &str) -> io::Result<OwnedFd> {
    let (wait, go) = pipe_with(PipeFlags::CLOEXEC)?;
    match sys::clone_process(libc::CLONE_NEWUSER as u64)? {
        sys::Cloned::Child => {
            drop(go);
            let mut fds = [PollFd::new(&wait, PollFlags::IN)];
            let _ = poll(&mut fds, None::<&Timespec>);
            sys::exit_now(0)
        }
        sys::Cloned::Parent { pid, .. } => {
            let made = fs::write(format!("/proc/{pid}/uid_map"), uid_map)
                .and_then(|()| fs::write(format!("/proc/{pid}/gid_map"), gid_map))
                .and_then(|()| fs::File::open(format!("/proc/{pid}/ns/user")));
            drop(go);
            sys::wait_for(pid)?;
            Ok(made?.into())
        }
    }
}
