//! `--allow-net public` is the internet: every public address and name, and nothing of the host's, of its networks or of
//! the cloud around it, in whatever clothes.

use crate::require;
use crate::support::{Finished, Run, UNREACHABLE, World, allowed, blocked};

fn public(world: &World) -> Run {
    Run::new().world(world).allow_net("public")
}

#[track_caller]
fn silent(run: Run) -> Finished {
    let shown = run.to_string();
    let finished = run.run();
    assert!(!finished.last(&shown).ok, "should not be answered: {shown}\n{finished}");
    finished
}

/// The control of everything below: names and addresses, on any port, in both families, and servers that speak first.
#[test]
fn what_is_public_is_reached() {
    require!("userns", "ipv6");
    let world = World::new().with("ip=2606:4700::9").with("serve=[2606:4700::9]:8443");
    let world = world.with("name=six.test>2606:4700::9");
    for place in ["api.test:443", "api.test:80", "9.9.9.9:443", "9.9.9.9:80"] {
        let heard = allowed(public(&world).probe(&["talk", place]));
        assert!(heard.detail.starts_with("hello from 9.9.9.9:"), "{place}: {heard:?}");
    }
    for place in ["api.test:22", "9.9.9.9:22"] {
        let heard = allowed(public(&world).probe(&["listen-to", place]));
        assert!(heard.detail.starts_with("hello from 9.9.9.9:22"), "{place}: {heard:?}");
    }
    for place in ["six.test:8443", "[2606:4700::9]:8443"] {
        let heard = allowed(public(&world).probe(&["talk", place]));
        assert_eq!(heard.detail, "hello from [2606:4700::9]:8443\n", "{place}");
    }
}

#[test]
fn a_port_narrows_it() {
    require!("userns");
    let world = World::new();
    let run = || Run::new().world(&world).allow_net("public:443");
    for place in ["api.test:443", "9.9.9.9:443"] {
        allowed(run().probe(&["talk", place]));
    }
    for place in ["api.test:80", "9.9.9.9:80"] {
        let finished = silent(run().probe(&["talk", place]));
        let line = format!("mcp: blocked {place} (add --allow-net {place})");
        assert!(finished.stderr.contains(&line), "{finished}");
    }
}

/// Addresses that belong to a network, and not to the internet: a server is at most of them.
#[test]
fn private_addresses_stay_closed() {
    require!("userns", "ipv6");
    let mut world = World::new().with("own=8.8.4.4/24").with("ip=8.8.4.5");
    for ip in ["10.1.2.3", "169.254.169.254", "168.63.129.16", "fd12::5efe:808:808", "100.64.0.1"] {
        world = world.with(format!("ip={ip}"));
    }
    for place in [
        "10.1.2.3:443",
        "169.254.169.254:80",
        "168.63.129.16:80",
        "100.64.0.1:443",
        "8.8.4.4:443",
        "8.8.4.5:443",
        "[fd12::5efe:808:808]:443",
    ] {
        world = world.with(format!("serve={place}"));
    }
    for place in [
        "10.1.2.3:443",
        "192.168.7.7:443",
        "127.0.0.1:443",
        "127.0.0.2:443",
        "0.0.0.0:443",
        "[::1]:443",
        "[::]:443",
        "[::ffff:10.1.2.3]:443",
        "[::ffff:127.0.0.1]:443",
        "[64:ff9b::a01:203]:443",
        "[2002:a01:203::1]:443",
        "[2606:4700::5efe:a01:203]:443",
        "[fd12::5efe:808:808]:443",
        "169.254.169.254:80",
        "168.63.129.16:80",
        "[fd00:ec2::254]:80",
        "100.64.0.1:443",
        // The host's own address, and a neighbour's, however public they look.
        "8.8.4.4:443",
        "8.8.4.5:443",
    ] {
        blocked(public(&world).probe(&["talk", place]), UNREACHABLE);
    }
    assert!(!world.saw("connected"), "{}", world.log());
    // They are there, for who names them; and the internet is, beside them.
    for place in ["10.1.2.3:443", "192.168.7.7:443", "8.8.4.5:443", "169.254.169.254:80"] {
        allowed(public(&world).allow_net(place).probe(&["talk", place]));
    }
    allowed(public(&world).probe(&["talk", "9.9.9.9:443"]));
}

#[test]
fn names_do_not_lead_to_private_places() {
    require!("userns");
    let world = World::new().with("own=8.8.4.4/24").with("name=own.test>8.8.4.4");
    let world = world.with("name=near.test>8.8.4.5").with("name=loop.test>127.0.0.1");
    let world = world.with("name=lan.test>192.168.7.7").with("name=cloud.test>169.254.169.254");
    let world =
        world.with("name=nat64.test>64:ff9b::7f00:1").with("name=mapped.test>::ffff:127.0.0.1");
    for name in ["own", "near", "loop", "lan", "cloud", "nat64", "mapped"] {
        let place = format!("{name}.test:443");
        let finished = silent(public(&world).probe(&["talk", &place]));
        let line = format!("mcp: blocked {place}, for its address ");
        assert!(finished.stderr.contains(&line), "{finished}");
        assert!(world.saw(&format!("dns {name}.test")), "never asked\n{finished}");
    }
    assert!(!world.saw("connected"), "{}", world.log());
    allowed(public(&world).probe(&["talk", "api.test:443"]));
}

/// Names that only a local network knows are sent to no server.
#[test]
fn local_names_are_not_asked_for() {
    require!("userns");
    let mut world = World::new();
    let names =
        ["printer", "nas.local", "metadata.google.internal", "box.lan", "db.corp", "r.home.arpa"];
    for name in names {
        world = world.with(format!("name={name}>9.9.9.9"));
    }
    for name in names {
        silent(public(&world).probe(&["talk", &format!("{name}:443")]));
        assert!(!world.saw(&format!("dns {name}")), "{}", world.log());
    }
    // A rule of its own asks for it.
    allowed(public(&world).allow_net("nas.local:443").probe(&["talk", "nas.local:443"]));
}

/// What is told of a connection is what was asked for in it.
#[test]
fn tls_asks_for_the_name_that_was_looked_up() {
    require!("userns");
    let world = World::new().with("name=other.test>9.9.9.9");
    allowed(public(&world).probe(&["talk-tls", "api.test:443", "api.test"]));
    allowed(public(&world).probe(&["talk-tls", "other.test:443", "other.test"]));
    let finished = silent(public(&world).probe(&["talk-tls", "api.test:443", "other.test"]));
    assert!(finished.stderr.contains("asked for other.test instead"), "{finished}");
    let off = Run::new().world(&world).allow_net("public,tls=off");
    allowed(off.probe(&["talk-tls", "api.test:443", "other.test"]));
}

#[test]
fn datagrams_have_rules_of_their_own() {
    require!("userns");
    let world = World::new();
    let finished = silent(public(&world).probe(&["udp-talk", "9.9.9.9:99"]));
    let line = "mcp: blocked udp://9.9.9.9:99 (add --allow-net udp://9.9.9.9:99)";
    assert!(finished.stderr.contains(line), "{finished}");
    allowed(public(&world).allow_net("udp://9.9.9.9:99").probe(&["udp-talk", "9.9.9.9:99"]));
}
