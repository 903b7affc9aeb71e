//! servers.toml: what is served, to whom, within which bounds. Relative paths are relative to the file.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer};

use crate::error::Error;

/// What `mcp serve` is to do.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub struct Config {
    /// Where clients connect.
    #[serde(default = "default_listen")]
    pub listen: SocketAddr,
    /// A proxy in front ends TLS.
    #[serde(default)]
    pub behind_proxy: bool,
    /// Certificate and key, as PEM files.
    #[serde(default)]
    pub tls: Option<Tls>,
    /// Names under which clients reach this gateway; needed beyond loopback.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// Web origins that may use it from a browser.
    #[serde(default)]
    pub origins: Vec<String>,
    /// A file for one JSON line per request; `-` is standard output.
    #[serde(default)]
    pub access_log: Option<PathBuf>,
    /// Where spans go; without it there are none.
    #[serde(default)]
    pub otlp: Option<Otlp>,
    /// Who may.
    #[serde(default)]
    pub auth: Auth,
    /// Bounds.
    #[serde(default)]
    pub limits: Limits,
    /// What is served, by name.
    pub servers: BTreeMap<String, Server>,
}

/// One MCP server.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub struct Server {
    /// The words after `mcp run`: options, then a package or a command.
    pub run: Vec<String>,
}

/// Files with a certificate chain and its key.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// The chain.
    pub certificate: PathBuf,
    /// The key.
    pub key: PathBuf,
}

/// A collector of spans.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Otlp {
    /// The whole URL, as `http://127.0.0.1:4318/v1/traces`.
    pub endpoint: String,
}

/// Who may.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Auth {
    /// A file with one principal per line: `NAME sha256:HEX SERVERS`.
    #[serde(default)]
    pub tokens: Option<PathBuf>,
    /// Access tokens of an authorization server.
    #[serde(default)]
    pub oauth: Option<OAuth>,
}

/// The gateway as an OAuth resource server.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OAuth {
    /// `iss` of every token, and the authorization server that clients are sent to.
    pub issuer: String,
    /// The URL under which clients know this gateway; `aud` of every token is this or the URL of a server below it.
    pub resource: String,
    /// Where its keys are: a URL, or a file.
    pub jwks: String,
    /// What each scope allows. Without any, every valid token may use every server.
    #[serde(default)]
    pub scopes: BTreeMap<String, Scope>,
}

/// What a scope allows.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scope {
    /// These servers.
    pub servers: Vec<String>,
    /// Of their tools, these only.
    #[serde(default)]
    pub tools: Option<Vec<String>>,
}

/// Bounds. Times as in policy files: `30s`, `10m`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Limits {
    /// Sandboxes at once.
    pub sandboxes: usize,
    /// Of these, for one principal.
    pub per_principal: usize,
    /// Requests that wait for a sandbox; more get 503.
    pub queue: usize,
    /// How long each of them waits.
    #[serde(deserialize_with = "duration")]
    pub wait: Duration,
    /// Open calls of one sandbox.
    pub calls: usize,
    /// How long a call may take.
    #[serde(deserialize_with = "duration")]
    pub call_time: Duration,
    /// A sandbox that no client uses for so long ends.
    #[serde(deserialize_with = "duration")]
    pub idle: Duration,
    /// How long answers that are due are waited for at the end.
    #[serde(deserialize_with = "duration")]
    pub drain: Duration,
    /// Bytes of one message.
    #[serde(deserialize_with = "bytes")]
    pub max_message: usize,
    /// Bytes of messages that the gateway holds at once.
    #[serde(deserialize_with = "bytes")]
    pub memory: usize,
    /// Of these, for one principal.
    #[serde(deserialize_with = "bytes")]
    pub memory_per_principal: usize,
    /// No sandbox is started while all servers together use this much.
    #[serde(deserialize_with = "some_bytes")]
    pub server_memory: Option<u64>,
    /// Nor while those of its principal do.
    #[serde(deserialize_with = "some_bytes")]
    pub server_memory_per_principal: Option<u64>,
    /// Connections at once.
    pub connections: usize,
    /// Of these, for one address; not for loopback, nor behind a proxy.
    pub connections_per_address: usize,
    /// How long the head of a request, and the first one of a connection, is waited for.
    #[serde(deserialize_with = "duration")]
    pub head_time: Duration,
    /// A client that reads nothing for so long loses its connection.
    #[serde(deserialize_with = "duration")]
    pub write_time: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            sandboxes: 64,
            per_principal: 16,
            queue: 256,
            wait: Duration::from_secs(10),
            calls: 64,
            call_time: Duration::from_secs(300),
            idle: Duration::from_secs(600),
            drain: Duration::from_secs(30),
            max_message: mcp_protocol::MAX_MESSAGE,
            memory: 512 << 20,
            memory_per_principal: 128 << 20,
            server_memory: None,
            server_memory_per_principal: None,
            connections: 16_384,
            connections_per_address: 256,
            head_time: Duration::from_secs(60),
            write_time: Duration::from_secs(60),
        }
    }
}

fn default_listen() -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8808)
}

fn duration<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(from)?;
    let parsed = mcp_policy::Duration::from_str(&text);
    parsed.map(|it| it.as_std()).map_err(serde::de::Error::custom)
}

fn bytes<'de, D: Deserializer<'de>>(from: D) -> Result<usize, D::Error> {
    let text = String::deserialize(from)?;
    let parsed = mcp_policy::Bytes::from_str(&text);
    let bytes = parsed.map_err(serde::de::Error::custom)?;
    usize::try_from(bytes.0).map_err(serde::de::Error::custom)
}

fn some_bytes<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    bytes(from).map(|bytes| Some(bytes as u64))
}

impl Config {
    /// Reads a file. [`Config::judge`] judges it, once everything that changes it is applied.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(path: &Path) -> Result<Config, Error> {
        let text = std::fs::read_to_string(path).map_err(|why| Error::file(path, why))?;
        let mut config: Config = toml::from_str(&text).map_err(|why| Error::file(path, why))?;
        let beside = path.parent().unwrap_or(Path::new("."));
        let resolve = |file: &mut PathBuf| *file = beside.join(&*file);
        config.tls.iter_mut().for_each(|tls| {
            resolve(&mut tls.certificate);
            resolve(&mut tls.key);
        });
        config.auth.tokens.iter_mut().for_each(resolve);
        config.access_log.iter_mut().filter(|file| file.as_os_str() != "-").for_each(resolve);
        if let Some(oauth) = &mut config.auth.oauth
            && !oauth.jwks.starts_with("https://")
            && !oauth.jwks.starts_with("http://")
        {
            oauth.jwks = beside.join(&oauth.jwks).to_string_lossy().into_owned();
        }
        Ok(config)
    }

    /// What does not change until the next start is as it is in `running`, and what may be served is judged by that.
    pub(crate) fn after(mut self, running: &Config) -> Result<Config, Error> {
        self.listen = running.listen;
        self.tls.clone_from(&running.tls);
        self.behind_proxy = running.behind_proxy;
        self.access_log.clone_from(&running.access_log);
        self.otlp.clone_from(&running.otlp);
        self.limits = running.limits.clone();
        self.judge()?;
        Ok(self)
    }

    /// One server, by its words after `mcp run`, for this machine alone.
    #[must_use]
    pub fn single(run: Vec<String>) -> Config {
        Config {
            listen: default_listen(),
            behind_proxy: false,
            tls: None,
            hosts: Vec::new(),
            origins: Vec::new(),
            access_log: None,
            otlp: None,
            auth: Auth::default(),
            limits: Limits::default(),
            servers: BTreeMap::from([("server".to_owned(), Server { run })]),
        }
    }

    /// Whether this may be served as it stands.
    ///
    /// # Errors
    /// What is wrong, and what to write instead.
    pub fn judge(&self) -> Result<(), Error> {
        let refuse = |why: String| Err(Error::Config(why));
        if self.servers.is_empty() {
            return refuse("no servers: add [servers.NAME] with run = [\"npm:…\"]".to_owned());
        }
        for (name, server) in &self.servers {
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
            if name.is_empty() || !name.chars().all(plain) {
                return refuse(format!("servers.{name}: a name has letters, digits, - and _ only"));
            }
            if server.run.is_empty() {
                return refuse(format!("servers.{name}: run names no package and no command"));
            }
        }
        let Limits { memory, memory_per_principal, max_message, .. } = &self.limits;
        if memory_per_principal.min(memory) < max_message {
            return refuse(format!(
                "limits: memory and memory-per-principal must have room for max-message ({max_message} bytes)"
            ));
        }
        if let Some(otlp) = &self.otlp
            && !otlp.endpoint.starts_with("http://")
            && !otlp.endpoint.starts_with("https://")
        {
            return refuse(format!(
                "otlp: {} is no URL; write http://127.0.0.1:4318/v1/traces",
                otlp.endpoint
            ));
        }
        if !self.listen.ip().is_loopback() {
            if !self.has_auth() {
                return refuse(format!(
                    "{} is not loopback, and any client could connect without a token: set [auth] tokens = \"FILE\" or [auth.oauth]",
                    self.listen
                ));
            }
            if self.tls.is_none() && !self.behind_proxy {
                return refuse(format!(
                    "{} is not loopback, and tokens would travel in the clear: set [tls], or behind-proxy = true where a proxy ends TLS",
                    self.listen
                ));
            }
            if self.hosts.is_empty() {
                return refuse(format!(
                    "{} is not loopback: set hosts = [\"the name clients use\"]",
                    self.listen
                ));
            }
        }
        if let Some(oauth) = &self.auth.oauth {
            let scopes = oauth.scopes.iter();
            let unknown =
                scopes.flat_map(|(scope, it)| it.servers.iter().map(move |server| (scope, server)));
            for (scope, server) in unknown {
                if server != "*" && !self.servers.contains_key(server) {
                    return refuse(format!(
                        "auth.oauth.scopes.{scope}: there is no server {server}"
                    ));
                }
            }
        }
        Ok(())
    }

    /// Whether anybody is asked who they are.
    #[must_use]
    pub fn has_auth(&self) -> bool {
        self.auth.tokens.is_some() || self.auth.oauth.is_some()
    }
}
