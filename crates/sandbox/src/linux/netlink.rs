//! Addresses and routes of the sandbox's own network, by rtnetlink.
//!
//! A namespace of its own has only `lo`. Here it gets an ordinary address of each family, because
//! C libraries ask for names only in families that an interface has an address of, and a route
//! that makes every address local to it (AnyIP): what is sent anywhere arrives at one of our
//! listeners or is refused at once, and never waits for an answer that cannot come. No other
//! interface exists, so nothing of it can leave.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::OwnedFd;

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};

/// `lo` is the first interface of every namespace.
const LOOPBACK: u32 = 1;

pub(super) const REQUEST: u16 = 0x1;
const ACKNOWLEDGE: u16 = 0x4;
const EXCLUSIVE: u16 = 0x200;
const CREATE: u16 = 0x400;

pub(super) const RTM_NEWADDR: u16 = 20;
const RTM_NEWROUTE: u16 = 24;
pub(super) const NLMSG_ERROR: u16 = 2;

pub(super) const IFA_ADDRESS: u16 = 1;
pub(super) const IFA_LOCAL: u16 = 2;
const RTA_OIF: u16 = 4;
const RTA_PREFSRC: u16 = 7;

/// No search for duplicates: no other host is there.
const IFA_F_NODAD: u8 = 0x02;
const SCOPE_UNIVERSE: u8 = 0;
const SCOPE_HOST: u8 = 254;
const TABLE_LOCAL: u8 = 255;
/// Any number that the kernel has no table of its own for.
const TABLE_REFUSING: u8 = 100;
/// The kernel's own rules end at 32767.
const AFTER_DEFAULT: u32 = 40_000;
const RTM_NEWRULE: u16 = 32;
const RTM_DELRULE: u16 = 33;
const FRA_DST: u16 = 1;
const FRA_PRIORITY: u16 = 6;
const FRA_IP_PROTO: u16 = 22;
const ACTION_LOOK_UP: u8 = 1;
const PROTOCOL_STATIC: u8 = 4;
const TYPE_LOCAL: u8 = 2;

/// Gives `lo` this address and makes every address of its family local, with it as the source.
pub fn everything_is_local(own: IpAddr) -> io::Result<()> {
    // Without a protocol it is the one for routes, whose number is zero.
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    let mut bytes = address(own, 1);
    bytes.extend(route(own, TABLE_LOCAL, 2));
    send(&socket, &bytes, SendFlags::empty())?;
    // Errors are always answered, success only for the last.
    let mut answer = [0; 4096];
    let (length, _) = recv(&socket, &mut answer, RecvFlags::empty())?;
    match errno(&answer[..length]) {
        Some(0) => Ok(()),
        Some(errno) => Err(io::Error::from_raw_os_error(errno)),
        None => Err(io::Error::from_raw_os_error(libc::EPROTO)),
    }
}

/// Makes every address local for TCP alone, and gives `lo` none: a connection is refused at once, and can be heard of. Datagrams
/// still have no route: who sends one is told so, and waits for no answer. IPv6 may be missing.
pub fn connections_are_refused() -> io::Result<()> {
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    let (v4, v6) = (IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST));
    // The kernel answers a connection over IPv4 only where its table of local addresses has the one that it was made
    // to, so there TCP alone must look, and all else find the loopback's own network. Both rules are there before the one
    // that they replace goes.
    let rules = [
        rule(&RoutingRule { of: v4, only: Only::Own, table: TABLE_LOCAL, priority: 3 }, 1),
        rule(&RoutingRule { of: v4, only: Only::Tcp, table: TABLE_LOCAL, priority: 5 }, 2),
    ];
    ask(&socket, &rules.concat(), 2)?;
    ask(&socket, &[without_first_rule(v4, 1), route(v4, TABLE_LOCAL, 2)].concat(), 2)?;
    let late =
        RoutingRule { of: v6, only: Only::Tcp, table: TABLE_REFUSING, priority: AFTER_DEFAULT };
    let _ = ask(&socket, &[route(v6, TABLE_REFUSING, 1), rule(&late, 2)].concat(), 2);
    Ok(())
}

/// Has the kernel do what these messages say; each of them is acknowledged.
fn ask(socket: &OwnedFd, messages: &[u8], count: usize) -> io::Result<()> {
    send(socket, messages, SendFlags::empty())?;
    let mut answer = [0; 4096];
    for _ in 0..count {
        let (length, _) = recv(socket, &mut answer, RecvFlags::empty())?;
        match errno(&answer[..length]) {
            Some(0) => {}
            Some(errno) => return Err(io::Error::from_raw_os_error(errno)),
            None => return Err(io::Error::from_raw_os_error(libc::EPROTO)),
        }
    }
    Ok(())
}

/// Who looks into a table, and when.
struct RoutingRule {
    of: IpAddr,
    only: Only,
    table: u8,
    priority: u32,
}

enum Only {
    /// What is sent to 127.0.0.0/8.
    Own,
    /// Since Linux 4.17.
    Tcp,
}

fn rule(rule: &RoutingRule, sequence: u32) -> Vec<u8> {
    let (family, _) = parts(rule.of);
    let width = if matches!(rule.only, Only::Own) { 8 } else { 0 };
    let mut body = rule_head(family, width, rule.table, rule.priority);
    match rule.only {
        Only::Own => attribute(&mut body, FRA_DST, &[127, 0, 0, 0]),
        Only::Tcp => attribute(&mut body, FRA_IP_PROTO, &[libc::IPPROTO_TCP as u8]),
    }
    message(RTM_NEWRULE, REQUEST | ACKNOWLEDGE | CREATE | EXCLUSIVE, sequence, &body)
}

/// Removes the rule by which everything looks into the table of local addresses first.
fn without_first_rule(of: IpAddr, sequence: u32) -> Vec<u8> {
    let body = rule_head(parts(of).0, 0, TABLE_LOCAL, 0);
    message(RTM_DELRULE, REQUEST | ACKNOWLEDGE, sequence, &body)
}

fn rule_head(family: u8, width: u8, table: u8, priority: u32) -> Vec<u8> {
    let mut body = vec![family, width, 0, 0, table, 0, 0, ACTION_LOOK_UP];
    body.extend(0u32.to_ne_bytes());
    attribute(&mut body, FRA_PRIORITY, &priority.to_ne_bytes());
    body
}

fn address(own: IpAddr, sequence: u32) -> Vec<u8> {
    let (family, octets) = parts(own);
    let width = octets.len() as u8 * 8;
    let mut body = vec![family, width, IFA_F_NODAD, SCOPE_UNIVERSE];
    body.extend(LOOPBACK.to_ne_bytes());
    attribute(&mut body, IFA_LOCAL, &octets);
    attribute(&mut body, IFA_ADDRESS, &octets);
    message(RTM_NEWADDR, REQUEST | CREATE | EXCLUSIVE, sequence, &body)
}

fn route(source: IpAddr, table: u8, sequence: u32) -> Vec<u8> {
    let (family, octets) = parts(source);
    // No destination attribute and a prefix of zero bits: everything.
    let mut body = vec![family, 0, 0, 0, table, PROTOCOL_STATIC, SCOPE_HOST, TYPE_LOCAL];
    body.extend(0u32.to_ne_bytes());
    attribute(&mut body, RTA_OIF, &LOOPBACK.to_ne_bytes());
    attribute(&mut body, RTA_PREFSRC, &octets);
    message(RTM_NEWROUTE, REQUEST | ACKNOWLEDGE | CREATE | EXCLUSIVE, sequence, &body)
}

fn parts(ip: IpAddr) -> (u8, Vec<u8>) {
    match ip {
        IpAddr::V4(ip) => (libc::AF_INET as u8, ip.octets().to_vec()),
        IpAddr::V6(ip) => (libc::AF_INET6 as u8, ip.octets().to_vec()),
    }
}

pub(super) fn attribute(body: &mut Vec<u8>, kind: u16, value: &[u8]) {
    body.extend((4 + value.len() as u16).to_ne_bytes());
    body.extend(kind.to_ne_bytes());
    body.extend(value);
    body.resize(body.len().next_multiple_of(4), 0);
}

pub(super) fn message(kind: u16, flags: u16, sequence: u32, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(16 + body.len());
    bytes.extend((16 + body.len() as u32).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    bytes.extend(sequence.to_ne_bytes());
    bytes.extend(0u32.to_ne_bytes());
    bytes.extend(body);
    bytes
}

/// The error number of an answer; zero is success.
fn errno(answer: &[u8]) -> Option<i32> {
    let kind = answer.get(4..6)?.try_into().ok().map(u16::from_ne_bytes)?;
    let errno = answer.get(16..20)?.try_into().ok().map(i32::from_ne_bytes)?;
    (kind == NLMSG_ERROR).then_some(-errno)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_padded_to_four_bytes() {
        let mut body = Vec::new();
        attribute(&mut body, 3, b"lo\0");
        assert_eq!(body.len(), 8);
        assert_eq!(body[..2], 7u16.to_ne_bytes());
    }

    #[test]
    fn an_answer_is_an_error_number() {
        let body = |errno: i32| message(NLMSG_ERROR, 0, 1, &errno.to_ne_bytes());
        assert_eq!(errno(&body(0)), Some(0));
        assert_eq!(errno(&body(-libc::EEXIST)), Some(libc::EEXIST));
        assert_eq!(errno(&body(0)[..10]), None);
        assert_eq!(errno(&message(RTM_NEWADDR, 0, 1, &[0; 4])), None);
    }
}
