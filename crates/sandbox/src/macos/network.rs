//! The network of a macOS run. Pure.
//!
//! A profile knows `localhost` and `*`, no other host: so an allowlist can only mean the launcher's
//! own proxy on a port of the loopback, which then decides by name and address.

use mcp_policy::{NetworkMode, Protocol, Trust};

use crate::core::plan::Intent;
use crate::core::request::Request;
use crate::macos::facts::MacFacts;

/// Ports of the launcher's own proxy on 127.0.0.1, which is all of the network that an allowlist
/// opens in the profile. The default is none at all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Proxy {
    pub ports: Vec<u16>,
}

/// Whether a run has connections to carry.
pub fn wants_proxy(request: &Request) -> bool {
    let network = &request.policy.network;
    network.mode.value == NetworkMode::Isolated
        && network.allow.iter().any(|rule| rule.value.protocol == Protocol::Tcp)
}

impl Proxy {
    /// The proxy of a run on a Mac with these facts.
    pub fn of(request: &Request, facts: &MacFacts) -> Proxy {
        let port = facts.proxy.filter(|_| wants_proxy(request) && facts.seatbelt.usable());
        Proxy { ports: port.into_iter().collect() }
    }
}

/// Others measured that a profile cannot tell who connects, and that `localhost` covers a server on every address.
const LISTENS: &str = "a server that listens on every address can be reached from other machines as well: have it \
                       listen on 127.0.0.1";
const TRUSTS: &str =
    "the system's certificate service was opened, and connects to hosts of its own choice";

pub fn intent(request: &Request, proxy: &Proxy) -> Intent {
    const OVERRIDE: &str =
        "--fallback warn starts with no network at all, --network host with all of it";
    let network = &request.policy.network;
    if network.mode.value == NetworkMode::Host {
        return Intent::NotRequested;
    }
    let by = "Seatbelt: no socket reaches anything that was not named";
    let proxied = format!(
        "{by}, and the launcher's proxy, which carries {}; programs that know no proxy \
         do not get out",
        request.allowed_in_words()
    );
    if network.allow.is_empty() && network.listen.is_empty() {
        return Intent::enforce(by);
    }
    if network.allow.is_empty() {
        return Intent::agreed(by, LISTENS);
    }
    if wants_proxy(request) && proxy.ports.is_empty() {
        return Intent::unavailable("the proxy could not listen on a port of 127.0.0.1", OVERRIDE);
    }
    if network.allow.iter().any(|rule| rule.value.protocol == Protocol::Udp) {
        let missing = format!("udp cannot be proxied ({OVERRIDE})");
        return Intent::partial(proxied, missing);
    }
    match (network.trust.value, network.listen.is_empty()) {
        (Trust::Closed, true) => Intent::enforce(proxied),
        (Trust::Closed, false) => Intent::agreed(proxied, LISTENS),
        (Trust::System, true) => Intent::agreed(proxied, TRUSTS),
        (Trust::System, false) => Intent::agreed(proxied, format!("{TRUSTS}; {LISTENS}")),
    }
}
