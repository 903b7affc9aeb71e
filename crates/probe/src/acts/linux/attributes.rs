//! Attributes of files, by path and through a descriptor that was opened for reading only; and what
//! is shared between programs without a path.

use std::os::fd::AsRawFd;

use crate::spec::{Args, Said};
use crate::sys::{Arg, call};

use super::{AT_FDCWD, c_string};

fn opened(args: Args<'_>) -> std::io::Result<(std::fs::File, u64)> {
    let file = std::fs::File::open(args.path(0))?;
    let fd = file.as_raw_fd() as u64;
    Ok((file, fd))
}

pub(crate) fn fchmod(args: Args<'_>) -> Said {
    let (_file, fd) = opened(args)?;
    let mode = u64::from_str_radix(&args.text(1), 8).unwrap_or(0);
    call(libc::SYS_fchmod, &mut [Arg::Num(fd), Arg::Num(mode)])?;
    Ok(format!("{mode:o}"))
}

pub(crate) fn chown(args: Args<'_>) -> Said {
    let path = c_string(args.path(0))?;
    let (uid, gid) = (args.number(1)?, args.number(2)?);
    let ids = (Arg::Num(uid), Arg::Num(gid));
    call(
        libc::SYS_fchownat,
        &mut [Arg::Num(AT_FDCWD), Arg::Text(&path), ids.0, ids.1, Arg::Num(0)],
    )?;
    Ok("changed".into())
}

pub(crate) fn fchown(args: Args<'_>) -> Said {
    let (_file, fd) = opened(args)?;
    call(
        libc::SYS_fchown,
        &mut [Arg::Num(fd), Arg::Num(args.number(1)?), Arg::Num(args.number(2)?)],
    )?;
    Ok("changed".into())
}

/// Both times, to a number of seconds and of nanoseconds.
fn times(args: Args<'_>) -> Result<[u64; 4], crate::spec::Failure> {
    let seconds = args.number(1)?;
    Ok([seconds, 7, seconds, 9])
}

pub(crate) fn utime(args: Args<'_>) -> Said {
    let path = c_string(args.path(0))?;
    let mut times = times(args)?;
    call(
        libc::SYS_utimensat,
        &mut [Arg::Num(AT_FDCWD), Arg::Text(&path), Arg::Words(&mut times), Arg::Num(0)],
    )?;
    Ok("changed".into())
}

pub(crate) fn futime(args: Args<'_>) -> Said {
    let (_file, fd) = opened(args)?;
    let mut times = times(args)?;
    let words = Arg::Words(&mut times);
    call(libc::SYS_utimensat, &mut [Arg::Num(fd), Arg::Null, words, Arg::Num(0)])?;
    Ok("changed".into())
}

pub(crate) fn set_attribute(args: Args<'_>) -> Said {
    let (path, name) = (c_string(args.path(0))?, c_string(args.text(1).as_ref())?);
    let mut value = *b"value";
    call(
        libc::SYS_setxattr,
        &mut [Arg::Text(&path), Arg::Text(&name), Arg::Bytes(&mut value), Arg::Num(5), Arg::Num(0)],
    )?;
    Ok("set".into())
}

pub(crate) fn fset_attribute(args: Args<'_>) -> Said {
    let (_file, fd) = opened(args)?;
    let name = c_string(args.text(1).as_ref())?;
    let mut value = *b"value";
    call(
        libc::SYS_fsetxattr,
        &mut [Arg::Num(fd), Arg::Text(&name), Arg::Bytes(&mut value), Arg::Num(5), Arg::Num(0)],
    )?;
    Ok("set".into())
}

pub(crate) fn remove_attribute(args: Args<'_>) -> Said {
    let (path, name) = (c_string(args.path(0))?, c_string(args.text(1).as_ref())?);
    call(libc::SYS_removexattr, &mut [Arg::Text(&path), Arg::Text(&name)])?;
    Ok("removed".into())
}

/// The capabilities of a program: all that there are, for every user who executes it.
pub(crate) fn set_capability(args: Args<'_>) -> Said {
    let (path, name) = (c_string(args.path(0))?, c_string("security.capability")?);
    let mut value = [0u8; 20];
    // Version 2, effective; then the permitted and the inheritable set, twice 32 bits each.
    value[..4].copy_from_slice(&0x0200_0001u32.to_le_bytes());
    value[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
    call(
        libc::SYS_setxattr,
        &mut [
            Arg::Text(&path),
            Arg::Text(&name),
            Arg::Bytes(&mut value),
            Arg::Num(20),
            Arg::Num(0),
        ],
    )?;
    Ok("set".into())
}

/// What was written of a buffer, as text.
fn shown(buffer: &[u8], length: u64) -> String {
    let written = &buffer[..usize::try_from(length).unwrap_or(0).min(buffer.len())];
    String::from_utf8_lossy(written).replace('\0', " ").trim().to_owned()
}

fn value_by(call_number: libc::c_long, args: Args<'_>) -> Said {
    let (path, name) = (c_string(args.path(0))?, c_string(args.text(1).as_ref())?);
    let mut value = [0u8; 256];
    let (room, size) = (Arg::Bytes(&mut value), Arg::Num(256));
    let length = call(call_number, &mut [Arg::Text(&path), Arg::Text(&name), room, size])?;
    Ok(shown(&value, length))
}

fn names_by(call_number: libc::c_long, args: Args<'_>) -> Said {
    let path = c_string(args.path(0))?;
    let mut names = [0u8; 1024];
    let (room, size) = (Arg::Bytes(&mut names), Arg::Num(1024));
    let length = call(call_number, &mut [Arg::Text(&path), room, size])?;
    Ok(shown(&names, length))
}

pub(crate) fn get_attribute(args: Args<'_>) -> Said {
    value_by(libc::SYS_getxattr, args)
}

pub(crate) fn lget_attribute(args: Args<'_>) -> Said {
    value_by(libc::SYS_lgetxattr, args)
}

pub(crate) fn list_attributes(args: Args<'_>) -> Said {
    names_by(libc::SYS_listxattr, args)
}

pub(crate) fn llist_attributes(args: Args<'_>) -> Said {
    names_by(libc::SYS_llistxattr, args)
}

pub(crate) fn fget_attribute(args: Args<'_>) -> Said {
    let (_file, fd) = opened(args)?;
    let name = c_string(args.text(1).as_ref())?;
    let mut value = [0u8; 256];
    let (room, size) = (Arg::Bytes(&mut value), Arg::Num(256));
    let length = call(libc::SYS_fgetxattr, &mut [Arg::Num(fd), Arg::Text(&name), room, size])?;
    Ok(shown(&value, length))
}

/// An ioctl with a buffer of zeros, on a file that was opened for reading; its answer, and the first of the buffer.
pub(crate) fn file_ioctl(args: Args<'_>) -> Said {
    let (_file, fd) = opened(args)?;
    let mut buffer = [0u64; 64];
    let answer = call(
        libc::SYS_ioctl,
        &mut [Arg::Num(fd), Arg::Num(args.number(1)?), Arg::Words(&mut buffer)],
    )?;
    Ok(format!("{answer} {}", buffer[0]))
}

pub(crate) fn truncate(args: Args<'_>) -> Said {
    let path = c_string(args.path(0))?;
    call(libc::SYS_truncate, &mut [Arg::Text(&path), Arg::Num(0)])?;
    Ok("truncated".into())
}

/// `O_TRUNC` with an access mode that is not for writing (0 or 3).
pub(crate) fn open_truncating(args: Args<'_>) -> Said {
    let path = c_string(args.path(0))?;
    let flags = libc::O_TRUNC as u64 | args.number(1)?;
    let fd = call(libc::SYS_openat, &mut [Arg::Num(AT_FDCWD), Arg::Text(&path), Arg::Num(flags)])?;
    call(libc::SYS_close, &mut [Arg::Num(fd)])?;
    Ok("truncated".into())
}

pub(crate) fn watch(args: Args<'_>) -> Said {
    let path = c_string(args.path(0))?;
    let fd = call(libc::SYS_inotify_init1, &mut [Arg::Num(0)])?;
    let events = u64::from(libc::IN_ALL_EVENTS);
    call(libc::SYS_inotify_add_watch, &mut [Arg::Num(fd), Arg::Text(&path), Arg::Num(events)])?;
    Ok("watching".into())
}

/// A System V segment that a key names; made where there is none.
pub(crate) fn shared_memory(args: Args<'_>) -> Said {
    let flags = (libc::IPC_CREAT | 0o600) as u64;
    let id =
        call(libc::SYS_shmget, &mut [Arg::Num(args.number(0)?), Arg::Num(4096), Arg::Num(flags)])?;
    // It was made, whether it can be removed again or not.
    let _ = call(libc::SYS_shmctl, &mut [Arg::Num(id), Arg::Num(libc::IPC_RMID as u64), Arg::Null]);
    Ok("made".into())
}

pub(crate) fn message_queue(args: Args<'_>) -> Said {
    let name = c_string(args.text(0).as_ref())?;
    let flags = (libc::O_CREAT | libc::O_RDWR) as u64;
    let fd = call(
        libc::SYS_mq_open,
        &mut [Arg::Text(&name), Arg::Num(flags), Arg::Num(0o600), Arg::Null],
    )?;
    call(libc::SYS_close, &mut [Arg::Num(fd)])?;
    let _ = call(libc::SYS_mq_unlink, &mut [Arg::Text(&name)]);
    Ok("made".into())
}

/// Has the kernel send a signal when a pipe is written to.
pub(crate) fn signal_by_owner(args: Args<'_>) -> Said {
    let (pid, signal) = (args.number(0)?, args.number(1)?);
    let mut ends = [0u64];
    call(libc::SYS_pipe2, &mut [Arg::Words(&mut ends), Arg::Num(0)])?;
    let (read, write) = (ends[0] & 0xffff_ffff, ends[0] >> 32);
    let control = |command: i32, value: u64| {
        call(libc::SYS_fcntl, &mut [Arg::Num(read), Arg::Num(command as u64), Arg::Num(value)])
    };
    control(libc::F_SETOWN, pid)?;
    control(10, signal)?;
    control(libc::F_SETFL, libc::O_ASYNC as u64)?;
    let mut byte = [0u8];
    call(libc::SYS_write, &mut [Arg::Num(write), Arg::Bytes(&mut byte), Arg::Num(1)])?;
    Ok("sent".into())
}

/// `setpriority`, `sched_setaffinity` and `ioprio_set` of another process.
pub(crate) fn slow_down(args: Args<'_>) -> Said {
    let pid = args.number(0)?;
    call(libc::SYS_setpriority, &mut [Arg::Num(0), Arg::Num(pid), Arg::Num(19)])?;
    Ok("slowed".into())
}

pub(crate) fn pin(args: Args<'_>) -> Said {
    let pid = args.number(0)?;
    let mut mask = [1u64; 1];
    call(libc::SYS_sched_setaffinity, &mut [Arg::Num(pid), Arg::Num(8), Arg::Words(&mut mask)])?;
    Ok("pinned".into())
}

/// Half of a pair of datagram sockets can send to any address.
pub(crate) fn pair(args: Args<'_>) -> Said {
    let mut ends = [0u64];
    call(
        libc::SYS_socketpair,
        &mut [Arg::Num(1), Arg::Num(args.number(0)?), Arg::Num(0), Arg::Words(&mut ends)],
    )?;
    Ok("made".into())
}
