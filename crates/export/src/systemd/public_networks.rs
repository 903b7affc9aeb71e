//! Public addresses as a list of networks: systemd allows addresses by prefix, and has no exceptions within one.

use std::net::Ipv4Addr;

use crate::egress::NOT_PUBLIC_V4;

/// Public IPv6 without what `egress::NOT_PUBLIC_V6` excepts is more lines than a person reads; these are the networks that
/// the registries hand out addresses from.
const PUBLIC_V6: [&str; 4] = ["2003::/16", "2400::/6", "2800::/5", "2001:200::/23"];

/// Every public network of IPv4, and those of IPv6 that are in use.
pub fn public_networks() -> Vec<String> {
    let mut out = Vec::new();
    divide(0, 0, &mut out);
    out.extend(PUBLIC_V6.iter().map(|network| (*network).to_owned()));
    out
}

/// Takes a network as a whole where it touches nothing that is not public, else its two halves.
fn divide(network: u32, prefix: u32, out: &mut Vec<String>) {
    let excepted = NOT_PUBLIC_V4.iter().filter_map(|text| {
        let (address, length) = text.split_once('/')?;
        Some((u32::from(address.parse::<Ipv4Addr>().ok()?), length.parse::<u32>().ok()?))
    });
    let mask = |length: u32| u32::MAX.checked_shl(32 - length).unwrap_or(0);
    let (mut touches, mut is_inside) = (false, false);
    for (address, length) in excepted {
        touches |= (address ^ network) & mask(length.min(prefix)) == 0;
        is_inside |= length <= prefix && (address ^ network) & mask(length) == 0;
    }
    if is_inside {
        return;
    }
    if !touches {
        out.push(format!("{}/{prefix}", Ipv4Addr::from(network)));
        return;
    }
    divide(network, prefix + 1, out);
    divide(network | 1 << (31 - prefix), prefix + 1, out);
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use mcp_net::address::{Judgement, Networks, judge};
    use proptest::prelude::*;

    use super::*;

    fn contains(networks: &[String], ip: Ipv4Addr) -> bool {
        networks.iter().filter_map(|text| text.split_once('/')).any(|(network, prefix)| {
            let (Ok(network), Ok(prefix)) = (network.parse::<Ipv4Addr>(), prefix.parse::<u32>())
            else {
                return false;
            };
            let mask = u32::MAX.checked_shl(32 - prefix).unwrap_or(0);
            (u32::from(network) ^ u32::from(ip)) & mask == 0
        })
    }

    proptest! {
        #[test]
        fn the_list_is_not_wider_than_the_brokers(address: u32) {
            let ip = Ipv4Addr::from(address);
            let is_public = judge(IpAddr::V4(ip), Some(&Networks::default())) == Judgement::Public;
            prop_assert!(is_public || !contains(&public_networks(), ip), "{}", ip);
        }
    }

    #[test]
    fn what_people_use_is_in_it() {
        let networks = public_networks();
        for address in ["1.1.1.1", "8.8.8.8", "140.82.121.4", "223.255.255.254"] {
            assert!(contains(&networks, address.parse().unwrap()), "{address}");
        }
        for address in ["10.0.0.1", "127.0.0.1", "169.254.169.254", "224.0.0.1", "255.255.255.255"]
        {
            assert!(!contains(&networks, address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn networks_of_ipv6_are_public() {
        for network in PUBLIC_V6 {
            let address =
                network.split('/').next().unwrap().trim_end_matches("::").to_owned() + "::1";
            let ip: IpAddr = address.parse().unwrap();
            assert_eq!(judge(ip, Some(&Networks::default())), Judgement::Public, "{network}");
        }
    }
}
