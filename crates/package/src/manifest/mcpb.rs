//! `manifest.json` of MCP bundles (MCPB, formerly DXT), versions 0.1 to 0.4.
//!
//! It says how to start a server and what to ask its user for, and nothing about what the server
//! may do: for that there is `mcp.toml`. Keys that are not known are warnings, since the format
//! grows; a known key with a value that makes no sense is an error.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::settings::{Access, Setting, SettingKind};
use super::{MAX_MANIFEST, MCPB, Manifest, Platform, Server, Transport};
use crate::error::{Error, Result};

const VERSIONS: [&str; 4] = ["0.1", "0.2", "0.3", "0.4"];

/// What the four versions have at the top.
const KNOWN: [&str; 28] = [
    "$schema",
    "dxt_version",
    "manifest_version",
    "name",
    "display_name",
    "version",
    "description",
    "long_description",
    "author",
    "repository",
    "homepage",
    "documentation",
    "support",
    "icon",
    "icons",
    "screenshots",
    "localization",
    "server",
    "tools",
    "tools_generated",
    "prompts",
    "prompts_generated",
    "resources",
    "keywords",
    "license",
    "privacy_policies",
    "_meta",
    "compatibility",
];

#[derive(Deserialize)]
struct RawServer {
    r#type: Type,
    entry_point: Option<String>,
    mcp_config: Option<RawConfig>,
    #[serde(flatten)]
    other: BTreeMap<String, Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Type {
    Node,
    Python,
    Binary,
    Uv,
}

#[derive(Default, Deserialize)]
struct RawConfig {
    command: Option<String>,
    args: Option<Vec<String>>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    platform_overrides: BTreeMap<String, RawConfig>,
    #[serde(flatten)]
    other: BTreeMap<String, Value>,
}

#[derive(Default, Deserialize)]
struct RawCompatibility {
    platforms: Option<Vec<String>>,
    #[serde(default)]
    runtimes: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct RawSetting {
    r#type: SettingKind,
    #[serde(default)]
    title: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    required: bool,
    #[serde(default)]
    multiple: bool,
    #[serde(default)]
    sensitive: bool,
    min: Option<f64>,
    max: Option<f64>,
    default: Option<Value>,
    #[serde(flatten)]
    other: BTreeMap<String, Value>,
}

fn wrong(why: impl std::fmt::Display) -> Error {
    Error::package(format!("{MCPB}: {why}"))
}

pub(super) fn read(text: &str, platform: &Platform) -> Result<Manifest> {
    if text.len() as u64 > MAX_MANIFEST {
        return Err(wrong("is larger than 1 MiB"));
    }
    let text = text.strip_prefix('\u{FEFF}').unwrap_or(text);
    let mut root: Map<String, Value> = serde_json::from_str(text).map_err(wrong)?;
    let mut warnings = Vec::new();
    check_version(&root)?;
    for key in root.keys().filter(|key| !KNOWN.contains(&key.as_str()) && *key != "user_config") {
        warnings.push(unknown("", key));
    }
    let compatibility: RawCompatibility = take(&mut root, "compatibility")?.unwrap_or_default();
    if let Some(platforms) = &compatibility.platforms
        && !platforms.iter().any(|name| name == platform.node_name())
    {
        return Err(wrong(format_args!(
            "is for {}, and this is {}",
            platforms.join(", "),
            platform.node_name()
        )));
    }
    let settings = settings(take(&mut root, "user_config")?.unwrap_or_default(), &mut warnings)?;
    let server: RawServer = required(&mut root, "server")?;
    Ok(Manifest {
        name: required(&mut root, "name")?,
        version: required(&mut root, "version")?,
        description: take(&mut root, "description")?.unwrap_or_default(),
        server: start(server, platform, &mut warnings)?,
        settings,
        asks: None,
        runtimes: compatibility.runtimes,
        warnings,
    })
}

fn unknown(place: &str, key: &str) -> String {
    let key: String = mcp_policy::text::word(key).chars().take(60).collect();
    format!("{MCPB}: unknown key \"{place}{key}\" is ignored")
}

fn check_version(root: &Map<String, Value>) -> Result<()> {
    let version = root.get("manifest_version").or_else(|| root.get("dxt_version"));
    match version.and_then(Value::as_str) {
        Some(version) if VERSIONS.contains(&version) => Ok(()),
        Some(version) => Err(wrong(format_args!("manifest_version {version:?} is not known"))
            .hinted(format!("known: {}", VERSIONS.join(", ")))),
        None => Err(wrong("has no manifest_version").hinted("is this an MCP bundle?")),
    }
}

fn take<T: DeserializeOwned>(root: &mut Map<String, Value>, key: &str) -> Result<Option<T>> {
    match root.remove(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => {
            serde_json::from_value(value).map(Some).map_err(|e| wrong(format_args!("{key}: {e}")))
        }
    }
}

fn required<T: DeserializeOwned>(root: &mut Map<String, Value>, key: &str) -> Result<T> {
    take(root, key)?.ok_or_else(|| wrong(format_args!("has no \"{key}\"")))
}

fn start(server: RawServer, platform: &Platform, warnings: &mut Vec<String>) -> Result<Server> {
    warnings.extend(server.other.keys().map(|key| unknown("server.", key)));
    if let Some(entry) = &server.entry_point {
        check_entry(entry)?;
    }
    let mut config = server.mcp_config.unwrap_or_default();
    warnings.extend(config.other.keys().map(|key| unknown("server.mcp_config.", key)));
    for key in config.platform_overrides.keys() {
        if !["win32", "darwin", "linux"].contains(&key.as_str()) {
            warnings.push(unknown("server.mcp_config.platform_overrides.", key));
        }
    }
    let special = config.platform_overrides.remove(platform.node_name()).unwrap_or_default();
    config.env.extend(special.env);
    let entry = server.entry_point.as_ref().map(|entry| format!("${{__dirname}}/{entry}"));
    let need =
        || entry.clone().ok_or_else(|| wrong("server has neither mcp_config nor entry_point"));
    let mut args = special.args.or(config.args);
    let command = match special.command.or(config.command) {
        Some(command) => command,
        None => {
            let (command, by_default) = match server.r#type {
                Type::Node => ("node".to_owned(), vec![need()?]),
                Type::Python => ("python".to_owned(), vec![need()?]),
                Type::Binary => (need()?, Vec::new()),
                Type::Uv => {
                    let words = ["run", "--directory", "${__dirname}"].map(str::to_owned);
                    ("uv".to_owned(), words.into_iter().chain([need()?]).collect())
                }
            };
            args.get_or_insert(by_default);
            command
        }
    };
    let exe = platform.os == "windows" && server.r#type == Type::Binary;
    let command = if exe && !command.contains('.') { command + ".exe" } else { command };
    Ok(Server {
        command,
        args: args.unwrap_or_default(),
        env: config.env,
        transport: Transport::Stdio,
    })
}

/// A file of the package, and of no other place.
fn check_entry(entry: &str) -> Result<()> {
    let climbs = entry.split(['/', '\\']).any(|part| part == "..");
    if entry.is_empty() || entry.starts_with(['/', '\\']) || entry.contains([':', '\0']) || climbs {
        return Err(wrong(format_args!("entry_point {entry:?} is not a path in the package")));
    }
    Ok(())
}

fn settings(
    raw: BTreeMap<String, RawSetting>,
    warnings: &mut Vec<String>,
) -> Result<BTreeMap<String, Setting>> {
    let mut settings = BTreeMap::new();
    for (key, raw) in raw {
        warnings.extend(raw.other.keys().map(|name| unknown(&format!("user_config.{key}."), name)));
        let default = match raw.default {
            None | Some(Value::Null) => Vec::new(),
            // An empty text is how people write "nothing".
            Some(Value::String(text)) if text.is_empty() => Vec::new(),
            Some(Value::Array(items)) => {
                items.iter().map(text).collect::<Option<_>>().ok_or_else(|| {
                    wrong(format_args!("user_config.{key}.default is no list of texts"))
                })?
            }
            Some(value) => match text(&value) {
                Some(text) => vec![text],
                None => return Err(wrong(format_args!("user_config.{key}.default is no value"))),
            },
        };
        if default.len() > 1 && !raw.multiple {
            return Err(wrong(format_args!(
                "user_config.{key} has several defaults without \"multiple\""
            )));
        }
        if raw.sensitive && !default.is_empty() {
            // A secret that everybody has is none; as a value it would land in logs.
            return Err(wrong(format_args!("user_config.{key} is sensitive and has a default")));
        }
        let setting = Setting {
            kind: raw.r#type,
            title: raw.title,
            description: raw.description,
            is_required: raw.required,
            is_multiple: raw.multiple,
            is_sensitive: raw.sensitive,
            min: raw.min,
            max: raw.max,
            default,
            access: Access::Write,
        };
        settings.insert(key, setting);
    }
    Ok(settings)
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(yes) => Some(yes.to_string()),
        _ => None,
    }
}
