use proptest::prelude::*;

use super::*;
use crate::host::Wildcard;

fn rule(text: &str) -> NetRule {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn the_grammar() {
    for (written, shown) in [
        ("api.github.com:443", "api.github.com:443"),
        ("API.GitHub.com.:443", "api.github.com:443"),
        ("*.example.com", "*.example.com"),
        ("host:*", "host:*"),
        ("10.1.0.0/16:5432", "10.1.0.0/16:5432"),
        ("[2001:db8::/32]:443", "[2001:db8::/32]:443"),
        ("[2001:DB8:0::1]", "[2001:db8::1]"),
        ("[::1]:8080", "[::1]:8080"),
        ("127.0.0.1:5432", "127.0.0.1:5432"),
        ("127.0.0.1/32:5432", "127.0.0.1:5432"),
        ("[::ffff:127.0.0.1]:80", "127.0.0.1:80"),
        ("[::ffff:10.0.0.0/104]:80", "10.0.0.0/8:80"),
        ("udp://1.1.1.1:53", "udp://1.1.1.1:53"),
        ("tcp://example.com", "example.com"),
        ("_sip.example.com:5061", "_sip.example.com:5061"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("0.0.0.0/0:443", "0.0.0.0/0:443"),
        ("1password.com", "1password.com"),
        ("api.github.com:443,tls=off", "api.github.com:443,tls=off"),
        ("*.example.com,tls=off", "*.example.com,tls=off"),
        ("public", "public"),
        ("Public", "public"),
        ("tcp://public:*", "public"),
        ("public:443", "public:443"),
        ("public,tls=off", "public,tls=off"),
    ] {
        assert_eq!(rule(written).to_string(), shown, "{written}");
    }
}

#[test]
fn refusals_point_at_the_bad_part_and_say_the_remedy() {
    for (written, span, said) in [
        ("", 0..0, "empty network rule"),
        ("https://x.org/y", 0..8, "write x.org:443"),
        ("https://me:pw@x.org:8443/y", 0..8, "write x.org:8443"),
        ("ftp://x.org", 0..6, "write x.org"),
        ("me@x.org:443", 0..3, "user names are not part"),
        ("me@x.org", 2..3, "user names are not part"),
        ("x.org/path", 5..6, "paths cannot be restricted"),
        ("x.org:443/path", 9..14, "paths cannot be restricted"),
        ("a.*.org", 2..3, "write *.example.com"),
        ("any", 0..3, "write public"),
        ("ALL:443", 0..3, "write public"),
        ("tcp://internet:80", 6..14, "write public"),
        ("*", 0..1, "write public"),
        ("udp://public:53", 6..15, "public is for tcp alone"),
        ("udp://public", 6..12, "public is for tcp alone"),
        ("*:443", 0..1, "would allow every host"),
        ("*", 0..1, "would allow every host"),
        ("*.*.org", 2..3, "first labels"),
        ("a..org", 2..2, "empty label"),
        (".org", 0..0, "empty label"),
        ("a.org..", 6..6, "empty label"),
        (".", 0..1, "empty host name"),
        (":443", 0..0, "empty host name"),
        ("-a.org", 0..2, "cannot begin or end"),
        ("x.org:0", 6..7, "port 0"),
        ("x.org:", 6..6, "not a port"),
        ("x.org:https", 6..11, "not a port"),
        ("x.org:+80", 6..9, "not a port"),
        ("x.org:80-90", 6..11, "not a port"),
        ("x.org:65536", 6..11, "too large"),
        ("10.1.2.3/16:5432", 0..11, "write 10.1.0.0/16"),
        ("[2001:db8::1/32]:443", 1..15, "write 2001:db8::/32"),
        ("10.0.0.0/33", 9..11, "from 0 to 32"),
        ("10.0.0.0/+8", 9..11, "from 0 to 32"),
        ("1.2.3", 0..5, "neither a host name nor an address"),
        ("300.1.1.1", 0..9, "neither a host name nor an address"),
        ("0x7f.1", 0..6, "neither a host name nor an address"),
        ("0x7f000001", 0..10, "neither a host name nor an address"),
        ("127.1:80", 0..5, "neither a host name nor an address"),
        ("127.0.0.01", 0..10, "neither a host name nor an address"),
        ("2130706433", 0..10, "neither a host name nor an address"),
        ("1.2.3.4.", 0..8, "neither a host name nor an address"),
        ("::1", 0..3, "in brackets"),
        ("2001:db8::1", 0..11, "in brackets"),
        ("[::1", 0..1, "never closed"),
        ("[::1]443", 5..8, "after \"]\""),
        ("[2001:db8::]/32:443", 12..19, "inside the brackets"),
        ("[10.0.0.1]:80", 0..10, "brackets are for IPv6"),
        ("[fe80::1%eth0]:80", 1..13, "not an address"),
        ("ｅxample.com:443", 0..3, "xn-- form"),
        ("a\u{200d}b.example", 1..4, "xn-- form"),
        ("bücher.example:443", 1..3, "xn-- form"),
        ("*.bücher.example", 3..5, "xn-- form"),
        ("a b.org", 1..2, "cannot be in a host name"),
        ("a\0.org", 1..2, "cannot be in a host name"),
        ("a.org\n:443", 5..6, "cannot be in a host name"),
        ("udp://1.1.1.1", 6..13, "needs a port"),
    ] {
        let error = written.parse::<NetRule>().expect_err(written);
        assert!(error.to_string().contains(said), "{written}: {error}");
        assert_eq!(error.span, span, "{written}: {error}");
    }
    assert!(format!("{}.org", "a".repeat(64)).parse::<NetRule>().is_err());
    assert!("a.".repeat(130).parse::<NetRule>().is_err());
}

#[test]
fn names_match_by_label() {
    let exact = rule("example.com");
    assert!(exact.matches_name("example.com"));
    assert!(exact.matches_name("EXAMPLE.com."));
    assert!(!exact.matches_name("a.example.com"));
    assert!(!exact.matches_name("example.com.evil.org"));

    let below = rule("*.example.com");
    assert!(below.matches_name("a.example.com"));
    assert!(below.matches_name("a.b.example.com"));
    for name in
        ["example.com", "notexample.com", ".example.com", "a\0.example.com", "x..example.com"]
    {
        assert!(!below.matches_name(name), "{name:?}");
    }
    assert!(!rule("127.0.0.1").matches_name("127.0.0.1"));
}

#[test]
fn addresses_match_in_every_spelling() {
    let network = rule("10.1.0.0/16:5432");
    assert!(network.matches_ip("10.1.255.255".parse().unwrap()));
    assert!(network.matches_ip("::ffff:10.1.0.1".parse().unwrap()));
    assert!(!network.matches_ip("10.2.0.0".parse().unwrap()));
    assert!(!rule("0.0.0.0/0:1").matches_ip("::1".parse().unwrap()));
    assert!(rule("[::/0]:1").matches_ip("2001:db8::1".parse().unwrap()));
    assert!(!rule("example.com").matches_ip("10.1.0.1".parse().unwrap()));
}

#[test]
fn wider_rules_cover_narrower_ones() {
    for (wide, narrow, expected) in [
        ("example.com:*", "example.com:443", true),
        ("example.com", "example.com:443", true),
        ("example.com", "example.com:80", true),
        ("example.com", "example.com:22", false),
        ("example.com:443", "example.com", false),
        ("*.example.com", "a.example.com", true),
        ("*.example.com", "*.a.example.com", true),
        ("*.a.example.com", "*.example.com", false),
        ("*.example.com", "*.example.com", true),
        ("*.example.com", "example.com", false),
        ("a.example.com", "*.example.com", false),
        ("10.0.0.0/8:1", "10.1.0.0/16:1", true),
        ("10.1.0.0/16:1", "10.0.0.0/8:1", false),
        ("10.0.0.0/8:1", "10.1.2.3:1", true),
        ("udp://10.0.0.0/8:1", "10.1.2.3:1", false),
    ] {
        assert_eq!(rule(wide).covers(&rule(narrow)), expected, "{wide} covers {narrow}");
    }
}

fn any_host() -> impl Strategy<Value = Host> {
    let name = ("[a-z][a-z0-9_]{0,8}(\\.[a-z]([a-z0-9-]{0,8}[a-z0-9])?){0,3}", any::<bool>());
    prop_oneof![
        name.prop_map(|(name, wild)| Host::Name {
            name: name.parse().unwrap(),
            wildcard: if wild { Wildcard::AnySubdomain } else { Wildcard::Exact },
        }),
        (any::<IpAddr>(), 0u8..=128).prop_filter_map("network", |(ip, prefix)| {
            let prefix = if ip.is_ipv4() { prefix / 4 } else { prefix };
            let bits = if ip.is_ipv4() { 32 } else { 128 };
            let network = match ip {
                IpAddr::V4(ip) => IpAddr::V4(
                    (ip.to_bits() & u32::MAX.checked_shl(bits - u32::from(prefix)).unwrap_or(0))
                        .into(),
                ),
                IpAddr::V6(ip) => IpAddr::V6(
                    (ip.to_bits() & u128::MAX.checked_shl(bits - u32::from(prefix)).unwrap_or(0))
                        .into(),
                ),
            };
            Host::parse_ip(&format!("{network}/{prefix}")).ok()
        }),
    ]
}

fn any_rule() -> impl Strategy<Value = NetRule> {
    let ports = prop_oneof![Just(Ports::Default), Just(Ports::Any), (1u16..).prop_map(Ports::One),];
    (any::<bool>(), any_host(), ports, any::<bool>()).prop_map(|(tcp, host, ports, off)| {
        let protocol = if tcp || ports == Ports::Default { Protocol::Tcp } else { Protocol::Udp };
        let may_be_off = protocol == Protocol::Tcp && matches!(host, Host::Name { .. });
        let tls = if off && may_be_off { Tls::Off } else { Tls::Checked };
        NetRule { protocol, host, ports, tls }
    })
}

proptest! {
    #[test]
    fn display_parses_back(rule in any_rule()) {
        prop_assert_eq!(rule.to_string().parse(), Ok(rule));
    }

    #[test]
    fn a_rule_covers_itself(rule in any_rule()) {
        prop_assert!(rule.covers(&rule));
    }

    #[test]
    fn a_covering_rule_matches_whatever_the_other_does(a in any_rule(), b in any_rule(), ip: IpAddr, port: u16) {
        if a.covers(&b) {
            prop_assert!(!b.matches_ip(ip) || a.matches_ip(ip));
            prop_assert!(!b.matches_port(port) || a.matches_port(port));
        }
    }

    #[test]
    fn no_input_panics(value in ".*|(udp://|https://)?[\\[\\]a-z0-9.:/*@-]{0,24}") {
        match value.parse::<NetRule>() {
            Ok(rule) => prop_assert_eq!(rule.to_string().parse(), Ok(rule)),
            Err(error) => {
                prop_assert!(value.get(error.span.clone()).is_some(), "{error:?}");
                error.render(&value);
            }
        }
    }
}

#[test]
fn a_rule_without_a_check_is_the_wider_one() {
    let (checked, off) = (rule("a.example:443"), rule("a.example:443,tls=off"));
    assert!(off.covers(&checked) && !checked.covers(&off));
}

/// Names that only a local network knows are asked of nobody for `public`.
#[test]
fn public_means_names_of_the_internet() {
    let public = rule("public:443");
    assert_eq!(rule("public").ports, Ports::Any);
    for name in ["api.github.com", "API.Test.", "a.b.c.example", "public.example", "local.example"]
    {
        assert!(public.matches_name(name), "{name}");
    }
    for name in [
        "localhost",
        "a.localhost",
        "LOCALHOST.",
        "printer",
        "public",
        "nas.local",
        "nas.LOCAL.",
        "metadata.google.internal",
        "router.home.arpa",
        "box.lan",
        "db.corp",
        "x.onion",
        "a.invalid",
        "127.0.0.1",
        "1",
        "0x7f.1",
    ] {
        assert!(!public.matches_name(name), "{name}");
    }
    for ip in ["1.1.1.1", "127.0.0.1", "::1"] {
        assert!(!public.matches_ip(ip.parse().unwrap()), "{ip} is for the enforcing side to judge");
    }
    for (wide, narrow, expected) in [
        ("public", "public:443", true),
        ("public", "api.example.com", true),
        ("public", "*.example.com:22", true),
        ("public:443", "api.example.com:443", true),
        ("public:443", "api.example.com", false),
        ("public", "localhost:80", false),
        ("public", "*.local:80", false),
        ("public", "1.1.1.1:443", false),
        ("public", "10.0.0.0/8:443", false),
        ("public", "udp://api.example.com:53", false),
        ("*.com", "public", false),
        ("0.0.0.0/0:*", "public", false),
        ("public", "public,tls=off", false),
    ] {
        assert_eq!(rule(wide).covers(&rule(narrow)), expected, "{wide} {narrow}");
    }
}
