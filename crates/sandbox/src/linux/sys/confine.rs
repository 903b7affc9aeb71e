//! Restrictions that a process puts on itself for good: system calls (seccomp) and places (Landlock).

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

use serde::{Deserialize, Serialize};

use super::check;
use mcp_seccomp::Instruction;

/// Installs a filter that refuses getppid, and tells whether it does. Throw-away children only.
pub fn refuse_getppid() -> io::Result<bool> {
    const LOAD_NUMBER: u16 = 0x20;
    const JUMP_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    const ALLOW: u32 = 0x7fff_0000;
    const REFUSE: u32 = 0x0005_0000 | libc::EXDEV as u32;
    const SECCOMP_SET_MODE_FILTER: libc::c_long = 1;
    rustix::thread::set_no_new_privs(true)?;
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let mut filter = [
        step(LOAD_NUMBER, 0, 0, 0),
        step(JUMP_EQUAL, 0, 1, libc::SYS_getppid as u32),
        step(RETURN, 0, 0, REFUSE),
        step(RETURN, 0, 0, ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: program and the filter it points to outlive the call.
    check(unsafe {
        libc::syscall(libc::SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &raw const program)
    })?;
    // SAFETY: getppid has no arguments.
    let refused = check(unsafe { libc::syscall(libc::SYS_getppid) });
    Ok(refused.is_err_and(|e| e.raw_os_error() == Some(libc::EXDEV)))
}

/// Whether a listener is notified of calls that a filter neither allows nor refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listener {
    Off,
    On,
}

/// Puts a filter on this thread and all it becomes (seccomp, Linux 3.17; with a listener 5.0).
/// Gives the listener, which is closed on exec.
pub fn install_filter(program: &[Instruction], listening: Listener) -> io::Result<Option<OwnedFd>> {
    let mut filter: Vec<libc::sock_filter> = program
        .iter()
        .map(|step| libc::sock_filter { code: step.code, jt: step.yes, jf: step.no, k: step.k })
        .collect();
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    let install = |flags: libc::c_ulong| {
        // SAFETY: program and the filter it points to outlive the call.
        check(unsafe {
            libc::syscall(
                libc::SYS_seccomp,
                libc::SECCOMP_SET_MODE_FILTER,
                flags,
                &raw const program,
            )
        })
    };
    if listening == Listener::Off {
        install(0)?;
        return Ok(None);
    }
    // Before Linux 5.19 a signal makes a caller ask again, and a start that was granted would be
    // refused the second time; no signal comes so early but one that ends it.
    let fd = match install(
        libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV,
    ) {
        Err(e) if e.raw_os_error() == Some(libc::EINVAL) => {
            install(libc::SECCOMP_FILTER_FLAG_NEW_LISTENER)?
        }
        other => other?,
    };
    // SAFETY: the kernel has just opened this descriptor for us, and nothing else owns it.
    Ok(Some(unsafe { OwnedFd::from_raw_fd(fd as RawFd) }))
}

/// Installs a filter that allows everything and could ask. Throw-away children only.
pub fn listen_to_nothing() -> io::Result<()> {
    listener_to_nothing().map(|_| ())
}

fn listener_to_nothing() -> io::Result<Option<OwnedFd>> {
    const RETURN: u16 = 0x06;
    const ALLOW: u32 = 0x7fff_0000;
    rustix::thread::set_no_new_privs(true)?;
    let allow = Instruction { code: RETURN, yes: 0, no: 0, k: ALLOW };
    install_filter(&[allow], Listener::On)
}

/// Whether a filter is on this thread, by the kernel's word.
pub fn is_filtered() -> bool {
    const FILTERED: libc::c_int = 2;
    // SAFETY: PR_GET_SECCOMP takes no further arguments.
    unsafe { libc::prctl(libc::PR_GET_SECCOMP, 0, 0, 0, 0) == FILTERED }
}

/// A call that waits for an answer.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Notification {
    id: u64,
    pub number: i32,
    /// The thread that asks.
    pub thread: i32,
    pub arguments: [u64; 6],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The call is carried out as it was made. Only where all that counts is in its registers:
    /// memory may have changed since it was read.
    Pass,
    Refuse,
    /// The launcher carried it out; this is the answer.
    Done(i64),
    Errno(i32),
}

/// The next call that waits, or `None` if its caller is gone. Waits for one: poll first.
pub fn next_notification(listener: BorrowedFd<'_>) -> io::Result<Option<Notification>> {
    // SAFETY: seccomp_notif is plain data for which zero is valid, and the kernel wants zeros.
    let mut notification: libc::seccomp_notif = unsafe { mem::zeroed() };
    // SAFETY: the kernel writes one seccomp_notif, which outlives the call.
    let result = unsafe {
        libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut notification)
    };
    match check(result.into()) {
        Ok(_) => Ok(Some(Notification {
            id: notification.id,
            number: notification.data.nr,
            thread: notification.pid as i32,
            arguments: notification.data.args,
        })),
        Err(e) if matches!(e.raw_os_error(), Some(libc::ENOENT | libc::EINTR)) => Ok(None),
        Err(e) => Err(e),
    }
}

/// Has callers continue on the processor of the thread that answers them (Linux 6.6): both wait for each
/// other anyway, and nothing has to be woken elsewhere.
pub fn answer_on_the_same_processor(listener: BorrowedFd<'_>) -> io::Result<()> {
    const SET_FLAGS: libc::c_ulong = 0x4008_2104;
    const SYNC_WAKE_UP: libc::c_ulong = 1;
    // SAFETY: the ioctl takes a number.
    let result = unsafe { libc::ioctl(listener.as_raw_fd(), SET_FLAGS as _, SYNC_WAKE_UP) };
    check(result.into())?;
    Ok(())
}

/// Reads the memory of a process that waits for an answer. Tells how much could be read.
pub fn read_memory(thread: i32, address: u64, into: &mut [u8]) -> io::Result<usize> {
    let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: into.len() };
    // SAFETY: the kernel writes into `into` only, no more than it is long; the other address is
    // of the other process, and checked there.
    let count =
        unsafe { libc::process_vm_readv(thread, &raw const local, 1, &raw const remote, 1, 0) };
    Ok(check(count as libc::c_long)? as usize)
}

/// Tells whether the answer reached a caller that still waits.
pub fn answer(
    listener: BorrowedFd<'_>,
    notification: Notification,
    verdict: Verdict,
) -> io::Result<bool> {
    let (val, error, flags) = match verdict {
        Verdict::Pass => (0, 0, libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32),
        Verdict::Refuse => (0, -libc::EPERM, 0),
        Verdict::Done(value) => (value, 0, 0),
        Verdict::Errno(errno) => (0, -errno, 0),
    };
    let response = libc::seccomp_notif_resp { id: notification.id, val, error, flags };
    // SAFETY: the kernel reads one seccomp_notif_resp, which outlives the call.
    let result = unsafe {
        libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND, &raw const response)
    };
    match check(result.into()) {
        Ok(_) => Ok(true),
        Err(e) if e.raw_os_error() == Some(libc::ENOENT) => Ok(false),
        Err(e) => Err(e),
    }
}

/// Whether the caller still waits, so that its number is still its own.
pub fn still_waits(listener: BorrowedFd<'_>, notification: Notification) -> bool {
    // SAFETY: the kernel reads one number, which outlives the call.
    let result = unsafe {
        libc::ioctl(
            listener.as_raw_fd(),
            libc::SECCOMP_IOCTL_NOTIF_ID_VALID,
            &raw const notification.id,
        )
    };
    result == 0
}

/// Whether a descriptor is closed when another program is executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cloexec {
    No,
    Yes,
}

/// Puts a copy of a descriptor of ours at this number of who asks, in the place of what is there
/// (Linux 5.9).
pub fn install_descriptor(
    listener: BorrowedFd<'_>,
    notification: Notification,
    ours: BorrowedFd<'_>,
    at: i32,
    cloexec: Cloexec,
) -> io::Result<()> {
    let addition = libc::seccomp_notif_addfd {
        id: notification.id,
        flags: libc::SECCOMP_ADDFD_FLAG_SETFD as u32,
        srcfd: ours.as_raw_fd() as u32,
        newfd: at as u32,
        newfd_flags: if cloexec == Cloexec::Yes { libc::O_CLOEXEC as u32 } else { 0 },
    };
    // SAFETY: the kernel reads one seccomp_notif_addfd, which outlives the call.
    let result = unsafe {
        libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ADDFD, &raw const addition)
    };
    check(result.into())?;
    Ok(())
}

/// Whether descriptors can be put in the place of others, tried with an id that no call has.
/// Throw-away children only.
pub fn can_install_descriptors() -> io::Result<()> {
    let Some(listener) = listener_to_nothing()? else {
        return Err(io::Error::from_raw_os_error(libc::ENOSYS));
    };
    let unknown = Notification { id: u64::MAX, number: 0, thread: 0, arguments: [0; 6] };
    let ours = listener.as_fd();
    match install_descriptor(ours, unknown, ours, 0, Cloexec::Yes) {
        Err(e) if e.raw_os_error() == Some(libc::ENOENT) => Ok(()),
        Err(e) => Err(e),
        Ok(()) => Err(io::Error::from_raw_os_error(libc::ENOSYS)),
    }
}

/// A Landlock ruleset that refuses these uses of files and of what is outside its domain.
pub fn landlock_create(files: u64, ports: u64, scopes: u64) -> io::Result<OwnedFd> {
    #[repr(C)]
    struct Attributes {
        files: u64,
        ports: u64,
        scopes: u64,
    }
    // A kernel that knows a shorter one takes this as long as the rest is zero.
    let attributes = Attributes { files, ports, scopes };
    // SAFETY: attributes outlives the call, which reads as many bytes of it as it is long.
    let fd = check(unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            &raw const attributes,
            mem::size_of_val(&attributes),
            0,
        )
    })?;
    // SAFETY: the kernel has just opened this descriptor for us, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

/// Allows uses of a file, or of all that lies beneath a directory.
pub fn landlock_allow(ruleset: &OwnedFd, place: BorrowedFd<'_>, rights: u64) -> io::Result<()> {
    const PATH_BENEATH: libc::c_long = 1;
    #[repr(C, packed)]
    struct Attributes {
        rights: u64,
        place: RawFd,
    }
    let attributes = Attributes { rights, place: place.as_raw_fd() };
    // SAFETY: attributes is laid out as the kernel's packed struct and outlives the call.
    check(unsafe {
        libc::syscall(
            libc::SYS_landlock_add_rule,
            ruleset.as_raw_fd(),
            PATH_BENEATH,
            &raw const attributes,
            0,
        )
    })?;
    Ok(())
}

/// Restricts this thread, and all that it starts, for good.
pub fn landlock_restrict(ruleset: &OwnedFd, flags: u32) -> io::Result<()> {
    // SAFETY: the call has no memory arguments.
    check(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), flags) })?;
    Ok(())
}

/// The newest Landlock version the kernel offers; 0 for none.
pub fn landlock_abi() -> u32 {
    const CREATE_RULESET_VERSION: libc::c_long = 1;
    // SAFETY: with this flag the call reads no memory and answers with a number.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            ptr::null::<libc::c_void>(),
            0,
            CREATE_RULESET_VERSION,
        )
    };
    u32::try_from(answer).unwrap_or(0)
}

/// Enters a mount namespace and the user namespace that owns it, with all rights in both. The calling process must
/// have a single thread, and have made the latter, or be root.
pub fn enter_mounts(mounts: BorrowedFd<'_>) -> io::Result<()> {
    /// `_IO(0xb7, 1)`: the user namespace that owns a namespace (Linux 4.9).
    const NS_GET_USERNS: libc::Ioctl = 0xb701;
    // SAFETY: takes no argument, and gives a new descriptor.
    let owner = check(unsafe { libc::ioctl(mounts.as_raw_fd(), NS_GET_USERNS) }.into())?;
    // SAFETY: the kernel has just opened this descriptor for us, and nothing else owns it.
    let owner = unsafe { OwnedFd::from_raw_fd(owner as RawFd) };
    for (namespace, kind) in [(owner.as_fd(), libc::CLONE_NEWUSER), (mounts, libc::CLONE_NEWNS)] {
        // SAFETY: plain numbers; the descriptor is borrowed for the call.
        check(unsafe { libc::setns(namespace.as_raw_fd(), kind) }.into())?;
    }
    Ok(())
}
