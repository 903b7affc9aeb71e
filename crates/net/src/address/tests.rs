use proptest::prelude::*;

use super::*;

fn own() -> Networks {
    let mut own = Networks::default();
    own.add("192.0.43.7".parse().unwrap(), 32);
    own
}

fn kind_among(ip: &str, own: &Networks) -> Option<AddressClass> {
    match judge(ip.parse().unwrap(), Some(own)) {
        Judgement::Public => None,
        Judgement::Refused { kind, .. } => Some(kind),
    }
}

fn kind(ip: &str) -> Option<AddressClass> {
    kind_among(ip, &own())
}

#[test]
fn each_class() {
    use AddressClass::*;
    for (ip, expected) in [
        ("1.1.1.1", None),
        ("8.8.8.8", None),
        ("172.15.255.255", None),
        ("172.32.0.0", None),
        ("100.63.255.255", None),
        ("100.128.0.0", None),
        ("198.17.255.255", None),
        ("198.20.0.0", None),
        ("223.255.255.255", None),
        ("2606:4700::1111", None),
        ("127.0.0.1", Some(Loopback)),
        ("127.255.255.255", Some(Loopback)),
        ("0.0.0.0", Some(Unspecified)),
        ("0.1.2.3", Some(Unspecified)),
        ("169.254.169.254", Some(Metadata)),
        ("169.254.170.2", Some(Metadata)),
        ("168.63.129.16", Some(Metadata)),
        ("169.254.1.1", Some(LinkLocal)),
        ("10.0.0.1", Some(Private)),
        ("172.16.0.1", Some(Private)),
        ("172.31.255.255", Some(Private)),
        ("192.168.1.1", Some(Private)),
        ("100.64.0.1", Some(Shared)),
        ("100.100.100.200", Some(Metadata)),
        ("192.0.2.1", Some(Documentation)),
        ("198.18.0.1", Some(Benchmark)),
        ("198.19.255.255", Some(Benchmark)),
        ("224.0.0.1", Some(Multicast)),
        ("240.0.0.1", Some(Reserved)),
        ("255.255.255.255", Some(Broadcast)),
        ("192.0.43.7", Some(Own)),
        ("::1", Some(Loopback)),
        ("::", Some(Unspecified)),
        ("fe80::1", Some(LinkLocal)),
        ("fec0::1", Some(SiteLocal)),
        ("fd12::1", Some(UniqueLocal)),
        ("fd00:ec2::254", Some(Metadata)),
        ("ff02::1", Some(Multicast)),
        ("100::1", Some(Discard)),
        ("2001:db8::1", Some(Documentation)),
        ("3fff::1", Some(Documentation)),
        ("2001:2::1", Some(Benchmark)),
        ("2001:20::1", Some(Reserved)),
        ("4000::1", Some(Reserved)),
        ("5f00::1", Some(Reserved)),
    ] {
        assert_eq!(kind(ip), expected, "{ip}");
    }
}

#[test]
fn ipv4_inside_ipv6_is_seen() {
    use AddressClass::*;
    for (ip, expected) in [
        ("::ffff:127.0.0.1", Some(Loopback)),
        ("::ffff:8.8.8.8", None),
        ("::127.0.0.1", Some(Loopback)),
        ("::ffff:0:10.0.0.1", Some(Private)),
        ("64:ff9b::127.0.0.1", Some(Loopback)),
        ("64:ff9b::169.254.169.254", Some(Metadata)),
        ("64:ff9b::8.8.8.8", None),
        ("64:ff9b:1::10.0.0.1", Some(Private)),
        ("64:ff9b:1:7f00:0:100::", Some(Loopback)),
        ("64:ff9b:1:808:8:800::", None),
        ("64:ff9b:1::8.8.8.8", None),
        ("64:ff9b:1:abcd:a:0:100:0", Some(Private)),
        ("64:ff9b:1:abcd:7f:0:100:0", Some(Loopback)),
        ("64:ff9b:1:ab0a:0:1::", Some(Private)),
        ("64:ff9b:1:7f00:0:100:808:808", Some(Loopback)),
        ("2002:7f00:1::1", Some(Loopback)),
        ("2002:c0a8:101::1", Some(Private)),
        ("2002:808:808::1", None),
        ("2001:0:808:808::80ff:fffe", Some(Loopback)),
        ("2001:0:a00:1::f7f7:f7f7", Some(Private)),
        ("2606:4700::5efe:10.0.0.1", Some(Private)),
        ("2606:4700::200:5efe:127.0.0.1", Some(Loopback)),
        ("64:ff9b::192.0.43.7", Some(Own)),
        ("64:ff9b:1::", Some(Reserved)),
    ] {
        assert_eq!(kind(ip), expected, "{ip}");
    }
}

/// What is inside does not make the outside public.
#[test]
fn clothes_are_judged_too() {
    use AddressClass::*;
    for (ip, expected) in [
        ("2606:4700::5efe:8.8.8.8", None),
        ("fd12::5efe:8.8.8.8", Some(UniqueLocal)),
        ("fd12::200:5efe:8.8.8.8", Some(UniqueLocal)),
        ("fc00::5efe:8.8.8.8", Some(UniqueLocal)),
        ("fe80::5efe:8.8.8.8", Some(LinkLocal)),
        ("fec0::200:5efe:8.8.8.8", Some(SiteLocal)),
        ("ff02::5efe:8.8.8.8", Some(Multicast)),
        ("2001:db8::5efe:8.8.8.8", Some(Documentation)),
        ("4000::5efe:8.8.8.8", Some(Reserved)),
        ("fd00:ec2::5efe:8.8.8.8", Some(UniqueLocal)),
        ("::8.8.8.8", Some(Reserved)),
        ("::ffff:0:8.8.8.8", Some(Reserved)),
    ] {
        assert_eq!(kind(ip), expected, "{ip}");
    }
}

#[test]
fn neighbours_are_not_public() {
    use AddressClass::*;
    let mut own = Networks::default();
    own.add("93.184.216.34".parse().unwrap(), 24);
    own.add("2606:4700:1:2::5".parse().unwrap(), 64);
    // DHCPv6 gives a single address out of the network.
    own.add("2a00:1450:1:2::7".parse().unwrap(), 128);
    own.add("10.0.0.5".parse().unwrap(), 8);
    own.add_on_link("198.41.0.9".parse().unwrap(), 32);
    for (ip, expected) in [
        ("93.184.216.34", Some(Own)),
        ("93.184.216.35", Some(OwnNetwork)),
        ("93.184.217.35", None),
        ("::ffff:93.184.216.35", Some(OwnNetwork)),
        ("64:ff9b::93.184.216.35", Some(OwnNetwork)),
        ("2002:5db8:d823::1", Some(OwnNetwork)),
        ("2606:4700:1:2::5", Some(Own)),
        ("2606:4700:1:2:ffff::1", Some(OwnNetwork)),
        ("2606:4700:1:2::5efe:8.8.8.8", Some(OwnNetwork)),
        ("2606:4700:1:3::5", None),
        ("2a00:1450:1:2::7", Some(Own)),
        ("2a00:1450:1:2::8", Some(OwnNetwork)),
        ("2a00:1450:1:3::8", None),
        ("10.9.9.9", Some(Private)),
        ("198.41.0.9", Some(OwnNetwork)),
        ("198.41.0.10", None),
    ] {
        assert_eq!(kind_among(ip, &own), expected, "{ip}");
    }
    let near = judge("93.184.216.35".parse().unwrap(), Some(&own));
    assert_eq!(near, Judgement::Refused { kind: OwnNetwork, prefix: 24 });
    let mut all = Networks::default();
    all.add("93.184.216.34".parse().unwrap(), 0);
    all.add("2606:4700::1".parse().unwrap(), 0);
    assert_eq!(kind_among("8.8.8.8", &all), Some(OwnNetwork));
    assert_eq!(kind_among("2a00::1", &all), Some(OwnNetwork));
}

#[test]
fn nothing_is_public_where_the_interfaces_cannot_be_listed() {
    for (ip, expected) in [
        ("8.8.8.8", (AddressClass::Unlisted, 32)),
        ("2606:4700::1", (AddressClass::Unlisted, 128)),
        ("64:ff9b::8.8.8.8", (AddressClass::Unlisted, 128)),
        ("10.0.0.1", (AddressClass::Private, 32)),
        ("127.0.0.1", (AddressClass::Loopback, 8)),
    ] {
        let (kind, prefix) = expected;
        let judged = judge(ip.parse().unwrap(), None);
        assert_eq!(judged, Judgement::Refused { kind, prefix }, "{ip}");
    }
}

proptest! {
    /// An address that reads as IPv4 is never better off for its clothes.
    #[test]
    fn no_clothes_hide_an_address(ip: Ipv4Addr) {
        let bits = u128::from(ip.to_bits());
        let public = judge(IpAddr::V4(ip), Some(&Networks::default())) == Judgement::Public;
        for clothed in [
            bits,
            0xffff << 32 | bits,
            0xffff << 48 | bits,
            0x0064_ff9b << 96 | bits,
            0x0064_ff9b_0001 << 80 | bits,
            0x2002 << 112 | bits << 80,
            0x2001 << 112 | bits << 64,
            0x2001 << 112 | 0x0808_0808 << 64 | u128::from(!ip.to_bits()),
            0x2606 << 112 | 0x5efe << 32 | bits,
        ] {
            let clothed = IpAddr::V6(Ipv6Addr::from_bits(clothed));
            prop_assert!(public || judge(clothed, Some(&Networks::default())) != Judgement::Public, "{clothed}");
        }
    }

    /// Whatever std calls special is refused here too.
    #[test]
    fn std_agrees(ip: Ipv4Addr) {
        let special = ip.is_private() || ip.is_loopback() || ip.is_link_local()
            || ip.is_broadcast() || ip.is_documentation() || ip.is_unspecified() || ip.is_multicast();
        prop_assert!(!special || judge(IpAddr::V4(ip), Some(&Networks::default())) != Judgement::Public);
    }

    #[test]
    fn own_networks_are_never_public(ip: IpAddr, prefix in 0u8..=128, low: u64) {
        let mut own = Networks::default();
        own.add(ip, prefix);
        prop_assert_ne!(judge(ip, Some(&own)), Judgement::Public);
        if let IpAddr::V6(ip) = ip {
            let neighbour = Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64 | u128::from(low));
            prop_assert_ne!(judge(neighbour.into(), Some(&own)), Judgement::Public);
        }
    }

    /// Whatever is inside, an address that is not public by itself is not public.
    #[test]
    fn nothing_inside_makes_an_address_public(low: u32, high: u64) {
        for outer in [0xfd00u128 << 112, 0xfc00 << 112, 0xfe80 << 112, 0xfec0 << 112, 0xff00 << 112] {
            for mark in [0x5efe_u128, 0x0200_5efe] {
                let network = outer | u128::from(high) << 64 & !(0xffff << 112);
                let ip = Ipv6Addr::from_bits(network | mark << 32 | u128::from(low));
                prop_assert_ne!(judge(ip.into(), Some(&Networks::default())), Judgement::Public);
            }
        }
    }
}
