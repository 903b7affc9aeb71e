//! The addresses of this machine.

use std::io;
use std::net::IpAddr;
use std::ptr;

use super::check;

/// All addresses of all interfaces.
pub fn own_addresses() -> io::Result<Vec<IpAddr>> {
    let mut first: *mut libc::ifaddrs = ptr::null_mut();
    // SAFETY: the call stores one pointer, to a list that is ours until freeifaddrs.
    check(unsafe { libc::getifaddrs(&raw mut first) })?;
    let mut addresses = Vec::new();
    let mut next = first;
    // SAFETY: `next` is null or an entry of the list, which is freed only below.
    while let Some(entry) = unsafe { next.as_ref() } {
        // SAFETY: an address is null or one that the list holds.
        if let Some(address) = unsafe { entry.ifa_addr.as_ref() } {
            match i32::from(address.sa_family) {
                libc::AF_INET => {
                    // SAFETY: of this family it is a sockaddr_in, which may lie anywhere.
                    let address: libc::sockaddr_in =
                        unsafe { ptr::read_unaligned(entry.ifa_addr.cast()) };
                    addresses.push(IpAddr::from(address.sin_addr.s_addr.to_ne_bytes()));
                }
                libc::AF_INET6 => {
                    // SAFETY: of this family it is a sockaddr_in6, which may lie anywhere.
                    let address: libc::sockaddr_in6 =
                        unsafe { ptr::read_unaligned(entry.ifa_addr.cast()) };
                    addresses.push(IpAddr::from(address.sin6_addr.s6_addr));
                }
                _ => {}
            }
        }
        next = entry.ifa_next;
    }
    // SAFETY: the list came from getifaddrs and nothing points into it any more.
    unsafe { libc::freeifaddrs(first) };
    Ok(addresses)
}
