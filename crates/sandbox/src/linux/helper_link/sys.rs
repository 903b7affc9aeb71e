//! Descriptors that cross an exec, and the signal that comes when one is closed. All unsafe
//! code of the line is here.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Not in the libc crate for every target; the same number on all of them.
const F_SETSIG: libc::c_int = 10;

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Lets the child keep these descriptors when it executes. They stay close-on-exec in this
/// process, so that no child of another thread gets them.
pub fn keep_open(command: &mut Command, descriptors: [BorrowedFd<'_>; 2]) {
    let numbers = descriptors.map(|fd| fd.as_raw_fd());
    let keep = move || {
        for number in numbers {
            // SAFETY: F_SETFD has no memory arguments. The caller keeps the descriptors open
            // until the child exists; in a child where one is closed this is an error.
            check(unsafe { libc::fcntl(number, libc::F_SETFD, 0) })?;
        }
        Ok(())
    };
    // SAFETY: the closure runs in a copy of a process that may have had other threads. It calls
    // fcntl only, which is async-signal-safe, and neither allocates nor takes a lock.
    unsafe { command.pre_exec(keep) };
}

/// Takes over a descriptor that was left open for this program, and closes it for others.
///
/// Called once per number, at the start of `main`, before anything else can own it.
pub fn adopt(number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: F_SETFD has no memory arguments, and fails where nothing is open.
    check(unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) })?;
    // SAFETY: it is open, and the caller that left it open for us named it to no other process.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// From now on the kernel kills this process when the last writer of the pipe is gone.
///
/// Unlike a parent-death signal this does not depend on which thread of the caller lives on.
pub fn die_when_closed(reader: BorrowedFd<'_>) -> io::Result<()> {
    let fd = reader.as_raw_fd();
    // SAFETY: none of these commands has memory arguments; the owner is this process alone.
    unsafe {
        check(libc::fcntl(fd, libc::F_SETOWN, libc::getpid()))?;
        check(libc::fcntl(fd, F_SETSIG, libc::SIGKILL))?;
        let flags = check(libc::fcntl(fd, libc::F_GETFL))?;
        check(libc::fcntl(fd, libc::F_SETFL, flags | libc::O_ASYNC))?;
    }
    Ok(())
}

/// Whether this program runs with rights that the process that started it does not have.
pub fn is_privileged_start() -> bool {
    // SAFETY: getauxval takes a number and answers with one.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// A caller that ignores the end of its children leaves that to those it executes, and a
/// launcher has to hear of it.
pub fn hear_of_children() {
    // SAFETY: SIG_DFL is a valid disposition, and runs no code of ours.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
}
