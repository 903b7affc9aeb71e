//! The table of clients: `data/clients.json`, whose schema is `data/clients.schema.json`.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

/// One program that starts MCP servers.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Client {
    /// What `--client` takes.
    pub id: String,
    /// The client's own name, for people.
    pub name: String,
    /// 1: used by many. 3: seldom, discontinued, or little known.
    pub tier: u8,
    /// How sure this entry of the table is.
    pub grade: Grade,
    /// The format of the client's configuration files.
    pub format: Format,
    /// Where its files are. The first is the one that `mcp add` makes.
    pub files: Vec<FileAt>,
    /// Variables that move the files.
    #[serde(default)]
    pub overrides: Vec<Override>,
    /// Files in a project, relative to it.
    #[serde(default)]
    pub project: Vec<String>,
    /// The keys that lead to the servers; `*` stands for every key.
    #[serde(default)]
    pub servers: Vec<Vec<String>>,
    /// Whether a file without these keys is itself the map of servers.
    #[serde(default)]
    pub flat: bool,
    /// Whether the servers are in a map or in a list.
    #[serde(default)]
    pub container: Container,
    /// The names of an entry's fields.
    #[serde(default)]
    pub fields: Fields,
    /// What a new entry has beside its command.
    #[serde(default)]
    pub new_entry: BTreeMap<String, serde_json::Value>,
    /// How an entry is switched off.
    pub disabled: Option<Disabled>,
    /// Which variables the client passes on to its servers.
    #[serde(default)]
    pub environment: Environment,
    /// Lists that may compare the command of a server.
    #[serde(default)]
    pub allowlists: Vec<Allowlist>,
    /// Servers of this client that `mcp wire` does not reach.
    #[serde(default)]
    pub not_covered: Vec<NotCovered>,
    /// A remark for readers of the table.
    #[serde(default)]
    pub notes: String,
    /// Where the facts come from: addresses of documentation or source code.
    #[serde(default)]
    pub sources: Vec<String>,
}

/// How sure an entry of the table is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Grade {
    /// Read in the client's own source or documentation.
    Primary,
    /// Read in the tables of other tools.
    Secondary,
    /// Sources disagree.
    Conflict,
    /// By analogy.
    Guess,
}

impl Grade {
    /// The grade in one word, as `mcp wire --list` prints it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Grade::Primary => "primary",
            Grade::Secondary => "secondary",
            Grade::Conflict => "conflict",
            Grade::Guess => "guess",
        }
    }
}

/// The format of a configuration file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Format {
    /// JSON without comments.
    Json,
    /// JSON with comments and trailing commas.
    Jsonc,
    /// TOML.
    Toml,
    /// YAML.
    Yaml,
    /// Kept by the program itself, in no file that could be edited.
    None,
}

/// A path on each system. `~`, `${NAME:-default}` and `%NAME%` are expanded; `*` stands for one name or a
/// part of it, `**` for directories at any depth.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct FileAt {
    /// The path on Linux.
    pub linux: Option<String>,
    /// The path on macOS.
    pub macos: Option<String>,
    /// The path on Windows.
    pub windows: Option<String>,
    /// What this file is, where the client has several.
    pub note: Option<String>,
    /// Other keys than the client's.
    pub servers: Option<Vec<Vec<String>>>,
}

/// `{}` in the path stands for the variable's value.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Override {
    /// The name of the variable.
    pub variable: String,
    /// The path, with `{}` in it.
    pub path: String,
    /// The file is read beside the others, not in their place.
    #[serde(default)]
    pub additional: bool,
}

/// How a file holds its servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Container {
    /// Servers by name.
    #[default]
    Map,
    /// Servers in a list, each with its name inside.
    List,
}

/// The names that the fields of an entry have.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Fields {
    /// The program, or the whole command line if `argv` is set.
    pub command: String,
    /// The command is one list with its arguments.
    pub argv: bool,
    /// The arguments.
    pub args: String,
    /// The map of variables.
    pub env: String,
    /// The working directory, if the client has such a field.
    pub cwd: Option<String>,
    /// A list of variables that the client passes on from its own environment or a keyring.
    pub inherit: Option<String>,
    /// A file of variables.
    pub env_file: Option<String>,
}

impl Default for Fields {
    fn default() -> Fields {
        Fields {
            command: "command".to_owned(),
            argv: false,
            args: "args".to_owned(),
            env: "env".to_owned(),
            cwd: None,
            inherit: None,
            env_file: None,
        }
    }
}

/// The entry is off when the field has this value.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Disabled {
    /// The name of the field.
    pub name: String,
    /// The value that switches the entry off.
    pub value: bool,
}

/// What a client passes on of its own environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Environment {
    /// All of it, or the short list of the MCP SDKs, which has HOME and PATH.
    #[default]
    Usual,
    /// All but what looks like a secret (`*TOKEN*`, `*KEY*`, `*SECRET*`).
    NoSecrets,
    /// PATH and what the entry names.
    PathOnly,
}

/// A file in which a person may have listed the commands that the client may start.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Allowlist {
    /// The path on Linux.
    pub linux: Option<String>,
    /// The path on macOS.
    pub macos: Option<String>,
    /// The path on Windows.
    pub windows: Option<String>,
    /// The format of the file.
    pub format: Format,
    /// The keys that lead to the list.
    pub keys: Vec<String>,
}

/// Servers of the client that `mcp wire` does not reach. Without a path or a variable it holds for every
/// installation.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct NotCovered {
    /// A description of these servers.
    pub what: String,
    /// The path on Linux, if the servers have a file.
    pub linux: Option<String>,
    /// The path on macOS.
    pub macos: Option<String>,
    /// The path on Windows.
    pub windows: Option<String>,
    /// A variable that is set if the client has such servers.
    pub variable: Option<String>,
}

/// By what `--client` takes.
impl PartialEq for Client {
    fn eq(&self, other: &Client) -> bool {
        self.id == other.id
    }
}

#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct Table {
    #[serde(rename = "$schema")]
    #[allow(dead_code)]
    schema: String,
    clients: Vec<Client>,
}

const TABLE: &str = include_str!("../data/clients.json");

/// Every client, in the order of the table. A test holds that the table can be read.
pub fn all() -> &'static [Client] {
    static CLIENTS: OnceLock<Vec<Client>> = OnceLock::new();
    CLIENTS.get_or_init(|| {
        serde_json::from_str::<Table>(TABLE).map(|table| table.clients).unwrap_or_default()
    })
}

/// The client with this id.
#[must_use]
pub fn find(id: &str) -> Option<&'static Client> {
    all().iter().find(|client| client.id == id)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_table_is_whole() {
        let table: Table = serde_json::from_str(TABLE).unwrap();
        assert_eq!(table.clients.len(), 63);
        assert_eq!(all().len(), 63);
        let ids: BTreeSet<&str> = all().iter().map(|client| client.id.as_str()).collect();
        assert_eq!(ids.len(), 63, "an id stands for one client");
        assert!(all().iter().filter(|client| client.tier == 1).count() >= 20);
        for client in all() {
            assert!((1..=3).contains(&client.tier), "{}", client.id);
            let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(client.id.chars().all(good), "{}", client.id);
            assert_eq!(client.format == Format::None, client.servers.is_empty(), "{}", client.id);
            if client.format == Format::None {
                assert!(client.files.is_empty() && !client.notes.is_empty(), "{}", client.id);
            }
            // Only a guess may be without a source.
            assert!(client.grade == Grade::Guess || !client.sources.is_empty(), "{}", client.id);
            for file in &client.files {
                let paths = [&file.linux, &file.macos, &file.windows];
                assert!(paths.iter().any(|path| path.is_some()), "{}", client.id);
            }
            for path in &client.project {
                assert!(!path.starts_with(['/', '~']) && !path.contains(".."), "{path}");
            }
        }
    }

    #[test]
    fn the_schema_is_that_of_the_types() {
        let schema = schemars::schema_for!(Table);
        let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
        let path =
            std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("data/clients.schema.json");
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(kept, text, "UPDATE_DOCS=1 cargo test -p mcp-clients writes it");
    }
}
