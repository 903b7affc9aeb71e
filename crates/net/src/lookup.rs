//! Addresses of a name for this program itself, blocking.
//!
//! On Linux the servers of `/etc/resolv.conf` are asked directly, after `/etc/hosts`: the C
//! library's own lookup loads the host's NSS modules into the process, and into a static one they
//! do not fit. Names that only those modules know (mDNS, LDAP, short names with a search domain)
//! are asked of `getent`, which is a program of the host's, where it is there. Other systems'
//! lookups are called.

use std::io;
use std::net::IpAddr;

/// In the order to be tried; not empty.
pub fn addresses(host: &str) -> io::Result<Vec<IpAddr>> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    match bare.parse() {
        Ok(ip) => Ok(vec![ip]),
        Err(_) => named(bare),
    }
}

#[cfg(not(target_os = "linux"))]
fn named(host: &str) -> io::Result<Vec<IpAddr>> {
    use std::net::ToSocketAddrs;
    (host, 0).to_socket_addrs().map(|found| found.map(|address| address.ip()).collect())
}

#[cfg(target_os = "linux")]
use linux::named;

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::HashMap;
    use std::time::{Duration, Instant};

    use mcp_policy::HostName;
    use mio::{Events, Interest, Poll, Token};

    use super::*;
    use crate::broker::{NameServers, Socket, configured};
    use crate::nss::{self, Domains};
    use crate::query::{Act, Exchange, Outcome, Resolver};

    pub fn named(host: &str) -> io::Result<Vec<IpAddr>> {
        let unknown = |why| io::Error::new(io::ErrorKind::NotFound, why);
        let name: HostName = host.parse().map_err(|_| unknown("is no name of a host"))?;
        let outcome = LookupRun::new(configured(NameServers::ResolvConf))?.ask(&name)?;
        match outcome {
            Outcome::Addresses(addresses) => Ok(addresses),
            other => match nss::ask(&name, Domains::Tried) {
                found if !found.is_empty() => Ok(found),
                _ if other == Outcome::Unanswered => Err(unknown("no name server answers")),
                _ => Err(unknown("no such name")),
            },
        }
    }

    /// One lookup, its questions and their sockets.
    struct LookupRun {
        resolver: Resolver,
        poll: Poll,
        sockets: HashMap<Exchange, (Token, Socket)>,
        count: usize,
    }

    impl LookupRun {
        fn new(resolver: Resolver) -> io::Result<LookupRun> {
            Ok(LookupRun { resolver, poll: Poll::new()?, sockets: HashMap::new(), count: 0 })
        }

        fn ask(&mut self, name: &HostName) -> io::Result<Outcome> {
            let mut events = Events::with_capacity(16);
            let mut acts = self.resolver.resolve(Instant::now(), name);
            loop {
                if let Some(outcome) = self.perform(acts) {
                    return Ok(outcome);
                }
                let wait = self.resolver.deadline().map(|at| {
                    at.saturating_duration_since(Instant::now()) + Duration::from_millis(1)
                });
                match self.poll.poll(&mut events, wait) {
                    Err(e) if e.kind() != io::ErrorKind::Interrupted => return Err(e),
                    _ => {}
                }
                acts = Vec::new();
                for token in events.iter().map(mio::event::Event::token) {
                    acts.extend(self.heard(token));
                }
                acts.extend(self.resolver.tick(Instant::now()));
            }
        }

        fn heard(&mut self, token: Token) -> Vec<Act> {
            let now = Instant::now();
            let found = self.sockets.iter_mut().find(|(_, (own, _))| *own == token);
            let Some((&exchange, (_, socket))) = found else {
                return Vec::new();
            };
            match socket.hear() {
                Ok(messages) => messages
                    .iter()
                    .flat_map(|message| self.resolver.received(now, exchange, message))
                    .collect(),
                Err(_) => self.resolver.failed(now, exchange),
            }
        }

        /// The answer, once there is one.
        fn perform(&mut self, acts: Vec<Act>) -> Option<Outcome> {
            let mut pending = std::collections::VecDeque::from(acts);
            while let Some(act) = pending.pop_front() {
                match act {
                    Act::Answer { outcome, .. } => return Some(outcome),
                    Act::Forget(exchange) => drop(self.sockets.remove(&exchange)),
                    Act::Ask { exchange, server, transport, message } => {
                        let server = self.resolver.resolv().servers.get(server).cloned();
                        let token = Token(self.count);
                        self.count += 1;
                        let both = Interest::READABLE | Interest::WRITABLE;
                        let opened = server.and_then(|server| {
                            let mut socket = Socket::open(&server, transport, &message).ok()?;
                            self.poll.registry().register(socket.source(), token, both).ok()?;
                            Some(socket)
                        });
                        match opened {
                            Some(socket) => {
                                self.sockets.insert(exchange, (token, socket));
                            }
                            None => pending.extend(self.resolver.failed(Instant::now(), exchange)),
                        }
                    }
                }
            }
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_and_this_host_need_nobody() {
        assert_eq!(addresses("[::1]").unwrap(), ["::1".parse::<IpAddr>().unwrap()]);
        assert_eq!(addresses("192.0.2.1").unwrap(), ["192.0.2.1".parse::<IpAddr>().unwrap()]);
        assert!(addresses("localhost").unwrap().iter().all(IpAddr::is_loopback));
        assert!(addresses("no name").is_err());
    }
}
