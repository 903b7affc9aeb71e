//! Modes, devices and file handles: what a plain path check does not see.

use crate::spec::{Args, Failure, Said};
use crate::sys::{Arg, call};

use super::{AT_FDCWD, c_string};

/// The mode as typed, high bits included: the kernel looks at the low half of the register only.
fn octal(args: Args<'_>, index: usize) -> Result<u64, Failure> {
    u64::from_str_radix(&args.text(index), 8).map_err(|_| Failure::usage("not an octal mode"))
}

pub(crate) fn chmod(args: Args<'_>) -> Said {
    let path = c_string(args.path(0))?;
    let mode = octal(args, 1)?;
    call(libc::SYS_fchmodat, &mut [Arg::Num(AT_FDCWD), Arg::Text(&path), Arg::Num(mode)])?;
    Ok(format!("{mode:o}"))
}

/// Creates a file with the given mode, set-uid bit and all.
pub(crate) fn open_mode(args: Args<'_>) -> Said {
    let path = c_string(args.path(0))?;
    let flags = (libc::O_CREAT | libc::O_EXCL | libc::O_WRONLY | libc::O_CLOEXEC) as u64;
    let mode = octal(args, 1)?;
    let fd = call(
        libc::SYS_openat,
        &mut [Arg::Num(AT_FDCWD), Arg::Text(&path), Arg::Num(flags), Arg::Num(mode)],
    )?;
    call(libc::SYS_close, &mut [Arg::Num(fd)])?;
    Ok(format!("{mode:o}"))
}

/// Makes a device node, by default another `/dev/null` (c 1 3).
pub(crate) fn mknod(args: Args<'_>) -> Said {
    let path = c_string(args.path(0))?;
    let kind = match args.text_or(1, "c").as_ref() {
        "c" => libc::S_IFCHR,
        "b" => libc::S_IFBLK,
        "p" => libc::S_IFIFO,
        other => return Err(Failure::usage(format!("no kind of node is named {other}"))),
    };
    let (major, minor) = (args.number_or(2, 1)?, args.number_or(3, 3)?);
    let device = if kind == libc::S_IFIFO { 0 } else { (major << 8) | minor };
    call(
        libc::SYS_mknodat,
        &mut [
            Arg::Num(AT_FDCWD),
            Arg::Text(&path),
            Arg::Num(u64::from(kind | 0o600)),
            Arg::Num(device),
        ],
    )?;
    Ok("made".into())
}

/// Opens a file by its inode instead of its path: the way out of a chroot.
pub(crate) fn open_by_handle(args: Args<'_>) -> Said {
    const HANDLE_BYTES: u32 = 128;
    let path = c_string(args.path(0))?;
    let mut handle = vec![0u8; 8 + HANDLE_BYTES as usize];
    handle[..4].copy_from_slice(&HANDLE_BYTES.to_ne_bytes());
    let mut mount_id = [0u64];
    call(
        libc::SYS_name_to_handle_at,
        &mut [
            Arg::Num(AT_FDCWD),
            Arg::Text(&path),
            Arg::Bytes(&mut handle),
            Arg::Words(&mut mount_id),
            Arg::Num(0),
        ],
    )?;
    // Any descriptor on the same file system says which one is meant: here the file itself.
    let anchor = std::fs::File::open(args.path(0))?;
    let anchor_fd = std::os::fd::AsRawFd::as_raw_fd(&anchor) as u64;
    let fd = call(
        libc::SYS_open_by_handle_at,
        &mut [
            Arg::Num(anchor_fd),
            Arg::Bytes(&mut handle),
            Arg::Num((libc::O_RDONLY | libc::O_CLOEXEC) as u64),
        ],
    )?;
    call(libc::SYS_close, &mut [Arg::Num(fd)])?;
    Ok("opened".into())
}
