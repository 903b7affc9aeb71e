//! The system calls that rustix does not wrap. All unsafe code of the Linux part is here and below.
#![allow(unsafe_code)]

mod confine;
mod footprint;
mod network;
mod signals;

use std::ffi::{CStr, CString, OsStr, OsString};
use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::ptr;

use rustix::fs::{Mode, OFlags};

use crate::core::host::Ids;

pub use confine::*;
pub use footprint::{forget_code, give_back_memory};
pub use network::*;
pub use signals::*;

fn check(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Which side of a clone this is.
pub enum Cloned {
    Child,
    Parent { pid: i32, pidfd: OwnedFd },
}

/// A copy of this process in new namespaces (clone3, Linux 5.3).
///
/// Only to be called while the process has a single thread: the child goes on with a copy of
/// the heap, and a lock that another thread held would stay locked for ever.
pub fn clone_process(flags: u64) -> io::Result<Cloned> {
    clone_into(flags, None)
}

/// The same, and the copy is in another cgroup from its first moment on (Linux 5.7).
pub fn clone_into(flags: u64, cgroup: Option<BorrowedFd<'_>>) -> io::Result<Cloned> {
    const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;
    let mut pidfd: RawFd = -1;
    // SAFETY: clone_args is plain data for which zero is valid.
    let mut args: libc::clone_args = unsafe { mem::zeroed() };
    args.flags = flags | libc::CLONE_PIDFD as u64;
    args.pidfd = ptr::from_mut(&mut pidfd) as u64;
    args.exit_signal = libc::SIGCHLD as u64;
    if let Some(cgroup) = &cgroup {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = cgroup.as_raw_fd() as u64;
    }
    // SAFETY: without CLONE_VM the child has its own copy of all memory, this stack included;
    // args, pidfd and cgroup live until the call returns; the caller is single-threaded (see above).
    let result = unsafe { libc::syscall(libc::SYS_clone3, &raw mut args, mem::size_of_val(&args)) };
    let result = match check(result) {
        Err(e) if e.raw_os_error() == Some(libc::ENOSYS) => older_clone(flags, &mut pidfd, cgroup),
        other => other,
    };
    match result? {
        0 => Ok(Cloned::Child),
        pid => {
            // SAFETY: the kernel has just opened this descriptor for us, and nothing else owns it.
            let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
            Ok(Cloned::Parent { pid: pid as i32, pidfd })
        }
    }
}

/// For a filter around us that cannot look at flags behind a pointer, as ours: the older call has them in a
/// register. It knows no cgroups, so the child waits until it was moved; whether it was, is looked at later.
fn older_clone(
    flags: u64,
    pidfd: &mut RawFd,
    cgroup: Option<BorrowedFd<'_>>,
) -> io::Result<libc::c_long> {
    let flags = flags | libc::CLONE_PIDFD as u64 | libc::SIGCHLD as u64;
    let (moved, moving) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    // SAFETY: as for clone3; a null stack means a copy of this one, and pidfd outlives the call. The order of
    // arguments is the same where they matter (x86_64, aarch64).
    let result = check(unsafe {
        libc::syscall(
            libc::SYS_clone,
            flags,
            ptr::null::<libc::c_void>(),
            ptr::from_mut(pidfd),
            ptr::null::<libc::c_void>(),
            ptr::null::<libc::c_void>(),
        )
    })?;
    if result == 0 {
        drop(moving);
        let _ = rustix::io::retry_on_intr(|| rustix::io::read(&moved, &mut [0; 1]));
    } else if let Some(cgroup) = cgroup {
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        let _ = rustix::fs::openat(cgroup, "cgroup.procs", flags, Mode::empty())
            .and_then(|procs| rustix::io::write(&procs, result.to_string().as_bytes()));
    }
    Ok(result)
}

const TARGET_STACK: usize = 256 * 1024;

/// A child that borrows this process's memory until it executes another program; this process
/// stands still meanwhile, as with vfork. Returns the child's pid.
///
/// Saves copying the page tables twice. `run` must not leave anything in memory in a state that
/// this process cannot go on with: it gets what it needs by shared reference only.
pub fn spawn_until_exec<F: Fn()>(run: &F) -> io::Result<i32> {
    extern "C" fn enter<F: Fn()>(run: *mut libc::c_void) -> libc::c_int {
        // SAFETY: run is the &F that the caller of clone holds until the child has executed.
        let run = unsafe { &*run.cast_const().cast::<F>() };
        run();
        exit_now(125)
    }
    let mut stack = vec![0u128; TARGET_STACK / 16];
    let top = stack.as_mut_ptr_range().end;
    // SAFETY: the stack is the child's alone and outlives it, since CLONE_VFORK keeps this
    // process waiting until the child has executed or ended; top is its aligned upper end. The
    // process has a single thread, so no lock is held by anybody.
    let pid = unsafe {
        libc::clone(
            enter::<F>,
            top.cast(),
            libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD,
            ptr::from_ref(run).cast_mut().cast(),
        )
    };
    check(pid.into())?;
    Ok(pid)
}

pub const ATTR_READ_ONLY: u64 = libc::MOUNT_ATTR_RDONLY;
pub const ATTR_NO_SUID: u64 = libc::MOUNT_ATTR_NOSUID;
pub const ATTR_NO_DEVICES: u64 = libc::MOUNT_ATTR_NODEV;

#[derive(Debug, Clone, Copy)]
pub enum Depth {
    One = 0,
    Tree = libc::AT_RECURSIVE as isize,
}

/// Sets attributes on a mount, or all mounts of a tree, and makes them private (mount_setattr, Linux 5.12).
/// `map` is a user namespace whose id map the tree shall have.
pub fn set_tree_attributes(
    tree: BorrowedFd<'_>,
    set: u64,
    depth: Depth,
    map: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let attributes = libc::mount_attr {
        attr_set: set | if map.is_some() { libc::MOUNT_ATTR_IDMAP } else { 0 },
        attr_clr: 0,
        propagation: libc::MS_PRIVATE,
        userns_fd: map.map_or(0, |fd| fd.as_raw_fd() as u64),
    };
    // SAFETY: the path is a C string, and attributes outlives the call.
    check(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            tree.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | depth as libc::c_int,
            &raw const attributes,
            mem::size_of_val(&attributes),
        )
    })?;
    Ok(())
}

/// Makes the cgroup this process is in the root of those it is told of.
pub fn own_cgroup_root() -> io::Result<()> {
    // SAFETY: unshare takes a number, and a new cgroup namespace changes no memory.
    check(unsafe { libc::unshare(libc::CLONE_NEWCGROUP) }.into())?;
    Ok(())
}

/// Whether the kernel has the call for it (Linux 5.12).
pub fn has_tree_attributes() -> bool {
    // SAFETY: no descriptor, no memory: the call fails, and how it does is the answer.
    let result = unsafe {
        libc::syscall(libc::SYS_mount_setattr, -1, c"".as_ptr(), 0, ptr::null::<libc::c_void>(), 0)
    };
    !check(result).is_err_and(|e| e.raw_os_error() == Some(libc::ENOSYS))
}

/// Leaves the caller's session keyring for a new, empty one.
pub fn join_new_keyring() -> io::Result<()> {
    const KEYCTL_JOIN_SESSION_KEYRING: libc::c_long = 1;
    // SAFETY: a null name asks for an anonymous keyring; no memory is touched.
    check(unsafe {
        libc::syscall(libc::SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, ptr::null::<libc::c_char>())
    })?;
    Ok(())
}

/// Brings an interface up.
pub fn interface_up(name: &CStr) -> io::Result<()> {
    let socket = rustix::net::socket_with(
        rustix::net::AddressFamily::INET,
        rustix::net::SocketType::DGRAM,
        rustix::net::SocketFlags::CLOEXEC,
        None,
    )?;
    // SAFETY: ifreq is plain data for which zero is valid.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(name.to_bytes()) {
        *to = *from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: SIOCSIFFLAGS reads one ifreq, which outlives the call.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) };
    check(result.into())?;
    Ok(())
}

/// Overwrites the arguments and the environment this process was started with, where
/// /proc/PID/cmdline and /proc/PID/environ read them, and takes another name.
pub fn scrub_start(name: &CStr) {
    unsafe extern "C" {
        static mut environ: *mut *mut libc::c_char;
        static program_invocation_name: *mut libc::c_char;
    }
    // SAFETY: the kernel lays out argument strings, environment strings and the file name of
    // the program one after the other on the initial stack, which is writable; the process has a
    // single thread, and from here on nothing reads either list: environ is emptied, and the
    // standard library's copy of argv is not used in init.
    unsafe {
        environ = ptr::null_mut();
        let start = program_invocation_name as usize;
        let end = libc::getauxval(libc::AT_EXECFN) as usize;
        let room = end.saturating_sub(start);
        if start == 0 || room == 0 || room > LARGEST_START {
            return;
        }
        ptr::write_bytes(start as *mut u8, 0, room);
        let name = name.to_bytes_with_nul();
        if name.len() <= room {
            ptr::copy_nonoverlapping(name.as_ptr(), start as *mut u8, name.len());
        }
        libc::prctl(libc::PR_SET_NAME, name.as_ptr());
    }
}

/// Arguments and environment together cannot be larger: the kernel's own bound is 6 MiB.
const LARGEST_START: usize = 8 << 20;

/// Closes every descriptor from `first` on (close_range, Linux 5.9).
pub fn close_from(first: u32) -> io::Result<()> {
    // SAFETY: whatever owned these descriptors is never used again: the caller is about to
    // execute another program or to exit.
    check(unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, 0) })?;
    Ok(())
}

/// Puts `from` at the descriptor number `to`, open across exec.
pub fn place_descriptor(from: BorrowedFd<'_>, to: RawFd) -> io::Result<()> {
    if from.as_raw_fd() == to {
        // dup2 onto itself would keep close-on-exec.
        // SAFETY: fcntl with F_SETFD has no memory arguments.
        check(unsafe { libc::fcntl(to, libc::F_SETFD, 0) }.into())?;
        return Ok(());
    }
    // SAFETY: the descriptor numbers 0 to 3 are not owned at this point of the target's
    // life: std never closes 0 to 2, and 3 was moved away by the caller.
    check(unsafe { libc::dup2(from.as_raw_fd(), to) }.into())?;
    Ok(())
}

pub fn close_on_exec(fd: RawFd) -> io::Result<()> {
    // SAFETY: fcntl with F_SETFD has no memory arguments.
    check(unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) }.into())?;
    Ok(())
}

/// Replaces this process. Returns only on failure.
pub fn execute(program: &CStr, argv: &[CString], env: &[CString]) -> io::Error {
    let pointers = |strings: &[CString]| {
        let mut list: Vec<_> = strings.iter().map(|s| s.as_ptr()).collect();
        list.push(ptr::null());
        list
    };
    let (argv, env) = (pointers(argv), pointers(env));
    // SAFETY: all strings are C strings, both lists end with null, and all outlive the call.
    unsafe { libc::execve(program.as_ptr(), argv.as_ptr(), env.as_ptr()) };
    io::Error::last_os_error()
}

/// Ends this process at once: no destructors, no buffers, which belong to the launcher.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: _exit has no memory arguments.
    unsafe { libc::_exit(code) }
}

/// What became of the set that capabilities can be gained from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bounding {
    Empty,
    /// Without privilege it cannot be emptied, and with no_new_privs nothing comes of it.
    Kept,
}

/// Empties the permitted, effective, inheritable, ambient and, where that is allowed, bounding sets.
pub fn drop_all_capabilities() -> io::Result<Bounding> {
    let mut bounding = Bounding::Empty;
    for capability in 0..=63 {
        // SAFETY: PR_CAPBSET_DROP takes a number.
        let result = unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
        if let Err(error) = check(result.into()) {
            // EINVAL is the first number past the kernel's last capability.
            if error.raw_os_error() != Some(libc::EINVAL) {
                bounding = Bounding::Kept;
            }
            break;
        }
    }
    // SAFETY: PR_CAP_AMBIENT_CLEAR_ALL takes no further arguments.
    let ambient =
        unsafe { libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) };
    check(ambient.into())?;
    #[repr(C)]
    struct Header {
        version: u32,
        pid: i32,
    }
    let header = Header { version: 0x2008_0522, pid: 0 };
    let empty = [0u32; 6];
    // SAFETY: version 3 of the interface reads two triples of u32, which is what empty is.
    check(unsafe { libc::syscall(libc::SYS_capset, &raw const header, empty.as_ptr()) })?;
    Ok(bounding)
}

/// What is left in the permitted, effective and inheritable sets, for the report. Every drop
/// from the bounding set was answered one by one, and the ambient set is part of the permitted.
pub fn capabilities_left() -> io::Result<u64> {
    #[repr(C)]
    struct Header {
        version: u32,
        pid: i32,
    }
    let header = Header { version: 0x2008_0522, pid: 0 };
    let mut sets = [0u32; 6];
    // SAFETY: version 3 of the interface writes two triples of u32, which is what sets is.
    check(unsafe { libc::syscall(libc::SYS_capget, &raw const header, sets.as_mut_ptr()) })?;
    Ok(u64::from(sets[0] | sets[1] | sets[2]) | u64::from(sets[3] | sets[4] | sets[5]) << 32)
}

/// Supplementary groups and ids of this process, real, effective and saved.
pub fn become_user(uid: u32, gid: u32, groups: Groups) -> io::Result<()> {
    // Raw calls: libc's wrappers would signal threads that a cloned process does not have.
    // SAFETY: setgroups with a length of zero reads nothing; the others take numbers.
    unsafe {
        if groups == Groups::Drop {
            check(libc::syscall(libc::SYS_setgroups, 0, ptr::null::<libc::gid_t>()))?;
        }
        check(libc::syscall(libc::SYS_setresgid, gid, gid, gid))?;
        check(libc::syscall(libc::SYS_setresuid, uid, uid, uid))?;
    }
    Ok(())
}

/// Looks at a process as another user would, where `user` is one; only root's launcher has to. To look and nothing
/// else: groups stay, and so do all capabilities but those over files. What is done for a user is done by a process that
/// has become it (`linux/syscall_proxy.rs`).
pub fn look_as<T>(user: Option<Ids>, look: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let Some(user) = user else {
        return look();
    };
    // SAFETY: both take a number, and mean this thread alone.
    let become_fs = |ids: Ids| unsafe {
        libc::setfsgid(ids.gid);
        libc::setfsuid(ids.uid);
        // An id that changes nothing tells which one is in force.
        libc::setfsuid(u32::MAX) as u32
    };
    let outcome = match become_fs(user) == user.uid {
        true => look(),
        false => Err(io::Error::from_raw_os_error(libc::EPERM)),
    };
    become_fs(Ids { uid: 0, gid: 0 });
    outcome
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Groups {
    /// Without privilege outside they cannot be dropped.
    Keep,
    Drop,
}

/// A C string of a path, a name or an argument.
pub fn c_string(text: &OsStr) -> io::Result<CString> {
    CString::new(text.as_bytes()).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
}

/// `NAME=value` for execve.
pub fn c_variable(name: &OsStr, value: &OsStr) -> io::Result<CString> {
    let mut text = OsString::with_capacity(name.len() + 1 + value.len());
    text.push(name);
    text.push("=");
    text.push(value);
    c_string(&text)
}

/// Takes over a descriptor that was put at this number with [`place_descriptor`].
pub fn own(fd: RawFd) -> OwnedFd {
    // SAFETY: the caller has just placed a duplicate there, which has no other owner.
    unsafe { OwnedFd::from_raw_fd(fd) }
}

/// Points the descriptors below `end` at /dev/null inside, so that this process holds no end of
/// a pipe that belongs to the command.
pub fn let_go_below(end: RawFd) -> io::Result<()> {
    let nothing = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null")?;
    for fd in 0..end {
        place_descriptor(nothing.as_fd(), fd)?;
    }
    Ok(())
}
