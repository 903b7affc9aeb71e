//! What a sandbox has inside, whatever is asked for: whose it is, and the addresses of its launcher.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Inside, a run that root started is this ordinary user …
pub const ROOT_BECOMES: u32 = 1000;
/// … and outside it is an id that no account and no container range uses.
pub const ROOT_BECOMES_OUTSIDE: u32 = 0x7000_6d63;

/// Loopback, so that it is there without a route, but where no program has a server of its own.
pub const RESOLVER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, 18, 0, 53)), 53);

/// What proxy variables name. No server listens there: who connects to it is connected to the proxy.
pub const PROXY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, 18, 0, 53)), 3128);
