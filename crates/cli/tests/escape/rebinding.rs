//! A name that is allowed does not open what its DNS says, where that is the host's own, a
//! neighbour's or the cloud's.

use crate::require;
use crate::support::{Run, World, allowed};

/// Each kind of place that a name must not lead to.
const PLACES: [&str; 16] = [
    "127.0.0.1",
    "127.8.8.8",
    "0.0.0.0",
    "169.254.169.254",
    "192.168.7.7",
    "10.0.0.1",
    "::1",
    "::ffff:127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe",
    "fd00:ec2::254",
    "2002:7f00:1::1",
    "fd12::5efe:808:808",
    "fd12::200:5efe:808:808",
    "fe80::5efe:808:808",
    "::808:808",
];

#[test]
fn a_name_does_not_lead_to_private_places() {
    require!("userns");
    for place in PLACES {
        let world = World::new().with(format!("name=rebound.test>{place}"));
        let run = Run::new().world(&world).allow_net("rebound.test");
        let finished = run.probe(&["talk", "rebound.test:443"]).run();
        assert!(!finished.last(place).ok, "{place}: {finished}");
        assert!(world.saw("dns rebound.test"), "{place}: never asked\n{finished}");
        let line = "mcp: blocked rebound.test:443, for its address ";
        assert!(finished.stderr.contains(line), "{place}: {finished}");
        assert!(!world.saw("connected"), "{place}: {}", world.log());
    }
}

/// The host's own address leads to its servers as its loopback does, however public it looks.
#[test]
fn a_name_does_not_lead_to_the_hosts_own_address() {
    require!("userns");
    let world = World::new().with("own=8.8.4.4").with("serve=8.8.4.4:443");
    let world = world.with("name=own.test>8.8.4.4");
    let run = || Run::new().world(&world).allow_net("own.test");
    let finished = run().probe(&["talk", "own.test:443"]).run();
    assert!(!finished.last("talk").ok, "{finished}");
    let line = "mcp: blocked own.test:443, for its address 8.8.4.4 is the host's own address";
    assert!(finished.stderr.contains(line), "{finished}");
    assert!(!world.saw("connected"), "{}", world.log());
    let heard = allowed(run().allow_net("8.8.4.4:443").probe(&["talk", "own.test:443"]));
    assert_eq!(heard.detail, "hello from 8.8.4.4:443\n");
}

/// A public address inside does not make a private one public.
#[test]
fn a_name_does_not_lead_to_a_private_place_in_public_clothes() {
    require!("userns", "ipv6");
    let world = World::new().with("ip=fd12::5efe:808:808").with("serve=[fd12::5efe:808:808]:443");
    let world = world.with("name=isatap.test>fd12::5efe:808:808");
    let run = || Run::new().world(&world).allow_net("isatap.test");
    let finished = run().probe(&["talk", "isatap.test:443"]).run();
    assert!(!finished.last("talk").ok, "{finished}");
    assert!(finished.stderr.contains("is a private (unique local) address"), "{finished}");
    assert!(!world.saw("connected"), "{}", world.log());
    let heard =
        allowed(run().allow_net("[fd12::5efe:808:808]:443").probe(&["talk", "isatap.test:443"]));
    assert_eq!(heard.detail, "hello from [fd12::5efe:808:808]:443\n");
}

/// An address in the network of one of the host's interfaces is a neighbour's, however public its
/// address.
#[test]
fn a_name_does_not_lead_to_the_hosts_neighbours() {
    require!("userns", "ipv6");
    for (own, neighbour, stranger, network) in [
        ("8.8.4.4/24", "8.8.4.5", "8.8.5.5", "8.8.4.0/24:443"),
        ("2606:4700:1:2::4/64", "2606:4700:1:2::5", "2606:4700:1:3::5", "[2606:4700:1:2::/64]:443"),
        // A single address, as DHCPv6 gives it.
        ("2606:4700:1:2::4", "2606:4700:1:2::5", "2606:4700:1:3::5", "[2606:4700:1:2::/64]:443"),
    ] {
        let place = |ip: &str| match ip.contains(':') {
            true => format!("[{ip}]:443"),
            false => format!("{ip}:443"),
        };
        let mut world = World::new().with(format!("own={own}"));
        for (name, ip) in [("near.test", neighbour), ("far.test", stranger)] {
            world = world.with(format!("ip={ip}")).with(format!("name={name}>{ip}"));
            world = world.with(format!("serve={}", place(ip)));
        }
        let run = || Run::new().world(&world).allow_net("near.test").allow_net("far.test");
        let finished = run().probe(&["talk", "near.test:443"]).run();
        assert!(!finished.last(own).ok, "{finished}");
        let line = format!(
            "mcp: blocked near.test:443, for its address {neighbour} is an address in the host's own network"
        );
        assert!(finished.stderr.contains(&line), "{finished}");
        let wide = run().allow_net("0.0.0.0/0:443").allow_net("[::/0]:443");
        assert!(
            !wide.probe(&["talk", "near.test:443"]).run().last(own).ok,
            "by a wide rule: {own}"
        );
        assert!(!world.saw("connected"), "{}", world.log());
        for rule in [place(neighbour), network.to_owned()] {
            allowed(run().allow_net(&rule).probe(&["talk", "near.test:443"]));
        }
        allowed(run().probe(&["talk", "far.test:443"]));
    }
}

#[test]
fn datagrams_do_not_lead_there_either() {
    require!("userns");
    let world = World::new().with("udp=192.168.7.7:99").with("name=rebound.test>192.168.7.7");
    let run = || Run::new().world(&world).allow_net("udp://rebound.test:99");
    let finished = run().probe(&["udp-talk", "rebound.test:99"]).run();
    assert!(!finished.last("udp-talk").ok, "{finished}");
    assert!(world.saw("dns rebound.test"), "never asked\n{finished}");
    let line = "mcp: blocked udp://rebound.test:99, for its address 192.168.7.7";
    assert!(finished.stderr.contains(line), "{finished}");
    assert!(!world.saw("udp 192.168.7.7"), "{}", world.log());
    let both = run().allow_net("udp://192.168.7.7:99");
    let heard = allowed(both.probe(&["udp-talk", "rebound.test:99"]));
    assert_eq!(heard.detail, "hello from 192.168.7.7:99");
}

/// The control: the same server, once a rule names its address; and a name with a public address
/// beside the private one.
#[test]
fn it_does_where_a_rule_names_the_address() {
    require!("userns");
    let world = World::new().with("name=mine.test>127.0.0.1");
    let run = Run::new().world(&world).allow_net("mine.test").allow_net("127.0.0.1:443");
    let heard = allowed(run.probe(&["talk", "mine.test:443"]));
    assert_eq!(heard.detail, "hello from 127.0.0.1:443\n");
    let world = World::new().with("name=both.test>127.0.0.1").with("name=both.test>9.9.9.9");
    let run = Run::new().world(&world).allow_net("both.test");
    let heard = allowed(run.probe(&["talk", "both.test:443"]));
    assert_eq!(heard.detail, "hello from 9.9.9.9:443\n");
}
