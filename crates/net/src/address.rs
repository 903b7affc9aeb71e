//! Classes of addresses: public, private, loopback, metadata and the rest.
//!
//! Stops DNS rebinding: a name that is allowed must not lead to the host's own services, to
//! its neighbours or to the cloud's metadata, whatever its DNS says. Neighbours are all in the
//! networks of the host's own interfaces, however public their addresses ([`Networks`]). IPv4 that
//! travels inside IPv6 (mapped, NAT64, 6to4, Teredo, ISATAP) is taken out and judged as well: both
//! the address and what is in it have to be public.
//! Left open: public addresses that the host has a route of its own to (a VPN's, an on-link prefix
//! without an address in it), and NAT64 behind a prefix of the operator's own.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A class of addresses that are not on the public internet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum AddressClass {
    /// 127.0.0.0/8, ::1.
    Loopback,
    /// 0.0.0.0/8, ::.
    Unspecified,
    /// 169.254.0.0/16, fe80::/10.
    LinkLocal,
    /// A cloud's metadata service, which hands out credentials.
    Metadata,
    /// 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16 (RFC 1918).
    Private,
    /// 100.64.0.0/10, behind carrier-grade NAT; Tailscale lives there too.
    Shared,
    /// fc00::/7 (RFC 4193).
    UniqueLocal,
    /// fec0::/10 (RFC 3879).
    SiteLocal,
    /// 224.0.0.0/4, ff00::/8.
    Multicast,
    /// 255.255.255.255.
    Broadcast,
    /// Networks for examples (RFC 5737, RFC 3849).
    Documentation,
    /// Networks for measurements (RFC 2544, RFC 5180).
    Benchmark,
    /// 100::/64 (RFC 6666).
    Discard,
    /// Everything else that is not assigned for global use.
    Reserved,
    /// One of the host's own addresses.
    Own,
    /// In the network of one of the host's interfaces.
    OwnNetwork,
    /// Not known to be another machine's: the host's interfaces cannot be listed.
    Unlisted,
}

/// The host's own addresses, and the networks that its interfaces are in.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Networks {
    addresses: Vec<IpAddr>,
    /// Each with its prefix.
    on_link: Vec<(IpAddr, u8)>,
}

/// A /64 is one network (RFC 4291), whatever prefix its hosts are given: DHCPv6 gives /128.
const V6_NETWORK: u8 = 64;

impl Networks {
    /// An address of the host, and the prefix of the network that it is in.
    pub fn add(&mut self, ip: IpAddr, prefix: u8) {
        self.addresses.push(ip.to_canonical());
        self.add_on_link(ip, prefix);
    }

    /// A network that an interface reaches without a router: beyond it, or where a peer is.
    pub fn add_on_link(&mut self, ip: IpAddr, prefix: u8) {
        let network = match ip {
            IpAddr::V4(_) => (ip, prefix.min(32)),
            IpAddr::V6(_) => (ip, prefix.min(V6_NETWORK)),
        };
        if !self.on_link.contains(&network) {
            self.on_link.push(network);
        }
    }

    fn contain(&self, ip: IpAddr) -> bool {
        self.addresses.contains(&ip)
    }

    /// The prefix of the narrowest network that this address is in.
    fn prefix_around(&self, ip: IpAddr) -> Option<u8> {
        let around = self.on_link.iter().filter(|(network, prefix)| match (ip, network) {
            (IpAddr::V4(ip), IpAddr::V4(network)) => {
                let shift = 32 - u32::from(*prefix);
                (ip.to_bits() ^ network.to_bits()).checked_shr(shift).unwrap_or(0) == 0
            }
            (IpAddr::V6(ip), IpAddr::V6(network)) => inside(ip, network.to_bits(), *prefix),
            _ => false,
        });
        around.map(|(_, prefix)| *prefix).max()
    }
}

/// Whether a name may lead to an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Judgement {
    /// The address is on the public internet.
    Public,
    /// `prefix` is that of the whole class: a rule that names a network opens the class only
    /// when the network is inside it, so that `0.0.0.0/0` does not mean the loopback.
    Refused {
        /// The class of the address.
        kind: AddressClass,
        /// The prefix length of the class.
        prefix: u8,
    },
}

type V4Class = ([u8; 4], u8, AddressClass);

/// The first that matches counts, so the narrow ones come first.
const V4: &[V4Class] = &[
    // AWS, Azure, GCP and most others; ECS tasks; EKS pods.
    ([169, 254, 169, 254], 32, AddressClass::Metadata),
    ([169, 254, 170, 2], 32, AddressClass::Metadata),
    ([169, 254, 170, 23], 32, AddressClass::Metadata),
    // Alibaba; Oracle; Azure's host agent, which has a public address.
    ([100, 100, 100, 200], 32, AddressClass::Metadata),
    ([192, 0, 0, 192], 32, AddressClass::Metadata),
    ([168, 63, 129, 16], 32, AddressClass::Metadata),
    ([0, 0, 0, 0], 8, AddressClass::Unspecified),
    ([127, 0, 0, 0], 8, AddressClass::Loopback),
    ([169, 254, 0, 0], 16, AddressClass::LinkLocal),
    ([10, 0, 0, 0], 8, AddressClass::Private),
    ([172, 16, 0, 0], 12, AddressClass::Private),
    ([192, 168, 0, 0], 16, AddressClass::Private),
    ([100, 64, 0, 0], 10, AddressClass::Shared),
    ([192, 0, 2, 0], 24, AddressClass::Documentation),
    ([198, 51, 100, 0], 24, AddressClass::Documentation),
    ([203, 0, 113, 0], 24, AddressClass::Documentation),
    ([198, 18, 0, 0], 15, AddressClass::Benchmark),
    ([192, 0, 0, 0], 24, AddressClass::Reserved),
    ([192, 88, 99, 0], 24, AddressClass::Reserved),
    ([224, 0, 0, 0], 4, AddressClass::Multicast),
    ([255, 255, 255, 255], 32, AddressClass::Broadcast),
    ([240, 0, 0, 0], 4, AddressClass::Reserved),
];

type V6Class = (u128, u8, AddressClass);

const V6: &[V6Class] = &[
    // AWS: instances and pods; GCP.
    (0xfd00_0ec2_0000_0000_0000_0000_0000_0254, 128, AddressClass::Metadata),
    (0xfd00_0ec2_0000_0000_0000_0000_0000_0023, 128, AddressClass::Metadata),
    (0xfd20_00ce_0000_0000_0000_0000_0000_0254, 128, AddressClass::Metadata),
    (1, 128, AddressClass::Loopback),
    (0, 128, AddressClass::Unspecified),
    (0xfe80 << 112, 10, AddressClass::LinkLocal),
    (0xfec0 << 112, 10, AddressClass::SiteLocal),
    (0xfc00 << 112, 7, AddressClass::UniqueLocal),
    (0xff00 << 112, 8, AddressClass::Multicast),
    (0x0100 << 112, 64, AddressClass::Discard),
    (0x2001_0db8 << 96, 32, AddressClass::Documentation),
    (0x3fff << 112, 20, AddressClass::Documentation),
    (0x2001_0002 << 96, 48, AddressClass::Benchmark),
    // What is left of IETF's protocol assignments once Teredo is taken out.
    (0x2001 << 112, 23, AddressClass::Reserved),
];
/// The only part of IPv6 that is handed out to the public.
const GLOBAL: (u128, u8) = (0x2000 << 112, 3);

/// IPv4 in other clothes, with a translator behind that takes them off: well-known NAT64, NAT64 of
/// a network's own, Teredo. What is inside is all that there is to judge.
const TRANSLATED: [(u128, u8); 3] =
    [(0x0064_ff9b << 96, 96), (0x0064_ff9b_0001 << 80, 48), (0x2001 << 112, 32)];

/// What a connection to this address would reach: [`Judgement::Public`] is another machine's, on the
/// internet. `own` are the host's networks; `None` where they cannot be listed, and then no address
/// is public.
#[must_use]
pub fn judge(ip: IpAddr, own: Option<&Networks>) -> Judgement {
    let ip = ip.to_canonical();
    let judgement = match ip {
        IpAddr::V4(ip) => judge_v4(ip),
        IpAddr::V6(ip) => judge_v6(ip, own),
    };
    // The more telling word wins: 127.0.0.1 is also the host's own.
    if let Judgement::Refused { kind: AddressClass::Loopback | AddressClass::Metadata, .. } =
        judgement
    {
        return judgement;
    }
    let prefix = full(ip);
    let Some(own) = own else {
        let kind = match judgement {
            Judgement::Public => AddressClass::Unlisted,
            Judgement::Refused { kind, .. } => kind,
        };
        // It may be the host's own, which only a rule for this very address means.
        return Judgement::Refused { kind, prefix };
    };
    match (judgement, own.prefix_around(ip)) {
        _ if own.contain(ip) => Judgement::Refused { kind: AddressClass::Own, prefix },
        (Judgement::Public, Some(prefix)) => {
            Judgement::Refused { kind: AddressClass::OwnNetwork, prefix }
        }
        (judgement, _) => judgement,
    }
}

fn full(ip: IpAddr) -> u8 {
    if ip.is_ipv4() { 32 } else { 128 }
}

fn judge_v4(ip: Ipv4Addr) -> Judgement {
    let found = V4.iter().find(|(network, prefix, _)| {
        let shift = 32 - u32::from(*prefix);
        ip.to_bits() >> shift == u32::from_be_bytes(*network) >> shift
    });
    match found {
        Some((_, prefix, kind)) => Judgement::Refused { kind: *kind, prefix: *prefix },
        None => Judgement::Public,
    }
}

fn judge_v6(ip: Ipv6Addr, own: Option<&Networks>) -> Judgement {
    let narrow = V6.iter().find(|class| class.1 == 128 && inside(ip, class.0, class.1));
    if let Some((_, prefix, kind)) = narrow {
        return Judgement::Refused { kind: *kind, prefix: *prefix };
    }
    let inner = embedded(ip);
    for inner in &inner {
        if let Judgement::Refused { kind, .. } = judge(IpAddr::V4(*inner), own) {
            // Only a rule for this very address means it.
            return Judgement::Refused { kind, prefix: 128 };
        }
    }
    let is_translated = TRANSLATED.iter().any(|(network, prefix)| inside(ip, *network, *prefix));
    if is_translated && !inner.is_empty() {
        return Judgement::Public;
    }
    match V6.iter().find(|class| inside(ip, class.0, class.1)) {
        Some((_, prefix, kind)) => Judgement::Refused { kind: *kind, prefix: *prefix },
        None if inside(ip, GLOBAL.0, GLOBAL.1) => Judgement::Public,
        None => Judgement::Refused { kind: AddressClass::Reserved, prefix: GLOBAL.1 },
    }
}

fn inside(ip: Ipv6Addr, network: u128, prefix: u8) -> bool {
    let shift = 128 - u32::from(prefix);
    (ip.to_bits() ^ network).checked_shr(shift).unwrap_or(0) == 0
}

/// Every IPv4 address that a router on the way may take this one for.
fn embedded(ip: Ipv6Addr) -> Vec<Ipv4Addr> {
    let bits = ip.to_bits();
    let v4 = |shift: u32| Ipv4Addr::from_bits((bits >> shift) as u32);
    let mut found = Vec::new();
    // IPv4-compatible, mapped (in case it was not made canonical), translated, NAT64.
    let low = [(0, 96), (0xffff << 32, 96), (0xffff << 48, 96), (0x0064_ff9b << 96, 96)];
    if low.iter().any(|(network, prefix)| inside(ip, *network, *prefix)) {
        found.push(v4(0));
    }
    // NAT64 of a network's own (RFC 8215), in each form that fits (RFC 6052): for /48, /56 and /64, which skip an
    // octet, or for /96. All but one are filling, and which one only the network knows.
    if inside(ip, 0x0064_ff9b_0001 << 80, 48) {
        let of_48 = ((bits >> 64) as u32) << 16 | ((bits >> 40) as u32 & 0xffff);
        let of_56 = ((bits >> 64) as u32) << 24 | ((bits >> 32) as u32 & 0xff_ffff);
        let of_64 = (bits >> 24) as u32;
        let forms = [of_48, of_56, of_64, bits as u32];
        // 0.0.0.0/8 is no place that a translator sends to, so it is filling.
        let forms = forms.into_iter().filter(|bits| bits >> 24 != 0);
        found.extend(forms.map(Ipv4Addr::from_bits));
    }
    // 6to4.
    if inside(ip, 0x2002 << 112, 16) {
        found.push(v4(80));
    }
    // Teredo: the server, and the client with its bits turned.
    if inside(ip, 0x2001 << 112, 32) {
        found.push(v4(64));
        found.push(Ipv4Addr::from_bits(!(bits as u32)));
    }
    // ISATAP: any network, an interface part of 0[2]00:5efe and the address.
    if matches!((bits >> 32) as u32, 0x0000_5efe | 0x0200_5efe) {
        found.push(v4(0));
    }
    found
}

impl AddressClass {
    /// After "is": `127.0.0.1 is the host's own loopback`.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Loopback => "the host's own loopback",
            Self::Unspecified => "no address, which means the host itself",
            Self::LinkLocal => "a link-local address",
            Self::Metadata => "the cloud's metadata service",
            Self::Private => "a private address",
            Self::Shared => "an address behind carrier-grade NAT or of a VPN",
            Self::UniqueLocal => "a private (unique local) address",
            Self::SiteLocal => "a private (site-local) address",
            Self::Multicast => "a multicast address",
            Self::Broadcast => "a broadcast address",
            Self::Documentation => "an address for documentation",
            Self::Benchmark => "an address for benchmarks",
            Self::Discard => "an address that discards",
            Self::Reserved => "a reserved address",
            Self::Own => "the host's own address",
            Self::OwnNetwork => "an address in the host's own network",
            Self::Unlisted => "perhaps the host's own (its network interfaces cannot be listed)",
        }
    }
}

impl fmt::Display for AddressClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words())
    }
}

#[cfg(test)]
mod tests;
