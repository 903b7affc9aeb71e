//! Processes: lists, what each uses, their ends.

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

use super::check;

/// A process as the system lists it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process {
    pub pid: i32,
    pub parent: i32,
    pub group: i32,
    pub session: i32,
    pub user: u32,
    /// Microseconds since 1970: a number that was given anew starts later.
    pub started: u64,
    pub is_zombie: bool,
}

const ZOMBIE: u32 = 5;

/// Every process there is.
pub fn processes() -> io::Result<Vec<Process>> {
    // SAFETY: without a buffer the answer is how many there are.
    let mut room = check(unsafe { libc::proc_listallpids(std::ptr::null_mut(), 0) })? as usize + 64;
    loop {
        let mut pids = vec![0 as libc::pid_t; room];
        let bytes = libc::c_int::try_from(mem::size_of_val(&pids[..])).unwrap_or(libc::c_int::MAX);
        // SAFETY: the list has room for as many bytes as are announced.
        let count =
            check(unsafe { libc::proc_listallpids(pids.as_mut_ptr().cast(), bytes) })? as usize;
        if count < room {
            return Ok(pids[..count].iter().filter_map(|pid| process(*pid)).collect());
        }
        room *= 2;
    }
}

/// What the kernel says about one; `None` when it is gone, or belongs to another user.
pub fn process(pid: i32) -> Option<Process> {
    // SAFETY: proc_bsdinfo is plain data for which zero is valid.
    let mut info: libc::proc_bsdinfo = unsafe { mem::zeroed() };
    let size = mem::size_of_val(&info) as libc::c_int;
    // SAFETY: info has room for size bytes and outlives the call.
    let filled =
        unsafe { libc::proc_pidinfo(pid, libc::PROC_PIDTBSDINFO, 0, (&raw mut info).cast(), size) };
    // SAFETY: getsid takes a number.
    let session = unsafe { libc::getsid(pid) };
    (filled == size).then(|| Process {
        pid,
        parent: info.pbi_ppid.cast_signed(),
        group: info.pbi_pgid.cast_signed(),
        session,
        user: info.pbi_uid,
        started: info.pbi_start_tvsec * 1_000_000 + info.pbi_start_tvusec,
        is_zombie: info.pbi_status == ZOMBIE,
    })
}

/// Asks the kernel about a process; an error when it refuses.
pub fn is_told_about(pid: i32) -> io::Result<()> {
    match process(pid) {
        Some(_) => Ok(()),
        None => Err(io::Error::last_os_error()),
    }
}

/// What a process uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Used {
    /// The memory that it has to itself, compressed and swapped pages included.
    pub footprint: u64,
    /// The processor time of all its threads so far.
    pub cpu: Duration,
}

pub fn used(pid: i32) -> Option<Used> {
    // SAFETY: rusage_info_v2 is plain data for which zero is valid.
    let mut usage: libc::rusage_info_v2 = unsafe { mem::zeroed() };
    // SAFETY: for this flavor the call fills one rusage_info_v2, which outlives it.
    let answer =
        unsafe { libc::proc_pid_rusage(pid, libc::RUSAGE_INFO_V2, (&raw mut usage).cast()) };
    let ticks = usage.ri_user_time.saturating_add(usage.ri_system_time);
    let used = Used { footprint: usage.ri_phys_footprint, cpu: since_boot(ticks) };
    (answer == 0).then_some(used)
}

/// Ticks of the kernel's clock as time. On Intel a tick is a nanosecond, on Apple silicon 125/3 of one.
fn since_boot(ticks: u64) -> Duration {
    let mut base = MachTimebase { numer: 0, denom: 0 };
    // SAFETY: the call fills the one struct that it is given, which outlives it.
    let answer = unsafe { mach_timebase_info(&raw mut base) };
    let (numer, denom) = match (answer, base.denom) {
        (0, 1..) => (base.numer, base.denom),
        _ => (1, 1),
    };
    let nanos = u128::from(ticks) * u128::from(numer) / u128::from(denom);
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// `mach_timebase_info_data_t` of <mach/mach_time.h>.
#[repr(C)]
struct MachTimebase {
    numer: u32,
    denom: u32,
}

unsafe extern "C" {
    fn mach_timebase_info(info: *mut MachTimebase) -> libc::c_int;
}

pub fn send_signal(pid: i32, signal: i32) -> io::Result<()> {
    if pid.abs() <= 1 {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    // SAFETY: kill has no memory arguments.
    check(unsafe { libc::kill(pid, signal) })?;
    Ok(())
}

pub enum Forked {
    Child,
    Parent(i32),
}

/// A copy of this process, which must have a single thread.
pub fn fork() -> io::Result<Forked> {
    // SAFETY: by contract there is no other thread whose locks could be copied.
    match check(unsafe { libc::fork() })? {
        0 => Ok(Forked::Child),
        pid => Ok(Forked::Parent(pid)),
    }
}

/// How a child changed state, and what it and its descendants used.
#[derive(Debug, Clone, Copy)]
pub struct Waited {
    pub change: Change,
    pub cpu: Duration,
    pub max_resident_bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    Exited(i32),
    Signaled(i32),
    Stopped,
    Continued,
}

/// A change of this child, if there is one.
pub fn wait_now(pid: i32) -> io::Result<Option<Waited>> {
    let mut status = 0;
    let options = libc::WNOHANG | libc::WUNTRACED | libc::WCONTINUED;
    // SAFETY: rusage is plain data; both out-pointers live until the call returns.
    let (answer, usage) = unsafe {
        let mut usage: libc::rusage = mem::zeroed();
        (libc::wait4(pid, &raw mut status, options, &raw mut usage), usage)
    };
    if check(answer)? == 0 {
        return Ok(None);
    }
    let change = if libc::WIFEXITED(status) {
        Change::Exited(libc::WEXITSTATUS(status))
    } else if libc::WIFSIGNALED(status) {
        Change::Signaled(libc::WTERMSIG(status))
    } else if libc::WIFCONTINUED(status) {
        Change::Continued
    } else {
        Change::Stopped
    };
    let time = |t: libc::timeval| {
        Duration::from_secs(t.tv_sec.max(0) as u64) + Duration::from_micros(t.tv_usec.max(0) as u64)
    };
    Ok(Some(Waited {
        change,
        cpu: time(usage.ru_utime) + time(usage.ru_stime),
        // In bytes here, other than on Linux.
        max_resident_bytes: usage.ru_maxrss.max(0) as u64,
    }))
}

/// Wakes up when a watched process forks or ends. There is no following of children
/// (NOTE_TRACK), so each has to be found and watched by itself.
pub struct Events(OwnedFd);

impl Events {
    pub fn new() -> io::Result<Events> {
        // SAFETY: kqueue has no arguments.
        let fd = check(unsafe { libc::kqueue() })?;
        // SAFETY: the kernel has just opened this descriptor for us. F_SETFD takes no memory.
        let fd = unsafe {
            libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC);
            OwnedFd::from_raw_fd(fd)
        };
        Ok(Events(fd))
    }

    /// One that has just ended needs no watch.
    pub fn watch(&self, pid: i32) {
        let event = libc::kevent {
            ident: pid.cast_unsigned() as usize,
            filter: libc::EVFILT_PROC,
            flags: libc::EV_ADD | libc::EV_CLEAR,
            fflags: libc::NOTE_FORK | libc::NOTE_EXIT,
            data: 0,
            udata: std::ptr::null_mut(),
        };
        let none = std::ptr::null_mut();
        // SAFETY: one event is read, which outlives the call; none is to be filled.
        unsafe { libc::kevent(self.0.as_raw_fd(), &raw const event, 1, none, 0, std::ptr::null()) };
    }

    /// Takes what has happened; whether anything has.
    pub fn take(&self) -> bool {
        // SAFETY: kevent is plain data for which zero is valid.
        let mut events: [libc::kevent; 16] = unsafe { mem::zeroed() };
        let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let mut any = false;
        loop {
            // SAFETY: room for 16 events is announced and there; the time outlives the call.
            let count = unsafe {
                libc::kevent(
                    self.0.as_raw_fd(),
                    std::ptr::null(),
                    0,
                    events.as_mut_ptr(),
                    16,
                    &raw const now,
                )
            };
            any |= count > 0;
            if count < 16 {
                return any;
            }
        }
    }
}

impl AsFd for Events {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
