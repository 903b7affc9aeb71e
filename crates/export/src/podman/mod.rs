//! podman: the Pod of Kubernetes for `podman kube play`, and a quadlet that has systemd play it.
//!
//! What the policy grants is a directory of this machine, mounted where it is; clients connect to an address of it.

use std::net::SocketAddr;

use crate::controls;
use crate::egress::Egress;
use crate::error::Result;
use crate::kubernetes::objects::{ConfigMap, Labels, Metadata, Object};
use crate::kubernetes::pod::{Parts, Reached};
use crate::kubernetes::{self, GrantedSource, GrantedVolume, value, yaml_stream};
use crate::names;
use crate::server::{Export, File, Server};
use crate::settings::Settings;
use crate::systemd::unit::Unit;

/// How a server is to run by podman.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// As on Kubernetes.
    pub pod: kubernetes::Options,
    /// Where clients connect.
    pub listen: SocketAddr,
}

/// The Pod of one server, and its quadlet.
///
/// # Errors
/// What cannot be said there, and what to write instead.
pub fn export(server: &Server, settings: &Settings, options: &Options) -> Result<Export> {
    let name = names::object_name(&server.name)?;
    let mut pod = options.pod.clone();
    let files = &server.policy.filesystem;
    for path in files.read.iter().chain(&files.write) {
        let path = path.value.to_string_lossy();
        let is_given =
            pod.volumes.iter().any(|volume| std::path::Path::new(&*path).starts_with(&volume.path));
        if !is_given {
            pod.volumes
                .push(GrantedVolume { path: path.into_owned(), source: GrantedSource::Host });
        }
    }
    let parts = Parts::new(&name, server, settings, &pod)?;
    let labels: Labels = [("app.kubernetes.io/name".to_owned(), name.clone())].into();
    let meta = |name: &str| Metadata {
        name: Some(name.to_owned()),
        labels: labels.clone(),
        ..Metadata::default()
    };
    let mut data = parts.data(server, settings)?;
    // Clients of this machine call it by its address.
    if let Some(text) = data.get_mut("servers.toml") {
        *text = settings.with_hosts(text, &["localhost", &options.listen.ip().to_string()])?;
    }
    let config = ConfigMap { api_version: "v1", kind: "ConfigMap", metadata: meta(&name), data };
    let reached = Reached::Host(options.listen.ip().to_string(), options.listen.port());
    let template = parts.template(labels.clone(), reached);
    let object =
        Object { api_version: "v1", kind: "Pod", metadata: meta(&name), spec: template.spec };
    let mut egress = Egress::of(&server.policy.network);
    settings.jwks().iter().for_each(|url| egress.add_url(url));
    let mut export = Export {
        server: server.name.clone(),
        files: Vec::new(),
        controls: controls::pod::intents(&server.policy),
        notes: parts.notes_for_podman(server, settings, &egress),
    };
    export.notes.push(format!("start: podman kube play --userns=auto {name}.yaml"));
    let title = format!(
        "{} by podman, by `mcp export podman`. What holds there, control by control:",
        server.name
    );
    let text = export.head(&title) + &yaml_stream(&[value(&config)?, value(&object)?]);
    export.files.push(File::new(format!("{name}.yaml"), text));
    export.files.push(File::new(format!("{name}.kube"), quadlet(&name)));
    Ok(export)
}

/// `/etc/containers/systemd/NAME.kube`, beside the manifest.
fn quadlet(name: &str) -> String {
    let mut unit = Unit::default();
    unit.section("Unit");
    unit.set("Description", format!("MCP server {name} in a Pod"));
    unit.section("Kube");
    unit.set("Yaml", format!("{name}.yaml"));
    unit.set("UserNS", "auto");
    unit.section("Install");
    unit.set("WantedBy", "default.target");
    unit.text()
}
