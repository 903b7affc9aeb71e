//! The public MCP registry, API v0.1: names such as `io.github.user/server` → `server.json`.

use serde::Deserialize;
use serde_json::Value;

use super::auth::encoded;
use super::http::{Http, Request};
use crate::error::{Error, Result};
use crate::reference::Which;

/// The public MCP registry.
pub const PUBLIC: &str = "https://registry.modelcontextprotocol.io";
const LARGEST: u64 = 16 << 20;

/// The public MCP registry, or one that speaks its protocol.
pub struct Public<'a> {
    http: &'a Http,
    base: String,
}

/// A line of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// The name of the server.
    pub name: String,
    /// Its newest version.
    pub version: String,
    /// Its description, for people.
    pub description: String,
    /// Such as `npm`, `pypi`, `oci`, `mcpb`, `remote`.
    pub kinds: Vec<String>,
}

#[derive(Deserialize)]
struct Page {
    servers: Vec<ListedServer>,
    #[serde(default)]
    metadata: Metadata,
}

#[derive(Deserialize)]
struct ListedServer {
    server: Value,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    next_cursor: Option<String>,
}

impl<'a> Public<'a> {
    /// `base` without a slash at the end; https, unless it is on this machine.
    pub fn new(http: &'a Http, base: &str) -> Result<Public<'a>> {
        let base = base.trim_end_matches('/');
        let is_local =
            ["http://localhost", "http://127.0.0.1", "http://[::1]"].iter().any(|start| {
                base.strip_prefix(start)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with([':', '/']))
            });
        if !base.starts_with("https://") && !is_local {
            return Err(Error::usage(format!("{base} is not an https address"), ""));
        }
        Ok(Public { http, base: base.to_owned() })
    }

    fn get(&self, path: &str) -> Result<Option<Vec<u8>>> {
        let mut request = Request::get(format!("{}{path}", self.base));
        request.headers.push(("accept", "application/json".to_owned()));
        let response = self.http.send(&request)?;
        match response.status {
            200 => response.bytes(LARGEST).map(Some),
            404 => Ok(None),
            status => Err(Error::network(format!("{} answers {status}", self.base))),
        }
    }

    /// The latest versions of what matches.
    pub fn search(&self, words: &str, most: usize) -> Result<Vec<Summary>> {
        let mut found = Vec::new();
        let mut cursor: Option<String> = None;
        while found.len() < most {
            let mut path = format!(
                "/v0.1/servers?search={}&version=latest&limit={}",
                encoded(words),
                most.min(100)
            );
            if let Some(cursor) = &cursor {
                path += &format!("&cursor={}", encoded(cursor));
            }
            let bytes = self.get(&path)?.ok_or_else(|| {
                Error::network(format!("{} does not speak the registry's API v0.1", self.base))
            })?;
            let page: Page = serde_json::from_slice(&bytes).map_err(|e| {
                Error::network(format!("the answer of {} cannot be read: {e}", self.base))
            })?;
            let is_empty = page.servers.is_empty();
            found.extend(page.servers.iter().map(|entry| summary(&entry.server)));
            cursor = page.metadata.next_cursor.filter(|cursor| !cursor.is_empty());
            if cursor.is_none() || is_empty {
                break;
            }
        }
        found.truncate(most);
        Ok(found)
    }

    /// The text of a server's `server.json`.
    pub fn server(&self, name: &str, which: &Which) -> Result<String> {
        let version = match which {
            Which::Latest => "latest",
            Which::Version(version) => version,
            Which::Digest(_) => {
                return Err(Error::usage(
                    format!("{name}: the public registry knows versions, not digests"),
                    "",
                ));
            }
        };
        let path = format!("/v0.1/servers/{}/versions/{}", encoded(name), encoded(version));
        let bytes = self.get(&path)?.ok_or_else(|| {
            Error::not_found(
                format!("the public registry has no {name} {version}"),
                "mcp search finds names",
            )
        })?;
        let entry: ListedServer = serde_json::from_slice(&bytes).map_err(|e| {
            Error::network(format!("the answer of {} cannot be read: {e}", self.base))
        })?;
        if entry.server["name"] != name {
            return Err(Error::network(format!(
                "{} answers with another server than {name}",
                self.base
            )));
        }
        Ok(entry.server.to_string())
    }
}

fn summary(server: &Value) -> Summary {
    let text = |key: &str| server[key].as_str().unwrap_or_default().to_owned();
    let packages = server["packages"].as_array().into_iter().flatten();
    let mut kinds: Vec<String> = packages
        .filter_map(|package| package["registryType"].as_str().map(str::to_owned))
        .collect();
    if server["remotes"].as_array().is_some_and(|remotes| !remotes.is_empty()) {
        kinds.push("remote".to_owned());
    }
    kinds.dedup();
    Summary {
        name: text("name"),
        version: text("version"),
        description: text("description"),
        kinds,
    }
}
