//! Connections of a command that has no network of its own (no network namespace): the launcher makes
//! them, to its own proxy, and puts them in the place of the socket that the command wanted to connect.
//!
//! Stops: every way out but through the broker. The call is never let go on, so what the command's
//! memory says afterwards does not matter; it is read once, and only to know whether the proxy is meant
//! or an address that a rule spells out, which is led there directly. Needs Linux 5.9.
//!
//! Leaves open: options that were set on a socket before it was connected are lost, and so is what
//! was registered for it with epoll. A process whose memory cannot be read (not dumpable) is refused.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, getsockname, socket_with};

use crate::core::host::Ids;
use crate::linux::sys::{self, Cloexec, Notification, Verdict};
use crate::linux::syscall_proxy::{CallerMemory, Use};
use crate::linux::well_known::PROXY;
use mcp_net::broker::{Wanted, Watched};

/// How many of the last sockets are known to be connected already.
const REMEMBERED: usize = 4096;

pub struct ConnectProxy {
    /// Whose rights count, where they are not the launcher's.
    user: Option<Ids>,
    /// The inodes of what was handed out.
    installed: VecDeque<u64>,
}

/// A socket of the command's, as the kernel tells of it.
struct Theirs {
    inode: u64,
    flags: i32,
}

impl ConnectProxy {
    pub fn new(user: Option<Ids>) -> ConnectProxy {
        ConnectProxy { user, installed: VecDeque::new() }
    }

    pub fn answer(
        &mut self,
        listener: BorrowedFd<'_>,
        notification: &Notification,
        broker: &mut Watched<'_>,
    ) -> Verdict {
        match self.connect(listener, notification, broker) {
            Ok(verdict) => verdict,
            Err(e) => Verdict::Errno(e.raw_os_error().unwrap_or(libc::EACCES)),
        }
    }

    fn connect(
        &mut self,
        listener: BorrowedFd<'_>,
        notification: &Notification,
        broker: &mut Watched<'_>,
    ) -> io::Result<Verdict> {
        let [descriptor, ..] = notification.arguments;
        let descriptor = descriptor as i32;
        let to = self.destination(notification)?;
        let theirs = sys::look_as(self.user, || Theirs::look(notification.thread, descriptor))?;
        // Everything above was read of the thread that asks and not of a later one.
        if !sys::still_waits(listener, *notification) {
            return Err(errno(libc::ENOENT));
        }
        if self.installed.contains(&theirs.inode) {
            return Err(errno(libc::EISCONN));
        }
        let wanted = match to == PROXY {
            true => Wanted::Proxy,
            false if broker.allows(to) => Wanted::Address(to),
            false => return Err(errno(libc::ECONNREFUSED)),
        };
        let front = broker.frontend().ok_or_else(|| errno(libc::ECONNREFUSED))?;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let ours = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
        // With many waiting to be taken, it is there only once they are.
        let pending = match connect(&ours, &front) {
            Ok(()) => false,
            Err(rustix::io::Errno::INPROGRESS) => true,
            Err(e) => return Err(e.into()),
        };
        let from = SocketAddr::try_from(getsockname(&ours)?)?;
        broker.expect(from, wanted);
        let waits = theirs.flags & libc::O_NONBLOCK == 0;
        if waits {
            rustix::io::ioctl_fionbio(&ours, false)?;
        }
        let cloexec = match theirs.flags & libc::O_CLOEXEC {
            0 => Cloexec::No,
            _ => Cloexec::Yes,
        };
        sys::install_descriptor(listener, *notification, ours.as_fd(), descriptor, cloexec)?;
        self.remember(rustix::fs::fstat(&ours)?.st_ino);
        match pending && !waits {
            true => Err(errno(libc::EINPROGRESS)),
            false => Ok(Verdict::Done(0)),
        }
    }

    fn destination(&self, notification: &Notification) -> io::Result<SocketAddr> {
        let [_, address, length, ..] = notification.arguments;
        let mut bytes = [0; 28];
        let length = (length as u32 as usize).min(bytes.len());
        CallerMemory::of(notification.thread, self.user, Use::Read)
            .read(address, &mut bytes[..length])?;
        destination(&bytes[..length]).ok_or_else(|| errno(libc::EAFNOSUPPORT))
    }

    fn remember(&mut self, inode: u64) {
        if self.installed.len() >= REMEMBERED {
            self.installed.pop_front();
        }
        self.installed.push_back(inode);
    }
}

impl Theirs {
    fn look(thread: i32, descriptor: i32) -> io::Result<Theirs> {
        let link = fs::read_link(format!("/proc/{thread}/fd/{descriptor}"));
        let link = link.map_err(|_| errno(libc::EBADF))?;
        let inode = link
            .to_str()
            .and_then(|link| link.strip_prefix("socket:[")?.strip_suffix(']')?.parse::<u64>().ok());
        let info = fs::read_to_string(format!("/proc/{thread}/fdinfo/{descriptor}"))
            .map_err(|_| errno(libc::EBADF))?;
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
        let flags = flags.and_then(|flags| i32::from_str_radix(flags.trim(), 8).ok());
        Ok(Theirs {
            inode: inode.ok_or_else(|| errno(libc::ENOTSOCK))?,
            flags: flags.ok_or_else(|| errno(libc::EBADF))?,
        })
    }
}

fn errno(number: i32) -> io::Error {
    io::Error::from_raw_os_error(number)
}

/// The internet address in what a call to connect was given.
pub fn destination(bytes: &[u8]) -> Option<SocketAddr> {
    let family = u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?);
    let port = u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?);
    let ip = match i32::from(family) {
        libc::AF_INET => IpAddr::from(<[u8; 4]>::try_from(bytes.get(4..8)?).ok()?),
        libc::AF_INET6 => IpAddr::from(<[u8; 16]>::try_from(bytes.get(8..24)?).ok()?),
        _ => return None,
    };
    Some(SocketAddr::new(ip.to_canonical(), port))
}
