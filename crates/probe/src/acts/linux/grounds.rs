//! Makes a place that lacks something a sandbox is built with, and becomes a program in it: what a
//! hardened host, a container or another sandbox refuses, the kernel refuses there for real.

use std::fs;
use std::io;

use crate::act::{Args, Failure, Said};
use crate::sys::{self, Arg, Change, call};

use super::c_string;

/// Every id but the last, which means "no id".
const ALL_IDS: &str = "0 0 4294967295";

/// `WHAT` is a list: kinds of namespaces that cannot be made (`user`, `net`, `pid`, `mnt` …), or `proc`
/// for a /proc that is partly masked, as in a container.
pub(crate) fn without(args: Args<'_>) -> Said {
    let what = args.text(0);
    let masked = what.split(',').any(|name| name == "proc");
    new_namespaces(masked)?;
    for name in what.split(',').filter(|name| *name != "proc") {
        let path = format!("/proc/sys/user/max_{name}_namespaces");
        fs::write(&path, "0")
            .map_err(|error| Failure::after(&error, format!("{path}: {error}")))?;
    }
    if masked {
        mask_proc()?;
    }
    let mut command = std::process::Command::new(args.path(1));
    command.args(args.rest(2));
    Err(std::os::unix::process::CommandExt::exec(&mut command).into())
}

/// A user namespace in which everybody is who they were. A map of all ids is written by a child
/// that stayed outside, where root may do so.
fn new_namespaces(mounts: bool) -> io::Result<()> {
    let uid = call(libc::SYS_geteuid, &mut [])?;
    let gid = call(libc::SYS_getegid, &mut [])?;
    let parent = std::process::id();
    let flags = libc::CLONE_NEWUSER | if mounts { libc::CLONE_NEWNS } else { 0 };
    let unshare = || call(libc::SYS_unshare, &mut [Arg::Num(flags as u64)]);
    if uid != 0 {
        unshare()?;
        fs::write("/proc/self/setgroups", "deny")?;
        fs::write("/proc/self/gid_map", format!("{gid} {gid} 1"))?;
        return fs::write("/proc/self/uid_map", format!("{uid} {uid} 1"));
    }
    let own = fs::read_link("/proc/self/ns/user")?;
    let child = sys::fork(|| {
        for _ in 0..2000 {
            if fs::read_link(format!("/proc/{parent}/ns/user")).is_ok_and(|now| now != own) {
                let written = fs::write(format!("/proc/{parent}/gid_map"), ALL_IDS)
                    .and_then(|()| fs::write(format!("/proc/{parent}/uid_map"), ALL_IDS));
                return u8::from(written.is_err());
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        2
    })?;
    unshare()?;
    match sys::wait(child, 0)? {
        Change::Exited(0) => Ok(()),
        _ => Err(io::Error::other("the id maps could not be written")),
    }
}

/// Something over a file of /proc: the kernel then refuses another /proc that would show it.
fn mask_proc() -> Result<(), Failure> {
    let (root, over) = (c_string("/")?, c_string("/proc/version")?);
    let nothing = c_string("/dev/null")?;
    let private = libc::MS_REC | libc::MS_PRIVATE;
    call(libc::SYS_mount, &mut [Arg::Null, Arg::Text(&root), Arg::Null, Arg::Num(private)])?;
    let bind = &mut [Arg::Text(&nothing), Arg::Text(&over), Arg::Null, Arg::Num(libc::MS_BIND)];
    call(libc::SYS_mount, bind)?;
    Ok(())
}
