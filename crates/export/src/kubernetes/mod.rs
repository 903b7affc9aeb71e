//! Kubernetes: a Deployment (or a Sandbox of `agents.x-k8s.io`), a Service, a NetworkPolicy and a ConfigMap for each server, by
//! the Pod Security Standard `restricted`.
//!
//! `mcp serve` is the first process of the container. Secrets are references: the export has no value of one.

mod cilium;
mod network_policy;
pub(crate) mod objects;
pub(crate) mod pod;

use std::path::{Path, PathBuf};

use mcp_policy::{Bytes, Duration, Policy, Sourced};
use serde::Serialize;
use serde_json::{Value, json};

use crate::controls;
use crate::egress::Egress;
use crate::error::{Error, Result};
use crate::image::Image;
use crate::names;
use crate::server::{Export, File, Server};
use crate::settings::Settings;
use crate::yaml;
use objects::{
    ConfigMap, DeploymentSpec, Labels, Metadata, Object, RollingUpdate, SandboxSpec, Selector,
    ServicePort, ServiceSpec, Strategy,
};
use pod::{Parts, Reached};

/// Where the gateway listens in a Pod.
pub(crate) const PORT: u16 = 8808;

/// How a server is to run in a cluster.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// The image that has `mcp` and the server.
    pub image: Image,
    /// Where `mcp` is in the image.
    pub mcp: String,
    /// The namespace; without one, that of `kubectl`.
    pub namespace: Option<String>,
    /// Which kind of object keeps the Pod.
    pub kind: Kind,
    /// How rules by host name are said to the network.
    pub names: Names,
    /// Namespaces of ingress controllers, whose Pods may connect.
    pub ingress_namespaces: Vec<String>,
    /// What is at a path that the policy grants.
    pub volumes: Vec<GrantedVolume>,
}

/// Which kind of object keeps the Pod.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// `apps/v1` Deployment.
    Deployment {
        /// How many Pods.
        replicas: u32,
    },
    /// `agents.x-k8s.io/v1beta1` Sandbox: one Pod with a name that stays.
    Sandbox {
        /// What is left when it expires.
        shutdown: Shutdown,
        /// When it expires, as RFC 3339 has it.
        shutdown_time: Option<String>,
        /// The Pod ends after this time.
        deadline: Option<Duration>,
    },
}

/// What is left of a Sandbox that expired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shutdown {
    /// Nothing.
    Delete,
    /// The object, with its status.
    Retain,
}

/// How rules by host name are said to the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Names {
    /// As public addresses on the ports of the rule: a NetworkPolicy knows no names.
    ByPort,
    /// By a CiliumNetworkPolicy.
    Cilium,
}

/// What is at a path that the policy grants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantedVolume {
    /// The path in the policy, and in the Pod.
    pub path: String,
    /// What is mounted there.
    pub source: GrantedSource,
}

impl GrantedVolume {
    /// Whether a policy grants anything in it.
    #[must_use]
    pub fn is_granted(&self, policy: &Policy) -> bool {
        let files = &policy.filesystem;
        self.touches(&files.read) || self.touches(&files.write)
    }

    /// Whether one of these paths is in it, or it in one of them.
    pub(crate) fn touches(&self, paths: &[Sourced<PathBuf>]) -> bool {
        let own = Path::new(&self.path);
        paths.iter().any(|path| path.value.starts_with(own) || own.starts_with(&path.value))
    }
}

/// What is mounted at a granted path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GrantedSource {
    /// A PersistentVolumeClaim of this name.
    Claim(String),
    /// A directory that ends with the Pod, of at most this size.
    Empty(Bytes),
    /// A directory of the machine that runs it (podman only).
    Host,
}

/// The manifests of one server.
///
/// # Errors
/// What cannot be said there, and what to write instead.
pub fn export(server: &Server, settings: &Settings, options: &Options) -> Result<Export> {
    let name = names::object_name(&server.name)?;
    for namespace in options.namespace.iter().chain(&options.ingress_namespaces) {
        names::checked("namespace", namespace)?;
    }
    let labels: Labels =
        [("app.kubernetes.io/managed-by", "mcp"), ("app.kubernetes.io/name", name.as_str())]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into();
    let mut egress = Egress::of(&server.policy.network);
    settings.jwks().iter().for_each(|url| egress.add_url(url));
    let parts = Parts::new(&name, server, settings, options)?;
    let meta = |name: &str| Metadata {
        name: Some(name.to_owned()),
        namespace: options.namespace.clone(),
        annotations: Labels::new(),
        labels: labels.clone(),
    };
    let client = (format!("mcp-client/{name}"), "true".to_owned());
    let mut documents = vec![value(&ConfigMap {
        api_version: "v1",
        kind: "ConfigMap",
        metadata: meta(&name),
        data: parts.data(server, settings)?,
    })?];
    let scene = network_policy::Scene {
        labels: &labels,
        client: client.clone(),
        namespaces: &options.ingress_namespaces,
        egress: &egress,
        names: options.names,
    };
    documents.push(value(&Object {
        api_version: "networking.k8s.io/v1",
        kind: "NetworkPolicy",
        metadata: meta(&name),
        spec: network_policy::spec(&scene),
    })?);
    if options.names == Names::Cilium && !egress.names.is_empty() {
        let spec = cilium::spec(&labels, &egress.names);
        let metadata = value(&meta(&format!("{name}-names")))?;
        documents.push(
            json!({"apiVersion": "cilium.io/v2", "kind": "CiliumNetworkPolicy", "metadata": metadata, "spec": spec}),
        );
    }
    let template = parts.template(labels.clone(), Reached::ByService);
    documents.extend(keeper(&options.kind, template, &labels, meta(&name), settings)?);
    let mut export = Export {
        server: server.name.clone(),
        files: Vec::new(),
        controls: controls::pod::intents(&server.policy),
        notes: parts.notes(server, settings, &egress),
    };
    export.notes.push(format!(
        "clients: Pods of this namespace with the label {}: \"{}\"",
        client.0, client.1
    ));
    let title = format!(
        "{} on Kubernetes, by `mcp export kubernetes`. What holds there, control by control:",
        server.name
    );
    let text = export.head(&title) + &yaml_stream(&documents);
    export.files.push(File::new(format!("{name}.yaml"), text));
    Ok(export)
}

/// The object that keeps the Pod, and the way to it.
fn keeper(
    kind: &Kind,
    mut template: objects::PodTemplate,
    labels: &Labels,
    metadata: Metadata,
    settings: &Settings,
) -> Result<Vec<Value>> {
    match kind {
        Kind::Deployment { replicas } => {
            let deployment = Object {
                api_version: "apps/v1",
                kind: "Deployment",
                metadata: metadata.clone(),
                spec: DeploymentSpec {
                    replicas: *replicas,
                    selector: Selector { match_labels: labels.clone() },
                    // A new Pod is ready before an old one goes.
                    strategy: Strategy {
                        kind: "RollingUpdate",
                        rolling_update: RollingUpdate { max_surge: 1, max_unavailable: 0 },
                    },
                    progress_deadline_seconds: 600,
                    template,
                },
            };
            // A session lives in one Pod: its client has to come back to it.
            let affinity = if *replicas > 1 { "ClientIP" } else { "None" };
            let port = if settings.has_tls() { 443 } else { 80 };
            let service = Object {
                api_version: "v1",
                kind: "Service",
                metadata,
                spec: ServiceSpec {
                    ports: vec![ServicePort {
                        name: "mcp",
                        port,
                        protocol: "TCP",
                        target_port: "mcp",
                    }],
                    selector: labels.clone(),
                    session_affinity: affinity,
                    kind: "ClusterIP",
                },
            };
            Ok(vec![value(&deployment)?, value(&service)?])
        }
        Kind::Sandbox { shutdown, shutdown_time, deadline } => {
            template.spec.active_deadline_seconds =
                deadline.map(|time| time.as_std().as_secs().max(1));
            template.metadata.name = None;
            let sandbox = Object {
                api_version: "agents.x-k8s.io/v1beta1",
                kind: "Sandbox",
                metadata,
                spec: SandboxSpec {
                    operating_mode: "Running",
                    service: true,
                    shutdown_policy: match shutdown {
                        Shutdown::Delete => "Delete",
                        Shutdown::Retain => "Retain",
                    },
                    shutdown_time: shutdown_time.clone(),
                    pod_template: template,
                },
            };
            Ok(vec![value(&sandbox)?])
        }
    }
}

pub(crate) fn value(object: &impl Serialize) -> Result<Value> {
    serde_json::to_value(object).map_err(|e| Error::new(format!("a manifest: {e}")))
}

/// Several documents in one file.
pub(crate) fn yaml_stream(documents: &[Value]) -> String {
    documents.iter().map(|document| format!("---\n{}", yaml::document(document))).collect()
}

#[cfg(test)]
mod tests;
