//! Who we are to a registry: our own file, then docker's configuration and its helpers.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use mcp_files::Links;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Of a file of credentials: more than any that people have.
const LARGEST: u64 = 4 << 20;

/// What a registry is shown. Never printed.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Credentials {
    /// A user name and a password.
    Password {
        /// The user name.
        user: String,
        /// The password or token.
        password: String,
    },
    /// What docker calls an identity token: good for tokens only.
    Refresh(String),
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("<credentials>")
    }
}

impl Credentials {
    /// The value of an `Authorization` header, if the credentials are a user and a password.
    #[must_use]
    pub fn basic(&self) -> Option<String> {
        match self {
            Credentials::Password { user, password } => {
                Some(format!("Basic {}", STANDARD.encode(format!("{user}:{password}"))))
            }
            Credentials::Refresh(_) => None,
        }
    }
}

#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Config {
    auths: BTreeMap<String, Auth>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    cred_helpers: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    creds_store: String,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Auth {
    #[serde(skip_serializing_if = "String::is_empty")]
    auth: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    identitytoken: String,
}

/// Where credentials are kept.
#[derive(Debug, Clone, Default)]
pub struct Kept {
    /// Ours: the only one that is written, mode 0600.
    pub own: Option<PathBuf>,
    /// Others', read only: docker's `config.json`, podman's `auth.json`.
    pub others: Vec<PathBuf>,
}

impl Kept {
    /// By the custom of docker and podman.
    #[must_use]
    pub fn usual(own: Option<PathBuf>, home: Option<&Path>) -> Kept {
        let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
        let mut others = Vec::new();
        others.extend(variable("REGISTRY_AUTH_FILE"));
        match variable("DOCKER_CONFIG") {
            Some(directory) => others.push(directory.join("config.json")),
            None => others.extend(home.map(|home| home.join(".docker/config.json"))),
        }
        others.extend(variable("XDG_RUNTIME_DIR").map(|dir| dir.join("containers/auth.json")));
        Kept { own, others }
    }

    /// The credentials for a host.
    pub fn find(&self, host: &str) -> Result<Option<Credentials>> {
        for path in self.own.iter().chain(&self.others) {
            let Some(config) = read(path)? else {
                continue;
            };
            if let Some(found) = of(&config, host).map_err(|error| error.within(path.display()))? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Writes the credentials for a host; gives the file that they are in.
    pub fn keep(&self, host: &str, user: &str, password: &str) -> Result<PathBuf> {
        let path = self.own()?;
        let mut config = read(path)?.unwrap_or_default();
        let auth = Auth { auth: STANDARD.encode(format!("{user}:{password}")), ..Auth::default() };
        config.auths.insert(host.to_owned(), auth);
        write(path, &config)?;
        Ok(path.to_owned())
    }

    /// Removes the credentials for a host; says whether there were any.
    pub fn forget(&self, host: &str) -> Result<bool> {
        let path = self.own()?;
        let Some(mut config) = read(path)? else {
            return Ok(false);
        };
        let was_there = config.auths.remove(host).is_some();
        if was_there {
            write(path, &config)?;
        }
        Ok(was_there)
    }

    fn own(&self) -> Result<&Path> {
        self.own.as_deref().ok_or_else(|| {
            Error::machine("there is no place for credentials", "set HOME or XDG_CONFIG_HOME")
        })
    }
}

fn read(path: &Path) -> Result<Option<Config>> {
    match mcp_files::read(path, LARGEST, Links::Follow) {
        // The message of a parser may quote what it read.
        Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|_| {
            Error::machine(format!("{}: is not the JSON that docker writes", path.display()), "")
        }),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Error::io("read", path, &e)),
    }
}

/// As a whole or not at all, and for no other user to read.
fn write(path: &Path, config: &Config) -> Result<()> {
    let failed = |e: std::io::Error| Error::io("write", path, &e);
    if let Some(directory) = path.parent() {
        crate::store::make_private(directory).map_err(failed)?;
    }
    let partial = path.with_extension(format!("{}.partial", std::process::id()));
    let mut options = fs::File::options();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let bytes = serde_json::to_vec_pretty(config).map_err(|e| Error::machine(e.to_string(), ""))?;
    let written = options.open(&partial).and_then(|mut file| file.write_all(&bytes));
    written.and_then(|()| fs::rename(&partial, path)).map_err(failed)
}

/// docker writes its own registry with a path.
fn same_host(key: &str, host: &str) -> bool {
    let key = key.trim_start_matches("https://").trim_start_matches("http://");
    let key = key.split('/').next().unwrap_or(key);
    let docker = ["docker.io", "index.docker.io", "registry-1.docker.io"];
    key == host || (docker.contains(&key) && docker.contains(&host))
}

fn of(config: &Config, host: &str) -> Result<Option<Credentials>> {
    if let Some((key, helper)) = config.cred_helpers.iter().find(|(key, _)| same_host(key, host)) {
        return from_helper(helper, key);
    }
    let auth = config.auths.iter().find(|(key, _)| same_host(key, host));
    if let Some((_, auth)) = auth {
        if !auth.identitytoken.is_empty() {
            return Ok(Some(Credentials::Refresh(auth.identitytoken.clone())));
        }
        if !auth.auth.is_empty() {
            let wrong = || {
                Error::machine(format!("the credentials for {host} are not valid"), "log in again")
            };
            let decoded =
                STANDARD.decode(&auth.auth).ok().and_then(|bytes| String::from_utf8(bytes).ok());
            let decoded = decoded.ok_or_else(wrong)?;
            let (user, password) = decoded.split_once(':').ok_or_else(wrong)?;
            return Ok(Some(Credentials::Password {
                user: user.into(),
                password: password.trim_end_matches('\0').into(),
            }));
        }
    }
    if !config.creds_store.is_empty() {
        return from_helper(&config.creds_store, auth.map_or(host, |(key, _)| key));
    }
    Ok(None)
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Helped {
    username: String,
    secret: String,
}

/// `docker-credential-NAME get`: the host on its input, JSON on its output; a failure means "none".
fn from_helper(name: &str, host: &str) -> Result<Option<Credentials>> {
    let good = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if name.is_empty() || !name.chars().all(good) {
        return Err(Error::machine(format!("{name:?} is no name of a credential helper"), ""));
    }
    let program = format!("docker-credential-{name}");
    let failed = |e: std::io::Error| {
        Error::machine(
            format!("{program}: {e}"),
            "docker's configuration names it; install it or log in with mcp login",
        )
    };
    let mut child = Command::new(&program)
        .arg("get")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(failed)?;
    if let Some(mut stdin) = child.stdin.take() {
        let _ = stdin.write_all(host.as_bytes());
    }
    let output = child.wait_with_output().map_err(failed)?;
    if !output.status.success() {
        return Ok(None);
    }
    let said: Helped = serde_json::from_slice(&output.stdout).map_err(|_| {
        Error::machine(format!("{program} does not speak as a credential helper does"), "")
    })?;
    Ok(Some(match said.username.as_str() {
        "<token>" => Credentials::Refresh(said.secret),
        _ => Credentials::Password { user: said.username, password: said.secret },
    }))
}
