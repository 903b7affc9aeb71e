//! Acts of one process on another: reading it, tracing it, sending signals.

use std::fs::{self, File};
use std::io;
use std::path::PathBuf;

use crate::acts::files::names;
use crate::acts::lifetime::await_event;
use crate::spec::{Args, Failure, Said};
use crate::sys::{Arg, call, wait};

fn proc_path(args: Args<'_>, file: &str) -> PathBuf {
    PathBuf::from(format!("/proc/{}/{file}", args.text(0)))
}

pub(crate) fn kill(args: Args<'_>) -> Said {
    call(libc::SYS_kill, &mut [Arg::Num(args.number(0)?), Arg::Num(args.number(1)?)])?;
    Ok("sent".into())
}

/// Attaches, waits for the stop and lets go again.
pub(crate) fn ptrace(args: Args<'_>) -> Said {
    let pid = args.number(0)?;
    let request = |request: u64| {
        call(libc::SYS_ptrace, &mut [Arg::Num(request), Arg::Num(pid), Arg::Null, Arg::Null])
    };
    request(libc::PTRACE_ATTACH as u64)?;
    wait(u32::try_from(pid).unwrap_or_default(), libc::__WALL)?;
    request(libc::PTRACE_DETACH as u64)?;
    Ok("attached".into())
}

/// Reads eight bytes of the other's memory, at its first readable mapping if that is known.
///
/// The kernel checks permission before addresses: `EFAULT` means it would have been allowed.
pub(crate) fn vm_read(args: Args<'_>) -> Said {
    let pid = args.number(0)?;
    let maps = fs::read_to_string(proc_path(args, "maps")).unwrap_or_default();
    let first = maps
        .lines()
        .filter(|line| line.split_whitespace().nth(1).is_some_and(|mode| mode.starts_with('r')))
        .find_map(|line| u64::from_str_radix(line.split('-').next()?, 16).ok());
    let mut buffer = [0u8; 8];
    let mut local = [buffer.as_mut_ptr() as u64, 8];
    let mut remote = [first.unwrap_or(buffer.as_ptr() as u64), 8];
    let count = call(
        libc::SYS_process_vm_readv,
        &mut [
            Arg::Num(pid),
            Arg::Words(&mut local),
            Arg::Num(1),
            Arg::Words(&mut remote),
            Arg::Num(1),
            Arg::Num(0),
        ],
    )?;
    Ok(format!("{count} bytes"))
}

/// Takes a copy of another process's descriptor.
pub(crate) fn pidfd_getfd(args: Args<'_>) -> Said {
    let pidfd = call(libc::SYS_pidfd_open, &mut [Arg::Num(args.number(0)?), Arg::Num(0)])?;
    let taken =
        call(libc::SYS_pidfd_getfd, &mut [Arg::Num(pidfd), Arg::Num(args.number(1)?), Arg::Num(0)]);
    call(libc::SYS_close, &mut [Arg::Num(pidfd)])?;
    call(libc::SYS_close, &mut [Arg::Num(taken?)])?;
    Ok("taken".into())
}

/// Reads another process's limit of open files.
pub(crate) fn prlimit(args: Args<'_>) -> Said {
    let mut limit = [0u64; 2];
    call(
        libc::SYS_prlimit64,
        &mut [
            Arg::Num(args.number(0)?),
            Arg::Num(libc::RLIMIT_NOFILE as u64),
            Arg::Null,
            Arg::Words(&mut limit),
        ],
    )?;
    Ok(format!("{} {}", limit[0], limit[1]))
}

/// Lowers another process's limit of open files.
pub(crate) fn limit_files(args: Args<'_>) -> Said {
    let mut limit = [args.number(1)?; 2];
    call(
        libc::SYS_prlimit64,
        &mut [
            Arg::Num(args.number(0)?),
            Arg::Num(libc::RLIMIT_NOFILE as u64),
            Arg::Words(&mut limit),
            Arg::Null,
        ],
    )?;
    Ok("set".into())
}

/// The variables, one per line.
pub(crate) fn environ(args: Args<'_>) -> Said {
    strings(&proc_path(args, "environ"))
}

/// The arguments, one per line.
pub(crate) fn cmdline(args: Args<'_>) -> Said {
    strings(&proc_path(args, "cmdline"))
}

fn strings(path: &std::path::Path) -> Said {
    let content = fs::read(path)?;
    Ok(String::from_utf8_lossy(&content).trim_end_matches('\0').replace('\0', "\n"))
}

pub(crate) fn mem(args: Args<'_>) -> Said {
    File::open(proc_path(args, "mem"))?;
    Ok("opened".into())
}

pub(crate) fn fd(args: Args<'_>) -> Said {
    names(&proc_path(args, "fd"))
}

pub(crate) fn root(args: Args<'_>) -> Said {
    names(&proc_path(args, "root/"))
}

pub(crate) fn cwd(args: Args<'_>) -> Said {
    names(&proc_path(args, "cwd/"))
}

fn pids() -> io::Result<Vec<u32>> {
    let mut pids = Vec::new();
    for entry in fs::read_dir("/proc")? {
        pids.extend(entry?.file_name().to_str().and_then(|name| name.parse::<u32>().ok()));
    }
    Ok(pids)
}

/// Waits until /proc shows no more processes than that.
pub(crate) fn await_processes(args: Args<'_>) -> Said {
    let most = args.number(0)?;
    let is_so = || pids().is_ok_and(|pids| !pids.is_empty() && pids.len() as u64 <= most);
    await_event(is_so, "there are more processes")
}

/// The pids that /proc shows, in order.
pub(crate) fn list(_: Args<'_>) -> Said {
    let mut pids = pids()?;
    if pids.is_empty() {
        let nothing = io::Error::from(io::ErrorKind::NotFound);
        return Err(Failure::after(&nothing, "/proc shows no process"));
    }
    pids.sort_unstable();
    let lines: Vec<_> = pids.iter().map(u32::to_string).collect();
    Ok(lines.join("\n"))
}
