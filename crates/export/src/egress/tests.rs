use mcp_net::address::{Judgement, Networks, judge};
use mcp_policy::{Defaults, Layer, Policy};
use proptest::prelude::*;

use super::*;

fn egress(rules: &[&str]) -> Egress {
    let mut layer = Layer::command_line(std::path::PathBuf::from("/"), None);
    for rule in rules {
        layer.allow_net(rule.parse().unwrap());
    }
    let policy = Policy::merge(&[layer.build().unwrap()], Defaults::run()).unwrap();
    Egress::of(&policy.network)
}

fn contains(cidr: &str, ip: IpAddr) -> bool {
    let (network, prefix) = cidr.split_once('/').unwrap();
    let network: IpAddr = network.parse().unwrap();
    network.is_ipv4() == ip.is_ipv4() && self::cidr(ip, prefix.parse().unwrap()) == cidr
}

fn is_in(block: &Block, ip: IpAddr) -> bool {
    contains(&block.cidr, ip) && !block.except.iter().any(|except| contains(except, ip))
}

#[test]
fn rules_become_networks_and_names() {
    let egress = egress(&[
        "10.1.0.0/16:5432",
        "[2001:4860::/32]:443",
        "9.9.9.9",
        "udp://9.9.9.9:53",
        "*.example.com",
        "127.0.0.1:80",
        "localhost:80",
    ]);
    let blocks: Vec<&str> = egress.networks.iter().map(|it| it.to.cidr.as_str()).collect();
    assert_eq!(blocks, ["10.1.0.0/16", "2001:4860::/32", "9.9.9.9/32", "9.9.9.9/32"]);
    assert_eq!(egress.names.len(), 1);
    assert_eq!(egress.loopback.len(), 2);
    assert!(!egress.is_empty() && egress.needs_dns());
}

#[test]
fn a_wide_network_does_not_open_private_ones() {
    let wide = &egress(&["0.0.0.0/0:443"]).networks[0].to;
    assert!(is_in(wide, "1.1.1.1".parse().unwrap()));
    for private in ["10.0.0.1", "127.0.0.1", "169.254.169.254", "192.168.1.1"] {
        assert!(!is_in(wide, private.parse().unwrap()), "{private}");
    }
    // A network that is named is meant.
    let named = &egress(&["10.0.0.0/8:443"]).networks[0].to;
    assert!(is_in(named, "10.0.0.1".parse().unwrap()));
}

#[test]
fn an_authorization_server_is_reached() {
    let mut egress = Egress::default();
    egress.add_url("https://id.example.com/jwks.json");
    egress.add_url("/etc/jwks.json");
    assert_eq!(egress.names.len(), 1);
    assert_eq!(egress.names[0].reach.ports, Ports::One(443));
}

proptest! {
    /// What engines are told is public is public for the gateway, too.
    #[test]
    fn public_is_not_wider_than_the_brokers(v4: u32, v6: u128) {
        let [all_v4, all_v6] = public();
        let v6 = (v6 >> 3) | (1 << 125);
        for (block, ip) in [(all_v4, IpAddr::from(Ipv4Addr::from(v4))), (all_v6, IpAddr::from(Ipv6Addr::from(v6)))] {
            if is_in(&block, ip) {
                prop_assert_eq!(judge(ip, Some(&Networks::default())), Judgement::Public, "{}", ip);
            }
        }
    }
}
