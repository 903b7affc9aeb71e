//! CiliumNetworkPolicy (`cilium.io/v2`): rules by host name, in the network itself.
//!
//! Cilium learns the addresses of a name from the answers of the resolver, so questions go through its DNS proxy, and only for
//! the names that are allowed. It has no port ranges beside names: every port is said by its absence there, for one protocol.

use mcp_policy::{Ports, Wildcard};
use serde_json::{Value, json};

use super::network_policy::protocol;
use super::objects::Labels;
use crate::egress::{Destination, Name};

/// The spec for rules about names.
pub fn spec(labels: &Labels, names: &[Destination<Name>]) -> Value {
    let questions: Vec<Value> = names.iter().map(|name| pattern(&name.to)).collect();
    let ask = json!({
        "toEndpoints": [{"matchLabels": {
            "k8s:io.kubernetes.pod.namespace": "kube-system",
            "k8s:k8s-app": "kube-dns",
        }}],
        "toPorts": [{
            "ports": [{"port": "53", "protocol": "ANY"}],
            "rules": {"dns": questions},
        }],
    });
    let connect = names.iter().map(|name| {
        let protocol = protocol(name.reach.protocol);
        let port = |port: u16| json!({"port": port.to_string(), "protocol": protocol});
        let ports: Vec<Value> = match name.reach.ports {
            Ports::Any => vec![json!({"port": "1", "endPort": 65_535, "protocol": protocol})],
            some => some.listed().unwrap_or_default().into_iter().map(port).collect(),
        };
        json!({"toFQDNs": [pattern(&name.to)], "toPorts": [{"ports": ports}]})
    });
    json!({
        "endpointSelector": {"matchLabels": labels},
        "egress": std::iter::once(ask).chain(connect).collect::<Vec<Value>>(),
    })
}

/// `**.` is names of any depth below one, as `*.` is in a policy.
fn pattern(name: &Name) -> Value {
    match name.wildcard {
        Wildcard::Exact => json!({"matchName": name.name}),
        Wildcard::AnySubdomain => json!({"matchPattern": format!("**.{}", name.name)}),
    }
}
