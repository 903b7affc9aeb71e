//! The network of a Windows run. Pure.
//!
//! A container has no network of its own, and a capability would give it all of the host's: so an allowlist can
//! only mean a relay. That is our own program in the same container, on a port of its loopback, with two pipes
//! to the launcher, where the broker decides by name and address. The command is sent there by variables.

use mcp_policy::{NetworkMode, Protocol};

use crate::host::Fact;
use crate::plan::Intent;
use crate::request::Request;
use crate::windows::facts::WindowsFacts;

const OVERRIDE: &str =
    "--fallback warn starts with no network at all, --network host with all of it";

/// Whether there are connections to carry.
pub fn wants_relay(request: &Request) -> bool {
    let network = &request.policy.network;
    network.mode.value == NetworkMode::Isolated
        && network.allow.iter().any(|rule| rule.value.protocol == Protocol::Tcp)
}

/// Whether a run on such a machine has one.
pub fn has_relay(request: &Request, facts: &WindowsFacts) -> bool {
    wants_relay(request) && facts.relay.usable()
}

pub fn intent(request: &Request, facts: &WindowsFacts) -> Intent {
    let network = &request.policy.network;
    if network.mode.value == NetworkMode::Host {
        return Intent::NotRequested;
    }
    let by = "AppContainer without network capabilities";
    if !(network.unix.is_empty() && network.listen.is_empty()) {
        return Intent::unavailable(
            "--allow-unix and --listen are not built for Windows yet",
            "leave them out, or --network host",
        );
    }
    if network.allow.is_empty() {
        return Intent::enforce(by);
    }
    if let (true, Fact::Fails { why }) = (wants_relay(request), &facts.relay) {
        return Intent::unavailable(
            format!("the relay into the container does not work ({why})"),
            format!("{REMEDY}; or {OVERRIDE}"),
        );
    }
    let proxied = format!(
        "{by}, and a relay to the launcher's proxy, which carries what is allowed; programs that know no proxy \
         do not get out"
    );
    match network.allow.iter().any(|rule| rule.value.protocol == Protocol::Udp) {
        true => Intent::partial(proxied, format!("udp cannot be proxied ({OVERRIDE})")),
        false => Intent::enforce(proxied),
    }
}

/// What helps where two programs of one container cannot connect to each other. Not an exemption from the
/// loopback rule (`CheckNetIsolation LoopbackExempt`): that would open every port of this machine to the command,
/// for good, and the check of the walls would refuse to start.
pub const REMEDY: &str = "Windows lets programs of one container connect to each other, so a firewall or a policy \
     of this machine is in the way: as administrator, `netsh wfp show netevents` names the filter that dropped it; \
     allow connections from 127.0.0.1 to 127.0.0.1 for mcp.exe there, once";
