//! The system calls that rustix does not wrap. All unsafe code of the macOS launcher is here.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, OsStr, OsString};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

mod interfaces;
mod membership;
mod processes;
mod signals;

pub use interfaces::own_networks;
pub use membership::{Membership, is_sandboxed};
pub use processes::{
    Change, Events, Forked, Process, Waited, fork, is_told_about, process, processes, send_signal,
    used, wait_now,
};
pub use signals::Signals;

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// A C string of a path, a name or an argument.
pub fn c_string(text: &OsStr) -> io::Result<CString> {
    CString::new(text.as_bytes()).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
}

/// Becomes another program. Gives the reason when it does not.
pub fn execute(program: &CStr, argv: &[CString], env: &[CString]) -> io::Error {
    let pointers = |list: &[CString]| -> Vec<*const libc::c_char> {
        list.iter().map(|text| text.as_ptr()).chain([std::ptr::null()]).collect()
    };
    let (argv, env) = (pointers(argv), pointers(env));
    // SAFETY: both lists end with a null pointer and point to C strings that outlive the call.
    unsafe { libc::execve(program.as_ptr(), argv.as_ptr(), env.as_ptr()) };
    io::Error::last_os_error()
}

/// The path of an open regular file.
pub fn path_of_regular_file(fd: BorrowedFd<'_>) -> Option<PathBuf> {
    let found = rustix::fs::fstat(fd).ok()?;
    if rustix::fs::FileType::from_raw_mode(found.st_mode) != rustix::fs::FileType::RegularFile {
        return None;
    }
    let path = rustix::fs::getpath(fd).ok()?;
    Some(PathBuf::from(OsStr::from_bytes(path.to_bytes())))
}

/// Lets a child keep this descriptor when it executes; it stays close-on-exec in this process.
pub fn keep_open(command: &mut Command, descriptors: &[BorrowedFd<'_>]) {
    let numbers: Vec<RawFd> = descriptors.iter().map(AsRawFd::as_raw_fd).collect();
    let keep = move || {
        for number in &numbers {
            // SAFETY: F_SETFD has no memory arguments; the caller keeps it open until the child exists.
            check(unsafe { libc::fcntl(*number, libc::F_SETFD, 0) })?;
        }
        Ok(())
    };
    // SAFETY: the closure calls fcntl only, which is async-signal-safe, and does not allocate.
    unsafe { command.pre_exec(keep) };
}

/// Takes over a descriptor that was left open for this program, and closes it for others.
pub fn adopt(number: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: F_SETFD has no memory arguments, and fails where nothing is open.
    check(unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) })?;
    // SAFETY: it is open, and the process that left it open for this one named it to no other.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Closes every descriptor above 2 but this one. The caller owns none of them any more.
pub fn close_others(kept: RawFd) -> io::Result<()> {
    for number in open_descriptors()? {
        if number > 2 && number != kept {
            // SAFETY: by contract it is not used afterwards; an error means it is closed already.
            unsafe { libc::close(number) };
        }
    }
    Ok(())
}

fn open_descriptors() -> io::Result<Vec<RawFd>> {
    let size = std::mem::size_of::<libc::proc_fdinfo>();
    let pid = std::process::id().cast_signed();
    let mut room = 1024;
    loop {
        let mut list = vec![libc::proc_fdinfo { proc_fd: 0, proc_fdtype: 0 }; room];
        let bytes = libc::c_int::try_from(room * size).map_err(|_| io::Error::other("too many"))?;
        // SAFETY: the list has room for as many bytes as are announced, and outlives the call.
        let filled = check(unsafe {
            libc::proc_pidinfo(pid, libc::PROC_PIDLISTFDS, 0, list.as_mut_ptr().cast(), bytes)
        })?;
        let count = filled.cast_unsigned() as usize / size;
        if filled == 0 {
            return Err(io::Error::last_os_error());
        }
        if count < room {
            return Ok(list[..count].iter().map(|entry| entry.proc_fd).collect());
        }
        room *= 4;
    }
}

/// Where a descriptor's file is stored, in the spelling of the disk.
pub fn stored_path(fd: BorrowedFd<'_>) -> io::Result<PathBuf> {
    let mut buffer = vec![0u8; libc::PATH_MAX as usize];
    // SAFETY: F_GETPATH fills at most PATH_MAX bytes, which the buffer has.
    check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GETPATH, buffer.as_mut_ptr()) })?;
    let end = buffer.iter().position(|byte| *byte == 0).unwrap_or(buffer.len());
    buffer.truncate(end);
    Ok(PathBuf::from(OsString::from_vec(buffer)))
}

/// A path in the spelling of the disk: the file system ignores case, Seatbelt does not. A symlink
/// is not followed at the end.
pub fn as_stored(path: &Path) -> io::Result<PathBuf> {
    let name = c_string(path.as_os_str())?;
    let flags = libc::O_EVTONLY | libc::O_SYMLINK | libc::O_CLOEXEC | libc::O_NONBLOCK;
    // SAFETY: the path is a C string that outlives the call.
    let fd = check(unsafe { libc::open(name.as_ptr(), flags) })?;
    // SAFETY: the kernel has just opened it for us.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    stored_path(std::os::fd::AsFd::as_fd(&fd))
}

/// The user's own temporary directory, which other users cannot read.
pub fn user_temporary_directory() -> Option<PathBuf> {
    let mut buffer = vec![0u8; libc::PATH_MAX as usize];
    // SAFETY: the buffer is as long as is said, and outlives the call.
    let length = unsafe {
        libc::confstr(libc::_CS_DARWIN_USER_TEMP_DIR, buffer.as_mut_ptr().cast(), buffer.len())
    };
    if length == 0 || length > buffer.len() {
        return None;
    }
    buffer.truncate(length - 1);
    Some(PathBuf::from(OsString::from_vec(buffer)))
}

/// The text of a sysctl.
pub fn sysctl(name: &CStr) -> Option<String> {
    let mut buffer = [0u8; 256];
    let mut length = buffer.len();
    // SAFETY: the buffer is as long as is said; nothing is set.
    let answer = unsafe {
        libc::sysctlbyname(
            name.as_ptr(),
            buffer.as_mut_ptr().cast(),
            &raw mut length,
            std::ptr::null_mut(),
            0,
        )
    };
    let text = buffer.get(..length).filter(|_| answer == 0)?;
    Some(String::from_utf8_lossy(text).trim_end_matches('\0').to_owned())
}

/// How many threads this process has; `None` where that is not told.
pub fn thread_count() -> Option<i32> {
    // SAFETY: proc_taskinfo is plain data for which zero is valid.
    let mut info: libc::proc_taskinfo = unsafe { std::mem::zeroed() };
    let size = std::mem::size_of_val(&info) as libc::c_int;
    let pid = std::process::id().cast_signed();
    // SAFETY: info has room for size bytes and outlives the call.
    let filled =
        unsafe { libc::proc_pidinfo(pid, libc::PROC_PIDTASKINFO, 0, (&raw mut info).cast(), size) };
    (filled == size).then_some(info.pti_threadnum)
}

/// Whether this program runs with rights that its caller does not have (set-uid, set-gid).
pub fn is_privileged_start() -> bool {
    // SAFETY: issetugid has no arguments and no errors.
    unsafe { libc::issetugid() != 0 }
}

/// Clears what keeps a file of ours from being removed (`chflags uchg`).
pub fn clear_flags(path: &Path) {
    if let Ok(name) = c_string(path.as_os_str()) {
        // SAFETY: the path is a C string that outlives the call.
        unsafe { libc::lchflags(name.as_ptr(), 0) };
    }
}
