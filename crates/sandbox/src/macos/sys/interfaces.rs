//! The networks that this machine's interfaces are in.

use std::io;
use std::net::IpAddr;
use std::ptr;

use super::check;
use mcp_net::address::Networks;

/// The addresses and networks of all interfaces.
pub fn own_networks() -> io::Result<Networks> {
    let mut first: *mut libc::ifaddrs = ptr::null_mut();
    // SAFETY: the call stores one pointer, to a list that is ours until freeifaddrs.
    check(unsafe { libc::getifaddrs(&raw mut first) })?;
    let mut networks = Networks::default();
    let mut next = first;
    // SAFETY: `next` is null or an entry of the list, which is freed only below.
    while let Some(entry) = unsafe { next.as_ref() } {
        next = entry.ifa_next;
        // SAFETY: the pointers of an entry are null or lead to addresses that the list holds.
        let (address, mask, peer) =
            unsafe { (read(entry.ifa_addr), read(entry.ifa_netmask), read(entry.ifa_dstaddr)) };
        let Some(ip) = address.and_then(Address::ip) else {
            continue;
        };
        let prefix = mask.map_or(128, |mask| mask.prefix(ip));
        networks.add(ip, prefix);
        // Of a broadcast network it is the broadcast address.
        let has_peer = entry.ifa_flags & libc::IFF_POINTOPOINT as libc::c_uint != 0;
        if let Some(peer) = peer.filter(|_| has_peer).and_then(Address::ip) {
            networks.add_on_link(peer, prefix);
        }
    }
    // SAFETY: the list came from getifaddrs and nothing points into it any more.
    unsafe { libc::freeifaddrs(first) };
    Ok(networks)
}

/// As much of a `sockaddr` as there is; the rest is zero. A mask is often cut behind its last bit.
#[derive(Clone, Copy)]
struct Address([u8; size_of::<libc::sockaddr_in6>()]);

/// Where the address is in a `sockaddr_in` and a `sockaddr_in6`.
const V4: std::ops::Range<usize> = 4..8;
const V6: std::ops::Range<usize> = 8..24;

impl Address {
    fn ip(self) -> Option<IpAddr> {
        match i32::from(self.0[1]) {
            libc::AF_INET => <[u8; 4]>::try_from(&self.0[V4]).ok().map(IpAddr::from),
            libc::AF_INET6 => <[u8; 16]>::try_from(&self.0[V6]).ok().map(IpAddr::from),
            _ => None,
        }
    }

    /// The ones that a mask begins with. Its family is not always said: that of the address is meant.
    fn prefix(self, of: IpAddr) -> u8 {
        let bytes = if of.is_ipv4() { &self.0[V4] } else { &self.0[V6] };
        let whole = bytes.iter().take_while(|byte| **byte == 0xff).count();
        let more = bytes.get(whole).map_or(0, |byte| byte.leading_ones());
        (whole * 8 + more as usize) as u8
    }
}

/// `None` for what has no length, as a mask that is not there.
///
/// # Safety
/// `address` has to be null or lead to a `sockaddr` of the length that it says.
unsafe fn read(address: *const libc::sockaddr) -> Option<Address> {
    let start: *const u8 = address.cast();
    // SAFETY: null, or by the caller's word at least its first byte, which is its length.
    let length = usize::from(*unsafe { start.as_ref() }?);
    let mut bytes = [0; size_of::<libc::sockaddr_in6>()];
    // SAFETY: as many bytes as it says are there, and no more than fit are taken.
    unsafe { ptr::copy_nonoverlapping(start, bytes.as_mut_ptr(), length.min(bytes.len())) };
    (length > 0).then_some(Address(bytes))
}
