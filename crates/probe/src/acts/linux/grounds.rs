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
/// for a /proc that is partly masked, as in a container; or it is `clone3`, which many filters refuse.
pub(crate) fn without(args: Args<'_>) -> Said {
    let what = args.text(0);
    let masked = what.split(',').any(|name| name == "proc");
    match what == "clone3" {
        true => no_clone3()?,
        false => new_namespaces(masked)?,
    }
    for name in what.split(',').filter(|name| !["proc", "clone3"].contains(name)) {
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

fn no_clone3() -> io::Result<()> {
    /// As `struct sock_filter` lies in memory.
    const fn instruction(code: u64, if_true: u64, if_false: u64, k: u64) -> u64 {
        code | if_true << 16 | if_false << 24 | k << 32
    }
    let filter = [
        instruction(0x20, 0, 0, 0),
        instruction(0x15, 0, 1, libc::SYS_clone3 as u64),
        instruction(0x06, 0, 0, 0x0005_0000 | libc::ENOSYS as u64),
        instruction(0x06, 0, 0, 0x7fff_0000),
    ];
    let program = [filter.len() as u64, filter.as_ptr() as u64];
    let number = |option: i32| Arg::Num(option as u64);
    let (one, zero) = (|| Arg::Num(1), || Arg::Num(0));
    call(libc::SYS_prctl, &mut [number(libc::PR_SET_NO_NEW_PRIVS), one(), zero(), zero(), zero()])?;
    let program = Arg::Num(std::ptr::from_ref(&program) as u64);
    call(libc::SYS_prctl, &mut [number(libc::PR_SET_SECCOMP), Arg::Num(2), program])?;
    Ok(())
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
