//! ptrace: the one place with unsafe code.
#![allow(unsafe_code)]

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

pub type Pid = libc::pid_t;

/// Why a process stopped.
pub enum Stop {
    Step,
    /// A process has begun, or has begun another one.
    Started,
    AnotherProgram,
    Signal(i32),
    Ended,
}

/// Stopped before its first instruction; what it starts will be followed.
pub fn spawn_stopped(mut command: Command) -> io::Result<Pid> {
    // SAFETY: between fork and exec, one system call without memory of ours.
    unsafe {
        command.pre_exec(|| match libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        });
    }
    let process = command.spawn()?.id().cast_signed();
    // SAFETY: a null status is allowed, and the process is ours.
    unsafe { libc::waitpid(process, std::ptr::null_mut(), libc::__WALL) };
    let follow = libc::PTRACE_O_TRACEFORK
        | libc::PTRACE_O_TRACEVFORK
        | libc::PTRACE_O_TRACECLONE
        | libc::PTRACE_O_TRACEEXEC
        | libc::PTRACE_O_EXITKILL;
    // SAFETY: options are a number; the process is stopped.
    match unsafe { libc::ptrace(libc::PTRACE_SETOPTIONS, process, 0, follow) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(process),
    }
}

/// One instruction further. A process that was killed in the meantime is reported as ended.
pub fn step(process: Pid, signal: Option<i32>) {
    // SAFETY: the process is stopped, or gone: then the call fails.
    unsafe { libc::ptrace(libc::PTRACE_SINGLESTEP, process, 0, signal.unwrap_or(0)) };
}

/// Lets it run on by itself.
pub fn leave(process: Pid) {
    // SAFETY: as for a step.
    unsafe { libc::ptrace(libc::PTRACE_DETACH, process, 0, 0) };
}

/// The address it is at.
pub fn instruction(process: Pid) -> u64 {
    let register = std::mem::offset_of!(libc::user_regs_struct, rip);
    // SAFETY: reads one word of the registers, which `struct user` begins with.
    unsafe { libc::ptrace(libc::PTRACE_PEEKUSER, process, register, 0) }.cast_unsigned()
}

/// The next of all that are followed; None when none is left.
pub fn next_stop() -> Option<(Pid, Stop)> {
    let mut status = 0;
    // SAFETY: the status is ours.
    let process = unsafe { libc::waitpid(-1, &raw mut status, libc::__WALL) };
    if process < 0 {
        return None;
    }
    if !libc::WIFSTOPPED(status) {
        return Some((process, Stop::Ended));
    }
    let stop = match (status >> 16, libc::WSTOPSIG(status)) {
        (libc::PTRACE_EVENT_EXEC, _) => Stop::AnotherProgram,
        (0, libc::SIGTRAP) => Stop::Step,
        (0, libc::SIGSTOP) => Stop::Started,
        (0, signal) => Stop::Signal(signal),
        _ => Stop::Started,
    };
    Some((process, stop))
}
