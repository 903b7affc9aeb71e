//! `/etc/hosts`: names that the host's owner gave addresses to.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use mcp_policy::HostName;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hosts {
    names: HashMap<HostName, Vec<IpAddr>>,
}

impl Hosts {
    /// Lines that cannot be read are skipped, as the C library does.
    pub fn read(text: &str) -> Self {
        let mut names: HashMap<HostName, Vec<IpAddr>> = HashMap::new();
        for line in text.lines() {
            let line = line.split('#').next().unwrap_or("");
            let mut words = line.split_ascii_whitespace();
            // An address with a zone (fe80::1%eth0) means nothing without its interface.
            let Some(ip) = words.next().and_then(|word| word.parse::<IpAddr>().ok()) else {
                continue;
            };
            for name in words.filter_map(|word| word.parse().ok()) {
                let addresses = names.entry(name).or_default();
                if !addresses.contains(&ip) {
                    addresses.push(ip);
                }
            }
        }
        Self { names }
    }

    /// The addresses in the file's order. `localhost` and what is below it are the loopback
    /// whatever the file says (RFC 6761), and no server is asked about them.
    pub fn addresses(&self, name: &HostName) -> Option<Vec<IpAddr>> {
        if name.labels().next_back() == Some("localhost") {
            return Some(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]);
        }
        self.names.get(name).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, name: &str) -> Vec<String> {
        let addresses = Hosts::read(text).addresses(&name.parse().unwrap()).unwrap_or_default();
        addresses.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn lines() {
        let text = "127.0.0.1 localhost\n# 10.0.0.9 no.example\n\
                    10.0.0.1\tDB.example db # the database\n10.0.0.2 db.example.\n\
                    ::1 v6.example\nfe80::1%eth0 zone.example\nnonsense x.example\n10.0.0.1 db.example";
        assert_eq!(found(text, "db.example"), ["10.0.0.1", "10.0.0.2"]);
        assert_eq!(found(text, "db"), ["10.0.0.1"]);
        assert_eq!(found(text, "v6.example"), ["::1"]);
        for none in ["no.example", "zone.example", "x.example", "example", "database"] {
            assert_eq!(found(text, none), [""; 0], "{none}");
        }
    }

    #[test]
    fn localhost_is_the_loopback() {
        let text = "192.0.2.1 localhost evil.localhost";
        assert_eq!(found(text, "localhost"), ["127.0.0.1", "::1"]);
        assert_eq!(found(text, "evil.localhost"), ["127.0.0.1", "::1"]);
    }
}
