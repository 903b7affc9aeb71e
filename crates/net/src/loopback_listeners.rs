//! Who listens on the host's loopback, by the kernel's own tables (`/proc/net/tcp`, `/proc/net/tcp6`). Nothing is
//! connected to: a service is not to notice that a command asked for it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

/// How old the list may be.
const READ_AGAIN: Duration = Duration::from_secs(1);

/// Lists the sockets that listen on the host.
pub type ListListeners = Box<dyn Fn() -> Vec<SocketAddr> + Send>;

/// The sockets that listen on the host. The command decides how often it asks, and a table of a busy host is long, so
/// it is read at most once a second.
pub struct HostListeners {
    list: ListListeners,
    known: Vec<SocketAddr>,
    read: Option<Instant>,
}

impl HostListeners {
    /// Nothing is read before the first question.
    #[must_use]
    pub fn new(list: ListListeners) -> HostListeners {
        HostListeners { list, known: Vec::new(), read: None }
    }

    /// Whether one of them takes a connection to this address.
    pub fn take(&mut self, to: SocketAddr, now: Instant) -> bool {
        if self.read.is_none_or(|read| now >= read + READ_AGAIN) {
            (self.known, self.read) = ((self.list)(), Some(now));
        }
        is_taken_by(self.known.iter().copied(), to)
    }
}

/// The sockets that listen in one table: `sl local_address rem_address st …`, state 0A, addresses in hexadecimal words
/// of the machine's own byte order.
pub fn listeners(table: &str) -> impl Iterator<Item = SocketAddr> {
    table.lines().skip(1).filter_map(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let (local, state) = (fields.next()?, fields.nth(1)?);
        let (address, port) = local.split_once(':')?;
        let port = u16::from_str_radix(port, 16).ok()?;
        (state == "0A").then_some(SocketAddr::new(ip(address)?, port))
    })
}

fn ip(hex: &str) -> Option<IpAddr> {
    let word = |at: usize| u32::from_str_radix(hex.get(at..at + 8)?, 16).ok();
    match hex.len() {
        8 => Some(Ipv4Addr::from(word(0)?.to_ne_bytes()).into()),
        32 => {
            let mut octets = [0; 16];
            for (at, part) in octets.chunks_exact_mut(4).enumerate() {
                part.copy_from_slice(&word(at * 8)?.to_ne_bytes());
            }
            Some(Ipv6Addr::from(octets).to_canonical())
        }
        _ => None,
    }
}

/// Whether a connection to this address would be taken by one of these: it is at that address, or at every one. A
/// socket at `::` takes IPv4 too, unless it was told not to, which the tables do not say.
pub fn is_taken_by(listeners: impl IntoIterator<Item = SocketAddr>, to: SocketAddr) -> bool {
    let ip = to.ip().to_canonical();
    listeners.into_iter().any(|at| {
        let is_everywhere = at.ip().is_unspecified() && (ip.is_ipv4() || at.is_ipv6());
        at.port() == to.port() && (at.ip() == ip || is_everywhere)
    })
}

/// The host's tables, as far as they can be read. Other systems have none, and a file of that name there proves nothing.
#[must_use]
pub fn on_this_host() -> Vec<SocketAddr> {
    if !cfg!(target_os = "linux") {
        return Vec::new();
    }
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    let texts = tables.iter().filter_map(|table| std::fs::read_to_string(table).ok());
    texts.flat_map(|text| listeners(&text).collect::<Vec<_>>()).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[cfg(target_endian = "little")]
    #[test]
    fn the_kernel_s_tables_are_read() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue\n\
            \x20  0: 0100007F:1538 00000000:0000 0A 00000000:00000000 00:00000000\n\
            \x20  1: 0100007F:D431 0100007F:1538 01 00000000:00000000\n\
            \x20  2: 00000000:0050 00000000:0000 0A 00000000:00000000\n\
            \x20  3: nonsense\n\
            \x20  4: 00000000000000000000000001000000:0BB8 00:0000 0A 0\n";
        let found: Vec<String> = listeners(table).map(|at| at.to_string()).collect();
        assert_eq!(found, ["127.0.0.1:5432", "0.0.0.0:80", "[::1]:3000"]);
    }

    #[test]
    fn a_service_takes_what_is_sent_to_it() {
        let at = |text: &str| text.parse::<SocketAddr>().unwrap();
        for (listener, to, expected) in [
            ("127.0.0.1:5432", "127.0.0.1:5432", true),
            ("127.0.0.1:5432", "[::ffff:127.0.0.1]:5432", true),
            ("127.0.0.1:5432", "127.0.0.1:5433", false),
            ("127.0.0.1:5432", "127.0.0.2:5432", false),
            ("127.0.0.1:5432", "[::1]:5432", false),
            ("0.0.0.0:80", "127.0.0.9:80", true),
            ("0.0.0.0:80", "[::1]:80", false),
            ("[::]:80", "[::1]:80", true),
            ("[::]:80", "127.0.0.1:80", true),
            ("[::1]:80", "127.0.0.1:80", false),
        ] {
            assert_eq!(is_taken_by([at(listener)], at(to)), expected, "{listener} {to}");
        }
    }

    #[test]
    fn the_list_is_read_once_a_second() {
        let (count, at) = (Arc::new(AtomicUsize::new(0)), SocketAddr::from(([127, 0, 0, 1], 5432)));
        let counted = count.clone();
        let list = move || match counted.fetch_add(1, Ordering::SeqCst) {
            0 => Vec::new(),
            _ => vec![at],
        };
        let mut host = HostListeners::new(Box::new(list));
        let start = Instant::now();
        for millis in 0..1_000 {
            assert!(!host.take(at, start + Duration::from_millis(millis)));
        }
        assert_eq!(count.load(Ordering::SeqCst), 1);
        assert!(host.take(at, start + READ_AGAIN), "a service that has started since is found");
        assert_eq!(count.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn this_host_s_own_are_found() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let is_there = || is_taken_by(on_this_host(), at);
        assert_eq!(is_there(), cfg!(target_os = "linux"));
        drop(listener);
        assert!(!is_there());
    }
}
