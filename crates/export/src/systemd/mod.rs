//! systemd: a socket and a service for each server, the walls of the service by systemd's own directives around `mcp serve`.
//!
//! Configuration, policy, tokens and secrets are credentials (`LoadCredential=`): root reads them, the service has copies
//! that no other user sees. With a socket unit the service needs no network of its own where its server has none.

mod public_networks;
pub(crate) mod unit;

use std::net::{IpAddr, SocketAddr};

use mcp_policy::text;

use crate::controls;
use crate::egress::Egress;
use crate::error::{Error, Result};
use crate::names;
use crate::place::Place;
use crate::server::{Export, File, Server, Start};
use crate::settings::Settings;
use crate::size::Total;
use public_networks::public_networks;
use unit::Unit;

/// How a server is to run as a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Where `mcp` is.
    pub mcp: String,
    /// Where clients connect.
    pub listen: SocketAddr,
    /// Who listens.
    pub activation: Activation,
    /// The user of the service; without one, systemd makes one for it.
    pub user: Option<String>,
    /// Name servers that the service asks beside those on loopback.
    pub resolvers: Vec<IpAddr>,
}

/// Who listens for clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    /// systemd, which starts the service with the first client.
    Socket,
    /// The service itself.
    Service,
}

/// The units of one server.
///
/// # Errors
/// What cannot be said there, and what to write instead.
pub fn export(server: &Server, settings: &Settings, options: &Options) -> Result<Export> {
    let name = format!("mcp-{}", names::object_name(&server.name)?);
    unit::path(&options.mcp)?;
    if let Some(user) = &options.user {
        names::checked("--user", user)?;
    }
    let credentials = format!("/run/credentials/{name}.service");
    let place = Place {
        listen: options.listen.to_string(),
        behind_proxy: None,
        hosts: Vec::new(),
        tls: settings.has_tls().then_some(("tls.crt", "tls.key")),
        tokens: settings.tokens().is_some().then_some("tokens"),
        jwks: settings.jwks().filter(|jwks| !jwks.contains("://")).map(|_| "jwks.json"),
        policy: format!("{credentials}/policy.toml"),
        package: None,
        secrets: credentials,
    };
    let mut egress = Egress::of(&server.policy.network);
    settings.jwks().iter().for_each(|url| egress.add_url(url));
    let is_network_private = egress.is_empty() && options.activation == Activation::Socket;
    let scene =
        Scene { name: &name, server, settings, options, egress: &egress, is_network_private };
    let mut export = Export {
        server: server.name.clone(),
        files: Vec::new(),
        controls: controls::systemd::intents(&server.policy, is_network_private),
        notes: scene.notes(),
    };
    let head = export.head(&format!(
        "{} as a service, by `mcp export systemd`. What holds there, control by control:",
        server.name
    ));
    export.files.push(File::new(format!("{name}.service"), head + &scene.service()?));
    if options.activation == Activation::Socket {
        export.files.push(File::new(format!("{name}.socket"), scene.socket()));
    }
    if let Start::Package { reference, fetching, .. } = &server.start {
        export
            .files
            .push(File::new(format!("{name}-pull.service"), scene.pull(reference, fetching)?));
    }
    export.files.push(File::new(format!("{name}/servers.toml"), settings.text(server, &place)?));
    export.files.push(File::new(format!("{name}/policy.toml"), place.policy_text(&server.policy)?));
    Ok(export)
}

struct Scene<'a> {
    name: &'a str,
    server: &'a Server,
    settings: &'a Settings,
    options: &'a Options,
    egress: &'a Egress,
    is_network_private: bool,
}

impl Scene<'_> {
    fn directory(&self) -> String {
        format!("/etc/mcp/{}", self.name)
    }

    fn service(&self) -> Result<String> {
        let name = self.name;
        let mut unit = Unit::default();
        unit.section("Unit");
        unit.set("Description", format!("MCP server {} behind mcp serve", self.server.name));
        unit.set("After", "network-online.target");
        unit.set("Wants", "network-online.target");
        if self.options.activation == Activation::Socket {
            unit.set("Requires", format!("{name}.socket"));
        }
        if matches!(self.server.start, Start::Package { .. }) {
            unit.set("Requires", format!("{name}-pull.service"));
            unit.set("After", format!("{name}-pull.service"));
        }
        unit.section("Service");
        unit.set("Type", "exec");
        unit.words(
            "ExecStart",
            &[&self.options.mcp, "serve", &format!("/run/credentials/{name}.service/servers.toml")],
        )?;
        unit.set("Restart", "on-failure");
        // The gateway alone is told to end: it answers what is due, and ends its servers.
        unit.set("KillMode", "mixed");
        let grace = self.server.policy.limits.grace.value.as_std().as_secs();
        unit.set("TimeoutStopSec", (self.settings.drain() + grace + 5).to_string());
        self.credentials(&mut unit)?;
        self.user(&mut unit);
        self.files(&mut unit)?;
        self.limits(&mut unit)?;
        self.network(&mut unit);
        self.kernel(&mut unit);
        if self.options.activation == Activation::Service {
            unit.section("Install");
            unit.set("WantedBy", "multi-user.target");
        }
        Ok(unit.text())
    }

    fn credentials(&self, unit: &mut Unit) -> Result<()> {
        let directory = self.directory();
        let mut load = |name: &str| {
            unit.set("LoadCredential", format!("{name}:{directory}/{name}"));
        };
        ["servers.toml", "policy.toml"].into_iter().for_each(&mut load);
        if self.settings.tokens().is_some() {
            load("tokens");
        }
        if self.settings.has_tls() {
            ["tls.crt", "tls.key"].into_iter().for_each(&mut load);
        }
        if self.settings.jwks().is_some_and(|jwks| !jwks.contains("://")) {
            load("jwks.json");
        }
        for secret in self.server.policy.env.secrets.keys() {
            // `Place::policy_text` refuses names that are no file names.
            let file = format!("{directory}/secrets/{}", secret.as_str());
            let value = format!("{}:{file}", secret.as_str());
            if value.chars().any(|c| c == '%' || c.is_whitespace() || c.is_control()) {
                return Err(Error::new(format!(
                    "the secret {}: its name has to be plain",
                    text::word(secret.as_str())
                )));
            }
            unit.set("LoadCredential", value);
        }
        Ok(())
    }

    fn user(&self, unit: &mut Unit) {
        match &self.options.user {
            Some(user) => unit.set("User", user),
            None => {
                unit.set("DynamicUser", "yes");
                unit.set("User", self.name);
            }
        }
        let state = format!("/var/lib/{}", self.name);
        unit.set("StateDirectory", self.name);
        unit.set("StateDirectoryMode", "0700");
        unit.set("RuntimeDirectory", self.name);
        unit.set("RuntimeDirectoryMode", "0700");
        unit.set(
            "Environment",
            format!(
                "HOME={state} XDG_CONFIG_HOME={state}/config XDG_DATA_HOME={state}/data XDG_STATE_HOME={state}/state \
                 XDG_RUNTIME_DIR=/run/{}",
                self.name
            ),
        );
        unit.set("UMask", "0077");
    }

    fn files(&self, unit: &mut Unit) -> Result<()> {
        unit.set("ProtectSystem", "strict");
        let files = &self.server.policy.filesystem;
        let is_at_home = files.read.iter().chain(&files.write).any(|path| {
            ["/home", "/root", "/run/user"].iter().any(|home| path.value.starts_with(home))
        });
        // Granted paths below /home are bound into an empty one; nothing else of it is there.
        unit.set("ProtectHome", if is_at_home { "tmpfs" } else { "yes" });
        unit.set("PrivateTmp", "yes");
        unit.set("PrivateDevices", "yes");
        unit.set("PrivateMounts", "yes");
        for (key, paths) in [("BindReadOnlyPaths", &files.read), ("BindPaths", &files.write)] {
            for path in paths {
                let shown = path.value.to_str().ok_or_else(|| {
                    Error::new(format!(
                        "{}: only paths in UTF-8 can be exported",
                        text::word(&path.value.to_string_lossy())
                    ))
                })?;
                unit.words(key, &[unit::path(shown)?])?;
            }
        }
        for path in &self.server.policy.network.unix {
            let shown = path.value.to_string_lossy();
            unit.words("BindReadOnlyPaths", &[unit::path(&shown)?])?;
        }
        Ok(())
    }

    fn limits(&self, unit: &mut Unit) -> Result<()> {
        let policy = &self.server.policy;
        let total = Total::of(&policy.limits, self.settings.sandboxes());
        // For a cgroup of each sandbox below that of the service; see `kernel`.
        if self.is_network_private {
            unit.set("Delegate", "cpu memory pids io");
        }
        if let Some(memory) = total.memory {
            unit.set("MemoryMax", memory.saturating_add(total.temporary).to_string());
            unit.set("MemorySwapMax", "0");
        }
        if let Some(millicores) = total.millicores {
            unit.set("CPUQuota", format!("{}%", millicores.div_ceil(10)));
        }
        if let Some(tasks) = total.tasks {
            unit.set("TasksMax", tasks.to_string());
        }
        if let Some(rate) = policy.limits.io.value {
            for path in &policy.filesystem.write {
                let shown = path.value.to_string_lossy();
                for key in ["IOReadBandwidthMax", "IOWriteBandwidthMax"] {
                    unit.words(key, &[unit::path(&shown)?, &rate.0.get().to_string()])?;
                }
            }
        }
        Ok(())
    }

    fn network(&self, unit: &mut Unit) {
        unit.set("RestrictAddressFamilies", "AF_UNIX AF_INET AF_INET6 AF_NETLINK");
        if self.is_network_private {
            unit.set("PrivateNetwork", "yes");
            unit.set("IPAddressDeny", "any");
            return;
        }
        let is_open = self.egress.everything
            || (self.options.activation == Activation::Service
                && !self.options.listen.ip().is_loopback());
        if is_open {
            return;
        }
        unit.set("IPAddressDeny", "any");
        unit.set("IPAddressAllow", "localhost");
        for resolver in &self.options.resolvers {
            if self.egress.needs_dns() {
                unit.set("IPAddressAllow", resolver.to_string());
            }
        }
        for network in &self.egress.networks {
            unit.set("IPAddressAllow", network.to.cidr.as_str());
        }
        if self.egress.needs_dns() {
            // Every public network: systemd knows no names, and the gateway holds those.
            unit.set("IPAddressAllow", public_networks().join(" "));
        }
    }

    fn kernel(&self, unit: &mut Unit) {
        for key in [
            "NoNewPrivileges",
            "PrivateIPC",
            "PrivateUsers",
            "ProtectClock",
            "ProtectKernelLogs",
            "ProtectKernelModules",
            "RestrictRealtime",
            "RestrictSUIDSGID",
            "LockPersonality",
            "RemoveIPC",
        ] {
            unit.set(key, "yes");
        }
        // With the first /proc has mounts of its own, and a sandbox cannot have a /proc of its own; with the second no cgroup
        // can be made below the unit's. A service without a network has a good score without them.
        if !self.is_network_private {
            unit.set("ProtectKernelTunables", "yes");
            unit.set("ProtectControlGroups", "yes");
        }
        unit.set("ProtectProc", "invisible");
        unit.set("KeyringMode", "private");
        unit.set("CapabilityBoundingSet", "");
        unit.set("AmbientCapabilities", "");
        unit.set("SystemCallArchitectures", "native");
        // A sandbox is made of namespaces and mounts, and has a host name of its own (so no ProtectHostname=).
        unit.set("SystemCallFilter", "@system-service @mount landlock_add_rule landlock_create_ruleset landlock_restrict_self seccomp sethostname");
        unit.set(
            "SystemCallFilter",
            "~@clock @cpu-emulation @debug @module @obsolete @raw-io @reboot @resources @swap",
        );
        unit.set("SystemCallErrorNumber", "EPERM");
    }

    fn socket(&self) -> String {
        let mut unit = Unit::default();
        unit.section("Unit");
        unit.set("Description", format!("Socket of the MCP server {}", self.server.name));
        unit.section("Socket");
        unit.set("ListenStream", self.options.listen.to_string());
        unit.set("NoDelay", "yes");
        unit.section("Install");
        unit.set("WantedBy", "sockets.target");
        unit.text()
    }

    /// Fetches the package before the service starts: that needs a network, and the service may have none.
    fn pull(&self, reference: &str, fetching: &[String]) -> Result<String> {
        let mut unit = Unit::default();
        unit.section("Unit");
        unit.set("Description", format!("Package of the MCP server {}", self.server.name));
        unit.set("After", "network-online.target");
        unit.set("Wants", "network-online.target");
        unit.section("Service");
        unit.set("Type", "oneshot");
        unit.set("RemainAfterExit", "yes");
        // A `$` begins a variable in this directive alone.
        let from_outside = fetching.iter().map(String::as_str).chain([reference]);
        let escaped: Vec<String> = from_outside.map(|word| word.replace('$', "$$")).collect();
        let mut words = vec![self.options.mcp.as_str(), "pull"];
        words.extend(escaped.iter().map(String::as_str));
        unit.words("ExecStart", &words)?;
        self.user(&mut unit);
        unit.set("ProtectSystem", "strict");
        unit.set("ProtectHome", "yes");
        unit.set("PrivateTmp", "yes");
        unit.set("NoNewPrivileges", "yes");
        unit.set("CapabilityBoundingSet", "");
        Ok(unit.text())
    }

    fn notes(&self) -> Vec<String> {
        let (name, directory) = (self.name, self.directory());
        let start = match self.options.activation {
            Activation::Socket => format!("{name}.socket"),
            Activation::Service => format!("{name}.service"),
        };
        let mut notes = vec![format!(
            "install: units to /etc/systemd/system, servers.toml and policy.toml to {directory} (root alone reads them); then \
             systemctl daemon-reload, systemctl enable --now {start}"
        )];
        if let Some(tokens) = self.settings.tokens() {
            notes.push(format!("first: copy {} to {directory}/tokens", text::word(tokens)));
        }
        if self.settings.has_tls() {
            let of = |key| text::word(self.settings.text_at(&["tls", key]).unwrap_or("the file"));
            notes.push(format!(
                "first: copy {} to {directory}/tls.crt and {} to {directory}/tls.key",
                of("certificate"),
                of("key")
            ));
        }
        for secret in self.server.policy.env.secrets.keys() {
            notes.push(format!(
                "first: put the secret into {directory}/secrets/{}",
                secret.as_str()
            ));
        }
        let files = &self.server.policy.filesystem;
        if self.options.user.is_none() && !files.write.is_empty() {
            notes.push(
                "the service has a user that systemd makes: give --user NAME where a user of the host owns the written paths".to_owned(),
            );
        }
        if self.egress.needs_dns() && !self.is_network_private && !self.egress.everything {
            let resolvers: Vec<String> =
                self.options.resolvers.iter().map(ToString::to_string).collect();
            notes.push(format!(
                "name servers that the service may ask: those on loopback{}{}",
                if resolvers.is_empty() { "" } else { ", " },
                resolvers.join(", ")
            ));
        }
        notes
    }
}

#[cfg(test)]
mod tests;
