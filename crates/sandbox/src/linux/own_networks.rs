//! The networks of the host's own interfaces, by rtnetlink (`RTM_GETADDR`).
//!
//! What an allowed name must not lead to is decided by this list, so a list that may lack something
//! is an error: a message that is cut or not understood, a dump that was disturbed more than once.

use std::io;
use std::net::IpAddr;

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};

use super::netlink::{IFA_ADDRESS, IFA_LOCAL, NLMSG_ERROR, REQUEST, RTM_NEWADDR, message};
use mcp_net::address::Networks;

const DUMP: u16 = 0x300;
const RTM_GETADDR: u16 = 22;
const NLMSG_NOOP: u16 = 1;
const NLMSG_DONE: u16 = 3;
/// The addresses changed while they were listed.
const DUMP_INTERRUPTED: u16 = 0x10;

/// The kernel sends no more than this at once to who has room for it.
const ROOM: usize = 64 << 10;
/// How often a list is asked for that changes meanwhile.
const TRIES: usize = 8;

/// Of the namespace that this thread is in.
pub fn own_networks() -> io::Result<Networks> {
    for _ in 0..TRIES {
        if let Some(networks) = list()? {
            return Ok(networks);
        }
    }
    Err(io::Error::other("the list of the host's addresses does not stop changing"))
}

/// `None` when it changed meanwhile.
fn list() -> io::Result<Option<Networks>> {
    // Without a protocol it is the one for routes, whose number is zero.
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    send(&socket, &message(RTM_GETADDR, REQUEST | DUMP, 1, &[0; 8]), SendFlags::empty())?;
    let mut reader = NetlinkReader::default();
    let mut room = vec![0; ROOM];
    while !reader.is_done {
        // With TRUNC the length is the message's own, of which there may be more than room.
        let (_, length) = match recv(&socket, &mut room[..], RecvFlags::TRUNC) {
            Err(rustix::io::Errno::INTR) => continue,
            received => received?,
        };
        reader.read(room.get(..length).filter(|bytes| !bytes.is_empty()).ok_or_else(cut)?)?;
    }
    Ok((!reader.is_disturbed).then_some(reader.found))
}

fn cut() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the kernel's list of addresses is cut off")
}

#[derive(Debug, Default)]
struct NetlinkReader {
    found: Networks,
    is_done: bool,
    is_disturbed: bool,
}

impl NetlinkReader {
    /// Reads the messages of one datagram.
    fn read(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let header = bytes.first_chunk::<16>().ok_or_else(cut)?;
            let length = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]) as usize;
            let kind = u16::from_ne_bytes([header[4], header[5]]);
            let flags = u16::from_ne_bytes([header[6], header[7]]);
            let body = bytes.get(16..length).ok_or_else(cut)?;
            self.is_disturbed |= flags & DUMP_INTERRUPTED != 0;
            match kind {
                RTM_NEWADDR => self.address(body)?,
                NLMSG_NOOP => {}
                // Both begin with an error number, which is zero where all went well.
                NLMSG_DONE | NLMSG_ERROR => {
                    let number = body.first_chunk::<4>().copied().map_or(0, i32::from_ne_bytes);
                    if number != 0 || kind == NLMSG_ERROR {
                        return Err(io::Error::from_raw_os_error(number.saturating_neg()));
                    }
                    self.is_done = true;
                }
                _ => return Err(cut()),
            }
            bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        }
        Ok(())
    }

    /// One `ifaddrmsg` and its attributes. With a peer, `IFA_LOCAL` is the own address and
    /// `IFA_ADDRESS` the other end's, which the prefix is of; else they are the same, or the
    /// first is not there.
    fn address(&mut self, body: &[u8]) -> io::Result<()> {
        let [_family, prefix, ..] = *body.first_chunk::<8>().ok_or_else(cut)?;
        let (mut local, mut address) = (None, None);
        let mut rest = body.get(8..).unwrap_or_default();
        while !rest.is_empty() {
            let [a, b, c, d] = *rest.first_chunk::<4>().ok_or_else(cut)?;
            let size = usize::from(u16::from_ne_bytes([a, b]));
            let value = rest.get(4..size).ok_or_else(cut)?;
            match u16::from_ne_bytes([c, d]) {
                IFA_LOCAL => local = Some(ip(value).ok_or_else(cut)?),
                IFA_ADDRESS => address = Some(ip(value).ok_or_else(cut)?),
                _ => {}
            }
            rest = rest.get(size.next_multiple_of(4)..).unwrap_or_default();
        }
        match (local, address) {
            (Some(local), Some(peer)) if local != peer => {
                self.found.add(local, full(local));
                self.found.add_on_link(peer, prefix);
            }
            (Some(own), _) | (None, Some(own)) => self.found.add(own, prefix),
            (None, None) => {}
        }
        Ok(())
    }
}

fn full(ip: IpAddr) -> u8 {
    if ip.is_ipv4() { 32 } else { 128 }
}

fn ip(octets: &[u8]) -> Option<IpAddr> {
    let four = || <[u8; 4]>::try_from(octets).ok().map(IpAddr::from);
    four().or_else(|| <[u8; 16]>::try_from(octets).ok().map(IpAddr::from))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::netlink::attribute;
    use super::*;

    fn address(prefix: u8, attributes: &[(u16, &str)]) -> Vec<u8> {
        let mut body = vec![2, prefix, 0, 0, 1, 0, 0, 0];
        for (kind, ip) in attributes {
            match ip.parse().unwrap() {
                IpAddr::V4(ip) => attribute(&mut body, *kind, &ip.octets()),
                IpAddr::V6(ip) => attribute(&mut body, *kind, &ip.octets()),
            }
        }
        // The label, which is not of our concern, and needs padding.
        attribute(&mut body, 3, b"eth0\0");
        message(RTM_NEWADDR, 2, 1, &body)
    }

    fn done(number: i32) -> Vec<u8> {
        message(NLMSG_DONE, 2, 1, &number.to_ne_bytes())
    }

    fn read(bytes: &[u8]) -> io::Result<NetlinkReader> {
        let mut reader = NetlinkReader::default();
        reader.read(bytes).map(|()| reader)
    }

    #[test]
    fn a_list_is_read_to_its_end() {
        let bytes = [
            address(24, &[(IFA_ADDRESS, "192.0.2.7"), (IFA_LOCAL, "192.0.2.7")]),
            address(64, &[(IFA_ADDRESS, "2001:db8::7")]),
            address(32, &[(IFA_ADDRESS, "10.8.0.1"), (IFA_LOCAL, "10.8.0.2")]),
        ];
        let mut expected = Networks::default();
        expected.add("192.0.2.7".parse().unwrap(), 24);
        expected.add("2001:db8::7".parse().unwrap(), 64);
        expected.add("10.8.0.2".parse().unwrap(), 32);
        expected.add_on_link("10.8.0.1".parse().unwrap(), 32);
        let reader = read(&bytes.concat()).unwrap();
        assert_eq!((&reader.found, reader.is_done), (&expected, false));
        let reader = read(&[&bytes.concat()[..], &done(0)].concat()).unwrap();
        assert_eq!((&reader.found, reader.is_done), (&expected, true));
    }

    #[test]
    fn what_may_be_incomplete_is_an_error() {
        let good = address(24, &[(IFA_LOCAL, "192.0.2.7")]);
        assert_eq!(read(&done(-libc::EMFILE)).unwrap_err().raw_os_error(), Some(libc::EMFILE));
        let refused = message(NLMSG_ERROR, 0, 1, &(-libc::EPERM).to_ne_bytes());
        assert_eq!(read(&refused).unwrap_err().raw_os_error(), Some(libc::EPERM));
        assert!(read(&message(NLMSG_ERROR, 0, 1, &[0; 4])).is_err(), "an answer without a list");
        assert!(read(&message(99, 0, 1, &[0; 8])).is_err(), "another message");
        for length in 1..good.len() {
            assert!(read(&good[..length]).is_err(), "{length}");
        }
        let mut disturbed = good;
        disturbed[6] |= DUMP_INTERRUPTED as u8;
        assert!(read(&disturbed).unwrap().is_disturbed);
    }

    #[test]
    fn this_host_has_a_loopback() {
        let own = own_networks().unwrap();
        assert_ne!(own, Networks::default());
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&bytes);
        }
    }
}
