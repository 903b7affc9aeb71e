//! Signals, and the children they are about.

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::sync::OnceLock;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::check;

/// The signals the launcher or init takes by descriptor instead of by handler.
pub struct Signals {
    fd: OwnedFd,
    before: libc::sigset_t,
    /// Those that this process was started to ignore, as by `nohup`. Blocked, they arrive all the same.
    ignored: Vec<i32>,
}

/// The mask that this process was started with.
static FIRST_MASK: OnceLock<libc::sigset_t> = OnceLock::new();

/// A signal that arrived.
#[derive(Debug, Clone, Copy)]
pub struct Arrived {
    pub signal: i32,
    /// Sent by the terminal to the whole group, and not by a process to this one.
    pub from_kernel: bool,
    /// This process was started to ignore it.
    pub was_ignored: bool,
}

impl Signals {
    /// Blocks the signals and opens a descriptor that reports them.
    pub fn take(signals: &[i32]) -> io::Result<Signals> {
        // SAFETY: sigset_t is plain data; sigemptyset initialises it before any other use, and
        // both sets outlive the calls.
        unsafe {
            let mut set: libc::sigset_t = mem::zeroed();
            let mut before: libc::sigset_t = mem::zeroed();
            libc::sigemptyset(&raw mut set);
            for signal in signals {
                libc::sigaddset(&raw mut set, *signal);
            }
            check(libc::sigprocmask(libc::SIG_BLOCK, &raw const set, &raw mut before).into())?;
            // Where a first set-up was given up, the mask is ours already.
            let before = *FIRST_MASK.get_or_init(|| before);
            // Inherited as ignored, it would let the kernel collect our children before we do.
            libc::signal(libc::SIGCHLD, libc::SIG_DFL);
            let fd = check(
                libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK).into(),
            )?;
            let ignored = signals.iter().copied().filter(|signal| is_ignored(*signal)).collect();
            Ok(Signals { fd: OwnedFd::from_raw_fd(fd as RawFd), before, ignored })
        }
    }

    pub fn next(&self) -> io::Result<Option<Arrived>> {
        // SAFETY: signalfd_siginfo is plain data for which zero is valid.
        let mut info: libc::signalfd_siginfo = unsafe { mem::zeroed() };
        let size = mem::size_of_val(&info);
        // SAFETY: info outlives the call and has room for size bytes.
        let read = unsafe { libc::read(self.fd.as_raw_fd(), (&raw mut info).cast(), size) };
        match check(read as libc::c_long) {
            Ok(_) => {
                let signal = info.ssi_signo as i32;
                let was_ignored = self.ignored.contains(&signal);
                Ok(Some(Arrived { signal, from_kernel: info.ssi_code > 0, was_ignored }))
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// The mask that was there before, and a SIGPIPE that ends a writer as it does for every
    /// program not started by Rust's runtime.
    pub fn restore_for_exec(&self) {
        // SAFETY: before was filled by the kernel in take(); SIG_DFL is a valid disposition.
        unsafe {
            libc::sigprocmask(libc::SIG_SETMASK, &raw const self.before, ptr::null_mut());
            libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        }
    }
}

fn is_ignored(signal: i32) -> bool {
    // SAFETY: sigaction is plain data for which zero is valid; without a new action the call only fills it.
    let action = unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        libc::sigaction(signal, ptr::null(), &raw mut action);
        action
    };
    action.sa_sigaction == libc::SIG_IGN
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Stops this process, until its parent continues it.
pub fn stop_self() {
    // SAFETY: raise has no memory arguments.
    unsafe { libc::raise(libc::SIGSTOP) };
}

/// How a child changed state, and what it and its descendants used.
pub struct Waited {
    pub pid: i32,
    pub change: Change,
    pub used: ProcessUsage,
}

/// What a process and the children that it waited for used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessUsage {
    pub cpu: Duration,
    /// Of the largest process.
    pub max_resident_bytes: u64,
}

impl ProcessUsage {
    fn from(usage: &libc::rusage) -> ProcessUsage {
        let time = |t: libc::timeval| {
            Duration::from_secs(t.tv_sec.max(0) as u64)
                + Duration::from_micros(t.tv_usec.max(0) as u64)
        };
        ProcessUsage {
            cpu: time(usage.ru_utime) + time(usage.ru_stime),
            max_resident_bytes: (usage.ru_maxrss.max(0) as u64) * 1024,
        }
    }

    /// Of this process and the children that it has waited for.
    pub fn so_far() -> ProcessUsage {
        let of = |who| {
            // SAFETY: rusage is plain data, and the pointer to it lives until the call returns.
            let usage = unsafe {
                let mut usage: libc::rusage = mem::zeroed();
                libc::getrusage(who, &raw mut usage);
                usage
            };
            ProcessUsage::from(&usage)
        };
        let (own, children) = (of(libc::RUSAGE_SELF), of(libc::RUSAGE_CHILDREN));
        ProcessUsage {
            cpu: own.cpu + children.cpu,
            max_resident_bytes: own.max_resident_bytes.max(children.max_resident_bytes),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    Exited(i32),
    Signaled(i32),
    Stopped(i32),
    Continued,
}

/// Collects one child that changed state, if there is one.
pub fn wait_any() -> io::Result<Option<Waited>> {
    wait(-1, libc::WNOHANG | libc::WUNTRACED | libc::WCONTINUED)
}

/// Waits for this child to end.
pub fn wait_for(pid: i32) -> io::Result<Option<Waited>> {
    wait(pid, 0)
}

fn wait(pid: i32, options: i32) -> io::Result<Option<Waited>> {
    let mut status = 0;
    // SAFETY: rusage is plain data; both out-pointers live until the call returns.
    let (pid, usage) = unsafe {
        let mut usage: libc::rusage = mem::zeroed();
        (libc::wait4(pid, &raw mut status, options, &raw mut usage), usage)
    };
    if check(pid.into())? == 0 {
        return Ok(None);
    }
    let change = if libc::WIFEXITED(status) {
        Change::Exited(libc::WEXITSTATUS(status))
    } else if libc::WIFSIGNALED(status) {
        Change::Signaled(libc::WTERMSIG(status))
    } else if libc::WIFSTOPPED(status) {
        Change::Stopped(libc::WSTOPSIG(status))
    } else {
        Change::Continued
    };
    Ok(Some(Waited { pid, change, used: ProcessUsage::from(&usage) }))
}

/// Sends a signal to every other process of this pid namespace. Only pid 1 may call this: for
/// anybody else it would mean every process of the user.
pub fn signal_everyone(signal: i32) -> io::Result<()> {
    if std::process::id() != 1 {
        return Err(io::Error::from_raw_os_error(libc::EPERM));
    }
    // SAFETY: kill has no memory arguments.
    check(unsafe { libc::kill(-1, signal) }.into())?;
    Ok(())
}

/// Sends a signal to a child, or with a negative number to its process group.
pub fn send_signal(pid: i32, signal: i32) -> io::Result<()> {
    if pid.abs() <= 1 {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    // SAFETY: kill has no memory arguments.
    check(unsafe { libc::kill(pid, signal) }.into())?;
    Ok(())
}

/// Sends a signal to one thread of a process.
pub fn send_to_thread(process: i32, thread: i32, signal: i32) -> io::Result<()> {
    if process <= 1 || thread <= 1 {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    // SAFETY: tgkill has no memory arguments.
    check(unsafe { libc::syscall(libc::SYS_tgkill, process, thread, signal) })?;
    Ok(())
}

/// Has orphans of this process's descendants come to it.
pub fn adopt_orphans() -> io::Result<()> {
    // SAFETY: PR_SET_CHILD_SUBREAPER takes a number.
    check(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }.into())?;
    let mut is_set: libc::c_int = 0;
    // SAFETY: PR_GET_CHILD_SUBREAPER writes one int, which outlives the call.
    check(unsafe { libc::prctl(libc::PR_GET_CHILD_SUBREAPER, &raw mut is_set, 0, 0, 0) }.into())?;
    match is_set {
        1 => Ok(()),
        _ => Err(io::Error::from_raw_os_error(libc::EPERM)),
    }
}
