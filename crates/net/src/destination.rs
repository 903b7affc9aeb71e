//! In which order the addresses of a name are tried: by RFC 6724, then the families in turn
//! (RFC 8305), and a family that did not work lately behind the other one.
//!
//! Left out of RFC 6724 are the rules about deprecated and home addresses and native transport,
//! which a socket does not tell; and the longest prefix for IPv4, which would undo a name server's
//! turns.

use std::cmp::{Ordering, Reverse};
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::{Duration, Instant};

/// A family of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    V4,
    V6,
}

impl Family {
    pub fn of(ip: IpAddr) -> Family {
        match ip.to_canonical() {
            IpAddr::V4(_) => Family::V4,
            IpAddr::V6(_) => Family::V6,
        }
    }

    /// Whether an answer of this family may hold the address.
    pub fn has(self, ip: IpAddr) -> bool {
        ip.is_ipv4() == (self == Self::V4)
    }
}

/// An address that can be tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    pub to: SocketAddr,
    /// Which of its own addresses the host would use; `None` when it has no way there.
    pub source: Option<IpAddr>,
}

/// How long a family is tried second after it did not work.
const SLOW_FOR: Duration = Duration::from_secs(600);

/// Which family did not work lately, while the other one did.
#[derive(Debug, Default)]
pub struct Families {
    slow: Option<(Family, Instant)>,
}

impl Families {
    /// The other family has connected, and this one had its time before.
    pub fn did_not_work(&mut self, family: Family, now: Instant) {
        self.slow = Some((family, now + SLOW_FOR));
    }

    pub fn works(&mut self, family: Family) {
        self.slow.take_if(|(slow, _)| *slow == family);
    }

    /// The host's network is another one.
    pub fn forget(&mut self) {
        self.slow = None;
    }

    fn slow(&self, now: Instant) -> Option<Family> {
        self.slow.filter(|(_, until)| now < *until).map(|(family, _)| family)
    }

    /// The order to try these in, now.
    pub fn order(&self, mut candidates: Vec<Candidate>, now: Instant) -> VecDeque<SocketAddr> {
        candidates.sort_by(compare);
        let family = |candidate: &Candidate| Family::of(candidate.to.ip());
        let Some(first) = candidates.first().map(family) else {
            return VecDeque::new();
        };
        let (mut one, mut other): (VecDeque<_>, VecDeque<_>) =
            candidates.into_iter().partition(|candidate| family(candidate) == first);
        if self.slow(now) == Some(first) && !other.is_empty() {
            (one, other) = (other, one);
        }
        let mut order = VecDeque::with_capacity(one.len() + other.len());
        while !one.is_empty() || !other.is_empty() {
            order.extend(one.pop_front().map(|candidate| candidate.to));
            order.extend(other.pop_front().map(|candidate| candidate.to));
        }
        order
    }
}

/// RFC 6724, section 6. What is equal stays as the name server has it.
fn compare(a: &Candidate, b: &Candidate) -> Ordering {
    let (Some(source_a), Some(source_b)) = (a.source, b.source) else {
        return b.source.is_some().cmp(&a.source.is_some());
    };
    let (to_a, to_b) = (a.to.ip().to_canonical(), b.to.ip().to_canonical());
    let key = |to: IpAddr, source: IpAddr| {
        (
            scope(to) != scope(source),
            policy(to).1 != policy(source).1,
            Reverse(policy(to).0),
            scope(to),
        )
    };
    key(to_a, source_a).cmp(&key(to_b, source_b)).then_with(|| {
        let same = |to: IpAddr, source: IpAddr| match (to, source) {
            (IpAddr::V6(to), IpAddr::V6(source)) => common_prefix(to, source),
            _ => 0,
        };
        match (to_a, to_b) {
            (IpAddr::V6(_), IpAddr::V6(_)) => same(to_b, source_b).cmp(&same(to_a, source_a)),
            _ => Ordering::Equal,
        }
    })
}

/// No further than a network's prefix: the rest says nothing of how far away it is.
fn common_prefix(a: Ipv6Addr, b: Ipv6Addr) -> u32 {
    (a.to_bits() ^ b.to_bits()).leading_zeros().min(64)
}

/// RFC 4291's numbers; smaller ones reach less far.
fn scope(ip: IpAddr) -> u8 {
    const LINK: u8 = 2;
    const SITE: u8 = 5;
    const GLOBAL: u8 = 14;
    match ip.to_canonical() {
        IpAddr::V4(ip) if ip.is_loopback() || ip.is_link_local() => LINK,
        IpAddr::V6(ip) if ip.is_loopback() || ip.is_unicast_link_local() => LINK,
        IpAddr::V6(ip) if ip.to_bits() >> 118 == 0xfec0 >> 6 => SITE,
        _ => GLOBAL,
    }
}

/// Prefixes with their precedence and label (section 2.1), the longer ones first.
const POLICY: [(u128, u32, u8, u8); 9] = [
    (1, 128, 50, 0),
    (0xffff << 32, 96, 35, 4),
    (0, 96, 1, 3),
    (0x2001 << 112, 32, 5, 5),
    (0x2002 << 112, 16, 30, 2),
    (0x3ffe << 112, 16, 1, 12),
    (0xfec0 << 112, 10, 1, 11),
    (0xfc00 << 112, 7, 3, 13),
    (0, 0, 40, 1),
];

fn policy(ip: IpAddr) -> (u8, u8) {
    let bits = match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().to_bits(),
        IpAddr::V6(ip) => ip.to_bits(),
    };
    let found = POLICY.iter().find(|(network, prefix, _, _)| {
        (bits ^ network).checked_shr(128 - prefix).unwrap_or(0) == 0
    });
    found.map_or((40, 1), |(_, _, precedence, label)| (*precedence, *label))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn order(families: &Families, now: Instant, given: &[(&str, &str)]) -> Vec<String> {
        let candidates = given
            .iter()
            .map(|(to, source)| Candidate {
                to: SocketAddr::new(to.parse().unwrap(), 1),
                source: source.parse().ok(),
            })
            .collect();
        families.order(candidates, now).iter().map(|to| to.ip().to_string()).collect()
    }

    fn sorted(given: &[(&str, &str)]) -> Vec<String> {
        order(&Families::default(), Instant::now(), given)
    }

    /// The examples of RFC 6724, section 10.2, with its documentation addresses.
    #[test]
    fn the_rfc_s_examples() {
        for (given, expected) in [
            // Matching scope.
            (
                [("2001:db8:1::1", "2001:db8:1::2"), ("198.51.100.121", "169.254.13.78")],
                ["2001:db8:1::1", "198.51.100.121"],
            ),
            (
                [("2001:db8:1::1", "fe80::1"), ("198.51.100.121", "198.51.100.117")],
                ["198.51.100.121", "2001:db8:1::1"],
            ),
            // Higher precedence.
            (
                [("10.1.2.3", "10.1.2.4"), ("2001:db8:1::1", "2001:db8:1::2")],
                ["2001:db8:1::1", "10.1.2.3"],
            ),
            // Smaller scope.
            (
                [("2001:db8:1::1", "2001:db8:1::2"), ("fe80::1", "fe80::2")],
                ["fe80::1", "2001:db8:1::1"],
            ),
            // Matching label.
            (
                [
                    ("2001:db8:1::1", "2002:c633:6401::2"),
                    ("2002:c633:6401::1", "2002:c633:6401::2"),
                ],
                ["2002:c633:6401::1", "2001:db8:1::1"],
            ),
            // Longest prefix.
            (
                [("2001:db8:3ffe::1", "2001:db8:1::2"), ("2001:db8:1::1", "2001:db8:1::2")],
                ["2001:db8:1::1", "2001:db8:3ffe::1"],
            ),
            // A unique local source does not reach the internet, a private IPv4 one does.
            (
                [("2606:4700::1", "fd12::2"), ("9.9.9.9", "192.168.1.2")],
                ["9.9.9.9", "2606:4700::1"],
            ),
            // No way there.
            ([("2606:4700::1", "-"), ("9.9.9.9", "192.168.1.2")], ["9.9.9.9", "2606:4700::1"]),
            // A name server's turns are kept.
            ([("9.9.9.9", "9.9.9.8"), ("1.1.1.1", "9.9.9.8")], ["9.9.9.9", "1.1.1.1"]),
        ] {
            assert_eq!(sorted(&given), expected);
        }
    }

    #[test]
    fn families_take_turns_and_a_slow_one_comes_second() {
        let both = [
            ("2606:4700::1", "2606:4700::9"),
            ("2606:4700::2", "2606:4700::9"),
            ("9.9.9.9", "192.168.1.2"),
            ("1.1.1.1", "192.168.1.2"),
        ];
        let v6_first = ["2606:4700::1", "9.9.9.9", "2606:4700::2", "1.1.1.1"];
        let v4_first = ["9.9.9.9", "2606:4700::1", "1.1.1.1", "2606:4700::2"];
        let (mut families, now) = (Families::default(), Instant::now());
        assert_eq!(order(&families, now, &both), v6_first);
        families.did_not_work(Family::V6, now);
        assert_eq!(order(&families, now, &both), v4_first);
        assert_eq!(order(&families, now, &both[..2]), ["2606:4700::1", "2606:4700::2"]);
        assert_eq!(order(&families, now + SLOW_FOR, &both), v6_first);
        families.works(Family::V4);
        assert_eq!(order(&families, now, &both), v4_first);
        families.works(Family::V6);
        assert_eq!(order(&families, now, &both), v6_first);
        families.did_not_work(Family::V4, now);
        assert_eq!(order(&families, now, &both), v6_first);
        families.did_not_work(Family::V6, now);
        families.forget();
        assert_eq!(order(&families, now, &both), v6_first);
    }

    fn ip() -> impl Strategy<Value = IpAddr> {
        prop_oneof![
            any::<IpAddr>(),
            prop::sample::select(vec![
                "::1",
                "fe80::1",
                "fd00::1",
                "2606::1",
                "127.0.0.1",
                "10.0.0.1"
            ])
            .prop_map(|ip| ip.parse().unwrap())
        ]
    }

    proptest! {
        /// Sorting panics where the comparison is no order.
        #[test]
        fn nothing_is_lost(given in prop::collection::vec((ip(), prop::option::of(ip())), 0..40)) {
            let now = Instant::now();
            let candidates: Vec<Candidate> = given
                .iter()
                .map(|(to, source)| Candidate { to: SocketAddr::new(*to, 1), source: *source })
                .collect();
            let mut before: Vec<SocketAddr> = candidates.iter().map(|it| it.to).collect();
            let mut after: Vec<SocketAddr> = Families::default().order(candidates, now).into();
            before.sort();
            after.sort();
            prop_assert_eq!(before, after);
        }
    }
}
