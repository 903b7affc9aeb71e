//! `mcp.toml`: what MCPB has no words for. Strict: an unknown key is an error.
//!
//! The tables of a policy file stand in it as they are, and mean the same, but for one thing: in a
//! manifest they are wishes.

use std::collections::BTreeMap;
use std::path::PathBuf;

use mcp_policy::{Layer, LayerKind, LayerSource};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::platform::{self, ARCHITECTURES, SYSTEMS};
use super::settings::Access;
use super::{MAX_MANIFEST, Manifest, OURS, Platform, Server, Transport};
use crate::error::{Error, Result};

mod tables;

/// The tables that are not a policy's.
const TABLES: [&str; 3] = ["package", "server", "user_config"];

/// A package for mcp: how its server is started, and what it asks its user for.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "mcp.toml")]
struct File {
    package: Option<PackageTable>,
    server: Option<ServerTable>,
    /// What the directories and files among manifest.json's `user_config` are wanted for (default: write)
    #[serde(default)]
    user_config: BTreeMap<String, Access>,
    #[schemars(with = "Option<tables::Filesystem>")]
    #[expect(dead_code, reason = "read by mcp-policy")]
    filesystem: Option<IgnoredAny>,
    #[schemars(with = "Option<tables::Network>")]
    #[expect(dead_code, reason = "read by mcp-policy")]
    network: Option<IgnoredAny>,
    #[schemars(with = "Option<tables::Process>")]
    #[expect(dead_code, reason = "read by mcp-policy")]
    process: Option<IgnoredAny>,
    #[schemars(with = "Option<tables::Limits>")]
    #[expect(dead_code, reason = "read by mcp-policy")]
    limits: Option<IgnoredAny>,
    #[schemars(with = "Option<tables::Env>")]
    #[expect(dead_code, reason = "read by mcp-policy")]
    env: Option<IgnoredAny>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PackageTable {
    /// namespace/name
    name: String,
    /// A semantic version
    version: String,
    #[serde(default)]
    description: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ServerTable {
    #[serde(default)]
    transport: TransportWord,
    /// A file of the package (with a slash), or a program on PATH such as node
    command: Option<String>,
    args: Option<Vec<String>>,
    /// Variables set for the server; ${__dirname} and the other variables of MCPB are replaced
    #[serde(default)]
    env: BTreeMap<String, String>,
    /// Instead of the above on one system: linux, macos, windows, or with an architecture, linux-x86_64
    #[serde(default)]
    platform: BTreeMap<String, Start>,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Start {
    command: Option<String>,
    args: Option<Vec<String>>,
    #[serde(default)]
    env: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum TransportWord {
    #[default]
    Stdio,
    Http,
}

/// What `mcp.toml` says, before it is joined with a `manifest.json`.
pub(super) struct Ours {
    package: Option<PackageTable>,
    server: Option<Server>,
    access: BTreeMap<String, Access>,
    asks: Layer,
}

/// The JSON Schema of `mcp.toml`.
#[must_use]
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(File).to_value()
}

fn wrong(why: impl std::fmt::Display) -> Error {
    Error::package(format!("{OURS}: {why}"))
}

pub(super) fn read(
    text: &str,
    platform: &Platform,
    directory: PathBuf,
    home: Option<PathBuf>,
) -> Result<Ours> {
    if text.len() as u64 > MAX_MANIFEST {
        return Err(wrong("is larger than 1 MiB"));
    }
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    let source =
        LayerSource { kind: LayerKind::Manifest, path: OURS.into(), base: directory, home };
    // First: its errors are the better ones, and it masks secrets that a person wrote out.
    let asks = Layer::from_toml_beside(text, source, &TABLES)
        .map_err(|e| Error::package(e.to_string()))?;
    let file: File = toml::from_str(text).map_err(|e| wrong(e.to_string().trim_end()))?;
    if let Some(package) = &file.package {
        check(package)?;
    }
    let server = file.server.map(|server| start(server, platform)).transpose()?;
    Ok(Ours { package: file.package, server, access: file.user_config, asks })
}

fn check(package: &PackageTable) -> Result<()> {
    let reference = format!("{}@{}", package.name, package.version);
    match reference.parse() {
        Ok(crate::Reference::Named(_) | crate::Reference::Official(_)) => {}
        _ => {
            return Err(wrong(format_args!("[package] {reference:?} is no name and version"))
                .hinted("expected name = \"acme/test\" and version = \"1.0.0\""));
        }
    }
    semver::Version::parse(&package.version)
        .map_err(|e| wrong(format_args!("[package] version {:?}: {e}", package.version)))?;
    Ok(())
}

fn start(server: ServerTable, platform: &Platform) -> Result<Server> {
    let ServerTable { transport, command, args, mut env, platform: mut specials } = server;
    if let Some(key) = specials.keys().find(|key| !platform::is_key(key)) {
        return Err(wrong(format_args!("[server.platform.{key}]: no such platform")).hinted(
            format!(
                "expected one of {}, with -{} if need be",
                SYSTEMS.join(", "),
                ARCHITECTURES.join(" or -")
            ),
        ));
    }
    let names: Vec<String> = specials.keys().cloned().collect();
    let [exact, system] = platform.keys().map(|key| specials.remove(&key).unwrap_or_default());
    env.extend(system.env);
    env.extend(exact.env);
    let command = exact.command.or(system.command).or(command);
    let command = command.ok_or_else(|| {
        wrong(format_args!("[server] has no command for {}", platform.keys()[0]))
            .hinted(format!("there is one for: {}", names.join(", ")))
    })?;
    let args = exact.args.or(system.args).or(args).unwrap_or_default();
    if let Some((program, rest)) = command.split_once(' ').filter(|_| args.is_empty())
        && !program.contains(['/', '\\', '$'])
    {
        let rest: Vec<String> = rest.split_whitespace().map(|word| format!("{word:?}")).collect();
        return Err(wrong(format_args!("[server] command {command:?} is more than one word"))
            .hinted(format!("write command = {program:?}, args = [{}]", rest.join(", "))));
    }
    let transport = match transport {
        TransportWord::Stdio => Transport::Stdio,
        TransportWord::Http => Transport::Http,
    };
    Ok(Server { command, args, env, transport })
}

impl Ours {
    /// A package with no `manifest.json`.
    pub(super) fn alone(self) -> Result<Manifest> {
        let package = self.package.ok_or_else(|| {
            wrong("has no [package]").hinted("without a manifest.json it needs name and version")
        })?;
        let server = self.server.ok_or_else(|| {
            wrong("has no [server]").hinted("without a manifest.json it needs a command")
        })?;
        if let Some(key) = self.access.keys().next() {
            return Err(wrong(format_args!(
                "[user_config] {key}: there is no manifest.json that has it"
            )));
        }
        Ok(Manifest {
            name: package.name,
            version: package.version,
            description: package.description,
            server,
            settings: BTreeMap::new(),
            asks: Some(self.asks),
            runtimes: BTreeMap::new(),
            warnings: Vec::new(),
        })
    }

    /// What is said here counts, and what is not said is as `manifest.json` has it.
    pub(super) fn over(self, mut mcpb: Manifest) -> Result<Manifest> {
        if let Some(package) = self.package {
            if package.version != mcpb.version {
                return Err(wrong(format_args!(
                    "has version {}, and manifest.json has {}",
                    package.version, mcpb.version
                )));
            }
            mcpb.name = package.name;
            if !package.description.is_empty() {
                mcpb.description = package.description;
            }
        }
        if let Some(server) = self.server {
            mcpb.server = server;
        }
        for (key, access) in self.access {
            match mcpb.settings.get_mut(&key).filter(|setting| setting.is_path()) {
                Some(setting) => setting.access = access,
                None => {
                    return Err(wrong(format_args!(
                        "[user_config] {key}: manifest.json has no directory or file of that name"
                    )));
                }
            }
        }
        mcpb.asks = Some(self.asks);
        Ok(mcpb)
    }
}
