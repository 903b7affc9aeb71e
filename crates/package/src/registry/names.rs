//! Who finds the addresses of hosts: not the C library, see `mcp_net::lookup`.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};

use ureq::Error;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;

use crate::public_hosts::IsPublic;

/// Addresses of a host, in the order to be tried.
pub type Lookup = fn(&str) -> io::Result<Vec<IpAddr>>;

pub(super) struct BoundedResolver {
    pub lookup: Lookup,
    /// What may be connected to, where that is not everything. The user's proxy always may.
    pub only: Option<IsPublic>,
}

/// As many as are worth a try, and as many as there is room for.
const MOST: usize = 16;

impl fmt::Debug for BoundedResolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Names")
    }
}

impl Resolver for BoundedResolver {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        _: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, Error> {
        let host = uri.host().ok_or(Error::HostNotFound)?;
        let port = uri.port_u16().or_else(|| match uri.scheme_str()? {
            "https" => Some(443),
            "http" => Some(80),
            _ => Some(1080),
        });
        let found = (self.lookup)(host)?;
        let is_proxy = config.proxy().is_some_and(|proxy| proxy.host() == host);
        let may = |ip: &IpAddr| is_proxy || self.only.is_none_or(|is_public| is_public(*ip));
        let mut addresses = self.empty();
        for ip in found.into_iter().filter(may).take(MOST) {
            addresses.push(SocketAddr::new(ip, port.unwrap_or(443)));
        }
        if addresses.is_empty() { Err(Error::HostNotFound) } else { Ok(addresses) }
    }
}
