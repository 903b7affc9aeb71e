//! Unix sockets, raw sockets and the interfaces of the network namespace.

use std::fs;
use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixStream};

use crate::acts::network::look_up;
use crate::spec::{Args, Failure, Said};
use crate::sys::{Arg, call};

use super::command;

pub(crate) fn unix_connect(args: Args<'_>) -> Said {
    UnixStream::connect(args.path(0))?;
    Ok("connected".into())
}

pub(crate) fn unix_abstract(args: Args<'_>) -> Said {
    UnixStream::connect_addr(&SocketAddr::from_abstract_name(args.text(0).as_bytes())?)?;
    Ok("connected".into())
}

pub(crate) fn abstract_dgram_send(args: Args<'_>) -> Said {
    let address = SocketAddr::from_abstract_name(args.text(0).as_bytes())?;
    let sent = UnixDatagram::unbound()?.send_to_addr(b"mcp-probe", &address)?;
    Ok(format!("{sent} bytes"))
}

/// Makes a socket with the registers as typed: the kernel ignores their high halves.
pub(crate) fn socket(args: Args<'_>) -> Said {
    let fd = call(
        libc::SYS_socket,
        &mut [Arg::Num(args.number(0)?), Arg::Num(args.number(1)?), Arg::Num(args.number(2)?)],
    )?;
    call(libc::SYS_close, &mut [Arg::Num(fd)])?;
    Ok("made".into())
}

/// Connects by `sendto(MSG_FASTOPEN)`, which walks past a filter on `connect`.
pub(crate) fn fastopen(args: Args<'_>) -> Said {
    let target = look_up(&args.text(0))?;
    let Some(std::net::SocketAddr::V4(target)) = target.first() else {
        return Err(Failure::usage("needs an IPv4 address"));
    };
    let mut address = [0u8; 16];
    address[..2].copy_from_slice(&(libc::AF_INET as u16).to_ne_bytes());
    address[2..4].copy_from_slice(&target.port().to_be_bytes());
    address[4..8].copy_from_slice(&target.ip().octets());
    let family = Arg::Num(libc::AF_INET as u64);
    let kind = Arg::Num((libc::SOCK_STREAM | libc::SOCK_CLOEXEC) as u64);
    let fd = call(libc::SYS_socket, &mut [family, kind, Arg::Num(0)])?;
    let mut data = *b"mcp-probe";
    let length = data.len() as u64;
    let sent = call(
        libc::SYS_sendto,
        &mut [
            Arg::Num(fd),
            Arg::Bytes(&mut data),
            Arg::Num(length),
            Arg::Num(libc::MSG_FASTOPEN as u64),
            Arg::Bytes(&mut address),
            Arg::Num(16),
        ],
    );
    call(libc::SYS_close, &mut [Arg::Num(fd)])?;
    Ok(format!("{} bytes", sent?))
}

/// One line per interface: name, `up` or `down`, IPv4 address, then IPv6 addresses by name.
pub(crate) fn interfaces(_: Args<'_>) -> Said {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0")?;
    let mut lines = Vec::new();
    for line in fs::read_to_string("/proc/self/net/dev")?.lines().skip(2) {
        let name = line.split(':').next().unwrap_or_default().trim();
        let flags = ask(&socket, command!(SIOCGIFFLAGS), name)
            .map(|answer| u16::from_ne_bytes([answer[16], answer[17]]));
        let up = flags.is_ok_and(|flags| i32::from(flags) & libc::IFF_UP != 0);
        let address = ask(&socket, command!(SIOCGIFADDR), name).map_or_else(
            |_| "-".to_owned(),
            |answer| {
                std::net::Ipv4Addr::new(answer[20], answer[21], answer[22], answer[23]).to_string()
            },
        );
        lines.push(format!("{name} {} {address}", if up { "up" } else { "down" }));
    }
    if let Ok(table) = fs::read_to_string("/proc/self/net/if_inet6") {
        for line in table.lines() {
            let mut words = line.split_whitespace();
            if let (Some(address), Some(name)) = (words.next(), words.next_back()) {
                lines.push(format!("{name} inet6 {address}"));
            }
        }
    }
    Ok(lines.join("\n"))
}

/// One `ifreq` question: 16 bytes of name, 24 of answer.
fn ask(socket: &impl AsRawFd, command: Arg<'_>, name: &str) -> Result<[u8; 40], Failure> {
    let mut request = [0u8; 40];
    let length = name.len().min(15);
    request[..length].copy_from_slice(&name.as_bytes()[..length]);
    let fd = Arg::Num(socket.as_raw_fd() as u64);
    call(libc::SYS_ioctl, &mut [fd, command, Arg::Bytes(&mut request)])?;
    Ok(request)
}
