//! The network of a Windows run. Pure.
//!
//! A container has no network of its own, and a capability would give it all of the host's: so an allowlist can
//! only mean a relay. That is our own program in the same container, on a port of its loopback, with two pipes
//! to the launcher, where the broker decides by name and address. The command is sent there by variables. A port to
//! listen on (`--listen`) is one more relay, for the other direction.
//!
//! Named pipes are what unix sockets are elsewhere: a container opens those only that name it, or all containers, in
//! their access list.

use mcp_policy::{NetworkMode, Protocol};

use crate::core::host::Fact;
use crate::core::plan::Intent;
use crate::core::request::Request;
use crate::windows::facts::WindowsFacts;

const OVERRIDE: &str =
    "--fallback warn starts with no network at all, --network host with all of it";

/// Whether there are connections to carry out of it.
pub fn wants_relay(request: &Request) -> bool {
    let network = &request.policy.network;
    network.mode.value == NetworkMode::Isolated
        && network.allow.iter().any(|rule| rule.value.protocol == Protocol::Tcp)
}

/// Whether a run on such a machine has one.
pub fn has_relay(request: &Request, facts: &WindowsFacts) -> bool {
    wants_relay(request) && facts.relay.usable()
}

/// The ports on which connections are carried into it, by a relay each.
pub fn listen_relays(request: &Request, facts: &WindowsFacts) -> Vec<u16> {
    let network = &request.policy.network;
    match network.mode.value == NetworkMode::Isolated && facts.relay.usable() {
        true => network.listen.iter().map(|port| port.value).collect(),
        false => Vec::new(),
    }
}

pub fn intent(request: &Request, facts: &WindowsFacts) -> Intent {
    let network = &request.policy.network;
    if network.mode.value == NetworkMode::Host {
        return Intent::NotRequested;
    }
    if !network.unix.is_empty() {
        return Intent::unavailable(UNIX, TCP_INSTEAD);
    }
    let carries = wants_relay(request) || !network.listen.is_empty();
    if let (true, Fact::Fails { why }) = (carries, &facts.relay) {
        return Intent::unavailable(
            format!("the relay into the container does not work ({why})"),
            format!("{REMEDY}; or {OVERRIDE}"),
        );
    }
    let mut by = "AppContainer without network capabilities".to_owned();
    if !network.allow.is_empty() {
        by += &format!(
            ", and a relay to the launcher's proxy, which carries {}; programs that know no proxy do not get out",
            request.allowed_in_words()
        );
    }
    for port in network.listen.iter().map(|port| port.value) {
        by += &format!("; a relay from [::1]:{port} of this machine to 127.0.0.1:{port} inside");
    }
    match network.allow.iter().any(|rule| rule.value.protocol == Protocol::Udp) {
        true => Intent::partial(by, format!("udp cannot be proxied ({OVERRIDE})")),
        false => Intent::enforce(by),
    }
}

/// This was never seen to work, so it is not offered: an entry for the container on the socket's file would be
/// one of our grants, but the driver behind it has rules of its own for containers.
const UNIX: &str = "--allow-unix is not built for Windows: the file of a socket could be granted like any other, but \
     whether Windows then lets a container connect to a server outside of it is not known";
const TCP_INSTEAD: &str = "have the server listen on a port of 127.0.0.1 as well, and allow that one: --allow-net \
     127.0.0.1:PORT";

/// What helps where two programs of one container cannot connect to each other. Not an exemption from the
/// loopback rule (`CheckNetIsolation LoopbackExempt`): that would open every port of this machine to the command,
/// for good, and the self-test would refuse to start.
pub const REMEDY: &str = "Windows lets programs of one container connect to each other, so a firewall or a policy \
     of this machine is in the way: as administrator, `netsh wfp show netevents` names the filter that dropped it; \
     allow connections from 127.0.0.1 to 127.0.0.1 for mcp.exe there, once";
