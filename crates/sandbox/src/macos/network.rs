//! The network of a macOS run. Pure.
//!
//! A profile knows `localhost` and `*`, no other host: so an allowlist can only mean the launcher's
//! own proxy on a port of the loopback, which then decides by name and address. That proxy is not
//! joined to this platform yet ([`Proxy`] is its place), so an allowlist stops the run.

use mcp_policy::NetworkMode;

use crate::plan::Intent;
use crate::request::Request;

/// Ports of the launcher's own proxy on 127.0.0.1, which is all of the network that an allowlist
/// opens in the profile. The default is none at all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Proxy {
    pub ports: Vec<u16>,
    pub trust: Trust,
}

/// Whether the command may ask the system's certificate service (`com.apple.trustd.agent`), which
/// Go's TLS needs. That service fetches revocation lists itself, so it is a way to the
/// network: only for who has an allowlist, and asks for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Trust {
    #[default]
    Closed,
    System,
}

pub fn intent(request: &Request, proxy: &Proxy) -> Intent {
    let network = &request.policy.network;
    if network.mode.value == NetworkMode::Host {
        return Intent::NotRequested;
    }
    let by = "Seatbelt: no socket reaches anything that was not named";
    match (network.allow.is_empty(), proxy.ports.is_empty(), proxy.trust) {
        (true, ..) => Intent::enforce(by),
        (false, true, _) => Intent::unavailable(
            "an allowlist needs the proxy, which is not built for macOS yet",
            "--fallback warn starts with no network at all, --network host with all of it",
        ),
        (false, false, Trust::Closed) => Intent::enforce(format!("{by}, and the launcher's proxy")),
        (false, false, Trust::System) => Intent::partial(
            format!("{by}, and the launcher's proxy"),
            "the system's certificate service was opened, and connects to hosts of its own choice",
        ),
    }
}
