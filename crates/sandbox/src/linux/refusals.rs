//! Hears what the sandbox's own kernel refuses, so that the user can be told: the reset that
//! answers a connection to a closed port, the message that answers a datagram to one.

use std::io;
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, OwnedFd};

use mcp_policy::Protocol;
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use rustix::net::{RecvFlags, recvfrom};

use crate::linux::sandbox_socket::Refused;
use mcp_net::broker::{Keep, Watched, Watcher};

/// The command can make as many as it likes, and the rest has to be served too.
const MOST_AT_ONCE: usize = 32;

pub struct Refusals {
    kind: Refused,
    socket: OwnedFd,
}

impl Refusals {
    pub fn new(kind: Refused, socket: OwnedFd) -> Refusals {
        Refusals { kind, socket }
    }
}

impl Watcher for Refusals {
    fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        registry.register(&mut SourceFd(&self.socket.as_raw_fd()), token, Interest::READABLE)
    }

    fn ready(&mut self, broker: &mut Watched<'_>) -> Keep {
        for _ in 0..MOST_AT_ONCE {
            let mut packet = [MaybeUninit::uninit(); 256];
            let received = recvfrom(&self.socket, packet.as_mut_slice(), RecvFlags::empty());
            let Ok(((packet, _), _, from)) = received else {
                return Keep::Listening;
            };
            let from = from.and_then(|from| SocketAddr::try_from(from).ok()).map(|from| from.ip());
            if let Some((protocol, to)) = refused(self.kind, packet, from) {
                broker.nobody_listens(protocol, to);
            }
        }
        Keep::Busy
    }
}

/// What was tried. IPv4 comes with its header, IPv6 without.
fn refused(kind: Refused, packet: &[u8], from: Option<IpAddr>) -> Option<(Protocol, SocketAddr)> {
    match kind {
        Refused::Tcp4 => {
            let source = address4(packet, 12)?;
            let port = number(packet, header4(packet)?)?;
            Some((Protocol::Tcp, SocketAddr::new(source, port)))
        }
        Refused::Tcp6 => Some((Protocol::Tcp, SocketAddr::new(from?, number(packet, 0)?))),
        Refused::Udp4 => {
            let original = packet.get(header4(packet)? + 8..)?;
            let is_udp = original.get(9) == Some(&17);
            let target = address4(original, 16)?;
            let port = number(original, header4(original)? + 2)?;
            is_udp.then_some((Protocol::Udp, SocketAddr::new(target, port)))
        }
        Refused::Udp6 => {
            let original = packet.get(8..)?;
            let is_udp = original.get(6) == Some(&17);
            let octets: [u8; 16] = original.get(24..40)?.try_into().ok()?;
            let target = IpAddr::V6(Ipv6Addr::from(octets));
            is_udp.then_some((Protocol::Udp, SocketAddr::new(target, number(original, 42)?)))
        }
    }
}

fn header4(packet: &[u8]) -> Option<usize> {
    packet.first().map(|first| usize::from(first & 0xf) * 4)
}

fn address4(packet: &[u8], at: usize) -> Option<IpAddr> {
    let octets: [u8; 4] = packet.get(at..at + 4)?.try_into().ok()?;
    Some(IpAddr::V4(Ipv4Addr::from(octets)))
}

fn number(packet: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(packet.get(at..at + 2)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(hex: &str) -> Vec<u8> {
        (0..hex.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
            .collect()
    }

    #[test]
    fn resets_name_what_was_tried() {
        let packet = bytes(
            "4500002800004000400670b701020304c612000101bbc4c000000000fea9e3e2501400003caf0000",
        );
        let to = (Protocol::Tcp, "1.2.3.4:443".parse().unwrap());
        assert_eq!(refused(Refused::Tcp4, &packet, None), Some(to));
        let packet = bytes("01bba60400000000c912b94450140000ce000000");
        let from = Some("2606:4700::1".parse().unwrap());
        let to = (Protocol::Tcp, "[2606:4700::1]:443".parse().unwrap());
        assert_eq!(refused(Refused::Tcp6, &packet, from), Some(to));
    }

    #[test]
    fn what_is_cut_short_says_nothing() {
        for kind in Refused::ALL {
            for length in 0..20 {
                assert_eq!(refused(kind, &vec![0x4f; length], None), None, "{kind:?} {length}");
            }
        }
    }
}
