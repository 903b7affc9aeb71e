//! `/etc/resolv.conf`: which servers to ask, and how patiently.
//!
//! `search`, `domain` and `ndots` are not used: a rule names a host in full, so a name is
//! looked up as it is written, and a short name stays short.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

/// As many as the C library takes.
const MAX_SERVERS: usize = 3;

/// The settings of `resolv.conf`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Resolv {
    /// At least one.
    pub servers: Vec<Server>,
    /// How long an answer may take.
    pub timeout: Duration,
    /// How often each server is asked.
    pub attempts: usize,
    /// Whether the first question goes over UDP or TCP.
    pub start: Start,
}

/// A name server.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Server {
    /// Its address.
    pub ip: IpAddr,
    /// The interface of a link-local address, `eth0` in `fe80::1%eth0`.
    pub zone: Option<String>,
}

/// `options use-vc`: ask over TCP at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Start {
    /// Over UDP, and over TCP if the answer is too long.
    Udp,
    /// Over TCP.
    Tcp,
}

impl Default for Resolv {
    /// What the C library does without the file: the server on this host.
    fn default() -> Self {
        let server = Server { ip: Ipv4Addr::LOCALHOST.into(), zone: None };
        Self {
            servers: vec![server],
            timeout: Duration::from_secs(5),
            attempts: 2,
            start: Start::Udp,
        }
    }
}

impl Resolv {
    /// What cannot be read is skipped, as the C library does.
    pub fn read(text: &str) -> Self {
        let mut resolv = Self::default();
        let mut servers = Vec::new();
        for line in text.lines().filter(|line| !line.starts_with(['#', ';'])) {
            let mut words = line.split_ascii_whitespace();
            match words.next() {
                Some("nameserver") => {
                    servers.extend(words.next().and_then(server));
                }
                Some("options") => words.for_each(|word| resolv.option(word)),
                _ => {}
            }
        }
        servers.truncate(MAX_SERVERS);
        if !servers.is_empty() {
            resolv.servers = servers;
        }
        resolv
    }

    fn option(&mut self, word: &str) {
        let number = |text: &str| text.parse::<u64>().ok().filter(|number| *number > 0);
        match word.split_once(':') {
            Some(("timeout", value)) => {
                if let Some(seconds) = number(value) {
                    self.timeout = Duration::from_secs(seconds.min(30));
                }
            }
            Some(("attempts", value)) => {
                if let Some(count) = number(value) {
                    self.attempts = usize::try_from(count.min(5)).unwrap_or(5);
                }
            }
            None if word == "use-vc" => self.start = Start::Tcp,
            _ => {}
        }
    }
}

fn server(word: &str) -> Option<Server> {
    let (ip, zone) = match word.split_once('%') {
        Some((ip, zone)) => (ip, Some(zone.to_owned())),
        None => (word, None),
    };
    Some(Server { ip: ip.parse().ok()?, zone })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_whole_file() {
        let resolv = Resolv::read(
            "# made by hand\n;nameserver 9.9.9.9\ndomain x\nsearch a b\nnameserver 192.0.2.1\n\
             nameserver nonsense\nnameserver\t2001:db8::1 # two\nnameserver fe80::1%eth0\n\
             nameserver 192.0.2.4\noptions edns0 timeout:2 attempts:9 ndots:5 use-vc\noptions timeout:0",
        );
        let server = |ip: &str, zone: Option<&str>| Server {
            ip: ip.parse().unwrap(),
            zone: zone.map(str::to_owned),
        };
        let expected = Resolv {
            servers: vec![
                server("192.0.2.1", None),
                server("2001:db8::1", None),
                server("fe80::1", Some("eth0")),
            ],
            timeout: Duration::from_secs(2),
            attempts: 5,
            start: Start::Tcp,
        };
        assert_eq!(resolv, expected);
    }

    #[test]
    fn an_empty_file_means_this_host() {
        assert_eq!(Resolv::read(""), Resolv::default());
        assert_eq!(Resolv::read("nameserver x\noptions timeout:x"), Resolv::default());
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".*|(nameserver|options)( [a-z0-9:%.]{0,12}){0,3}") {
            let resolv = Resolv::read(&text);
            prop_assert!((1..=MAX_SERVERS).contains(&resolv.servers.len()));
            prop_assert!((1..=5).contains(&resolv.attempts) && !resolv.timeout.is_zero());
        }
    }
}
