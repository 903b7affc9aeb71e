//! From the registers and the memory of who asks to what is asked for.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use rustix::fs::Timestamps;

use super::errno;
use super::memory::{CallerMemory, Clock, Use};
use crate::linux::sys::Notification;
use mcp_seccomp::plain::call;
use mcp_seccomp::{Arch, Number};

/// A file as the asker names it.
pub enum Named {
    At { directory: i32, path: PathBuf, follow: Follow },
    Descriptor(i32),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Follow {
    Yes,
    No,
}

/// What is to be done with it.
pub enum ProxiedCall {
    Mode(u32),
    Owner(u32, u32),
    Times(Timestamps),
    SetAttribute { name: OsString, value: Vec<u8>, flags: u32 },
    RemoveAttribute { name: OsString },
    Length(u64),
    ReadAttribute { name: OsString, into: Room },
    ListAttributes { into: Room },
}

/// Where the asker wants an answer, and how long it may be; of no length it asks how long it is.
#[derive(Clone, Copy)]
pub struct Room {
    pub at: u64,
    pub size: u64,
}

const READS: [Number; 4] = [call::GETXATTR, call::LGETXATTR, call::LISTXATTR, call::LLISTXATTR];

const CHANGES: [Number; 19] = [
    call::CHMOD,
    call::FCHMOD,
    call::FCHMODAT,
    call::FCHMODAT2,
    call::CHOWN,
    call::FCHOWN,
    call::LCHOWN,
    call::FCHOWNAT,
    call::UTIME,
    call::UTIMES,
    call::FUTIMESAT,
    call::UTIMENSAT,
    call::SETXATTR,
    call::LSETXATTR,
    call::FSETXATTR,
    call::REMOVEXATTR,
    call::LREMOVEXATTR,
    call::FREMOVEXATTR,
    call::TRUNCATE,
];

const SIGNALS: [Number; 6] = [
    call::KILL,
    call::TKILL,
    call::TGKILL,
    call::RT_SIGQUEUEINFO,
    call::RT_TGSIGQUEUEINFO,
    call::PIDFD_SEND_SIGNAL,
];

/// Which memory of the asker a call needs; `None` for a call that another part of the launcher answers.
pub fn needs(arch: Arch, notification: &Notification) -> Option<Option<Use>> {
    let is_one_of = |calls: &[Number]| calls.iter().any(|call| is(arch, notification, *call));
    if is_one_of(&CHANGES) {
        Some(Some(Use::Read))
    } else if is_one_of(&READS) {
        Some(Some(Use::ReadWrite))
    } else {
        is_one_of(&SIGNALS).then_some(None)
    }
}

pub fn is(arch: Arch, notification: &Notification, call: Number) -> bool {
    call.on(arch).is_some_and(|number| i64::from(number) == i64::from(notification.number))
}

/// A call about a file. `None` if it is about none.
pub struct Parser<'a> {
    pub arch: Arch,
    pub notification: &'a Notification,
    pub memory: &'a CallerMemory,
}

type ParsedCall = io::Result<(Named, ProxiedCall)>;

impl Parser<'_> {
    pub fn parse(&self) -> Option<ParsedCall> {
        self.mode_or_owner()
            .or_else(|| self.times())
            .or_else(|| self.change())
            .or_else(|| self.read())
    }

    fn is(&self, call: Number) -> bool {
        is(self.arch, self.notification, call)
    }

    fn mode_or_owner(&self) -> Option<ParsedCall> {
        let [a, b, c, d, e, _] = self.notification.arguments;
        let mode = |mode: u64| ProxiedCall::Mode(mode as u32);
        let owner = |uid: u64, gid: u64| ProxiedCall::Owner(uid as u32, gid as u32);
        let (named, act) = if self.is(call::CHMOD) {
            (self.here(a, Follow::Yes), mode(b))
        } else if self.is(call::FCHMOD) {
            (Ok(Named::Descriptor(a as i32)), mode(b))
        } else if self.is(call::FCHMODAT) {
            (self.at(a, b, Follow::Yes), mode(c))
        } else if self.is(call::FCHMODAT2) {
            (self.by_flags(a, b, d), mode(c))
        } else if self.is(call::CHOWN) {
            (self.here(a, Follow::Yes), owner(b, c))
        } else if self.is(call::LCHOWN) {
            (self.here(a, Follow::No), owner(b, c))
        } else if self.is(call::FCHOWN) {
            (Ok(Named::Descriptor(a as i32)), owner(b, c))
        } else if self.is(call::FCHOWNAT) {
            (self.by_flags(a, b, e), owner(c, d))
        } else {
            return None;
        };
        Some(named.map(|named| (named, act)))
    }

    fn times(&self) -> Option<ParsedCall> {
        let [a, b, c, d, ..] = self.notification.arguments;
        let descriptor = || Ok(Named::Descriptor(a as i32));
        let (named, times) = if self.is(call::UTIMENSAT) {
            let named = if b == 0 { descriptor() } else { self.by_flags(a, b, d) };
            (named, self.memory.times(c, Clock::Nanoseconds))
        } else if self.is(call::UTIMES) {
            (self.here(a, Follow::Yes), self.memory.times(b, Clock::Microseconds))
        } else if self.is(call::FUTIMESAT) {
            let named = if b == 0 { descriptor() } else { self.at(a, b, Follow::Yes) };
            (named, self.memory.times(c, Clock::Microseconds))
        } else if self.is(call::UTIME) {
            (self.here(a, Follow::Yes), self.memory.times(b, Clock::Seconds))
        } else {
            return None;
        };
        Some(named.and_then(|named| Ok((named, ProxiedCall::Times(times?)))))
    }

    fn change(&self) -> Option<ParsedCall> {
        let [a, b, c, d, e, _] = self.notification.arguments;
        let set = || -> io::Result<ProxiedCall> {
            let (name, value) = (self.memory.name(b)?, self.memory.value(c, d)?);
            Ok(ProxiedCall::SetAttribute { name, value, flags: e as u32 })
        };
        let remove = || Ok(ProxiedCall::RemoveAttribute { name: self.memory.name(b)? });
        let descriptor = || Ok(Named::Descriptor(a as i32));
        let (named, act) = if self.is(call::SETXATTR) {
            (self.here(a, Follow::Yes), set())
        } else if self.is(call::LSETXATTR) {
            (self.here(a, Follow::No), set())
        } else if self.is(call::FSETXATTR) {
            (descriptor(), set())
        } else if self.is(call::REMOVEXATTR) {
            (self.here(a, Follow::Yes), remove())
        } else if self.is(call::LREMOVEXATTR) {
            (self.here(a, Follow::No), remove())
        } else if self.is(call::FREMOVEXATTR) {
            (descriptor(), remove())
        } else if self.is(call::TRUNCATE) {
            (self.here(a, Follow::Yes), Ok(ProxiedCall::Length(b)))
        } else {
            return None;
        };
        Some(named.and_then(|named| Ok((named, act?))))
    }

    fn read(&self) -> Option<ParsedCall> {
        let [a, b, c, d, ..] = self.notification.arguments;
        let value = || -> io::Result<ProxiedCall> {
            let into = Room { at: c, size: d };
            Ok(ProxiedCall::ReadAttribute { name: self.memory.name(b)?, into })
        };
        let list = || Ok(ProxiedCall::ListAttributes { into: Room { at: b, size: c } });
        let (named, act) = if self.is(call::GETXATTR) {
            (self.here(a, Follow::Yes), value())
        } else if self.is(call::LGETXATTR) {
            (self.here(a, Follow::No), value())
        } else if self.is(call::LISTXATTR) {
            (self.here(a, Follow::Yes), list())
        } else if self.is(call::LLISTXATTR) {
            (self.here(a, Follow::No), list())
        } else {
            return None;
        };
        Some(named.and_then(|named| Ok((named, act?))))
    }

    fn here(&self, path: u64, follow: Follow) -> io::Result<Named> {
        self.at(libc::AT_FDCWD as u64, path, follow)
    }

    fn at(&self, directory: u64, path: u64, follow: Follow) -> io::Result<Named> {
        Ok(Named::At { directory: directory as i32, path: self.memory.path(path)?, follow })
    }

    fn by_flags(&self, directory: u64, path: u64, flags: u64) -> io::Result<Named> {
        const KNOWN: i32 = libc::AT_EMPTY_PATH | libc::AT_SYMLINK_NOFOLLOW;
        let flags = flags as i32;
        if flags & !KNOWN != 0 {
            return Err(errno(libc::EINVAL));
        }
        if flags & libc::AT_EMPTY_PATH != 0 && self.memory.path(path)?.as_os_str().is_empty() {
            return Ok(Named::Descriptor(directory as i32));
        }
        let follow = flags & libc::AT_SYMLINK_NOFOLLOW == 0;
        self.at(directory, path, if follow { Follow::Yes } else { Follow::No })
    }
}
