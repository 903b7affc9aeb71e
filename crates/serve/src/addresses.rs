//! How many connections one address may have. Not for loopback, which is this machine, nor behind a proxy, where all have its address.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Debug)]
pub struct Addresses {
    most: usize,
    counts: Mutex<HashMap<IpAddr, usize>>,
}

/// One connection of an address.
#[derive(Debug)]
pub struct Counted {
    all: Arc<Addresses>,
    address: Option<IpAddr>,
}

impl Addresses {
    /// Without a bound where `most` is none.
    pub fn new(most: Option<usize>) -> Arc<Addresses> {
        Arc::new(Addresses { most: most.unwrap_or(usize::MAX), counts: Mutex::default() })
    }

    /// None where the address has as many as it may have.
    pub fn count(self: &Arc<Addresses>, peer: IpAddr) -> Option<Counted> {
        let all = Arc::clone(self);
        let address = network(peer);
        if address.is_loopback() || self.most == usize::MAX {
            return Some(Counted { all, address: None });
        }
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(address).or_default();
        if *count >= self.most {
            return None;
        }
        *count += 1;
        drop(counts);
        Some(Counted { all, address: Some(address) })
    }
}

/// With IPv6 one customer has a whole /64.
fn network(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(v6) if !v6.is_loopback() => {
            IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX)))
        }
        other => other,
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let Some(address) = self.address else { return };
        let mut counts = self.all.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&address) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&address);
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_its_bound_and_no_other_suffers() {
        let all = Addresses::new(Some(2));
        let of = |text: &str| all.count(text.parse().unwrap());
        let first = of("192.0.2.1");
        let _second = of("::ffff:192.0.2.1");
        assert!(of("192.0.2.1").is_none());
        assert!(of("192.0.2.2").is_some());
        drop(first);
        assert!(of("192.0.2.1").is_some());
        let _six = [of("2001:db8::1"), of("2001:db8::ffff:2")];
        assert!(of("2001:db8::3").is_none(), "a /64 is one");
        assert!(of("2001:db8:0:1::3").is_some());
        let many: Vec<_> = (0..10).map(|_| of("127.0.0.1")).collect();
        assert!(many.iter().all(Option::is_some), "loopback has no bound of its own");
    }
}
