use mcp_policy::Wildcard;
use proptest::prelude::*;

use super::*;
use crate::address::AddressClass;

fn list(rules: &[&str]) -> Allowlist {
    let mut own = Networks::default();
    own.add("93.184.216.34".parse().unwrap(), 24);
    own.add("192.168.1.5".parse().unwrap(), 24);
    listed(rules, Some(own))
}

fn listed(rules: &[&str], own: Option<Networks>) -> Allowlist {
    Allowlist::new(rules.iter().map(|rule| rule.parse().unwrap()), own)
}

fn tcp(list: &Allowlist, to: &str) -> Result<String, String> {
    said(list.check(Protocol::Tcp, &Endpoint::parse(to).unwrap()))
}

fn said(checked: Result<&NetRule, Refusal>) -> Result<String, String> {
    checked.map(ToString::to_string).map_err(|refusal| refusal.to_string())
}

fn resolved(list: &Allowlist, ip: &str) -> Result<(), String> {
    let to = Endpoint::parse("a.example:443").unwrap();
    list.check_resolved(Protocol::Tcp, &to, ip.parse().unwrap())
        .map_err(|refusal| refusal.to_string())
}

#[test]
fn names() {
    let list = list(&[
        "a.example:443",
        "a.example:22",
        "*.b.example",
        "udp://a.example:53",
        "c.example:*",
    ]);
    let grants = list.name(&"a.example".parse().unwrap()).unwrap();
    assert_eq!(grants.tcp, PortSet::Listed([22, 443].into()));
    assert_eq!(grants.udp, PortSet::Listed([53].into()));
    assert_eq!(list.name(&"c.example".parse().unwrap()).unwrap().tcp, PortSet::Any);
    for unknown in ["example", "b.example", "xa.example", "a.example.evil.example"] {
        assert_eq!(list.name(&unknown.parse().unwrap()), None, "{unknown}");
    }
    assert_eq!(tcp(&list, "A.example.:443"), Ok("a.example:443".into()));
    assert_eq!(tcp(&list, "x.y.b.example:80"), Ok("*.b.example".into()));
    assert_eq!(
        tcp(&list, "a.example:80"),
        Err("a.example:80 (add --allow-net a.example:80)".into())
    );
    assert_eq!(
        tcp(&list, "a.example:53"),
        Err("a.example:53 (add --allow-net a.example:53)".into())
    );
    let to = Endpoint::parse("a.example:443").unwrap();
    assert_eq!(
        said(list.check(Protocol::Udp, &to)),
        Err("udp://a.example:443 (add --allow-net udp://a.example:443)".into())
    );
}

#[test]
fn addresses_that_are_named_are_open_and_no_others() {
    let list =
        list(&["127.0.0.1:5432", "10.1.0.0/16:5432", "1.1.1.1", "[::1]:80", "udp://9.9.9.9:53"]);
    for open in
        ["127.0.0.1:5432", "[::ffff:127.0.0.1]:5432", "10.1.255.1:5432", "1.1.1.1:443", "[::1]:80"]
    {
        assert!(tcp(&list, open).is_ok(), "{open}: {:?}", tcp(&list, open));
    }
    for shut in [
        "127.0.0.1:80",
        "127.0.0.2:5432",
        "0.0.0.0:5432",
        "[::1]:5432",
        "[::]:80",
        "[::7f00:1]:5432",
        "[64:ff9b::7f00:1]:5432",
        "10.2.0.1:5432",
        "10.1.0.1:80",
        "9.9.9.9:53",
        "192.168.1.5:5432",
    ] {
        let flag = crate::refusal::flag(shut);
        assert_eq!(tcp(&list, shut), Err(format!("{shut} (add {flag})")), "{shut}");
    }
    assert!(list.check(Protocol::Udp, &Endpoint::parse("9.9.9.9:53").unwrap()).is_ok());
}

#[test]
fn a_wide_rule_does_not_mean_the_places_that_are_not_public() {
    let wide = list(&["0.0.0.0/0:443", "[::/0]:443"]);
    assert!(tcp(&wide, "1.1.1.1:443").is_ok());
    assert!(tcp(&wide, "[2606:4700::1]:443").is_ok());
    for shut in [
        "127.0.0.1:443",
        "10.0.0.1:443",
        "169.254.169.254:443",
        "93.184.216.34:443",
        "[::1]:443",
        "[fd00::1]:443",
    ] {
        let why = tcp(&wide, shut).unwrap_err();
        assert!(
            why.contains(", which is ")
                && why.ends_with(&format!("(add {})", crate::refusal::flag(shut))),
            "{why}"
        );
    }
    let link = list(&["169.254.0.0/16:80", "192.168.0.0/16:80"]);
    assert!(tcp(&link, "169.254.1.1:80").is_ok());
    assert!(tcp(&link, "169.254.169.254:80").is_err(), "metadata is its own class");
    assert!(tcp(&link, "192.168.1.9:80").is_ok());
    assert!(tcp(&link, "192.168.1.5:80").is_err(), "so is the host itself");
    assert!(tcp(&list(&["192.168.1.5:80"]), "192.168.1.5:80").is_ok());
}

#[test]
fn rebinding() {
    let named = list(&["a.example"]);
    assert_eq!(resolved(&named, "8.8.8.8"), Ok(()));
    for ip in [
        "127.0.0.1",
        "169.254.169.254",
        "::ffff:127.0.0.1",
        "64:ff9b::7f00:1",
        "192.168.1.1",
        "0.0.0.0",
        "93.184.216.34",
        "fe80::1",
    ] {
        assert!(resolved(&named, ip).is_err(), "{ip}");
    }
    assert_eq!(
        resolved(&named, "10.1.2.3"),
        Err("a.example:443, for its address 10.1.2.3 is a private address (add --allow-net 10.1.2.3:443)".into())
    );
    let opened = list(&["a.example", "10.1.0.0/16:443", "127.0.0.1:443", "0.0.0.0/0:443"]);
    assert_eq!(resolved(&opened, "10.1.2.3"), Ok(()));
    assert_eq!(resolved(&opened, "127.0.0.1"), Ok(()));
    assert!(resolved(&opened, "127.0.0.2").is_err());
    assert!(resolved(&list(&["a.example", "10.1.2.3:80"]), "10.1.2.3").is_err(), "another port");
}

#[test]
fn neighbours_are_reached_only_when_a_rule_names_them() {
    let neighbour = "93.184.216.35";
    let refused = resolved(&list(&["a.example"]), neighbour).unwrap_err();
    assert_eq!(
        refused,
        "a.example:443, for its address 93.184.216.35 is an address in the host's own network \
         (add --allow-net 93.184.216.35:443)"
    );
    assert!(resolved(&list(&["a.example", "0.0.0.0/0:443"]), neighbour).is_err());
    assert!(resolved(&list(&["a.example", "93.184.0.0/16:443"]), neighbour).is_err());
    assert_eq!(resolved(&list(&["a.example", "93.184.216.0/24:443"]), neighbour), Ok(()));
    assert_eq!(resolved(&list(&["a.example", "93.184.216.35:443"]), neighbour), Ok(()));
    assert!(tcp(&list(&["0.0.0.0/0:443"]), "93.184.216.35:443").is_err());
    assert!(tcp(&list(&["0.0.0.0/0:443"]), "93.184.217.35:443").is_ok());
}

/// Not to know the host's own addresses is not to have none.
#[test]
fn interfaces_that_cannot_be_listed_close_names_and_networks() {
    let unlisted = |rules: &[&str]| listed(rules, None);
    let why = resolved(&unlisted(&["a.example"]), "8.8.8.8").unwrap_err();
    assert_eq!(
        why,
        "a.example:443, for its address 8.8.8.8 is perhaps the host's own (its network interfaces \
         cannot be listed) (add --allow-net 8.8.8.8:443)"
    );
    assert!(resolved(&unlisted(&["a.example", "8.8.8.0/24:443"]), "8.8.8.8").is_err());
    assert!(tcp(&unlisted(&["0.0.0.0/0:443"]), "8.8.8.8:443").is_err());
    assert!(tcp(&unlisted(&["10.0.0.0/8:443"]), "10.1.2.3:443").is_err());
    assert_eq!(resolved(&unlisted(&["a.example", "8.8.8.8:443"]), "8.8.8.8"), Ok(()));
    assert!(tcp(&unlisted(&["8.8.8.8:443"]), "8.8.8.8:443").is_ok());
    assert!(tcp(&unlisted(&["a.example:443"]), "a.example:443").is_ok(), "names are asked for");
}

#[test]
fn server_names_stay_within_the_rule() {
    let list = list(&["*.a.example", "b.example", "b.example:8443", "c.a.example:22"]);
    let allows = |opened: &str, port, shown: &str| {
        list.allows_server_name(&opened.parse().unwrap(), port, &shown.parse().unwrap())
    };
    assert!(allows("x.a.example", 443, "x.a.example"));
    assert!(allows("x.a.example", 443, "y.z.a.example"));
    assert!(!allows("x.a.example", 443, "a.example"));
    assert!(!allows("x.a.example", 443, "b.example"), "allowed, but by another rule");
    assert!(!allows("c.a.example", 22, "x.a.example"));
    assert!(allows("b.example", 8443, "b.example"));
}

fn label() -> impl Strategy<Value = String> {
    prop_oneof![Just("a".into()), Just("b".into()), Just("ab".into()), Just("example".into())]
}

fn name() -> impl Strategy<Value = String> {
    prop::collection::vec(label(), 1..4).prop_map(|labels| labels.join("."))
}

fn ip() -> impl Strategy<Value = IpAddr> {
    prop_oneof![
        any::<IpAddr>(),
        prop::sample::select(vec![
            "127.0.0.1",
            "10.0.0.1",
            "8.8.8.8",
            "::1",
            "fd00::1",
            "169.254.169.254"
        ])
        .prop_map(|ip| ip.parse().unwrap()),
    ]
}

fn rule() -> impl Strategy<Value = NetRule> {
    let host = prop_oneof![
        (name(), any::<bool>()).prop_map(|(name, wild)| Host::Name {
            name: name.parse().unwrap(),
            wildcard: if wild { Wildcard::AnySubdomain } else { Wildcard::Exact },
        }),
        ip().prop_map(|ip| Host::Address(ip.to_canonical())),
        prop::sample::select(vec![
            "10.0.0.0/8:1",
            "0.0.0.0/0:1",
            "127.0.0.0/8:1",
            "[::/0]:1",
            "8.8.0.0/16:1"
        ])
        .prop_map(|rule| rule.parse::<NetRule>().unwrap().host),
        Just(Host::Public),
    ];
    let ports =
        prop_oneof![Just(Ports::Default), Just(Ports::Any), (79u16..82).prop_map(Ports::One)];
    (any::<bool>(), host, ports).prop_map(|(tcp, host, ports)| {
        let tcp = tcp || host == Host::Public;
        let protocol = if tcp || ports == Ports::Default { Protocol::Tcp } else { Protocol::Udp };
        NetRule { protocol, host, ports, tls: Tls::Checked }
    })
}

/// The slow and obvious reading of the rules.
mod model {
    use super::*;

    fn port(rule: &NetRule, port: u16) -> bool {
        match rule.ports {
            Ports::Default => port == 80 || port == 443,
            Ports::One(one) => port == one,
            Ports::Any => true,
        }
    }

    pub fn name(rule: &NetRule, protocol: Protocol, name: &str, at: u16) -> bool {
        let Host::Name { name: mine, wildcard } = &rule.host else {
            let is_public = rule.host == Host::Public && name.contains('.');
            return is_public && rule.protocol == protocol && port(rule, at);
        };
        let mine: Vec<&str> = mine.labels().collect();
        let asked: Vec<&str> = name.split('.').collect();
        let tail = asked.len().checked_sub(mine.len()).map(|start| &asked[start..]);
        let fits = match wildcard {
            Wildcard::Exact => asked == mine,
            Wildcard::AnySubdomain => asked.len() > mine.len() && tail == Some(&mine[..]),
        };
        rule.protocol == protocol && fits && port(rule, at)
    }

    /// Public addresses by any rule that covers them, others by an exact rule or by 10/8 and
    /// 127/8, the only networks among these rules that lie inside a class.
    pub fn ip(rule: &NetRule, protocol: Protocol, ip: IpAddr, at: u16) -> bool {
        let covers = match &rule.host {
            Host::Name { .. } => false,
            Host::Public => true,
            Host::Address(mine) => *mine == ip,
            Host::Network { ip: IpAddr::V6(_), .. } => ip.is_ipv6(),
            Host::Network { ip: IpAddr::V4(mine), prefix } => match ip {
                IpAddr::V4(ip) => {
                    (0..*prefix).all(|bit| (ip.to_bits() ^ mine.to_bits()) & (1 << (31 - bit)) == 0)
                }
                IpAddr::V6(_) => false,
            },
        };
        let exact = matches!(rule.host, Host::Address(_));
        let within = matches!(rule.host, Host::Network { prefix: 8, .. });
        let public = judge(ip, Some(&Networks::default())) == Judgement::Public;
        rule.protocol == protocol && port(rule, at) && covers && (public || exact || within)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn the_model_agrees_on_names(rules in prop::collection::vec(rule(), 0..6), name in name(), port in 79u16..82, is_tcp: bool) {
        let protocol = if is_tcp { Protocol::Tcp } else { Protocol::Udp };
        let list = Allowlist::new(rules.clone(), Some(Networks::default()));
        let expected = rules.iter().any(|rule| model::name(rule, protocol, &name, port));
        let host: HostName = name.parse().unwrap();
        let to = Endpoint { target: Target::Name(host.clone()), port };
        prop_assert_eq!(list.check(protocol, &to).is_ok(), expected);
        let grants = list.name(&host);
        let granted = grants.is_some_and(|grants| match protocol {
            Protocol::Tcp => grants.tcp.contains(port),
            Protocol::Udp => grants.udp.contains(port),
        });
        prop_assert_eq!(granted, expected);
    }

    #[test]
    fn the_model_agrees_on_addresses(rules in prop::collection::vec(rule(), 0..6), ip in ip(), port in 79u16..82, is_tcp: bool) {
        let ip = ip.to_canonical();
        let protocol = if is_tcp { Protocol::Tcp } else { Protocol::Udp };
        let list = Allowlist::new(rules.clone(), Some(Networks::default()));
        let expected = rules.iter().any(|rule| model::ip(rule, protocol, ip, port));
        let to = Endpoint { target: Target::Ip(ip), port };
        prop_assert_eq!(list.check(protocol, &to).is_ok(), expected);
        let resolved = list.check_resolved(protocol, &to, ip).is_ok();
        prop_assert_eq!(resolved, expected || judge(ip, Some(&Networks::default())) == Judgement::Public);
    }

    /// The flag that a refusal names does allow what was refused.
    #[test]
    fn the_remedy_works(rules in prop::collection::vec(rule(), 0..4), name in name(), ip in ip(), port in 1u16.., is_listed: bool) {
        let to_name = Endpoint { target: Target::Name(name.parse().unwrap()), port };
        let to_ip = Endpoint { target: Target::Ip(ip.to_canonical()), port };
        let mut own = Networks::default();
        own.add(ip, 128);
        let mut list = Allowlist::new(rules, is_listed.then_some(own));
        for to in [to_name.clone(), to_ip] {
            if let Err(refusal) = list.check(Protocol::Tcp, &to) {
                list.rules.push(refusal.rule().parse().unwrap());
            }
            prop_assert!(list.check(Protocol::Tcp, &to).is_ok());
        }
        if let Err(refusal) = list.check_resolved(Protocol::Tcp, &to_name, ip) {
            list.rules.push(refusal.rule().parse().unwrap());
        }
        prop_assert!(list.check_resolved(Protocol::Tcp, &to_name, ip).is_ok());
    }
}

#[test]
fn refusals_name_the_kind() {
    let refusal = Refusal {
        protocol: Protocol::Tcp,
        to: Endpoint::parse("[::1]:80").unwrap(),
        reason: Reason::TooWide { kind: AddressClass::Loopback },
    };
    assert_eq!(
        refusal.to_string(),
        "[::1]:80, which is the host's own loopback (add --allow-net '[::1]:80')"
    );
}

#[test]
fn public_is_what_is_judged_public_and_nothing_else() {
    let public = list(&["public"]);
    for open in ["1.1.1.1:22", "[2606:4700::1111]:443", "[64:ff9b::808:808]:80", "api.example:8443"]
    {
        assert_eq!(tcp(&public, open), Ok("public".into()), "{open}");
    }
    for shut in [
        "127.0.0.1:443",
        "[::1]:443",
        "0.0.0.0:443",
        "[::]:443",
        "10.1.2.3:443",
        "192.168.1.9:443",
        "172.16.0.1:443",
        "100.64.0.1:443",
        "169.254.169.254:80",
        "168.63.129.16:80",
        "[fd00:ec2::254]:80",
        "[fe80::1]:80",
        "[fd12::1]:80",
        "93.184.216.34:443",
        "93.184.216.99:443",
        "[::ffff:10.1.2.3]:443",
        "[64:ff9b::a01:203]:443",
        "[2002:7f00:1::1]:443",
        "[2606:4700::5efe:a01:203]:443",
        "224.0.0.1:443",
        "255.255.255.255:443",
        "localhost:443",
        "nas.local:443",
        "printer:443",
        "metadata.google.internal:80",
    ] {
        assert!(tcp(&public, shut).is_err(), "{shut}");
        let to = Endpoint::parse(shut).unwrap();
        if let Target::Ip(ip) = to.target {
            assert!(resolved(&public, &ip.to_string()).is_err(), "{shut}");
        }
    }
    assert_eq!(
        tcp(&public, "10.1.2.3:5432"),
        Err("10.1.2.3:5432, which is a private address (add --allow-net 10.1.2.3:5432)".into())
    );
    // Interfaces that cannot be listed may be anything.
    assert!(tcp(&listed(&["public"], None), "1.1.1.1:443").is_err());
    let named = list(&["public:443"]);
    assert!(tcp(&named, "1.1.1.1:443").is_ok() && tcp(&named, "1.1.1.1:22").is_err());
    assert!(tcp(&named, "a.example:443").is_ok() && tcp(&named, "a.example:80").is_err());
    // It means no loopback where programs share the host's.
    assert_eq!(Allowlist::with_loopback(public.rules().to_vec()), public.rules());
    // What is asked for is what was looked up; a rule of its own for both is as wide as ever.
    let (a, b) = ("a.example".parse().unwrap(), "b.example".parse().unwrap());
    assert!(public.allows_server_name(&a, 443, &a) && !public.allows_server_name(&a, 443, &b));
    assert!(list(&["public", "*.example"]).allows_server_name(&a, 443, &b));
    let to = Endpoint::parse("a.example:443").unwrap();
    assert!(public.is_by_public_alone(Protocol::Tcp, &to));
    assert!(!list(&["public", "a.example"]).is_by_public_alone(Protocol::Tcp, &to));
}

#[test]
fn a_rule_may_leave_tls_alone() {
    let list = list(&["a.example:443,tls=off", "a.example:8443", "*.b.example"]);
    let tls = |name: &str, port| list.tls(&name.parse().unwrap(), port);
    assert_eq!(tls("a.example", 443), Tls::Off);
    assert_eq!(tls("a.example", 8443), Tls::Checked);
    assert_eq!(tls("x.b.example", 443), Tls::Checked);
}
