//! NetworkPolicy: nothing in and nothing out, but for what is named.
//!
//! Policies are a union: one that allows more anywhere opens it for the Pod, so a rule for names is either here (public
//! addresses on its ports) or in the CiliumNetworkPolicy, never in both.
//! Leaves open: a cluster without a network plugin that enforces it. The gateway in the Pod holds the rules itself.

use mcp_policy::{Ports, Protocol};

use super::objects::{
    EgressRule, IngressRule, IpBlock, Labels, NetworkPolicySpec, Peer, PolicyPort, Selector,
};
use super::{Names, PORT};
use crate::egress::{self, Block, Egress, Reach};

/// What a policy is made of.
pub struct Scene<'a> {
    pub labels: &'a Labels,
    /// A Pod with this label may connect.
    pub client: (String, String),
    /// Namespaces of ingress controllers, whose Pods may connect.
    pub namespaces: &'a [String],
    pub egress: &'a Egress,
    pub names: Names,
}

pub fn spec(scene: &Scene<'_>) -> NetworkPolicySpec {
    let clients =
        Peer { pod_selector: Some(selector(&scene.client.0, &scene.client.1)), ..Peer::default() };
    let controllers = scene.namespaces.iter().map(|name| Peer {
        namespace_selector: Some(selector("kubernetes.io/metadata.name", name)),
        ..Peer::default()
    });
    let port = PolicyPort { port: PORT, end_port: None, protocol: "TCP" };
    NetworkPolicySpec {
        egress: rules(scene.egress, scene.names),
        ingress: vec![IngressRule {
            from: std::iter::once(clients).chain(controllers).collect(),
            ports: vec![port],
        }],
        pod_selector: Selector { match_labels: scene.labels.clone() },
        policy_types: ["Ingress", "Egress"],
    }
}

fn rules(egress: &Egress, names: Names) -> Vec<EgressRule> {
    if egress.everything {
        // The one rule without peers and ports: `network = "host"` asks for everything.
        return vec![EgressRule::default()];
    }
    let mut rules = Vec::new();
    // With Cilium the question itself is in its policy, because it learns the addresses from it.
    if egress.needs_dns() && (names == Names::ByPort || egress.names.is_empty()) {
        rules.push(dns());
    }
    for destination in &egress.networks {
        rules.push(EgressRule { to: vec![peer(&destination.to)], ports: ports(destination.reach) });
    }
    let mut reaches: Vec<Reach> = egress.public.clone();
    if names == Names::ByPort {
        reaches.extend(egress.names.iter().map(|name| name.reach));
    }
    let mut all: Vec<PolicyPort> = Vec::new();
    for port in reaches.into_iter().flat_map(ports) {
        if !all.contains(&port) {
            all.push(port);
        }
    }
    if !all.is_empty() {
        rules.push(EgressRule { to: egress::public().iter().map(peer).collect(), ports: all });
    }
    rules
}

/// The cluster's resolver, by the labels that it has in every cluster made by kubeadm and its like.
fn dns() -> EgressRule {
    let port = |protocol| PolicyPort { port: 53, end_port: None, protocol };
    EgressRule {
        to: vec![Peer {
            namespace_selector: Some(selector("kubernetes.io/metadata.name", "kube-system")),
            pod_selector: Some(selector("k8s-app", "kube-dns")),
            ..Peer::default()
        }],
        ports: vec![port("UDP"), port("TCP")],
    }
}

fn peer(block: &Block) -> Peer {
    let block = IpBlock { cidr: block.cidr.clone(), except: block.except.clone() };
    Peer { ip_block: Some(block), ..Peer::default() }
}

/// Every port is a range: a rule without ports would be every protocol as well.
pub fn ports(reach: Reach) -> Vec<PolicyPort> {
    let protocol = protocol(reach.protocol);
    match reach.ports {
        Ports::Any => vec![PolicyPort { port: 1, end_port: Some(u16::MAX), protocol }],
        some => {
            let ports = some.listed().unwrap_or_default();
            ports.into_iter().map(|port| PolicyPort { port, end_port: None, protocol }).collect()
        }
    }
}

pub fn protocol(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Tcp => "TCP",
        Protocol::Udp => "UDP",
    }
}

pub fn selector(key: &str, value: &str) -> Selector {
    Selector { match_labels: [(key.to_owned(), value.to_owned())].into() }
}
