//! The unsafe part of the tests: signals, terminals, and what is done between fork and exec.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// Something the new process does before it becomes the program.
pub enum Preparation {
    /// Makes a descriptor known under another number, open across exec.
    Inherit(OwnedFd, i32),
    Close(i32),
    /// Soft and hard limit of open files.
    OpenFiles(u64),
    /// The soft one, of as many that can be had.
    OpenFilesAtFirst(u64, u64),
    RemoveDir(CString),
    Umask(u32),
    /// Lets the process write core files, as far as it may.
    CoreFiles,
    /// Supplementary groups; root only.
    Groups(&'static [u32]),
    /// Becomes an ordinary user.
    Uid(u32),
    /// A new session with fd 0, a terminal, as its controlling terminal.
    TakeTerminal,
    NewSession,
}

impl Preparation {
    pub fn remove_dir(path: &Path) -> Preparation {
        Preparation::RemoveDir(CString::new(path.as_os_str().as_bytes()).unwrap())
    }

    fn perform(&self) -> io::Result<()> {
        // SAFETY: runs between fork and exec, so only system calls without allocation: each
        // takes numbers, a descriptor owned by `self`, or the C string in `self`.
        let answer = unsafe {
            match self {
                Preparation::Inherit(fd, number) if fd.as_raw_fd() == *number => {
                    libc::fcntl(*number, libc::F_SETFD, 0)
                }
                Preparation::Inherit(fd, number) => libc::dup2(fd.as_raw_fd(), *number),
                Preparation::Close(fd) => libc::close(*fd),
                Preparation::OpenFiles(count) | Preparation::OpenFilesAtFirst(count, _) => {
                    let most = match self {
                        Preparation::OpenFilesAtFirst(_, most) => most,
                        _ => count,
                    };
                    let limit = libc::rlimit { rlim_cur: *count, rlim_max: *most };
                    libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit)
                }
                Preparation::RemoveDir(path) => libc::rmdir(path.as_ptr()),
                Preparation::Umask(mask) => {
                    libc::umask(*mask as libc::mode_t);
                    0
                }
                Preparation::CoreFiles => {
                    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
                    libc::getrlimit(libc::RLIMIT_CORE, &raw mut limit);
                    limit.rlim_cur = limit.rlim_max;
                    libc::setrlimit(libc::RLIMIT_CORE, &raw const limit)
                }
                Preparation::Groups(groups) => libc::setgroups(groups.len() as _, groups.as_ptr()),
                Preparation::Uid(uid) => match libc::setgroups(0, std::ptr::null()) {
                    0 if libc::setgid(*uid) == 0 => libc::setuid(*uid),
                    _ => -1,
                },
                Preparation::NewSession => libc::setsid(),
                Preparation::TakeTerminal => {
                    libc::setsid();
                    libc::ioctl(0, libc::TIOCSCTTY as _, 0)
                }
            }
        };
        if answer == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

/// Has the preparations done in the child, in order.
pub fn prepare(command: &mut Command, preparations: Vec<Preparation>) {
    // SAFETY: the closure only makes system calls (see `perform` and `default_signals`) and allocates nothing.
    unsafe {
        command.pre_exec(move || {
            default_signals();
            preparations.iter().try_for_each(Preparation::perform)
        });
    }
}

/// `nohup` and a shell's `&` start a program with some signals ignored. Its children inherit that, and a test that
/// sends one of these signals would wait for nothing.
fn default_signals() {
    for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM] {
        // SAFETY: takes two numbers; no handler of ours is replaced, since the child has none yet.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

pub fn euid() -> u32 {
    // SAFETY: takes no argument and cannot fail.
    unsafe { libc::geteuid() }
}

/// Whether this process may write a file.
pub fn may_write(path: &Path) -> bool {
    let path = CString::new(path.as_os_str().as_bytes()).unwrap();
    // SAFETY: the path is a C string that outlives the call.
    unsafe { libc::access(path.as_ptr(), libc::W_OK) == 0 }
}

/// Whether a directory is gone, or a process holds its lock.
pub fn is_gone_or_locked(path: &Path) -> bool {
    let Ok(directory) = std::fs::File::open(path) else { return true };
    // SAFETY: takes a descriptor that is open until after the call, and a number.
    let answer = unsafe { libc::flock(directory.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) };
    answer == -1
}

/// Signals a process that this test started.
pub fn kill(pid: u32, signal: i32) {
    // SAFETY: takes two numbers.
    unsafe { libc::kill(pid.cast_signed(), signal) };
}

/// A new terminal: its master, and the slave that programs use.
pub fn open_terminal(rows: u16, columns: u16) -> (OwnedFd, OwnedFd) {
    let (mut master, mut slave) = (-1, -1);
    let size = libc::winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: both out-pointers are live locals; no name and no settings are asked for.
    let answer = unsafe {
        libc::openpty(
            &raw mut master,
            &raw mut slave,
            std::ptr::null_mut(),
            std::ptr::null_mut(),
            (&raw const size).cast_mut(),
        )
    };
    assert_eq!(answer, 0, "openpty: {}", io::Error::last_os_error());
    for fd in [master, slave] {
        // Other tests start processes at the same time; none of them shall inherit these.
        // SAFETY: sets a flag on a descriptor made above.
        unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
    // SAFETY: openpty succeeded, so both are open and nothing else owns them.
    unsafe { (OwnedFd::from_raw_fd(master), OwnedFd::from_raw_fd(slave)) }
}

pub fn resize(terminal: &impl AsRawFd, rows: u16, columns: u16) {
    let size = libc::winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the ioctl reads one winsize, a live local.
    let answer = unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCSWINSZ, &raw const size) };
    assert_eq!(answer, 0, "TIOCSWINSZ: {}", io::Error::last_os_error());
}

/// The modes of a terminal, to be compared: input, output, control, local, control characters.
#[cfg(target_os = "linux")]
pub fn modes(terminal: &impl AsRawFd) -> (u32, u32, u32, u32, Vec<u8>) {
    // SAFETY: termios is plain numbers, for which all zeros is a value.
    let mut settings: libc::termios = unsafe { std::mem::zeroed() };
    // SAFETY: fills one termios, a live local.
    let answer = unsafe { libc::tcgetattr(terminal.as_raw_fd(), &raw mut settings) };
    assert_eq!(answer, 0, "tcgetattr: {}", io::Error::last_os_error());
    let characters = settings.c_cc.to_vec();
    (settings.c_iflag, settings.c_oflag, settings.c_cflag, settings.c_lflag, characters)
}
