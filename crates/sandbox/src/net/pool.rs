//! An address of its own for each name, out of ranges that lead nowhere.
//!
//! A program that connects to such an address says by it which name it means. A name keeps
//! its address as long as it is in use or there is room; then the name that was not asked
//! for longest gives its address up. A wildcard lets a program ask for names without end:
//! what it costs is bounded here.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use mcp_policy::HostName;

/// For benchmarks (RFC 2544): no network routes it.
pub const V4_RANGE: (Ipv4Addr, u8) = (Ipv4Addr::new(198, 18, 0, 0), 15);
/// A unique local range of ours.
pub const V6_RANGE: (Ipv6Addr, u8) = (Ipv6Addr::new(0xfd6d, 0x6370, 0x1918, 0, 0, 0, 0, 0), 96);
/// The first addresses are kept for what the sandbox itself offers, such as the resolver.
pub const KEPT: u32 = 256;
const ADDRESSES: u32 = 1 << 17;
/// More names than programs use, fewer than would hurt.
pub const CAPACITY: usize = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fake {
    pub v4: Ipv4Addr,
    pub v6: Ipv6Addr,
}

impl Fake {
    fn at(index: u32) -> Self {
        Self {
            v4: Ipv4Addr::from_bits(V4_RANGE.0.to_bits() | index),
            v6: Ipv6Addr::from_bits(V6_RANGE.0.to_bits() | u128::from(index)),
        }
    }
}

/// Every address is taken by a name that is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full;

/// What came of asking for a name's address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assigned {
    pub fake: Fake,
    /// The name that had this address before and lost it just now.
    pub displaced: Option<HostName>,
}

#[derive(Debug)]
pub struct Pool {
    names: HashMap<HostName, Entry>,
    by_index: HashMap<u32, HostName>,
    /// Names without a user, by when they were last asked for.
    idle: BTreeMap<u64, HostName>,
    clock: u64,
    free: Vec<u32>,
    next: u32,
    capacity: usize,
}

#[derive(Debug)]
struct Entry {
    index: u32,
    asked: u64,
    users: usize,
}

impl Pool {
    /// Addresses for at most `capacity` names, none that `is_taken` (by a rule that names
    /// it literally).
    pub fn new(capacity: usize, is_taken: impl Fn(IpAddr) -> bool) -> Self {
        let mut pool = Self {
            names: HashMap::new(),
            by_index: HashMap::new(),
            idle: BTreeMap::new(),
            clock: 0,
            free: Vec::new(),
            next: KEPT,
            capacity,
        };
        // Chosen at once, so that the rules need not be kept.
        while pool.free.len() < capacity && pool.next < ADDRESSES {
            let Fake { v4, v6 } = Fake::at(pool.next);
            // The last byte: some programs take .0 and .255 for what they are in a /24.
            let is_odd = matches!(v4.octets()[3], 0 | 255);
            if !is_odd && !is_taken(IpAddr::V4(v4)) && !is_taken(IpAddr::V6(v6)) {
                pool.free.push(pool.next);
            }
            pool.next += 1;
        }
        pool.capacity = pool.free.len();
        pool.free.reverse();
        pool
    }

    /// The address of this name, the same as before when it still has it.
    pub fn assign(&mut self, name: &HostName) -> Result<Assigned, Full> {
        self.clock += 1;
        let asked = self.clock;
        if let Some(entry) = self.names.get_mut(name) {
            if entry.users == 0 {
                self.idle.remove(&entry.asked);
                self.idle.insert(asked, name.clone());
            }
            entry.asked = asked;
            return Ok(Assigned { fake: Fake::at(entry.index), displaced: None });
        }
        let (index, displaced) = match self.free.pop() {
            Some(index) => (index, None),
            None => {
                let (_, loser) = self.idle.pop_first().ok_or(Full)?;
                let index = self.names.remove(&loser).ok_or(Full)?.index;
                (index, Some(loser))
            }
        };
        self.names.insert(name.clone(), Entry { index, asked, users: 0 });
        self.by_index.insert(index, name.clone());
        self.idle.insert(asked, name.clone());
        Ok(Assigned { fake: Fake::at(index), displaced })
    }

    /// The name that has this address, if any.
    pub fn name_of(&self, ip: IpAddr) -> Option<&HostName> {
        let index = match ip.to_canonical() {
            IpAddr::V4(ip) => {
                ip.to_bits().checked_sub(V4_RANGE.0.to_bits()).filter(|index| *index < ADDRESSES)?
            }
            IpAddr::V6(ip) => {
                u32::try_from(ip.to_bits().checked_sub(V6_RANGE.0.to_bits())?).ok()?
            }
        };
        self.by_index.get(&index)
    }

    /// Keeps the name's address until as many [`Pool::unpin`] came. False for a stranger.
    pub fn pin(&mut self, name: &HostName) -> bool {
        let Some(entry) = self.names.get_mut(name) else { return false };
        if entry.users == 0 {
            self.idle.remove(&entry.asked);
        }
        entry.users += 1;
        true
    }

    pub fn unpin(&mut self, name: &HostName) {
        let Some(entry) = self.names.get_mut(name) else { return };
        match entry.users {
            0 => {}
            1 => {
                // From its last use, not from when it was asked for.
                self.clock += 1;
                entry.users = 0;
                entry.asked = self.clock;
                self.idle.insert(self.clock, name.clone());
            }
            _ => entry.users -= 1,
        }
    }

    pub fn len(&self) -> usize {
        self.names.len()
    }

    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn host(number: u32) -> HostName {
        format!("n{number}.example").parse().unwrap()
    }

    fn pool(capacity: usize) -> Pool {
        Pool::new(capacity, |_| false)
    }

    #[test]
    fn a_name_keeps_its_address() {
        let mut pool = pool(10);
        let first = pool.assign(&host(1)).unwrap().fake;
        assert_eq!(first.v4, Ipv4Addr::new(198, 18, 1, 1));
        let second = pool.assign(&host(2)).unwrap().fake;
        assert_ne!(first, second);
        assert_eq!(pool.assign(&host(1)).unwrap().fake, first);
        for ip in
            [IpAddr::V4(first.v4), IpAddr::V6(first.v6), IpAddr::V6(first.v4.to_ipv6_mapped())]
        {
            assert_eq!(pool.name_of(ip), Some(&host(1)), "{ip}");
        }
        for ip in ["198.18.0.1", "198.18.9.9", "198.17.1.1", "1.1.1.1", "::1", "fd00::1"] {
            assert_eq!(pool.name_of(ip.parse().unwrap()), None, "{ip}");
        }
    }

    #[test]
    fn the_longest_idle_name_gives_way() {
        let mut pool = pool(2);
        let first = pool.assign(&host(1)).unwrap().fake;
        let second = pool.assign(&host(2)).unwrap().fake;
        pool.assign(&host(1)).unwrap();
        let third = pool.assign(&host(3)).unwrap();
        assert_eq!(third, Assigned { fake: second, displaced: Some(host(2)) });
        assert_eq!(pool.name_of(second.v4.into()), Some(&host(3)));
        assert!(pool.pin(&host(3)) && pool.pin(&host(1)));
        assert_eq!(pool.assign(&host(4)), Err(Full));
        pool.unpin(&host(1));
        assert_eq!(pool.assign(&host(4)).unwrap().fake, first);
        assert!(!pool.pin(&host(1)));
    }

    #[test]
    fn literal_addresses_are_left_alone() {
        let taken: IpAddr = "198.18.1.1".parse().unwrap();
        let mut some = Pool::new(5, |ip| ip == taken);
        assert_eq!(some.assign(&host(1)).unwrap().fake.v4, Ipv4Addr::new(198, 18, 1, 2));
        assert_eq!(Pool::new(5, |ip| ip.is_ipv4()).assign(&host(1)), Err(Full));
    }

    proptest! {
        /// No two names have one address, names in use keep theirs, and there is a bound.
        #[test]
        fn the_books_balance(acts in prop::collection::vec((0u8..3, 0u32..12), 0..200)) {
            let mut pool = pool(5);
            let mut pins: HashMap<u32, (usize, Fake)> = HashMap::new();
            for (act, number) in acts {
                let name = host(number);
                match act {
                    0 => {
                        if let Ok(assigned) = pool.assign(&name) {
                            prop_assert_eq!(pool.name_of(assigned.fake.v4.into()), Some(&name));
                        } else {
                            prop_assert_eq!(pins.len(), 5);
                        }
                    }
                    1 => if pool.pin(&name) {
                        let fake = pool.assign(&name).unwrap().fake;
                        pins.entry(number).or_insert((0, fake)).0 += 1;
                    },
                    _ => if let Some((count, _)) = pins.get_mut(&number) {
                        pool.unpin(&name);
                        *count -= 1;
                        if *count == 0 {
                            pins.remove(&number);
                        }
                    },
                }
                prop_assert!(pool.len() <= 5);
                prop_assert_eq!(pool.by_index.len(), pool.len());
                prop_assert_eq!(pool.idle.len(), pool.len() - pins.len());
                for (number, (_, fake)) in &pins {
                    prop_assert_eq!(pool.name_of(fake.v4.into()), Some(&host(*number)));
                }
            }
        }
    }
}
