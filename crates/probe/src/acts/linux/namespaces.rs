//! Mounts, roots and namespaces: the tools a sandbox is built with, and undone with.

use std::fs;
use std::io;

use crate::spec::{Args, Failure, Said};
use crate::sys::{self, Arg, Change, call};

use super::c_string;

fn flags(args: Args<'_>) -> Result<u64, Failure> {
    let mut flags = 0;
    for name in args.text(0).split(',') {
        flags |= match name {
            "user" => libc::CLONE_NEWUSER,
            "mnt" => libc::CLONE_NEWNS,
            "pid" => libc::CLONE_NEWPID,
            "net" => libc::CLONE_NEWNET,
            "ipc" => libc::CLONE_NEWIPC,
            "uts" => libc::CLONE_NEWUTS,
            "cgroup" => libc::CLONE_NEWCGROUP,
            other => return Err(Failure::usage(format!("no namespace is named {other}"))),
        };
    }
    Ok(u64::from(flags.cast_unsigned()))
}

/// Does `body` in a child, since it would change this process for good.
fn aside(body: impl FnOnce() -> io::Result<u64>) -> Said {
    let child = sys::fork(|| match body() {
        Ok(_) => 0,
        Err(error) => {
            error.raw_os_error().and_then(|number| u8::try_from(number).ok()).unwrap_or(255)
        }
    })?;
    match sys::wait(child, 0)? {
        Change::Exited(0) => Ok("done".into()),
        Change::Exited(number) => Err(io::Error::from_raw_os_error(number).into()),
        _ => Err(io::Error::from_raw_os_error(libc::EINTR).into()),
    }
}

/// Tries to get new namespaces in a child.
pub(crate) fn unshare(args: Args<'_>) -> Said {
    let flags = flags(args)?;
    aside(|| call(libc::SYS_unshare, &mut [Arg::Num(flags)]))
}

/// Moves the probe itself into new namespaces, where the next acts have every capability.
///
/// This is the control of the acts below: what a sandbox refuses works here.
pub(crate) fn enter(args: Args<'_>) -> Said {
    let flags = flags(args)?;
    let uid = call(libc::SYS_geteuid, &mut [])?;
    let gid = call(libc::SYS_getegid, &mut [])?;
    call(libc::SYS_unshare, &mut [Arg::Num(flags)])?;
    if flags & libc::CLONE_NEWUSER as u64 != 0 {
        fs::write("/proc/self/setgroups", "deny")?;
        fs::write("/proc/self/uid_map", format!("{uid} {uid} 1"))?;
        fs::write("/proc/self/gid_map", format!("{gid} {gid} 1"))?;
    }
    if flags & libc::CLONE_NEWNS as u64 != 0 {
        let root = c_string("/")?;
        mount_call(None, &root, None, libc::MS_REC | libc::MS_PRIVATE, None)?;
    }
    Ok("entered".into())
}

fn mount_call(
    source: Option<&std::ffi::CStr>,
    target: &std::ffi::CStr,
    kind: Option<&std::ffi::CStr>,
    flags: u64,
    data: Option<&std::ffi::CStr>,
) -> io::Result<u64> {
    let text = |text| Option::map_or(text, Arg::Null, Arg::Text);
    call(
        libc::SYS_mount,
        &mut [text(source), Arg::Text(target), text(kind), Arg::Num(flags), text(data)],
    )
}

/// Mounts a tmpfs, of a given size if that is asked for.
pub(crate) fn mount(args: Args<'_>) -> Said {
    let target = c_string(args.path(0))?;
    let kind = c_string("tmpfs")?;
    let data = match args.get(1) {
        Some(_) => c_string(format!("size={}", args.number(1)?))?,
        None => c_string("")?,
    };
    mount_call(Some(&kind), &target, Some(&kind), 0, Some(&data))?;
    Ok("mounted".into())
}

pub(crate) fn umount(args: Args<'_>) -> Said {
    let target = c_string(args.path(0))?;
    call(libc::SYS_umount2, &mut [Arg::Text(&target), Arg::Num(libc::MNT_DETACH as u64)])?;
    Ok("unmounted".into())
}

pub(crate) fn remount_rw(args: Args<'_>) -> Said {
    remount(args, 0)
}

pub(crate) fn remount_ro(args: Args<'_>) -> Said {
    remount(args, libc::MS_RDONLY)
}

fn remount(args: Args<'_>, mode: u64) -> Said {
    let target = c_string(args.path(0))?;
    mount_call(None, &target, None, libc::MS_REMOUNT | libc::MS_BIND | mode, None)?;
    Ok("remounted".into())
}

/// Makes a tmpfs the new root, over a directory.
pub(crate) fn pivot(args: Args<'_>) -> Said {
    let dir = c_string(args.text_or(0, "/tmp").as_ref())?;
    let kind = c_string("tmpfs")?;
    mount_call(Some(&kind), &dir, Some(&kind), 0, None)?;
    call(libc::SYS_pivot_root, &mut [Arg::Text(&dir), Arg::Text(&dir)])?;
    Ok("pivoted".into())
}

pub(crate) fn chroot(args: Args<'_>) -> Said {
    let dir = c_string(args.path(0))?;
    call(libc::SYS_chroot, &mut [Arg::Text(&dir)])?;
    Ok("changed".into())
}

/// `clone(CLONE_NEWUSER)` with bits set that the kernel ignores.
pub(crate) fn clone_user(args: Args<'_>) -> Said {
    let flags = libc::CLONE_NEWUSER as u64 | libc::SIGCHLD as u64 | args.number_or(0, 0)?;
    clone(|| call(libc::SYS_clone, &mut [Arg::Num(flags)]))
}

pub(crate) fn clone3_user(_: Args<'_>) -> Said {
    let mut clone_args = [0u64; 8];
    clone_args[0] = libc::CLONE_NEWUSER as u64;
    clone_args[4] = libc::SIGCHLD as u64;
    clone(|| call(libc::SYS_clone3, &mut [Arg::Words(&mut clone_args), Arg::Num(64)]))
}

/// The raw clones below return twice: the second time in a child that must end at once.
fn clone(make: impl FnOnce() -> io::Result<u64>) -> Said {
    let child = make()?;
    if child == 0 {
        let _ = call(libc::SYS_exit_group, &mut [Arg::Num(0)]);
    }
    sys::wait(child as u32, 0)?;
    Ok("cloned".into())
}

pub(crate) fn setns(args: Args<'_>) -> Said {
    use std::os::fd::AsRawFd;
    let file = fs::File::open(args.path(0))?;
    let fd = file.as_raw_fd() as u64;
    aside(|| call(libc::SYS_setns, &mut [Arg::Num(fd), Arg::Num(0)]))
}
