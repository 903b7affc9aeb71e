//! A destination: a host name or an address, and a port.
//!
//! Spellings that resolvers take for addresses (`127.1`, `0x7f.1`, `2130706433`) are neither
//! names nor addresses here, so that no reader downstream can read them as one.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use mcp_policy::HostName;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Target {
    Name(HostName),
    /// IPv4 in IPv6 clothes (`::ffff:a.b.c.d`) is IPv4.
    Ip(IpAddr),
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Endpoint {
    pub target: Target,
    pub port: u16,
}

impl Target {
    /// Reads a name, an IPv4 address, or an IPv6 address without brackets.
    pub fn parse(text: &str) -> Option<Self> {
        match text.parse::<IpAddr>() {
            Ok(ip) => Some(Self::Ip(ip.to_canonical())),
            Err(_) => text.parse().ok().map(Self::Name),
        }
    }

    /// Reads the host part of a URL or a Host header: IPv6 in brackets only.
    fn parse_bracketed(text: &str) -> Option<Self> {
        match text.strip_prefix('[') {
            Some(inside) => {
                let ip: Ipv6Addr = inside.strip_suffix(']')?.parse().ok()?;
                Some(Self::Ip(IpAddr::V6(ip).to_canonical()))
            }
            None if text.contains(':') => None,
            None => Self::parse(text),
        }
    }
}

/// Reads `host` or `host:port` as URLs and Host headers write it.
pub fn authority(text: &str) -> Option<(Target, Option<u16>)> {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (text, None),
    };
    let target = Target::parse_bracketed(host)?;
    match port {
        // `host:` is allowed by the URL grammar and means the default port.
        None | Some("") => Some((target, None)),
        Some(port) => Some((target, Some(port_number(port)?))),
    }
}

fn port_number(text: &str) -> Option<u16> {
    let digits = text.len() <= 5 && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|port| digits && *port != 0)
}

impl Endpoint {
    /// Reads `host:port`; the port must be there.
    pub fn parse(text: &str) -> Option<Self> {
        let (target, port) = authority(text)?;
        Some(Self { target, port: port? })
    }
}

/// As in a URL: IPv6 in brackets.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => name.fmt(f),
            Self::Ip(ip @ IpAddr::V4(_)) => ip.fmt(f),
            Self::Ip(ip @ IpAddr::V6(_)) => write!(f, "[{ip}]"),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.target, self.port)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_spellings() {
        for (text, shown) in [
            ("API.example.com.:443", Some("api.example.com:443")),
            ("127.0.0.1:80", Some("127.0.0.1:80")),
            ("[::1]:80", Some("[::1]:80")),
            ("[::ffff:127.0.0.1]:80", Some("127.0.0.1:80")),
            ("a.example", None),
            ("a.example:", None),
            ("a.example:0", None),
            ("a.example:+80", None),
            ("a.example:65536", None),
            ("a.example:000080", None),
            ("::1:80", None),
            ("[::1%lo]:80", None),
            ("[a.example]:80", None),
            ("127.1:80", None),
            ("0x7f.1:80", None),
            ("2130706433:80", None),
            ("evil\0.example:80", None),
            ("user@a.example:80", None),
            ("a.example:80:80", None),
            ("", None),
            (":80", None),
        ] {
            let read = Endpoint::parse(text).map(|endpoint| endpoint.to_string());
            assert_eq!(read.as_deref(), shown, "{text:?}");
        }
        assert_eq!(authority("a.example").map(|read| read.1), Some(None));
        assert_eq!(authority("a.example:").map(|read| read.1), Some(None));
        assert_eq!(authority("[::1]").map(|read| read.1), Some(None));
    }

    proptest! {
        #[test]
        fn what_is_shown_reads_back(text in "[a-z0-9.:\\[\\]]{0,24}") {
            if let Some(endpoint) = Endpoint::parse(&text) {
                prop_assert_eq!(Endpoint::parse(&endpoint.to_string()), Some(endpoint));
            }
        }

        #[test]
        fn no_text_panics(text in ".*") {
            let _ = Endpoint::parse(&text);
        }
    }
}
