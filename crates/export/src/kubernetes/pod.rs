//! The Pod: one container, `mcp serve` its first process, nothing of the cluster or the node within reach.

use std::collections::BTreeMap;
use std::path::Path;

use mcp_policy::text;

use super::objects::{
    Capabilities, Container, ContainerPort, HttpGet, Labels, Metadata, Mount, PodSecurity, PodSpec,
    PodTemplate, Probe, Resources, Seccomp, Security, Source, Variable, Volume,
};
use super::{GrantedSource, GrantedVolume, Options, PORT};
use crate::egress::Egress;
use crate::error::{Error, Result};
use crate::names;
use crate::place::Place;
use crate::server::{Server, Start};
use crate::settings::Settings;
use crate::size::{Total, quantity};

/// An ordinary user of no image.
const USER: u32 = 10_001;
const CONFIG: &str = "/etc/mcp";
const SECRETS: &str = "/run/mcp/secrets";
const AUTH: &str = "/run/mcp/auth";
const TLS: &str = "/run/mcp/tls";
/// The gateway's own files: its log and the records of what runs.
const STATE: &str = "/var/lib/mcp";
const STATE_SIZE: u64 = 64 << 20;
/// Where `mcp image` puts a package.
pub const PACKAGE: &str = "/opt/mcp/package";

/// How clients get to the Pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reached {
    ByService,
    /// By an address and port of the machine.
    Host(String, u16),
}

/// What a Pod is made of.
pub struct Parts {
    name: String,
    place: Place,
    image: String,
    mcp: String,
    volumes: Vec<(Volume, Mount)>,
    total: Total,
    grace: u64,
    scheme: &'static str,
}

impl Parts {
    pub fn new(
        name: &str,
        server: &Server,
        settings: &Settings,
        options: &Options,
    ) -> Result<Parts> {
        is_absolute("--mcp", &options.mcp)?;
        let namespace = options.namespace.as_deref().unwrap_or("default");
        if settings.jwks().is_some_and(|jwks| !jwks.starts_with("https://")) {
            return Err(Error::new(
                "auth.oauth.jwks is a file here; a Pod has none of it: write the https URL of the keys",
            ));
        }
        let place = Place {
            listen: format!("0.0.0.0:{PORT}"),
            behind_proxy: Some(!settings.has_tls()),
            hosts: vec![
                name.to_owned(),
                format!("{name}.{namespace}"),
                format!("{name}.{namespace}.svc"),
                format!("{name}.{namespace}.svc.cluster.local"),
            ],
            tls: settings.has_tls().then_some(("/run/mcp/tls/tls.crt", "/run/mcp/tls/tls.key")),
            tokens: has_tokens(settings).then_some("/run/mcp/auth/tokens"),
            jwks: None,
            policy: format!("{CONFIG}/policy.toml"),
            package: Some(PACKAGE),
            secrets: SECRETS.to_owned(),
        };
        if let (Start::Package { reference, .. }, Some(at)) =
            (&server.start, server.options.iter().position(|word| word == "--bin"))
        {
            let program = server.options.get(at + 1).map_or("", String::as_str);
            return Err(Error::new(format!(
                "--bin {} of {}: an image starts the program that its package is named for; export its command instead",
                text::word(program),
                text::word(reference)
            )));
        }
        let total = Total::of(&server.policy.limits, settings.sandboxes());
        let mut parts = Parts {
            name: name.to_owned(),
            place,
            image: options.image.to_string(),
            mcp: options.mcp.clone(),
            volumes: Vec::new(),
            total,
            grace: settings.drain() + server.policy.limits.grace.value.as_std().as_secs() + 5,
            scheme: if settings.has_tls() { "HTTPS" } else { "HTTP" },
        };
        parts.own_volumes(server, settings);
        parts.granted_volumes(server, &options.volumes)?;
        Ok(parts)
    }

    fn own_volumes(&mut self, server: &Server, settings: &Settings) {
        let secret = |suffix: &str| Source::Secret {
            default_mode: 0o440,
            // podman 4.3 ends with a fault where this is not said.
            optional: false,
            secret_name: format!("{}-{suffix}", self.name),
        };
        let memory = Source::EmptyDir {
            medium: Some("Memory"),
            size_limit: quantity(self.total.temporary.max(1 << 20)),
        };
        let state = Source::EmptyDir { medium: None, size_limit: quantity(STATE_SIZE) };
        let mut all = vec![
            (
                "config",
                CONFIG,
                Source::ConfigMap { name: self.name.clone(), optional: false },
                true,
            ),
            ("tmp", "/tmp", memory, false),
            ("state", STATE, state, false),
        ];
        if has_tokens(settings) {
            all.push(("auth", AUTH, secret("tokens"), true));
        }
        if settings.has_tls() {
            all.push(("tls", TLS, secret("tls"), true));
        }
        if !server.policy.env.secrets.is_empty() {
            all.push(("secrets", SECRETS, secret("secrets"), true));
        }
        self.volumes = all
            .into_iter()
            .map(|(name, path, source, read_only)| volume(name, path, source, read_only))
            .collect();
    }

    /// What the policy grants: written paths need a volume, because the image is read-only; read ones may be in the image.
    fn granted_volumes(&mut self, server: &Server, given: &[GrantedVolume]) -> Result<()> {
        let files = &server.policy.filesystem;
        let is_below = |path: &Path, of: &str| path.starts_with(of);
        for (number, granted) in (1..).zip(given) {
            is_absolute("a volume at", &granted.path)?;
            let is_written = granted.touches(&files.write);
            if !granted.is_granted(&server.policy) {
                return Err(Error::new(format!(
                    "--volume {}: servers.{} is granted nothing there (--read or --write in its run line)",
                    text::word(&granted.path),
                    server.name
                )));
            }
            let source = match &granted.source {
                GrantedSource::Claim(claim) => {
                    names::checked("--volume: the claim", claim)?;
                    Source::PersistentVolumeClaim { claim_name: claim.clone() }
                }
                GrantedSource::Empty(size) => {
                    Source::EmptyDir { medium: None, size_limit: quantity(size.get()) }
                }
                GrantedSource::Host => {
                    Source::HostPath { path: granted.path.clone(), kind: "Directory" }
                }
            };
            self.volumes.push(volume(
                &format!("granted-{number}"),
                &granted.path,
                source,
                !is_written,
            ));
        }
        for path in &files.write {
            let has_volume = given.iter().any(|granted| is_below(&path.value, &granted.path));
            if !has_volume {
                let shown = text::word(&path.value.to_string_lossy());
                return Err(Error::new(format!(
                    "servers.{} may write {shown}, and a Pod has nothing there: --volume {shown}=CLAIM for a \
                     PersistentVolumeClaim, or --volume {shown}=empty:1G for a directory that ends with the Pod",
                    server.name
                )));
            }
        }
        Ok(())
    }

    /// The ConfigMap: what the gateway serves, and what the server may do.
    pub fn data(&self, server: &Server, settings: &Settings) -> Result<BTreeMap<String, String>> {
        Ok([
            ("servers.toml".to_owned(), settings.text(server, &self.place)?),
            ("policy.toml".to_owned(), self.place.policy_text(&server.policy)?),
        ]
        .into())
    }

    pub fn template(&self, labels: Labels, reached: Reached) -> PodTemplate {
        let metadata = Metadata { labels, ..Metadata::default() };
        let seccomp = || Seccomp { kind: "RuntimeDefault" };
        let spec = PodSpec {
            active_deadline_seconds: None,
            automount_service_account_token: false,
            containers: vec![self.container(reached)],
            enable_service_links: false,
            host_users: Some(false),
            restart_policy: "Always",
            security_context: PodSecurity {
                fs_group: USER,
                run_as_group: USER,
                run_as_non_root: true,
                run_as_user: USER,
                seccomp_profile: seccomp(),
            },
            termination_grace_period_seconds: self.grace,
            volumes: self.volumes.iter().map(|(volume, _)| volume.clone()).collect(),
        };
        PodTemplate { metadata, spec }
    }

    fn container(&self, reached: Reached) -> Container {
        let probe = |path| Probe {
            http_get: HttpGet { path, port: PORT, scheme: self.scheme },
            period_seconds: 10,
            timeout_seconds: 5,
        };
        let (host_ip, host_port) = match reached {
            Reached::ByService => (None, None),
            Reached::Host(address, port) => (Some(address), Some(port)),
        };
        let environment = [
            ("HOME", STATE),
            ("TMPDIR", "/tmp"),
            ("XDG_CONFIG_HOME", "/var/lib/mcp/config"),
            ("XDG_DATA_HOME", "/var/lib/mcp/data"),
            ("XDG_STATE_HOME", "/var/lib/mcp/state"),
            ("XDG_RUNTIME_DIR", "/var/lib/mcp"),
        ];
        Container {
            name: "mcp",
            image: self.image.clone(),
            image_pull_policy: "IfNotPresent",
            command: vec![self.mcp.clone(), "serve".to_owned(), format!("{CONFIG}/servers.toml")],
            env: environment.map(|(name, value)| Variable { name, value }).into(),
            liveness_probe: probe("/healthz"),
            ports: vec![ContainerPort {
                name: "mcp",
                container_port: PORT,
                host_ip,
                host_port,
                protocol: "TCP",
            }],
            readiness_probe: probe("/readyz"),
            resources: self.resources(),
            security_context: Security {
                allow_privilege_escalation: false,
                capabilities: Capabilities { drop: vec!["ALL"] },
                privileged: false,
                read_only_root_filesystem: true,
                run_as_non_root: true,
                seccomp_profile: Seccomp { kind: "RuntimeDefault" },
            },
            volume_mounts: self.volumes.iter().map(|(_, mount)| mount.clone()).collect(),
        }
    }

    /// Files in memory count as memory of the Pod.
    fn resources(&self) -> Resources {
        let mut limits = Labels::new();
        if let Some(memory) = self.total.memory {
            limits
                .insert("memory".to_owned(), quantity(memory.saturating_add(self.total.temporary)));
        }
        if let Some(millicores) = self.total.millicores {
            limits.insert("cpu".to_owned(), format!("{millicores}m"));
        }
        limits.insert("ephemeral-storage".to_owned(), quantity(STATE_SIZE * 2));
        let cpu = self.total.millicores.map_or(100, |most| most.min(100));
        let requests = [
            ("memory".to_owned(), quantity(self.total.least_memory)),
            ("cpu".to_owned(), format!("{cpu}m")),
        ];
        Resources { limits, requests: requests.into() }
    }

    /// The same with podman, which takes Secrets from files in the form of Kubernetes.
    pub fn notes_for_podman(
        &self,
        server: &Server,
        settings: &Settings,
        egress: &Egress,
    ) -> Vec<String> {
        let name = &self.name;
        let mut notes = Vec::new();
        let secrets = [
            (has_tokens(settings), "tokens"),
            (settings.has_tls(), "tls"),
            (!server.policy.env.secrets.is_empty(), "secrets"),
        ];
        for (_, suffix) in secrets.iter().filter(|(is_needed, _)| *is_needed) {
            notes.push(format!(
                "first: podman kube play a Secret {name}-{suffix} (see docs/EXPORT.md)"
            ));
        }
        notes.push(self.image_note(server));
        notes.extend(elsewhere(server, egress));
        notes
    }

    fn image_note(&self, server: &Server) -> String {
        match &server.start {
            Start::Package { reference, .. } => {
                format!(
                    "the image has to be made by `mcp image {} --base IMAGE`",
                    text::word(reference)
                )
            }
            Start::Command(words) => format!(
                "the image has to have {} and {}",
                self.mcp,
                text::word(words.first().map_or("", String::as_str))
            ),
        }
    }

    /// What a person has to know or to do.
    pub fn notes(&self, server: &Server, settings: &Settings, egress: &Egress) -> Vec<String> {
        let name = &self.name;
        let mut notes = Vec::new();
        if has_tokens(settings) {
            notes.push(format!(
                "first: kubectl create secret generic {name}-tokens --from-file=tokens=FILE (lines of `mcp serve token NAME`)"
            ));
        }
        if settings.has_tls() {
            notes.push(format!(
                "first: kubectl create secret tls {name}-tls --cert=FILE --key=FILE"
            ));
        } else {
            notes.push("TLS ends in front of it (an Ingress or a Gateway): inside the cluster it speaks plain HTTP".to_owned());
        }
        if !server.policy.env.secrets.is_empty() {
            let keys: Vec<String> = server
                .policy
                .env
                .secrets
                .keys()
                .map(|key| format!("--from-file={0}=FILE", key.as_str()))
                .collect();
            notes.push(format!(
                "first: kubectl create secret generic {name}-secrets {}",
                keys.join(" ")
            ));
        }
        notes.push(self.image_note(server));
        notes.extend(elsewhere(server, egress));
        notes.push(
            "hostUsers: false needs Kubernetes 1.33 (or the feature gate UserNamespacesSupport)"
                .to_owned(),
        );
        notes
    }
}

/// Grants that name something of this machine, which is not there.
pub fn elsewhere(server: &Server, egress: &Egress) -> Vec<String> {
    let network = &server.policy.network;
    let mut notes = Vec::new();
    if !egress.loopback.is_empty() {
        notes.push(format!(
            "{}: there it is the Pod itself, not this machine",
            egress.loopback.join(", ")
        ));
    }
    for path in &network.unix {
        let shown = text::word(&path.value.to_string_lossy());
        notes.push(format!("the socket {shown} of this machine is not there"));
    }
    for port in &network.listen {
        notes.push(format!("port {} of the server is reachable inside the Pod only", port.value));
    }
    notes
}

/// Authentication is required beyond loopback: by tokens where servers.toml says nothing else.
pub fn has_tokens(settings: &Settings) -> bool {
    settings.tokens().is_some() || !settings.has_oauth()
}

fn volume(name: &str, path: &str, source: Source, read_only: bool) -> (Volume, Mount) {
    let mount = Mount { name: name.to_owned(), mount_path: path.to_owned(), read_only };
    (Volume { name: name.to_owned(), source }, mount)
}

/// A path that an engine takes as it is: absolute, without anything that it would replace or split.
pub fn is_absolute(what: &str, path: &str) -> Result<()> {
    let is_plain = path.starts_with('/')
        && !path.contains(['$', ':', '\\', '"', '\'', '`'])
        && !path.chars().any(text::is_unseen)
        && !Path::new(path).components().any(|part| part == std::path::Component::ParentDir);
    match is_plain {
        true => Ok(()),
        false => Err(Error::new(format!(
            "{what} {}: a Pod takes only absolute paths without .., quotes, $ and :",
            text::word(path)
        ))),
    }
}
