//! The network: nothing, one socket, one port, the proxy, all of it.

use mcp_sandbox::macos::{self, MacFacts, Step};
use mcp_sandbox::{Control, Intent};

use crate::evaluator::{End, Question};
use crate::support::{Mac, plan, policy, profile, request, scratch};

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
fn a_port_to_listen_on_and_no_other() {
    let mac = Mac::with(|f| f.listen(8080));
    // Servers bind to every address unless they are told otherwise.
    for at in [End::ip("127.0.0.1", 8080), End::ip("0.0.0.0", 8080), End::ip("::", 8080)] {
        assert!(mac.asks(Question::bind(at.clone())), "{at:?}");
    }
    assert!(!mac.asks(Question::bind(End::ip("127.0.0.1", 8081))));
    assert!(mac.asks(Question::inbound(End::ip("127.0.0.1", 8080))));
    assert!(mac.asks(Question::inbound(End::ip("::1", 8080))));
    for at in [End::ip("192.0.2.7", 8080), End::ip("127.0.0.1", 8081)] {
        assert!(!mac.asks(Question::inbound(at.clone())), "{at:?}");
    }
    assert!(!reaches(&mac, "127.0.0.1", 8080) && !reaches(&mac, "203.0.113.5", 443));
}

/// No profile can keep other machines from a server on every address, so it is told, and stops nothing.
#[test]
fn what_listening_opens_is_told() {
    let mac = Mac::with(|f| f.listen(8080));
    assert!(mac.asks(Question::inbound(End::ip("0.0.0.0", 8080))));
    let plan = plan(&request(policy(|f| f.listen(8080))));
    let told: Vec<_> = plan.controls.told_gaps().map(|(control, _)| control).collect();
    assert!(told.contains(&Control::Network), "{told:?}");
    assert!(plan.controls.boundary_gaps().all(|(control, _)| control != Control::Network));
    let without = crate::support::plan(&request(policy(|f| f)));
    assert!(without.controls.told_gaps().all(|(control, _)| control != Control::Network));
}

#[test]
fn an_allowlist_without_a_proxy_stops_the_run_and_opens_nothing() {
    let request = request(policy(|f| f.allow_net("api.example.com:443".parse().unwrap())));
    let plan = macos::plan(&request, &MacFacts { proxy: None, ..MacFacts::usual() });
    assert!(matches!(plan.controls[&Control::Network], Intent::Unavailable { .. }));
    assert!(plan.controls.boundary_gaps().any(|(control, _)| control == Control::Network));
    let mac = Mac::under(profile(&plan));
    assert!(!reaches(&mac, "203.0.113.5", 443) && !reaches(&mac, "127.0.0.1", 443));
}

/// The plan of a run: the port that was taken for its proxy, and the same in its profile.
#[test]
fn an_allowlist_is_the_port_of_the_run_s_own_proxy() {
    let request = request(policy(|f| f.allow_net("api.example.com:443".parse().unwrap())));
    let facts = MacFacts { proxy: Some(50_999), ..MacFacts::usual() };
    let plan = macos::plan(&request, &facts);
    let Intent::Enforce { by } = &plan.controls[&Control::Network] else {
        panic!("{:?}", plan.controls[&Control::Network])
    };
    assert!(by.contains("programs that know no proxy"), "{by}");
    let proxies = plan.steps.iter().filter(|planned| matches!(planned.step, Step::Proxy { .. }));
    let ports: Vec<_> = proxies.map(|planned| planned.step.operand()).collect();
    assert_eq!(ports, ["of 1 rules, by a proxy on port 50999 of the loopback"]);
    let mac = Mac::under(profile(&plan));
    assert!(reaches(&mac, "127.0.0.1", 50_999));
    for (host, port) in
        [("127.0.0.1", 50_998), ("127.0.0.1", 443), ("203.0.113.5", 443), ("203.0.113.5", 50_999)]
    {
        assert!(!reaches(&mac, host, port), "{host}:{port}");
    }
    let mdns = End::Unix("/private/var/run/mDNSResponder".to_owned());
    assert!(!mac.asks(Question::outbound(mdns)), "names are the proxy's to resolve");
    assert!(!mac.asks(Question::bind(End::ip("127.0.0.1", 50_999))));
    // Nothing of it without rules, and nothing for UDP alone.
    for rules in [&[][..], &["udp://1.1.1.1:53"]] {
        let request = crate::support::request(policy(|f| {
            for rule in rules {
                f.allow_net(rule.parse().unwrap());
            }
            f
        }));
        let plan = macos::plan(&request, &facts);
        assert!(!plan.steps.iter().any(|planned| matches!(planned.step, Step::Proxy { .. })));
        assert!(!reaches(&Mac::under(profile(&plan)), "127.0.0.1", 50_999));
        let is_gap = matches!(plan.controls[&Control::Network], Intent::Partial { .. });
        assert_eq!(is_gap, !rules.is_empty());
    }
}

/// The password of a proxy is in no plan: it is made when the run starts.
#[test]
fn a_plan_tells_no_password() {
    let request = request(policy(|f| f.allow_net("api.example.com:443".parse().unwrap())));
    let text = serde_json::to_string(&plan(&request).steps).unwrap();
    assert!(text.contains("50123") && !text.contains("_PROXY") && !text.contains("mcp:"), "{text}");
}

#[test]
fn an_allowlist_opens_the_proxys_ports_and_no_others() {
    let request = request(policy(|f| f.allow_net("api.example.com:443".parse().unwrap())));
    let mac = Mac::with_proxy(&request, vec![50_123, 50_124]);
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
    let host = || "api.example.com:443".parse().unwrap();
    let asked = request(policy(|f| f.allow_net(host()).system_trust()));
    let unasked = request(policy(|f| f.allow_net(host())));
    let without = request(policy(|f| f.system_trust()));
    assert!(Mac::with_proxy(&asked, vec![50_123]).looks_up(TRUSTD));
    assert!(!Mac::with_proxy(&unasked, vec![50_123]).looks_up(TRUSTD));
    assert!(!Mac::with_proxy(&asked, vec![]).looks_up(TRUSTD));
    assert!(!Mac::with_proxy(&without, vec![50_123]).looks_up(TRUSTD));
}

/// It is less than was asked for otherwise, and was asked for: told, and no reason to stop.
#[test]
fn the_certificate_service_is_told_and_stops_nothing() {
    let host = || "api.example.com:443".parse().unwrap();
    let asked = plan(&request(policy(|f| f.allow_net(host()).system_trust())));
    let told: Vec<_> = asked.controls.told_gaps().map(|(control, _)| control).collect();
    assert!(told.contains(&Control::Network), "{told:?}");
    assert!(asked.controls.boundary_gaps().all(|(control, _)| control != Control::Network));
    let unasked = plan(&request(policy(|f| f.allow_net(host()))));
    assert!(matches!(unasked.controls[&Control::Network], Intent::Enforce { .. }));
    let udp = plan(&request(policy(|f| {
        f.allow_net(host()).allow_net("udp://1.1.1.1:53".parse().unwrap()).system_trust()
    })));
    assert!(udp.controls.boundary_gaps().any(|(control, _)| control == Control::Network));
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
    assert!(Mac::with(|f| f.network_host().system_trust()).looks_up(TRUSTD), "Go's TLS needs it");
}
