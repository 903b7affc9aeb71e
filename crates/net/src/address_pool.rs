//! An address of its own for each name, out of ranges that lead nowhere.
//!
//! A program that connects to such an address says by it which name it means. A name keeps
//! its address as long as it is in use or there is room; then the name that was not asked
//! for longest gives its address up. A wildcard lets a program ask for names without end:
//! what it costs is bounded here.
//!
//! An address that was given up may still be remembered by a program, so it is the last to be
//! given to another name: there are thirty times as many addresses as names that have one.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use mcp_policy::HostName;

/// Programs that fetch what they are told to look first whether a name leads to a public address
/// (Python's `is_global`, `ipaddr.js`, lists of their own), so these are such as far as anybody can
/// tell. No server is reached at them: the IPv4 range is registered to the British Ministry of Defence,
/// which does not announce it, and of the IPv6 one no part is assigned to anybody.
pub const V4_RANGE: (Ipv4Addr, u8) = (Ipv4Addr::new(25, 18, 0, 0), 15);
/// The range of fake IPv6 addresses.
pub const V6_RANGE: (Ipv6Addr, u8) = (Ipv6Addr::new(0x2e6d, 0x6370, 0x1918, 0, 0, 0, 0, 0), 96);
/// Where rules mean all of those literally: for benchmarks (RFC 2544), and a unique local range.
const V4_SPARE: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 0);
const V6_SPARE: Ipv6Addr = Ipv6Addr::new(0xfd6d, 0x6370, 0x1918, 0, 0, 0, 0, 0);
/// The first addresses are kept for what the sandbox itself offers, such as the resolver.
pub const KEPT: u32 = 256;
const ADDRESSES: u32 = 1 << 17;
/// With the spare ones.
const ALL: u32 = 2 * ADDRESSES;
/// More names than programs use, fewer than would hurt.
pub const CAPACITY: usize = 4096;

/// The fake addresses of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Fake {
    /// The IPv4 address.
    pub v4: Ipv4Addr,
    /// The IPv6 address.
    pub v6: Ipv6Addr,
}

impl Fake {
    fn at(index: u32) -> Self {
        let (v4, v6) = match index < ADDRESSES {
            true => (V4_RANGE.0, V6_RANGE.0),
            false => (V4_SPARE, V6_SPARE),
        };
        let low = index % ADDRESSES;
        Self {
            v4: Ipv4Addr::from_bits(v4.to_bits() | low),
            v6: Ipv6Addr::from_bits(v6.to_bits() | u128::from(low)),
        }
    }
}

/// Which of all addresses this is, where it is one that a name could be given, or the sandbox's own.
fn index_of(ip: IpAddr) -> Option<u32> {
    let below = |low: u32| Some(low).filter(|low| *low < ADDRESSES);
    let v4 = |ip: Ipv4Addr, base: Ipv4Addr| below(ip.to_bits().checked_sub(base.to_bits())?);
    let v6 = |ip: Ipv6Addr, base: Ipv6Addr| {
        below(u32::try_from(ip.to_bits().checked_sub(base.to_bits())?).ok()?)
    };
    let (first, spare) = match ip.to_canonical() {
        IpAddr::V4(ip) => (v4(ip, V4_RANGE.0), v4(ip, V4_SPARE)),
        IpAddr::V6(ip) => (v6(ip, V6_RANGE.0), v6(ip, V6_SPARE)),
    };
    first.or(spare.map(|low| low + ADDRESSES))
}

/// Every address is taken by a name that is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full;

/// What came of asking for a name's address.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Assigned {
    /// The name's fake addresses.
    pub fake: Fake,
    /// The name that gave its address up for this one, just now.
    pub displaced: Option<HostName>,
}

/// Whether an address is meant literally by a rule.
type IsTaken = Box<dyn Fn(IpAddr) -> bool + Send>;

/// The fake addresses in use, and the names that they stand for.
pub struct Pool {
    names: HashMap<HostName, PoolEntry>,
    by_index: HashMap<u32, HostName>,
    /// Names without a user, by when they were last asked for.
    idle: BTreeMap<u64, HostName>,
    clock: u64,
    /// The first address that no name ever had.
    next: u32,
    /// Those that names had, the longest free first.
    free: VecDeque<u32>,
    is_taken: IsTaken,
    capacity: usize,
}

#[derive(Debug)]
struct PoolEntry {
    index: u32,
    asked: u64,
    users: usize,
}

impl Pool {
    /// Addresses for at most `capacity` names, none that `is_taken` (by a rule that names
    /// it literally).
    pub fn new(capacity: usize, is_taken: impl Fn(IpAddr) -> bool + Send + 'static) -> Self {
        Self {
            names: HashMap::new(),
            by_index: HashMap::new(),
            idle: BTreeMap::new(),
            clock: 0,
            next: KEPT,
            free: VecDeque::new(),
            is_taken: Box::new(is_taken),
            capacity,
        }
    }

    /// An address that no name has.
    fn unused(&mut self) -> Option<u32> {
        let first = self.new_below(ADDRESSES).or_else(|| self.free.pop_front());
        first.or_else(|| self.new_below(ALL))
    }

    /// The next address that no name ever had.
    fn new_below(&mut self, end: u32) -> Option<u32> {
        while self.next < end {
            let index = self.next;
            self.next += 1;
            let Fake { v4, v6 } = Fake::at(index);
            // The last byte: some programs take .0 and .255 for what they are in a /24.
            let is_odd = matches!(v4.octets()[3], 0 | 255);
            if !is_odd && !(self.is_taken)(IpAddr::V4(v4)) && !(self.is_taken)(IpAddr::V6(v6)) {
                return Some(index);
            }
        }
        None
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
        let displaced = match self.names.len() < self.capacity {
            true => None,
            false => Some(self.displace(name).ok_or(Full)?),
        };
        let index = self.unused().ok_or(Full)?;
        self.names.insert(name.clone(), PoolEntry { index, asked, users: 0 });
        self.by_index.insert(index, name.clone());
        self.idle.insert(asked, name.clone());
        Ok(Assigned { fake: Fake::at(index), displaced })
    }

    /// Takes its address from the name that was idle longest, other than this one.
    pub fn displace(&mut self, except: &HostName) -> Option<HostName> {
        let (asked, loser) = self.idle.iter().find(|(_, name)| *name != except)?;
        let (asked, loser) = (*asked, loser.clone());
        self.idle.remove(&asked);
        self.forget(&loser);
        Some(loser)
    }

    fn forget(&mut self, loser: &HostName) {
        if let Some(entry) = self.names.remove(loser) {
            self.by_index.remove(&entry.index);
            self.free.push_back(entry.index);
        }
    }

    /// The name that has this address, if any.
    #[must_use]
    pub fn name_of(&self, ip: IpAddr) -> Option<&HostName> {
        let index = index_of(ip)?;
        self.by_index.get(&index)
    }

    /// Whether only a name could mean this address: no rule does literally.
    #[must_use]
    pub fn is_for_names(&self, ip: IpAddr) -> bool {
        index_of(ip).is_some() && !(self.is_taken)(ip.to_canonical())
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

    /// One use of a name has ended.
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

    /// How many names can have an address at a time.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// How many names have an address.
    #[must_use]
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether no name has an address.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("names", &self.names).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::address::{Judgement, judge};

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
        assert_eq!(first.v4, Ipv4Addr::new(25, 18, 1, 1));
        let second = pool.assign(&host(2)).unwrap().fake;
        assert_ne!(first, second);
        assert_eq!(pool.assign(&host(1)).unwrap().fake, first);
        for ip in
            [IpAddr::V4(first.v4), IpAddr::V6(first.v6), IpAddr::V6(first.v4.to_ipv6_mapped())]
        {
            assert_eq!(pool.name_of(ip), Some(&host(1)), "{ip}");
        }
        for ip in
            ["25.18.0.1", "25.18.9.9", "25.17.1.1", "25.20.1.1", "198.18.1.1", "1.1.1.1", "::1"]
        {
            assert_eq!(pool.name_of(ip.parse().unwrap()), None, "{ip}");
        }
    }

    /// Of what the registries of special addresses list, and so the libraries that follow them,
    /// nothing is about these; our own table is made of them.
    #[test]
    fn the_ranges_pass_for_public() {
        for index in [0, 1, KEPT, 70_000, ADDRESSES - 1] {
            let Fake { v4, v6 } = Fake::at(index);
            for ip in [IpAddr::V4(v4), IpAddr::V6(v6)] {
                assert_eq!(
                    judge(ip, Some(&crate::address::Networks::default())),
                    Judgement::Public,
                    "{ip}"
                );
            }
            // Global unicast addresses are all of 2000::/3.
            assert_eq!(v6.segments()[0] >> 13, 1, "{v6}");
            let Fake { v4, v6 } = Fake::at(index + ADDRESSES);
            for ip in [IpAddr::V4(v4), IpAddr::V6(v6)] {
                assert_ne!(
                    judge(ip, Some(&crate::address::Networks::default())),
                    Judgement::Public,
                    "{ip}"
                );
            }
        }
    }

    #[test]
    fn the_longest_idle_name_gives_way() {
        let mut pool = pool(2);
        let first = pool.assign(&host(1)).unwrap().fake;
        let second = pool.assign(&host(2)).unwrap().fake;
        pool.assign(&host(1)).unwrap();
        let third = pool.assign(&host(3)).unwrap();
        assert_eq!(third.displaced, Some(host(2)));
        // A program may remember what the name had.
        assert_eq!(pool.name_of(second.v4.into()), None);
        assert_eq!(pool.name_of(third.fake.v4.into()), Some(&host(3)));
        assert!(pool.pin(&host(3)) && pool.pin(&host(1)));
        assert_eq!(pool.assign(&host(4)), Err(Full));
        pool.unpin(&host(1));
        let fourth = pool.assign(&host(4)).unwrap();
        assert_eq!(fourth.displaced, Some(host(1)));
        assert_eq!(pool.name_of(first.v4.into()), None);
        assert!(!pool.pin(&host(1)));
    }

    #[test]
    fn the_longest_free_address_is_the_first_to_be_used_again() {
        let mut pool = pool(2);
        pool.next = ADDRESSES - 5;
        let addresses: Vec<_> =
            (0..10).map(|number| pool.assign(&host(number)).unwrap().fake.v4).collect();
        // There are four, for the last one of all ends in 255.
        assert_eq!(addresses[4..8], addresses[..4]);
        assert_eq!(pool.free.len() + pool.len(), 4);
        for pair in addresses.windows(2) {
            assert_ne!(pair[0], pair[1]);
        }
    }

    #[test]
    fn literal_addresses_are_left_alone() {
        let taken: IpAddr = "25.18.1.1".parse().unwrap();
        let mut some = Pool::new(5, move |ip| ip == taken);
        let given = some.assign(&host(1)).unwrap().fake.v4;
        assert_eq!(given, Ipv4Addr::new(25, 18, 1, 2));
        assert!(some.is_for_names(given.into()) && !some.is_for_names(taken));
        assert!(!some.is_for_names("25.20.0.1".parse().unwrap()));
        // Where all of the range is meant, or all of one family, there are others.
        for is_meant in [|ip: IpAddr| ip.is_ipv4(), |ip: IpAddr| ip.is_ipv6()] {
            let within = move |ip| is_meant(ip) && index_of(ip).is_some_and(|at| at < ADDRESSES);
            let mut pool = Pool::new(5, within);
            let fake = pool.assign(&host(1)).unwrap().fake;
            assert_eq!(fake.v4, Ipv4Addr::new(198, 18, 0, 1));
            assert_eq!(pool.name_of(fake.v6.into()), Some(&host(1)));
        }
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
