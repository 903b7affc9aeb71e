//! The list of servers: `xtask/servers/all.toml`.

use std::fs;

use serde::Deserialize;
use serde_json::Value;

use crate::{Result, workspace};

const FILE: &str = "xtask/servers/all.toml";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct List {
    #[serde(rename = "server")]
    pub servers: Vec<Entry>,
}

/// One server. In arguments, flags, variables and calls, `{dir}` is a directory of its own with a few files, `{page}` the
/// address of a page on this machine's loopback.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// `npm:NAME` or `pypi:NAME`.
    pub package: String,
    pub version: String,
    /// The program, where the package has several and none by its own name.
    pub program: Option<String>,
    /// Requirements that are installed beside it.
    #[serde(default)]
    pub with: Vec<String>,
    #[serde(default)]
    pub arguments: Vec<String>,
    /// What is granted under mcp.
    #[serde(default)]
    pub flags: Vec<String>,
    /// Bare, and under mcp by `--env`. Keys of services are made up: tools are listed without an account.
    #[serde(default)]
    pub variables: Vec<(String, String)>,
    /// Made at the first start.
    #[serde(default)]
    pub calls: Vec<Call>,
    /// Made at a later start.
    #[serde(default)]
    pub later: Vec<Call>,
    /// Made in namespaces where `example.com` is a public address that serves a page.
    #[serde(default)]
    pub public: Vec<Call>,
    /// CI runs it.
    #[serde(default)]
    pub few: bool,
    /// What a reader has to know where it fails, bare or under mcp only.
    pub reason: Option<String>,
}

/// A tool, its arguments as JSON, and what the answer has to contain.
#[derive(Deserialize)]
pub struct Call(pub String, pub String, pub String);

/// Where a package comes from.
#[derive(Clone, Copy, PartialEq)]
pub enum Kind {
    Npm,
    Pypi,
}

impl List {
    pub fn read() -> Result<Self> {
        let text =
            fs::read_to_string(workspace().join(FILE)).map_err(|e| format!("{FILE}: {e}"))?;
        let list: Self = toml::from_str(&text).map_err(|e| format!("{FILE}: {e}"))?;
        for entry in &list.servers {
            entry.split()?;
            for Call(tool, arguments, _) in entry.every_call() {
                let parsed = serde_json::from_str::<Value>(arguments);
                if !parsed.is_ok_and(|value| value.is_object()) {
                    return Err(
                        format!("{}: {tool}: arguments are no object", entry.package).into()
                    );
                }
            }
        }
        Ok(list)
    }

    pub fn of(&self, package: &str) -> Option<&Entry> {
        self.servers.iter().find(|entry| entry.package == package)
    }
}

impl Entry {
    pub fn split(&self) -> Result<(Kind, &str)> {
        match self.package.split_once(':') {
            Some(("npm", name)) => Ok((Kind::Npm, name)),
            Some(("pypi", name)) => Ok((Kind::Pypi, name)),
            _ => Err(format!("{}: neither npm: nor pypi:", self.package).into()),
        }
    }

    pub fn every_call(&self) -> impl Iterator<Item = &Call> {
        self.calls.iter().chain(&self.later).chain(&self.public)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_list_is_well_formed_and_long_enough() {
        let list = List::read().unwrap();
        let packages: BTreeSet<&str> = list.servers.iter().map(|it| it.package.as_str()).collect();
        assert_eq!(packages.len(), list.servers.len(), "a package is there twice");
        assert!(list.servers.len() >= 120, "{}", list.servers.len());
        let called = list.servers.iter().filter(|entry| entry.every_call().next().is_some());
        assert!(called.count() >= 40);
        assert!(list.servers.iter().filter(|entry| entry.few).count() <= 12);
    }
}
