//! The only unsafe code of the probe: system calls by number, fork, and touching mapped memory.
//!
//! Acts reach the kernel by [`call`], since a wrapper of libc would hide what is under test:
//! which call is made, and with which bits set.
#![allow(unsafe_code)]

use std::ffi::c_int;
#[cfg(target_os = "linux")]
use std::ffi::{CStr, c_long};
use std::io;
#[cfg(target_os = "linux")]
use std::os::fd::{FromRawFd, OwnedFd};

/// One argument of a system call.
#[cfg(target_os = "linux")]
pub(crate) enum Arg<'a> {
    Num(u64),
    Text(&'a CStr),
    Bytes(&'a mut [u8]),
    Words(&'a mut [u64]),
    Null,
}

/// Makes one system call with up to six arguments.
///
/// Acts pass constants for `nr` and buffers at least as long as the kernel fills for that call.
/// The one exception is [`raw`], where a person chose the number.
#[cfg(target_os = "linux")]
pub(crate) fn call(nr: c_long, args: &mut [Arg<'_>]) -> io::Result<u64> {
    let mut registers = [0u64; 6];
    for (register, arg) in registers.iter_mut().zip(args) {
        *register = match arg {
            Arg::Num(number) => *number,
            Arg::Text(text) => text.as_ptr() as u64,
            Arg::Bytes(bytes) => bytes.as_mut_ptr() as u64,
            Arg::Words(words) => words.as_mut_ptr() as u64,
            Arg::Null => 0,
        };
    }
    raw(nr.cast_unsigned(), registers)
}

/// Makes one system call with the registers exactly as given, high halves included.
#[cfg(target_os = "linux")]
pub(crate) fn raw(nr: u64, registers: [u64; 6]) -> io::Result<u64> {
    let [a, b, c, d, e, f] = registers.map(u64::cast_signed);
    // SAFETY: pointers among the registers come from `call`, whose borrows outlive this
    // statement and whose buffers are as long as the call fills; numbers typed by a person for
    // the `syscall` act can break this process only, and that act exists to make any call.
    let answer = unsafe { libc::syscall(nr.cast_signed(), a, b, c, d, e, f) };
    if answer == -1 { Err(io::Error::last_os_error()) } else { Ok(answer.cast_unsigned()) }
}

/// Takes over a descriptor that [`call`] has just made.
#[cfg(target_os = "linux")]
pub(crate) fn own(fd: u64) -> OwnedFd {
    // SAFETY: the caller got the number from a call that opened it, and nothing else owns it.
    unsafe { OwnedFd::from_raw_fd(fd as i32) }
}

/// `int 0x80` with no arguments: the 32-bit table, which a filter blind to the architecture
/// would let through. The kernel's answer, negative errors included.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub(crate) fn call_by_int80(nr: u32) -> i32 {
    let mut answer = nr.cast_signed();
    // SAFETY: the caller passes a number whose call takes no arguments, so no register but
    // eax matters; the 32-bit entry may clobber r8–r11, which are declared.
    unsafe {
        std::arch::asm!(
            "int 0x80",
            inlateout("eax") answer,
            out("r8") _, out("r9") _, out("r10") _, out("r11") _,
            options(nostack)
        );
    }
    answer
}

/// Runs `body` in a child and leaves with the status it returns. Gives the child's pid.
pub(crate) fn fork(body: impl FnOnce() -> u8) -> io::Result<u32> {
    // SAFETY: the child owns a copy of this thread only. Bodies make system calls and allocate;
    // glibc and musl keep their allocators usable in the child of a threaded process.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            let status = body();
            // SAFETY: ends the child without running destructors or flushing the parent's buffers.
            unsafe { libc::_exit(c_int::from(status)) }
        }
        child => Ok(child.cast_unsigned()),
    }
}

/// What `waitpid` reported of a child.
#[cfg_attr(
    target_os = "macos",
    expect(dead_code, reason = "only Linux acts tell more than an end")
)]
pub(crate) enum Change {
    Exited(i32),
    Killed(i32),
    Stopped(i32),
    Continued,
}

/// Waits for a child; with `WUNTRACED | WCONTINUED` in `options` also for stops.
pub(crate) fn wait(child: u32, options: c_int) -> io::Result<Change> {
    let mut status: c_int = 0;
    loop {
        // SAFETY: `status` is a live local that the kernel fills.
        let answer = unsafe { libc::waitpid(child.cast_signed(), &raw mut status, options) };
        if answer != -1 {
            break;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    Ok(if libc::WIFEXITED(status) {
        Change::Exited(libc::WEXITSTATUS(status))
    } else if libc::WIFSTOPPED(status) {
        Change::Stopped(libc::WSTOPSIG(status))
    } else if libc::WIFCONTINUED(status) {
        Change::Continued
    } else {
        Change::Killed(libc::WTERMSIG(status))
    })
}

/// Sends a signal as libc does.
#[cfg(target_os = "macos")]
pub(crate) fn kill(pid: i32, signal: c_int) -> io::Result<()> {
    // SAFETY: kill takes two numbers.
    if unsafe { libc::kill(pid, signal) } == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Starts a session; a process that leads one already stays in it.
#[cfg(target_os = "macos")]
pub(crate) fn new_session() {
    // SAFETY: setsid has no arguments.
    unsafe { libc::setsid() };
}

/// Soft and hard limit of a resource.
#[cfg(target_os = "macos")]
pub(crate) fn limit(resource: c_int) -> io::Result<[u64; 2]> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel fills one rlimit, a live local.
    match unsafe { libc::getrlimit(resource, &raw mut limit) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok([limit.rlim_cur, limit.rlim_max]),
    }
}

/// Ignores a signal from now on, children included.
pub(crate) fn ignore(signal: c_int) {
    // SAFETY: SIG_IGN runs no code of ours.
    unsafe { libc::signal(signal, libc::SIG_IGN) };
}

/// Gives a signal its default effect again.
pub(crate) fn restore(signal: c_int) {
    // SAFETY: SIG_DFL runs no code of ours.
    unsafe { libc::signal(signal, libc::SIG_DFL) };
}

/// Who else sees pages that are touched.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sharing {
    Private,
    Shared,
}

/// Anonymous memory with every page written to; unmapped on drop.
pub(crate) struct Pages {
    start: *mut u8,
    length: usize,
}

impl Pages {
    pub fn touch(length: usize, sharing: Sharing) -> io::Result<Pages> {
        let visibility = match sharing {
            Sharing::Private => libc::MAP_PRIVATE,
            Sharing::Shared => libc::MAP_SHARED,
        };
        // SAFETY: a new anonymous mapping at an address the kernel chooses overlaps nothing.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                visibility | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let pages = Pages { start: start.cast(), length };
        for offset in (0..length).step_by(4096) {
            // SAFETY: `offset` is below the length of the mapping made above; the write is
            // volatile because nothing reads it and it must happen all the same.
            unsafe { pages.start.add(offset).write_volatile(1) };
        }
        Ok(pages)
    }
}

#[cfg(target_os = "linux")]
impl Pages {
    /// Memory of which so few bytes are read that the tables the kernel keeps for it are all it takes: this many bytes
    /// of them.
    pub fn tables(bytes: usize) -> io::Result<Pages> {
        /// What one page of a table is for.
        const REACH: usize = 512 * 4096;
        let length = (bytes / 4096).max(1) * REACH;
        // SAFETY: a new anonymous mapping at an address the kernel chooses overlaps nothing.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let pages = Pages { start: start.cast(), length };
        // SAFETY: advice on the mapping made above changes none of its contents. A huge page needs no table.
        unsafe { libc::madvise(start, length, libc::MADV_NOHUGEPAGE) };
        for offset in (0..length).step_by(REACH) {
            // SAFETY: `offset` is below the length of the mapping; volatile, because nothing uses what is read.
            unsafe { pages.start.add(offset).read_volatile() };
        }
        Ok(pages)
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `touch`, is unmapped once, and nothing borrows from it.
        unsafe { libc::munmap(self.start.cast(), self.length) };
    }
}
