//! The tables of a policy file, for the schema only: mcp-policy reads them, with better errors.
#![allow(dead_code)]

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

/// Paths beyond the system and the package itself; ~ is the user's home
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Filesystem {
    read: Option<Vec<String>>,
    write: Option<Vec<String>>,
    /// Paths or globs that stay closed, whatever is granted
    deny: Option<Vec<String>>,
    /// Whether git, editor, agent and shell settings stay as they are inside what may be written
    protect: Option<bool>,
    /// What may be written of those
    allow_write: Option<Vec<String>>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Network {
    /// "host": the host's own network
    Mode(String),
    Rules(NetworkRules),
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NetworkRules {
    /// api.example.com:443, *.example.com, 10.1.0.0/16:5432, udp://1.1.1.1:53
    allow: Option<Vec<String>>,
    /// Unix sockets of the host
    unix: Option<Vec<String>>,
    /// Ports of the server that the host may reach on 127.0.0.1
    listen: Option<Vec<u16>>,
    /// The system's certificate service on macOS, which Go programs need for TLS
    system_trust: Option<bool>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Process {
    /// Whether the server starts other processes
    subprocess: Option<bool>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Amount {
    /// With a unit, such as "256 MiB" or "5m"; "none" for no limit
    Text(String),
    Number(f64),
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    memory: Option<Amount>,
    /// Cores: 0.5 is half of one
    cpu: Option<Amount>,
    cpu_time: Option<Amount>,
    /// "10 MiB/s"
    io: Option<Amount>,
    processes: Option<Amount>,
    open_files: Option<Amount>,
    file_size: Option<Amount>,
    tmp_size: Option<Amount>,
    address_space: Option<Amount>,
    timeout: Option<Amount>,
    grace: Option<Amount>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Env {
    /// Names or globs, from the user's environment
    allow: Option<Vec<String>>,
    set: Option<BTreeMap<String, String>>,
    /// env:NAME, file:PATH or cmd:COMMAND
    secrets: Option<BTreeMap<String, String>>,
}
