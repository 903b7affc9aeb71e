//! servers.toml on its way to another machine: what it says of clients and bounds stays, what it says of places changes.

use toml::{Table, Value};

use crate::error::{Error, Result};
use crate::place::Place;
use crate::server::{Server, Start};

/// How many sandboxes an engine gets room for where servers.toml does not say: memory is set aside for each.
const SANDBOXES: i64 = 8;

/// What a servers.toml says beside its servers. Keys that this crate does not know stay as they are.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settings(Table);

impl Settings {
    /// Reads the text of a servers.toml.
    ///
    /// # Errors
    /// Where it is no TOML.
    pub fn read(text: &str) -> Result<Settings> {
        let mut table: Table =
            text.parse().map_err(|e: toml::de::Error| Error::new(e.to_string()))?;
        table.remove("servers");
        Ok(Settings(table))
    }

    /// Room for this many sandboxes at once.
    pub fn set_sandboxes(&mut self, most: u32) {
        let limits = self.0.entry("limits").or_insert_with(|| Value::Table(Table::new()));
        if let Value::Table(limits) = limits {
            limits.insert("sandboxes".to_owned(), Value::Integer(most.into()));
        }
    }

    pub(crate) fn sandboxes(&self) -> u64 {
        let said = self.at(&["limits", "sandboxes"]).and_then(Value::as_integer);
        u64::try_from(said.unwrap_or(SANDBOXES)).unwrap_or(1).max(1)
    }

    /// Seconds until answers that are due are sent at the end.
    pub(crate) fn drain(&self) -> u64 {
        let said = self.at(&["limits", "drain"]).and_then(Value::as_str);
        let parsed = said.and_then(|text| text.parse::<mcp_policy::Duration>().ok());
        parsed.map_or(30, |time| time.as_std().as_secs() + 1)
    }

    pub(crate) fn has_tls(&self) -> bool {
        self.0.contains_key("tls")
    }

    pub(crate) fn tokens(&self) -> Option<&str> {
        self.at(&["auth", "tokens"])?.as_str()
    }

    pub(crate) fn has_oauth(&self) -> bool {
        self.at(&["auth", "oauth"]).is_some()
    }

    /// Where the keys of the authorization server are.
    pub(crate) fn jwks(&self) -> Option<&str> {
        self.at(&["auth", "oauth", "jwks"])?.as_str()
    }

    pub(crate) fn text_at(&self, path: &[&str]) -> Option<&str> {
        self.at(path)?.as_str()
    }

    fn at(&self, path: &[&str]) -> Option<&Value> {
        let (last, tables) = path.split_last()?;
        let mut table = &self.0;
        for name in tables {
            table = table.get(*name)?.as_table()?;
        }
        table.get(*last)
    }

    /// The servers.toml of one server in its new place.
    pub(crate) fn text(&self, server: &Server, place: &Place) -> Result<String> {
        let mut table = self.0.clone();
        let mut set = |key: &str, value: Value| table.insert(key.to_owned(), value);
        set("listen", place.listen.clone().into());
        set("access-log", "-".into());
        if let Some(behind_proxy) = place.behind_proxy {
            set("behind-proxy", behind_proxy.into());
        }
        if let Some((certificate, key)) = place.tls {
            let mut tls = Table::new();
            tls.insert("certificate".to_owned(), certificate.into());
            tls.insert("key".to_owned(), key.into());
            set("tls", tls.into());
        }
        if !place.hosts.is_empty() {
            let said = self.0.get("hosts").and_then(Value::as_array).into_iter().flatten();
            let mut hosts: Vec<Value> = said.cloned().collect();
            for host in &place.hosts {
                let host = Value::from(host.as_str());
                if !hosts.contains(&host) {
                    hosts.push(host);
                }
            }
            set("hosts", hosts.into());
        }
        if let Some(tokens) = place.tokens {
            let auth = table.entry("auth").or_insert_with(|| Table::new().into());
            if let Value::Table(auth) = auth {
                auth.insert("tokens".to_owned(), tokens.into());
            }
        }
        let oauth = table.get_mut("auth").and_then(|auth| auth.get_mut("oauth"));
        if let (Some(jwks), Some(Value::Table(oauth))) = (place.jwks, oauth) {
            oauth.insert("jwks".to_owned(), jwks.into());
        }
        let limits = table.entry("limits").or_insert_with(|| Table::new().into());
        if let Value::Table(limits) = limits {
            limits.entry("sandboxes").or_insert_with(|| Value::Integer(SANDBOXES));
        }
        self.only_scopes_of(server, &mut table);
        let mut run = Table::new();
        run.insert("run".to_owned(), words(server, place).into());
        let mut servers = Table::new();
        servers.insert(server.name.clone(), run.into());
        table.insert("servers".to_owned(), servers.into());
        toml::to_string(&table).map_err(|e| Error::new(format!("servers.toml: {e}")))
    }

    /// A servers.toml with further names for the gateway.
    pub(crate) fn with_hosts(&self, text: &str, more: &[&str]) -> Result<String> {
        let mut table: Table =
            text.parse().map_err(|e: toml::de::Error| Error::new(e.to_string()))?;
        let hosts = table.entry("hosts").or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(hosts) = hosts {
            hosts.extend(more.iter().map(|host| Value::from(*host)));
        }
        toml::to_string(&table).map_err(|e| Error::new(format!("servers.toml: {e}")))
    }

    /// A scope may name servers that are exported elsewhere: here it keeps this one.
    fn only_scopes_of(&self, server: &Server, table: &mut Table) {
        let scopes = table
            .get_mut("auth")
            .and_then(|auth| auth.get_mut("oauth"))
            .and_then(|oauth| oauth.get_mut("scopes"));
        let Some(Value::Table(scopes)) = scopes else { return };
        for (_, scope) in scopes.iter_mut() {
            if let Some(Value::Array(servers)) = scope.get_mut("servers") {
                servers.retain(|it| {
                    it.as_str().is_some_and(|name| name == "*" || name == server.name)
                });
            }
        }
    }
}

/// What stands after `mcp run` there.
fn words(server: &Server, place: &Place) -> Vec<Value> {
    let mut words = vec!["--policy".to_owned(), place.policy.clone()];
    words.extend(server.options.iter().cloned());
    match &server.start {
        Start::Command(command) => {
            words.push("--".to_owned());
            words.extend(command.iter().cloned());
        }
        Start::Package { reference, fetching, arguments } => {
            match place.package {
                Some(there) => words.push(there.to_owned()),
                None => {
                    words.extend(fetching.iter().cloned());
                    words.push(reference.clone());
                }
            }
            if !arguments.is_empty() {
                words.push("--".to_owned());
                words.extend(arguments.iter().cloned());
            }
        }
    }
    words.into_iter().map(Value::String).collect()
}

#[cfg(test)]
mod tests;
