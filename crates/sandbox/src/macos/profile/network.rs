//! Sockets in a profile: those of the command itself, granted ones, the launcher's proxy, or the host's network.

use std::path::Path;

use mcp_policy::{NetworkMode, Trust};

use super::Rules;
use crate::core::request::Request;
use crate::macos::deny::resolved;
use crate::macos::facts::MacFacts;
use crate::macos::network::Proxy;

pub(super) fn network(
    rules: &mut Rules,
    request: &Request,
    facts: &MacFacts,
    home: &Path,
    proxy: &Proxy,
) {
    let own = [rules.path("TMP", &facts.temporary()), rules.path("HOME", home)];
    let here = |end: &str| own.each_ref().map(|own| format!("({end} unix-socket (subpath {own}))"));
    let why =
        "Sockets that the command makes in its own directories: tsx and Python's managers do.";
    rules.allow(why, "network-bind network-inbound", &here("local"));
    rules.allow(why, "network-outbound", &here("remote"));

    let network = &request.policy.network;
    let unix: Vec<String> = network
        .unix
        .iter()
        .map(|path| resolved(&path.value, &request.links))
        .chain(request.unix.iter().map(|place| place.path.clone()))
        .map(|path| format!("(remote unix-socket (literal {}))", rules.path("UNIX", &path)))
        .collect();
    rules.allow("Sockets of the host that were granted.", "network-outbound", &unix);
    let listen = |host: &str| -> Vec<String> {
        let ports = network.listen.iter();
        ports.map(|port| format!("(local ip \"{host}:{}\")", port.value)).collect()
    };
    rules.allow(
        "Ports of --listen. Many servers bind to every address; ...",
        "network-bind",
        &listen("*"),
    );
    rules.allow(
        "... and `localhost` means all of this machine's addresses to such a server.",
        "network-inbound",
        &listen("localhost"),
    );
    let is_given = network.mode.value == NetworkMode::Host
        || !network.listen.is_empty()
        || !network.allow.is_empty() && !proxy.ports.is_empty();
    if is_given {
        internet_sockets(rules);
    }
    if network.mode.value == NetworkMode::Host {
        host_network(rules);
        interfaces(rules);
        if network.trust.value == Trust::System {
            system_trust(rules);
        }
        return;
    }
    if network.allow.is_empty() {
        return;
    }
    // Only `remote`: a rule on the local end of a connection that goes out would open all of them.
    let ports: Vec<String> =
        proxy.ports.iter().map(|port| format!("(remote ip \"localhost:{port}\")")).collect();
    rules.allow("The launcher's proxy, which knows the allowlist.", "network-outbound", &ports);
    if ports.is_empty() {
        return;
    }
    interfaces(rules);
    if network.trust.value == Trust::System {
        system_trust(rules);
    }
}

/// Some sandboxes report that socket() itself is refused without it. Where a socket leads to is for the other rules.
fn internet_sockets(rules: &mut Rules) {
    rules.allow(
        "Sockets of the internet can be made.",
        "system-socket",
        &["(socket-domain AF_INET)".to_owned(), "(socket-domain AF_INET6)".to_owned()],
    );
}

/// `--system-trust`.
fn system_trust(rules: &mut Rules) {
    rules.allow(
        "Certificates as Go's TLS asks for them; asked for explicitly.",
        "mach-lookup",
        &["(global-name \"com.apple.trustd.agent\")".to_owned()],
    );
}

/// What programs ask about the network before they use it. Without a network they get an error instead, and do not
/// learn the machine's addresses.
fn interfaces(rules: &mut Rules) {
    rules.allow(
        "The list of interfaces: without it Node's os.networkInterfaces() throws.",
        "sysctl-read",
        &["(sysctl-name-prefix \"net.routetable.\")".to_owned()],
    );
    rules.allow(
        "The settings of proxies: without it uv before 0.9.27 and other users of Rust's reqwest abort.",
        "mach-lookup",
        &["(global-name \"com.apple.SystemConfiguration.configd\")".to_owned()],
    );
}

/// `--network host`: the internet as it is, but not the sockets of the user's other programs.
fn host_network(rules: &mut Rules) {
    let why = "The host's network was given.";
    rules.allow(why, "network-outbound", &["(remote ip)".to_owned()]);
    rules.allow(why, "network-bind network-inbound", &["(local ip)".to_owned()]);
    rules.allow(
        "And with it the system's resolver, without which no name has an address.",
        "network-outbound",
        &["(remote unix-socket (literal \"/private/var/run/mDNSResponder\"))".to_owned()],
    );
    let resolver = ["/private/etc/resolv.conf", "/private/var/run/resolv.conf"];
    rules.allow(
        "Which name servers there are: Go's own resolver and c-ares read it from here ...",
        "file-read*",
        &resolver.map(|path| format!("(literal \"{path}\")")),
    );
    rules.allow(
        "... and c-ares, which is Node's dns.resolve(), from this service.",
        "mach-lookup",
        &["(global-name \"com.apple.SystemConfiguration.DNSConfiguration\")".to_owned()],
    );
}
