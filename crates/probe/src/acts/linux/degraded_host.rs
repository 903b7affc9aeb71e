//! Makes a place that lacks something a sandbox is built with, and becomes a program in it: what a
//! hardened host, a container or another sandbox refuses, the kernel refuses there for real.

use std::fs;
use std::io;

use crate::spec::{Args, Failure, Said};
use crate::sys::{self, Arg, Change, call};

use super::c_string;

/// Every id but the last, which means "no id".
const ALL_IDS: &str = "0 0 4294967295";

/// `WHAT` is a list: kinds of namespaces that cannot be made (`user`, `net`, `pid`, `mnt` …), or `proc`
/// for a /proc that is partly masked, as in a container; or it is `clone3`, which many filters refuse, or
/// `namespaces`: none of any kind, by a filter around the caller, who stays where it is. Root is real root then.
pub(crate) fn without(args: Args<'_>) -> Said {
    let what = args.text(0);
    let masked = what.split(',').any(|name| name == "proc");
    let kinds: Vec<&str> = match what.as_ref() {
        "clone3" => {
            install(&[load(NUMBER), equal(libc::SYS_clone3, 0, 1), refuse(libc::ENOSYS), ALLOW])?;
            vec![]
        }
        "namespaces" => {
            no_namespaces()?;
            vec![]
        }
        list => {
            new_namespaces(masked)?;
            list.split(',').filter(|name| *name != "proc").collect()
        }
    };
    for name in kinds {
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

/// As `struct sock_filter` lies in memory.
const fn instruction(code: u64, if_true: u64, if_false: u64, k: u64) -> u64 {
    code | if_true << 16 | if_false << 24 | k << 32
}

/// Where the number of the call and its first argument are.
const NUMBER: u64 = 0;
const FIRST_ARGUMENT: u64 = 16;
const ALLOW: u64 = instruction(0x06, 0, 0, 0x7fff_0000);

const fn load(from: u64) -> u64 {
    instruction(0x20, 0, 0, from)
}

const fn equal(call: libc::c_long, if_true: u64, if_false: u64) -> u64 {
    instruction(0x15, if_true, if_false, call as u64)
}

const fn refuse(errno: i32) -> u64 {
    instruction(0x06, 0, 0, 0x0005_0000 | errno as u64)
}

/// The flags of `clone3` are behind a pointer: refused as a whole, so that callers take `clone`.
fn no_namespaces() -> io::Result<()> {
    /// Time, mount, cgroup, uts, ipc, user, pid and network. The lowest byte of `clone` is a signal.
    const NEW: u64 = 0x7e02_0000;
    const NEW_TIME: u64 = 0x80;
    let any = |bits| instruction(0x45, 0, 1, bits);
    install(&[
        load(NUMBER),
        equal(libc::SYS_clone3, 0, 1),
        refuse(libc::ENOSYS),
        equal(libc::SYS_clone, 0, 4),
        load(FIRST_ARGUMENT),
        any(NEW),
        refuse(libc::EPERM),
        ALLOW,
        equal(libc::SYS_unshare, 0, 4),
        load(FIRST_ARGUMENT),
        any(NEW | NEW_TIME),
        refuse(libc::EPERM),
        ALLOW,
        ALLOW,
    ])
}

/// Around this process and all it becomes. Root needs no `no_new_privs` for it, and keeps its privileges whole.
fn install(filter: &[u64]) -> io::Result<()> {
    let program = [filter.len() as u64, filter.as_ptr() as u64];
    let number = |option: i32| Arg::Num(option as u64);
    let (one, zero) = (|| Arg::Num(1), || Arg::Num(0));
    if call(libc::SYS_geteuid, &mut [])? != 0 {
        let option = number(libc::PR_SET_NO_NEW_PRIVS);
        call(libc::SYS_prctl, &mut [option, one(), zero(), zero(), zero()])?;
    }
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
    // One that has few ids cannot map them all.
    let map = fs::read_to_string("/proc/self/uid_map")?;
    let has_all = map.split_whitespace().eq(ALL_IDS.split_whitespace());
    if uid != 0 || !has_all {
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
