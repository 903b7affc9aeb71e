//! Rules without a network namespace: TCP sockets only, each connected by the launcher to its own
//! proxy, which carries what is allowed.

use mcp_policy::{NetworkMode, Protocol};

use super::filter_arch;
use crate::core::plan::Intent;
use crate::core::request::Request;
use crate::linux::facts::LinuxFacts;
use crate::linux::step::ConnectionRelay;
use crate::linux::well_known::PROXY;
use mcp_seccomp::Sockets;

/// What a run that has no network namespace may do with sockets.
pub fn sockets(request: &Request, facts: &LinuxFacts) -> Sockets {
    if wants_tcp(request) && cannot(facts).is_none() { Sockets::Proxied } else { Sockets::None }
}

pub fn connection_relay(request: &Request) -> ConnectionRelay {
    ConnectionRelay::Proxy { at: PROXY, rules: request.policy.network.allow.len() }
}

fn wants_tcp(request: &Request) -> bool {
    let network = &request.policy.network;
    network.mode.value == NetworkMode::Isolated
        && network.allow.iter().any(|rule| rule.value.protocol == Protocol::Tcp)
}

/// Why connections cannot be installed here.
fn cannot(facts: &LinuxFacts) -> Option<&'static str> {
    if filter_arch(facts).is_err() {
        return Some("there is no system call filter");
    }
    if !facts.listener.usable() {
        return Some("another sandbox around this one answers for its connections");
    }
    if !facts.installing.usable() {
        return Some("Linux before 5.9 cannot hand connections to a program");
    }
    None
}

/// `why` there is no network namespace, as part of a sentence.
pub fn intent(request: &Request, facts: &LinuxFacts, why: &str) -> Intent {
    let network = &request.policy.network;
    let by = match sockets(request, facts) {
        Sockets::Proxied => format!(
            "{why}, so the launcher connects every socket itself, to its own proxy, which carries \
             {}; programs that know no proxy reach only addresses that rules are about",
            request.allowed_in_words()
        ),
        _ => format!("{why}, so every socket is refused, those to programs of the host as well"),
    };
    let mut missing = Vec::new();
    if let (true, Some(cannot)) = (wants_tcp(request), cannot(facts)) {
        missing.push(format!("what is allowed cannot be reached, since {cannot}"));
    }
    if network.allow.iter().any(|rule| rule.value.protocol == Protocol::Udp) {
        missing.push("udp cannot be used".to_owned());
    }
    if !network.unix.is_empty() {
        missing.push("unix sockets cannot be used".to_owned());
    }
    if !network.listen.is_empty() {
        missing.push("nothing can be listened on".to_owned());
    }
    if missing.is_empty() {
        return Intent::enforce(by);
    }
    let override_with = "--fallback warn starts without it, --network host with everything";
    Intent::partial(
        by,
        format!("{}: that needs a network namespace ({override_with})", missing.join("; ")),
    )
}

#[cfg(test)]
mod tests {
    use crate::core::control::Control;
    use crate::core::host::Fact;
    use crate::linux::plan::plan;
    use crate::linux::plan::sample::{facts, policy, request};

    use super::*;

    fn fails() -> Fact {
        Fact::Fails { why: "Operation not permitted".to_owned() }
    }

    /// What comes of these rules where something is missing.
    fn planned(rules: &[&str], without: impl Fn(&mut LinuxFacts)) -> (Intent, bool, Sockets) {
        let mut request = request();
        request.policy = policy(|flags| {
            for rule in rules {
                match rule.strip_prefix("listen ") {
                    Some(port) => flags.listen(port.parse().unwrap()),
                    None => flags.allow_net(rule.parse().unwrap()),
                };
            }
        });
        let mut facts = facts(1000);
        without(&mut facts);
        let plan = plan(&request, &facts);
        let connection_relay =
            plan.connection_relay.as_ref().map(|connection_relay| &connection_relay.step);
        let proxy = matches!(connection_relay, Some(ConnectionRelay::Proxy { .. }));
        let sockets =
            plan.target.filter.as_ref().map_or(Sockets::All, |filter| filter.step.sockets);
        (plan.controls[&Control::Network].clone(), proxy, sockets)
    }

    #[test]
    fn tcp_rules_are_proxied_without_a_network_namespace_and_only_then() {
        for without in [
            |f: &mut LinuxFacts| f.namespaces = fails(),
            |f: &mut LinuxFacts| f.network_namespace = fails(),
        ] {
            let (intent, proxy, sockets) = planned(&["api.test:443"], without);
            assert!(matches!(intent, Intent::Enforce { .. }), "{intent:?}");
            assert_eq!((proxy, sockets), (true, Sockets::Proxied));
            let (intent, proxy, sockets) = planned(&[], without);
            assert!(matches!(intent, Intent::Enforce { .. }), "{intent:?}");
            assert_eq!((proxy, sockets), (false, Sockets::None));
        }
        let (_, proxy, sockets) = planned(&["api.test:443"], |_| {});
        assert_eq!((proxy, sockets), (false, Sockets::All));
    }

    #[test]
    fn what_cannot_be_had_is_partial() {
        let plain = |f: &mut LinuxFacts| f.namespaces = fails();
        for (rules, proxy) in [
            (&["udp://1.1.1.1:53"][..], false),
            (&["listen 8080"], false),
            (&["api.test:443", "udp://1.1.1.1:53"], true),
            (&["api.test:443", "listen 8080"], true),
        ] {
            let (intent, has_proxy, sockets) = planned(rules, plain);
            assert!(matches!(intent, Intent::Partial { .. }), "{rules:?}: {intent:?}");
            assert_eq!(has_proxy, proxy, "{rules:?}");
            assert_eq!(sockets == Sockets::Proxied, proxy, "{rules:?}");
        }
        for missing in
            [|f: &mut LinuxFacts| f.listener = fails(), |f: &mut LinuxFacts| f.installing = fails()]
        {
            let without = |f: &mut LinuxFacts| {
                plain(f);
                missing(f);
            };
            let (intent, proxy, sockets) = planned(&["api.test:443"], without);
            assert!(matches!(intent, Intent::Partial { .. }), "{intent:?}");
            assert_eq!((proxy, sockets), (false, Sockets::None));
        }
    }
}
