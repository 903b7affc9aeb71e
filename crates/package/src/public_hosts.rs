//! Hosts that metadata names: a stranger's word, and no way to what only this machine can reach.

use std::net::IpAddr;

use mcp_policy::HostName;

/// Whether an address is one that anybody could reach.
pub type IsPublic = fn(IpAddr) -> bool;

/// Whether metadata may name this host. A name in its plain spelling, whose addresses are judged when they
/// are known; or a public address. Not this machine by name, no pattern, and nothing that some resolvers
/// take for an address and others for a name (`2130706433`, `0x7f.1`, `127.1`).
pub fn may_be_named(host: &str, is_public: IsPublic) -> bool {
    let bare = match host.strip_prefix('[') {
        Some(rest) => rest.strip_suffix(']').unwrap_or(""),
        None => host,
    };
    match bare.parse::<IpAddr>() {
        Ok(ip) => is_public(ip.to_canonical()),
        Err(_) => bare
            .parse::<HostName>()
            .is_ok_and(|name| name.labels().next_back() != Some("localhost")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_public(ip: IpAddr) -> bool {
        match ip {
            IpAddr::V4(ip) => !ip.is_loopback() && !ip.is_private() && !ip.is_link_local(),
            IpAddr::V6(ip) => !ip.is_loopback() && ip.segments()[0] & 0xfe00 != 0xfc00,
        }
    }

    #[test]
    fn what_metadata_may_name() {
        for host in [
            "files.example",
            "FILES.example.",
            "xn--bcher-kva.example",
            "8.8.8.8",
            "[2606:4700::1]",
        ] {
            assert!(may_be_named(host, is_public), "{host}");
        }
        for host in [
            "127.0.0.9",
            "127.0.0.9.",
            "127.9",
            "2130706441",
            "0x7f000009",
            "0x7f.0.0.9",
            "0177.0.0.011",
            "0177.0.0.9.",
            "10.0.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "::1",
            "[::1]",
            "[::1",
            "[::ffff:127.0.0.9]",
            "[0:0:0:0:0:ffff:7f00:9]",
            "[fd00::1]",
            "localhost",
            "LOCALHOST.",
            "evil.localhost",
            "*.example",
            "files.example,tls=off",
            "user@files.example",
            "127.0.0.1%00.example",
            "\u{ff11}27.0.0.1",
            "",
        ] {
            assert!(!may_be_named(host, is_public), "{host}");
        }
    }
}
