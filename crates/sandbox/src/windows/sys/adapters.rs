//! The machine's own addresses, and the name servers it asks.

use std::io;
use std::net::{IpAddr, Ipv6Addr};

use windows_sys::Win32::Foundation::ERROR_BUFFER_OVERFLOW;
use windows_sys::Win32::NetworkManagement::IpHelper::{
    GAA_FLAG_SKIP_ANYCAST, GAA_FLAG_SKIP_FRIENDLY_NAME, GAA_FLAG_SKIP_MULTICAST,
    GetAdaptersAddresses, IP_ADAPTER_ADDRESSES_LH,
};
use windows_sys::Win32::NetworkManagement::Ndis::IfOperStatusUp;
use windows_sys::Win32::Networking::WinSock::{
    AF_INET, AF_INET6, AF_UNSPEC, SOCKADDR_IN, SOCKADDR_IN6, SOCKET_ADDRESS,
};

use super::check_code;
use mcp_net::address::Networks;
use mcp_net::resolv::Server;

/// One network adapter that is up.
#[derive(Debug, Clone)]
struct Adapter {
    metric: u32,
    /// Each with the prefix of its network.
    addresses: Vec<(IpAddr, u8)>,
    servers: Vec<Server>,
}

/// The networks of all adapters that are up.
pub fn own_networks() -> io::Result<Networks> {
    let mut networks = Networks::default();
    for (ip, prefix) in adapters()?.into_iter().flat_map(|adapter| adapter.addresses) {
        networks.add(ip, prefix);
    }
    Ok(networks)
}

/// Those of the adapter that is used first come first.
pub fn name_servers() -> io::Result<Vec<Server>> {
    let mut adapters = adapters()?;
    adapters.sort_by_key(|adapter| adapter.metric);
    let mut servers: Vec<Server> = Vec::new();
    for server in adapters.into_iter().flat_map(|adapter| adapter.servers) {
        if !servers.contains(&server) {
            servers.push(server);
        }
    }
    Ok(servers)
}

fn adapters() -> io::Result<Vec<Adapter>> {
    let flags = GAA_FLAG_SKIP_ANYCAST | GAA_FLAG_SKIP_MULTICAST | GAA_FLAG_SKIP_FRIENDLY_NAME;
    let mut size: u32 = 16 << 10;
    // The list may have grown between two calls.
    for _ in 0..4 {
        let mut buffer = vec![0u64; (size as usize).div_ceil(size_of::<u64>())];
        let first: *mut IP_ADAPTER_ADDRESSES_LH = buffer.as_mut_ptr().cast();
        // SAFETY: the buffer has the size that is said, and the alignment of a pointer.
        let code = unsafe {
            GetAdaptersAddresses(
                u32::from(AF_UNSPEC),
                flags,
                std::ptr::null(),
                first,
                &raw mut size,
            )
        };
        if code == ERROR_BUFFER_OVERFLOW {
            continue;
        }
        check_code(code)?;
        // SAFETY: the call has filled the buffer with a list, whose pointers lead into the buffer or nowhere.
        return Ok(unsafe { read(first) });
    }
    Err(io::Error::other("the list of network adapters does not stop growing"))
}

/// # Safety
/// `next` has to be null or the beginning of a list that lives through the call.
unsafe fn read(mut next: *const IP_ADAPTER_ADDRESSES_LH) -> Vec<Adapter> {
    let mut all = Vec::new();
    // SAFETY: by the caller's word, for this entry and all that it leads to.
    while let Some(entry) = unsafe { next.as_ref() } {
        next = entry.Next;
        if entry.OperStatus != IfOperStatusUp {
            continue;
        }
        let (mut addresses, mut servers) = (Vec::new(), Vec::new());
        let mut unicast = entry.FirstUnicastAddress;
        // SAFETY: as above.
        while let Some(address) = unsafe { unicast.as_ref() } {
            unicast = address.Next;
            // SAFETY: as above.
            let found = unsafe { ip(&address.Address) };
            addresses.extend(found.map(|(ip, _)| (ip, address.OnLinkPrefixLength)));
        }
        let mut server = entry.FirstDnsServerAddress;
        // SAFETY: as above.
        while let Some(address) = unsafe { server.as_ref() } {
            server = address.Next;
            // SAFETY: as above.
            let found = unsafe { ip(&address.Address) }.filter(|(ip, _)| !is_placeholder(*ip));
            servers.extend(
                found.map(|(ip, scope)| Server {
                    ip,
                    zone: (scope != 0).then(|| scope.to_string()),
                }),
            );
        }
        all.push(Adapter { metric: entry.Ipv4Metric, addresses, servers });
    }
    all
}

/// fec0:0:0:ffff::1 and its two neighbours stand where no server is configured.
fn is_placeholder(ip: IpAddr) -> bool {
    let no_server = Ipv6Addr::new(0xfec0, 0, 0, 0xffff, 0, 0, 0, 0).segments();
    matches!(ip, IpAddr::V6(ip) if ip.segments()[..7] == no_server[..7])
}

/// An address, and the adapter it is meant on.
///
/// # Safety
/// The pointer in it has to be null or lead to as many bytes as it says.
unsafe fn ip(address: &SOCKET_ADDRESS) -> Option<(IpAddr, u32)> {
    let length = usize::try_from(address.iSockaddrLength).ok()?;
    // SAFETY: null, or at least a family by the caller's word.
    let family = unsafe { address.lpSockaddr.as_ref() }?.sa_family;
    if family == AF_INET && length >= size_of::<SOCKADDR_IN>() {
        // SAFETY: of this family and length it is this structure.
        let v4: SOCKADDR_IN = unsafe { std::ptr::read_unaligned(address.lpSockaddr.cast()) };
        // SAFETY: all members of the union are the same four bytes.
        let bytes = unsafe { v4.sin_addr.S_un.S_addr }.to_ne_bytes();
        return Some((IpAddr::from(bytes), 0));
    }
    if family == AF_INET6 && length >= size_of::<SOCKADDR_IN6>() {
        // SAFETY: of this family and length it is this structure.
        let v6: SOCKADDR_IN6 = unsafe { std::ptr::read_unaligned(address.lpSockaddr.cast()) };
        // SAFETY: all members of the unions are the same bytes.
        let (bytes, scope) = unsafe { (v6.sin6_addr.u.Byte, v6.Anonymous.sin6_scope_id) };
        return Some((IpAddr::from(bytes), scope));
    }
    None
}
