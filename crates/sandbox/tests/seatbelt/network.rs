//! The network: nothing, one socket, one port, the proxy, all of it.

use mcp_sandbox::macos::Trust;
use mcp_sandbox::{Control, Intent};

use crate::evaluator::{End, Question};
use crate::support::{Mac, plan, policy, request, scratch};

const TRUSTD: &str = "com.apple.trustd.agent";

fn reaches(mac: &Mac, host: &str, port: u16) -> bool {
    mac.asks(Question::outbound(End::ip(host, port)))
}

#[test]
fn granted_unix_sockets_and_no_others() {
    let mac = Mac::with(|f| f.allow_unix("/tmp/.s.PGSQL.5432"));
    let to = |path: &str| mac.asks(Question::outbound(End::Unix(path.to_owned())));
    assert!(to("/private/tmp/.s.PGSQL.5432"));
    assert!(!to("/private/tmp/.s.PGSQL.5433") && !to("/private/var/run/docker.sock"));
    assert!(!reaches(&mac, "127.0.0.1", 5432));
}

#[test]
fn sockets_in_the_commands_own_directories_work() {
    let mac = Mac::with(|f| f);
    let own = End::Unix(scratch("tmp/tsx.sock"));
    assert!(mac.asks(Question::bind(own.clone())) && mac.asks(Question::outbound(own)));
    assert!(!mac.asks(Question::bind(End::Unix("/private/tmp/x.sock".to_owned()))));
}

#[test]
fn a_port_to_listen_on_is_that_port_of_the_loopback() {
    let mac = Mac::with(|f| f.listen(8080));
    assert!(mac.asks(Question::bind(End::ip("127.0.0.1", 8080))));
    for at in [End::ip("127.0.0.1", 8081), End::ip("192.0.2.7", 8080), End::ip("0.0.0.0", 8080)] {
        assert!(!mac.asks(Question::bind(at.clone())), "{at:?}");
    }
    assert!(!reaches(&mac, "127.0.0.1", 8080) && !reaches(&mac, "203.0.113.5", 443));
}

#[test]
fn an_allowlist_without_a_proxy_stops_the_run_and_opens_nothing() {
    let request = request(policy(|f| f.allow_net("api.example.com:443".parse().unwrap())));
    let plan = plan(&request);
    assert!(matches!(plan.controls[&Control::Network], Intent::Unavailable { .. }));
    assert!(plan.boundary_gaps().any(|(control, _)| control == Control::Network));
    let mac = Mac::of(&request);
    assert!(!reaches(&mac, "203.0.113.5", 443) && !reaches(&mac, "127.0.0.1", 443));
}

#[test]
fn an_allowlist_opens_the_proxys_ports_and_no_others() {
    let request = request(policy(|f| f.allow_net("api.example.com:443".parse().unwrap())));
    let mac = Mac::with_proxy(&request, vec![50_123, 50_124], Trust::Closed);
    assert!(reaches(&mac, "127.0.0.1", 50_123) && reaches(&mac, "::1", 50_124));
    for (host, port) in
        [("127.0.0.1", 50_125), ("203.0.113.5", 443), ("203.0.113.5", 50_123), ("127.0.0.1", 53)]
    {
        assert!(!reaches(&mac, host, port), "{host}:{port}");
    }
    assert!(!mac.looks_up(TRUSTD));
}

#[test]
fn the_certificate_service_only_with_an_allowlist_and_when_asked_for() {
    let with = request(policy(|f| f.allow_net("api.example.com:443".parse().unwrap())));
    let without = request(policy(|f| f));
    assert!(Mac::with_proxy(&with, vec![50_123], Trust::System).looks_up(TRUSTD));
    assert!(!Mac::with_proxy(&with, vec![50_123], Trust::Closed).looks_up(TRUSTD));
    assert!(!Mac::with_proxy(&with, vec![], Trust::System).looks_up(TRUSTD));
    assert!(!Mac::with_proxy(&without, vec![50_123], Trust::System).looks_up(TRUSTD));
}

#[test]
fn the_hosts_network_is_the_internet_and_not_every_socket() {
    let mac = Mac::with(|f| f.network_host());
    assert!(reaches(&mac, "203.0.113.5", 443) && mac.asks(Question::bind(End::ip("0.0.0.0", 80))));
    assert!(mac.asks(Question::outbound(End::Unix("/private/var/run/mDNSResponder".to_owned()))));
    for path in ["/private/var/run/docker.sock", "/private/tmp/com.apple.launchd.x/Listeners"] {
        assert!(!mac.asks(Question::outbound(End::Unix(path.to_owned()))), "{path}");
    }
    assert!(!mac.looks_up(TRUSTD) && !mac.looks_up("com.apple.SecurityServer"));
}
