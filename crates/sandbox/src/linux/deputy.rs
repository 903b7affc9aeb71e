//! Calls that the launcher carries out for a command without a root of its own.
//!
//! Landlock has no right for modes, owners, times and extended attributes, and before version 6 none for
//! signals. So the filter (`seccomp/plain.rs`) leaves these calls to the launcher. It never lets
//! one pass after a look at memory, which could change meanwhile: it opens the file itself, makes sure
//! that it lies in a writable place, and does what was asked through that descriptor; a signal it sends
//! itself, through a handle of a process that it knows to be in the tree. Only a process's signal to
//! itself passes: there all that counts is in registers.
//!
//! Leaves open: nothing that it knows of; what it cannot read (a process that is not dumpable) is refused.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, Timespec, Timestamps, UTIME_NOW, XattrFlags};
use rustix::process::{Gid, Signal, Uid, pidfd_send_signal};

use crate::host::Ids;
use crate::linux::seccomp::Arch;
use crate::linux::seccomp::plain::call;
use crate::linux::sys::{self, Asked, Verdict};
use crate::linux::tree;

const LONGEST_PATH: usize = 4096;
const LONGEST_NAME: usize = 256;
const LARGEST_VALUE: usize = 64 * 1024;
const PAGE: usize = 4096;

pub struct Deputy {
    pub arch: Arch,
    /// Whatever lies beneath may be changed.
    pub writable: Vec<PathBuf>,
    /// The process that all of the tree is below; set once it exists.
    pub top: i32,
    /// Whose rights count, where they are not the launcher's.
    pub user: Option<Ids>,
}

/// A file as the asker names it.
enum Named {
    At { directory: i32, path: PathBuf, follow: Follow },
    Descriptor(i32),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Follow {
    Yes,
    No,
}

enum Change {
    Mode(u32),
    Owner(u32, u32),
    Times(Timestamps),
    SetAttribute { name: PathBuf, value: Vec<u8>, flags: u32 },
    RemoveAttribute { name: PathBuf },
    Length(u64),
}

impl Deputy {
    /// `None` for a call that is somebody else's to answer.
    pub fn answer(&self, listener: BorrowedFd<'_>, asked: &Asked) -> Option<Verdict> {
        let waits = || sys::still_waits(listener, *asked);
        let verdict = match self.signal(asked) {
            Some(verdict) => verdict,
            None => self.change(asked, &waits)?.map(|()| Verdict::Done(0)),
        };
        Some(verdict.unwrap_or_else(|e| Verdict::Errno(e.raw_os_error().unwrap_or(libc::EPERM))))
    }

    fn is(&self, asked: &Asked, call: crate::linux::seccomp::Number) -> bool {
        call.on(self.arch).is_some_and(|number| i64::from(number) == i64::from(asked.number))
    }

    fn change(&self, asked: &Asked, waits: &dyn Fn() -> bool) -> Option<io::Result<()>> {
        let parsed = self.parse(asked)?;
        Some(parsed.and_then(|(named, change)| {
            sys::as_user(self.user, || {
                let file = open(asked.thread, &named)?;
                // Everything above was read of the thread that asks and not of a later one.
                if !waits() {
                    return Err(errno(libc::ENOENT));
                }
                self.check(&file)?;
                apply(&file, &change)
            })
        }))
    }

    /// What is asked for; `None` if the call is none of these.
    fn parse(&self, asked: &Asked) -> Option<io::Result<(Named, Change)>> {
        let [a, b, c, d, e, _] = asked.arguments;
        let is = |call| self.is(asked, call);
        let memory = Memory::of(asked.thread, self.user);
        let path = |directory: u64, at: u64, follow| {
            Ok(Named::At { directory: directory as i32, path: memory.path(at)?, follow })
        };
        let here = libc::AT_FDCWD as u64;
        let by_flags = |directory: u64, at: u64, flags: u64| {
            let flags = flags as i32;
            if flags & libc::AT_EMPTY_PATH != 0 && memory.path(at)?.as_os_str().is_empty() {
                return Ok(Named::Descriptor(directory as i32));
            }
            let follow = flags & libc::AT_SYMLINK_NOFOLLOW == 0;
            path(directory, at, if follow { Follow::Yes } else { Follow::No })
        };
        let descriptor = |fd: u64| io::Result::Ok(Named::Descriptor(fd as i32));
        let (named, change) = if is(call::CHMOD) {
            (path(here, a, Follow::Yes), Ok(Change::Mode(b as u32)))
        } else if is(call::FCHMOD) {
            (descriptor(a), Ok(Change::Mode(b as u32)))
        } else if is(call::FCHMODAT) {
            (path(a, b, Follow::Yes), Ok(Change::Mode(c as u32)))
        } else if is(call::FCHMODAT2) {
            (by_flags(a, b, d), Ok(Change::Mode(c as u32)))
        } else if is(call::CHOWN) {
            (path(here, a, Follow::Yes), Ok(Change::Owner(b as u32, c as u32)))
        } else if is(call::LCHOWN) {
            (path(here, a, Follow::No), Ok(Change::Owner(b as u32, c as u32)))
        } else if is(call::FCHOWN) {
            (descriptor(a), Ok(Change::Owner(b as u32, c as u32)))
        } else if is(call::FCHOWNAT) {
            (by_flags(a, b, e), Ok(Change::Owner(c as u32, d as u32)))
        } else if is(call::UTIMENSAT) {
            let named = if b == 0 { descriptor(a) } else { by_flags(a, b, d) };
            (named, memory.times(c, Clock::Nanoseconds))
        } else if is(call::UTIMES) {
            (path(here, a, Follow::Yes), memory.times(b, Clock::Microseconds))
        } else if is(call::FUTIMESAT) {
            let named = if b == 0 { descriptor(a) } else { path(a, b, Follow::Yes) };
            (named, memory.times(c, Clock::Microseconds))
        } else if is(call::UTIME) {
            (path(here, a, Follow::Yes), memory.times(b, Clock::Seconds))
        } else if is(call::SETXATTR) {
            (path(here, a, Follow::Yes), memory.attribute(b, c, d, e))
        } else if is(call::LSETXATTR) {
            (path(here, a, Follow::No), memory.attribute(b, c, d, e))
        } else if is(call::FSETXATTR) {
            (descriptor(a), memory.attribute(b, c, d, e))
        } else if is(call::REMOVEXATTR) {
            (path(here, a, Follow::Yes), memory.no_attribute(b))
        } else if is(call::LREMOVEXATTR) {
            (path(here, a, Follow::No), memory.no_attribute(b))
        } else if is(call::FREMOVEXATTR) {
            (descriptor(a), memory.no_attribute(b))
        } else if is(call::TRUNCATE) {
            (path(here, a, Follow::Yes), Ok(Change::Length(b)))
        } else {
            return None;
        };
        Some(named.and_then(|named| Ok((named, change?))))
    }

    /// By the name that the kernel has for what was opened, not by the one that was asked for.
    fn check(&self, file: &OwnedFd) -> io::Result<()> {
        let real = fs::read_link(link(file))?;
        match self.writable.iter().any(|place| real.starts_with(place)) {
            true => Ok(()),
            false => Err(errno(libc::EPERM)),
        }
    }

    fn signal(&self, asked: &Asked) -> Option<io::Result<Verdict>> {
        let [a, b, c, ..] = asked.arguments;
        let is = |call| self.is(asked, call);
        let own = || process_of(asked.thread);
        Some(if is(call::KILL) {
            self.kill(asked, a as i32, b as i32)
        } else if is(call::TGKILL) || is(call::RT_TGSIGQUEUEINFO) {
            own().and_then(|own| self.to_thread(own, a as i32, b as i32, c as i32))
        } else if is(call::TKILL) {
            // By a number alone, which another may have by the time the call has passed.
            process_of(a as i32)
                .and_then(|process| self.to_other_thread(process, a as i32, b as i32))
        } else if is(call::RT_SIGQUEUEINFO) {
            own().and_then(|own| match a as i32 == own {
                true => Ok(Verdict::Pass),
                false => self.to_process(a as i32, b as i32),
            })
        } else if is(call::PIDFD_SEND_SIGNAL) {
            process_behind(asked.thread, a as i32).and_then(|pid| self.to_process(pid, b as i32))
        } else {
            return None;
        })
    }

    fn kill(&self, asked: &Asked, pid: i32, signal: i32) -> io::Result<Verdict> {
        let own = process_of(asked.thread)?;
        if pid == own {
            return Ok(Verdict::Pass);
        }
        if pid > 0 {
            return self.to_process(pid, signal);
        }
        let group = match pid {
            -1 => None,
            0 => Some(tree::group(own).ok_or_else(|| errno(libc::ESRCH))?),
            group => Some(group.checked_neg().ok_or_else(|| errno(libc::ESRCH))?),
        };
        let mut sent = false;
        for member in tree::below(self.top) {
            // kill(-1) leaves out who calls it; a group is signalled as a whole.
            let meant = match group {
                None => member != own,
                Some(group) => tree::group(member) == Some(group),
            };
            if meant {
                sent |= self.to_process(member, signal).is_ok();
            }
        }
        if sent { Ok(Verdict::Done(0)) } else { Err(errno(libc::ESRCH)) }
    }

    fn to_thread(&self, own: i32, process: i32, thread: i32, signal: i32) -> io::Result<Verdict> {
        match process == own {
            true => Ok(Verdict::Pass),
            false => self.to_other_thread(process, thread, signal),
        }
    }

    fn to_other_thread(&self, process: i32, thread: i32, signal: i32) -> io::Result<Verdict> {
        if tree::handle(process, self.top).is_none() {
            return Err(errno(libc::EPERM));
        }
        sys::send_to_thread(process, thread, signal)?;
        Ok(Verdict::Done(0))
    }

    fn to_process(&self, pid: i32, signal: i32) -> io::Result<Verdict> {
        let Some(handle) = tree::handle(pid, self.top) else {
            let is_there = Path::new(&format!("/proc/{pid}")).exists();
            return Err(errno(if is_there { libc::EPERM } else { libc::ESRCH }));
        };
        if signal != 0 {
            let signal = Signal::from_named_raw(signal).ok_or_else(|| errno(libc::EINVAL))?;
            pidfd_send_signal(handle, signal)?;
        }
        Ok(Verdict::Done(0))
    }
}

fn errno(number: i32) -> io::Error {
    io::Error::from_raw_os_error(number)
}

/// The process that a thread belongs to.
fn process_of(thread: i32) -> io::Result<i32> {
    let status = fs::read(format!("/proc/{thread}/status")).map_err(|_| errno(libc::ESRCH))?;
    let status = String::from_utf8_lossy(&status).into_owned();
    let field = status.lines().find_map(|line| line.strip_prefix("Tgid:"));
    field.and_then(|id| id.trim().parse().ok()).ok_or_else(|| errno(libc::ESRCH))
}

/// The process that a handle of the asker's stands for.
fn process_behind(thread: i32, fd: i32) -> io::Result<i32> {
    let info = fs::read_to_string(format!("/proc/{thread}/fdinfo/{fd}"))
        .map_err(|_| errno(libc::EBADF))?;
    let field = info.lines().find_map(|line| line.strip_prefix("Pid:"));
    field.and_then(|id| id.trim().parse().ok()).ok_or_else(|| errno(libc::EBADF))
}

/// Opens what the asker means, as a handle that nothing can be done with but look and change
/// attributes. Where it leads is checked afterwards.
fn open(thread: i32, named: &Named) -> io::Result<OwnedFd> {
    let handle = OFlags::PATH | OFlags::CLOEXEC;
    let at = |fd: i32| -> io::Result<OwnedFd> {
        let path = format!("/proc/{thread}/fd/{fd}");
        rustix::fs::open(path, handle, Mode::empty()).map_err(|e| match e {
            rustix::io::Errno::NOENT => errno(libc::EBADF),
            e => e.into(),
        })
    };
    let (directory, path, follow) = match named {
        Named::Descriptor(libc::AT_FDCWD) => {
            let path = format!("/proc/{thread}/cwd");
            return Ok(rustix::fs::open(path, handle, Mode::empty())?);
        }
        Named::Descriptor(fd) => return at(*fd),
        Named::At { directory, path, follow } => (*directory, path, *follow),
    };
    if path.as_os_str().is_empty() {
        return Err(errno(libc::ENOENT));
    }
    let path = of_the_asker(thread, path);
    let flags = match follow {
        Follow::Yes => handle,
        Follow::No => handle | OFlags::NOFOLLOW,
    };
    if path.is_absolute() {
        return Ok(rustix::fs::open(&path, flags, Mode::empty())?);
    }
    let from = match directory {
        libc::AT_FDCWD => rustix::fs::open(format!("/proc/{thread}/cwd"), handle, Mode::empty())?,
        fd => at(fd)?,
    };
    Ok(rustix::fs::openat(from, &path, flags, Mode::empty())?)
}

/// `/proc/self` means whoever looks, and C libraries go that way for changes through a handle.
fn of_the_asker(thread: i32, path: &Path) -> PathBuf {
    for (own, theirs) in [
        ("/proc/self", format!("/proc/{thread}")),
        ("/proc/thread-self", format!("/proc/{thread}")),
        ("/dev/fd", format!("/proc/{thread}/fd")),
    ] {
        if let Ok(below) = path.strip_prefix(own) {
            return Path::new(&theirs).join(below);
        }
    }
    path.to_owned()
}

fn link(file: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

fn apply(file: &OwnedFd, change: &Change) -> io::Result<()> {
    let path = link(file);
    match change {
        // The filter has refused set-id modes already.
        Change::Mode(mode) => rustix::fs::chmod(&path, Mode::from_raw_mode(mode & 0o1777))?,
        Change::Owner(uid, gid) => {
            let uid = (*uid != u32::MAX).then(|| Uid::from_raw(*uid));
            let gid = (*gid != u32::MAX).then(|| Gid::from_raw(*gid));
            rustix::fs::chownat(file, "", uid, gid, AtFlags::EMPTY_PATH)?;
        }
        Change::Times(times) => {
            let is_link = rustix::fs::fstat(file)?.st_mode & libc::S_IFMT == libc::S_IFLNK;
            match is_link {
                true => rustix::fs::utimensat(file, "", times, AtFlags::EMPTY_PATH)?,
                false => rustix::fs::utimensat(CWD, &path, times, AtFlags::empty())?,
            }
        }
        Change::SetAttribute { name, value, flags } => {
            let flags = XattrFlags::from_bits(*flags).ok_or_else(|| errno(libc::EINVAL))?;
            rustix::fs::setxattr(&path, name, value, flags)?;
        }
        Change::RemoveAttribute { name } => rustix::fs::removexattr(&path, name)?,
        Change::Length(length) => {
            File::options().write(true).open(&path)?.set_len(*length)?;
        }
    }
    Ok(())
}

/// The memory of the thread that asks.
pub struct Memory(io::Result<File>);

#[derive(Clone, Copy)]
enum Clock {
    Seconds,
    Microseconds,
    Nanoseconds,
}

impl Memory {
    pub fn of(thread: i32, user: Option<Ids>) -> Memory {
        Memory(sys::as_user(user, || File::open(format!("/proc/{thread}/mem"))))
    }

    pub fn read(&self, at: u64, bytes: &mut [u8]) -> io::Result<()> {
        let file = self.0.as_ref().map_err(|_| errno(libc::EPERM))?;
        file.read_exact_at(bytes, at).map_err(|_| errno(libc::EFAULT))
    }

    /// A string that ends with a zero, read page by page: the next page may not be there.
    fn string(&self, at: u64, longest: usize) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        while text.len() < longest {
            let from = at + text.len() as u64;
            let size = (PAGE - (from % PAGE as u64) as usize).min(longest - text.len());
            let mut part = vec![0; size];
            self.read(from, &mut part)?;
            match part.iter().position(|byte| *byte == 0) {
                Some(end) => {
                    text.extend(&part[..end]);
                    return Ok(text);
                }
                None => text.extend(part),
            }
        }
        Err(errno(libc::ENAMETOOLONG))
    }

    fn path(&self, at: u64) -> io::Result<PathBuf> {
        Ok(std::ffi::OsString::from_vec(self.string(at, LONGEST_PATH)?).into())
    }

    fn attribute(&self, name: u64, value: u64, size: u64, flags: u64) -> io::Result<Change> {
        let name = std::ffi::OsString::from_vec(self.string(name, LONGEST_NAME)?).into();
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        if size > LARGEST_VALUE {
            return Err(errno(libc::E2BIG));
        }
        let mut bytes = vec![0; size];
        if size > 0 {
            self.read(value, &mut bytes)?;
        }
        Ok(Change::SetAttribute { name, value: bytes, flags: flags as u32 })
    }

    fn no_attribute(&self, name: u64) -> io::Result<Change> {
        let name = std::ffi::OsString::from_vec(self.string(name, LONGEST_NAME)?).into();
        Ok(Change::RemoveAttribute { name })
    }

    fn times(&self, at: u64, clock: Clock) -> io::Result<Change> {
        let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
        if at == 0 {
            return Ok(Change::Times(Timestamps { last_access: now, last_modification: now }));
        }
        let mut bytes = [0u8; 32];
        let words = if matches!(clock, Clock::Seconds) { 2 } else { 4 };
        self.read(at, &mut bytes[..8 * words])?;
        let mut numbers = [0i64; 4];
        for (number, part) in numbers.iter_mut().zip(bytes.chunks_exact(8)) {
            *number = i64::from_ne_bytes(part.try_into().unwrap_or_default());
        }
        let [a, b, c, d] = numbers;
        let time = |tv_sec, tv_nsec| Timespec { tv_sec, tv_nsec };
        let (last_access, last_modification) = match clock {
            Clock::Seconds => (time(a, 0), time(b, 0)),
            Clock::Microseconds => {
                let nanoseconds = |micro: i64| match micro {
                    0..1_000_000 => Ok(micro * 1000),
                    _ => Err(errno(libc::EINVAL)),
                };
                (time(a, nanoseconds(b)?), time(c, nanoseconds(d)?))
            }
            Clock::Nanoseconds => (time(a, b), time(c, d)),
        };
        Ok(Change::Times(Timestamps { last_access, last_modification }))
    }
}
