//! Init's side of the network: makes sockets inside, at the start and whenever the launcher asks,
//! and hands them out. It never uses one itself, and the command never holds one.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::net::sockopt::{self, Timeout};
use rustix::net::{
    AddressFamily, SocketFlags, SocketType, bind, connect, ipproto, listen, socket_with,
};
use serde::{Deserialize, Serialize};

use crate::linux::channel::{Channel, MOST_DESCRIPTORS};
use crate::linux::sandbox_socket::{Refused, SandboxSocket};
use crate::linux::sys;

/// Connections that may wait to be taken; the kernel's own bound is the same.
const BACKLOG: i32 = 4096;

/// Init answers at once unless something is badly wrong, and then nothing else works either.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Debug, Serialize, Deserialize)]
struct SocketRequest(Vec<SandboxSocket>);

/// Zero or an error number for each socket that was asked for; those made come with the message.
#[derive(Debug, Serialize, Deserialize)]
struct Made(Vec<i32>);

/// Init's end.
pub struct SocketFactory(Channel);

/// The launcher's end.
pub struct Orders(Channel);

pub fn pair() -> io::Result<(Orders, SocketFactory)> {
    let (ours, theirs) = Channel::pair()?;
    sockopt::set_socket_timeout(&ours, Timeout::Recv, Some(PATIENCE))?;
    Ok((Orders(ours), SocketFactory(theirs)))
}

impl SocketFactory {
    /// Makes what the command must find at its start. IPv6 may be missing, and so may what only tells of refusals.
    pub fn stock(
        &self,
        sandbox_sockets: &[SandboxSocket],
    ) -> Result<usize, (SandboxSocket, io::Error)> {
        let mut count = 0;
        for part in sandbox_sockets.chunks(MOST_DESCRIPTORS) {
            let made: Vec<_> = part.iter().map(|sandbox_socket| make(*sandbox_socket)).collect();
            for (sandbox_socket, made) in part.iter().zip(&made) {
                match made {
                    Ok(_) => count += 1,
                    Err(_) if sandbox_socket.needs_ipv6() || sandbox_socket.only_tells() => {}
                    Err(e) => {
                        let errno = e.raw_os_error().unwrap_or(libc::EIO);
                        return Err((*sandbox_socket, io::Error::from_raw_os_error(errno)));
                    }
                }
            }
            if let Err(error) = self.hand_out(&made) {
                return Err((part[0], error));
            }
        }
        Ok(count)
    }

    /// Answers one order. `false` when the launcher will send no more.
    pub fn serve(&self) -> io::Result<bool> {
        let Some((SocketRequest(sandbox_sockets), _)) = self.0.receive_all::<SocketRequest>()?
        else {
            return Ok(false);
        };
        let made: Vec<_> = sandbox_sockets
            .iter()
            .take(MOST_DESCRIPTORS)
            .map(|sandbox_socket| make(*sandbox_socket))
            .collect();
        self.hand_out(&made)?;
        Ok(true)
    }

    fn hand_out(&self, made: &[io::Result<OwnedFd>]) -> io::Result<()> {
        let errno = |made: &io::Result<OwnedFd>| match made {
            Ok(_) => 0,
            Err(e) => e.raw_os_error().unwrap_or(libc::EIO),
        };
        let fds: Vec<_> =
            made.iter().filter_map(|made| Some(made.as_ref().ok()?.as_fd())).collect();
        self.0.send_with(&Made(made.iter().map(errno).collect()), &fds)
    }
}

impl AsFd for SocketFactory {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Orders {
    /// What init made at the start, in the order in which it was planned.
    pub fn collect(
        &self,
        sandbox_sockets: &[SandboxSocket],
    ) -> io::Result<Vec<(SandboxSocket, OwnedFd)>> {
        let mut sockets = Vec::new();
        for part in sandbox_sockets.chunks(MOST_DESCRIPTORS) {
            let made = self.made()?;
            sockets.extend(
                part.iter()
                    .zip(made)
                    .filter_map(|(sandbox_socket, made)| Some((*sandbox_socket, made.ok()?))),
            );
        }
        Ok(sockets)
    }

    /// Asks for sockets and waits for them.
    pub fn order(&self, sandbox_sockets: &[SandboxSocket]) -> io::Result<Vec<io::Result<OwnedFd>>> {
        let mut sockets = Vec::with_capacity(sandbox_sockets.len());
        for part in sandbox_sockets.chunks(MOST_DESCRIPTORS) {
            self.0.send(&SocketRequest(part.to_vec()))?;
            sockets.extend(self.made()?);
        }
        Ok(sockets)
    }

    fn made(&self) -> io::Result<Vec<io::Result<OwnedFd>>> {
        let Some((Made(errnos), fds)) = self.0.receive_all::<Made>()? else {
            return Err(io::Error::from_raw_os_error(libc::EPIPE));
        };
        let mut fds = fds.into_iter();
        let missing = || io::Error::from_raw_os_error(libc::EPROTO);
        Ok(errnos
            .into_iter()
            .map(|errno| match errno {
                0 => fds.next().ok_or_else(missing),
                errno => Err(io::Error::from_raw_os_error(errno)),
            })
            .collect())
    }
}

fn make(sandbox_socket: SandboxSocket) -> io::Result<OwnedFd> {
    match sandbox_socket {
        SandboxSocket::Listener(at) => {
            let socket = bound(SocketType::STREAM, at)?;
            // The connections that are taken have it too: small packets go out at once.
            sockopt::set_tcp_nodelay(&socket, true)?;
            listen(&socket, BACKLOG)?;
            Ok(socket)
        }
        SandboxSocket::Datagrams(at) => bound(SocketType::DGRAM, at),
        SandboxSocket::Connection(to) => {
            let socket = open(SocketType::STREAM, to.ip())?;
            match connect(&socket, &to) {
                Ok(()) | Err(rustix::io::Errno::INPROGRESS) => Ok(socket),
                Err(e) => Err(e.into()),
            }
        }
        SandboxSocket::Refusals(refused) => refusals(refused),
    }
}

fn open(kind: SocketType, family: IpAddr) -> io::Result<OwnedFd> {
    let family = if family.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    Ok(socket_with(family, kind, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)?)
}

fn bound(kind: SocketType, at: SocketAddr) -> io::Result<OwnedFd> {
    let socket = open(kind, at.ip())?;
    if at.is_ipv6() {
        // A local route makes an address ours for IPv4; IPv6 wants to be told.
        sockopt::set_ipv6_freebind(&socket, true)?;
        sockopt::set_ipv6_v6only(&socket, true)?;
    }
    // Connections of an earlier listener at this address may still be closing.
    sockopt::set_socket_reuseaddr(&socket, kind == SocketType::STREAM)?;
    bind(&socket, &at)?;
    Ok(socket)
}

/// A raw socket sees a copy of every packet of its protocol; the filter keeps those that say
/// that no server listens.
fn refusals(refused: Refused) -> io::Result<OwnedFd> {
    let (family, protocol) = match refused {
        Refused::Tcp4 => (AddressFamily::INET, ipproto::TCP),
        Refused::Tcp6 => (AddressFamily::INET6, ipproto::TCP),
        Refused::Udp4 => (AddressFamily::INET, ipproto::ICMP),
        Refused::Udp6 => (AddressFamily::INET6, ipproto::ICMPV6),
    };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(family, SocketType::RAW, flags, Some(protocol))?;
    sys::attach_filter(socket.as_fd(), filter(refused))?;
    Ok(socket)
}

type Op = (u16, u8, u8, u32);

const KEEP: Op = (0x06, 0, 0, 256);
const DROP: Op = (0x06, 0, 0, 0);

/// IPv4 comes with its header, IPv6 without.
const fn filter(refused: Refused) -> &'static [Op] {
    const HEADER: Op = (0xb1, 0, 0, 0);
    match refused {
        // A reset that answers a first packet has the sequence number zero.
        Refused::Tcp4 => &[
            HEADER,
            (0x50, 0, 0, 13),
            (0x45, 0, 3, 0x04),
            (0x40, 0, 0, 4),
            (0x15, 0, 1, 0),
            KEEP,
            DROP,
        ],
        Refused::Tcp6 => {
            &[(0x30, 0, 0, 13), (0x45, 0, 3, 0x04), (0x20, 0, 0, 4), (0x15, 0, 1, 0), KEEP, DROP]
        }
        // Destination unreachable, port unreachable.
        Refused::Udp4 => &[HEADER, (0x48, 0, 0, 0), (0x15, 0, 1, 0x0303), KEEP, DROP],
        Refused::Udp6 => &[(0x28, 0, 0, 0), (0x15, 0, 1, 0x0104), KEEP, DROP],
    }
}
