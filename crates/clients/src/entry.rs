//! The servers of a file: what starts each, and where that is written.

use serde::{Deserialize, Serialize};

use crate::client::{Client, Container};
use crate::document::{Document, Fault, Member, Node, Value};
use crate::text;

/// Leads to one server of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Trail {
    /// The keys of the map or list that holds the servers.
    pub container: Vec<String>,
    /// The name of the server.
    pub name: String,
    /// In a list: which one, where it has no name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<usize>,
}

impl Trail {
    /// The keys of the server itself, in a document as it is now.
    #[must_use]
    pub fn place(&self, document: &Document) -> Option<Vec<String>> {
        let container = document.get(&self.container)?;
        let last = match &container.value {
            Value::Map(_) => self.name.clone(),
            Value::List(nodes) => {
                let named =
                    |node: &Node| node.field("name").and_then(Node::as_text) == Some(&self.name);
                let at = nodes.iter().position(named).or(self.index)?;
                nodes.get(at)?;
                at.to_string()
            }
            _ => return None,
        };
        Some(self.container.iter().cloned().chain([last]).collect())
    }
}

/// One server of a client's file.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Entry {
    /// The name of the server.
    pub name: String,
    /// Where the entry is in the file.
    pub trail: Trail,
    /// How the client reaches the server.
    pub kind: Kind,
    /// Switched off in the client.
    pub is_off: bool,
    /// The line in the file, from 1.
    pub line: usize,
}

/// How a client reaches a server.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Kind {
    /// The client starts a program and talks to it over stdin and stdout.
    Stdio(Box<Stdio>),
    /// On another machine, or a port: nothing is started here.
    Remote {
        /// The address of the server.
        url: String,
    },
    /// Built in, or of an extension: the client knows how to start it.
    NoCommand,
    /// Not as the client wants it.
    Odd {
        /// The reason that is shown to the user.
        why: &'static str,
    },
}

/// A server that the client starts.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Stdio {
    /// The program.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Names with values, where these are text.
    pub env: Vec<(String, Option<String>)>,
    /// Names alone: the client has the values.
    pub inherit: Vec<String>,
    /// A file of variables.
    pub env_file: Option<String>,
    /// The working directory.
    pub cwd: Option<String>,
    /// VS Code's own sandbox, which also approves every call.
    pub has_client_sandbox: bool,
    /// How the command and its arguments are written in the file.
    pub shape: Shape,
}

/// How the words are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Shape {
    /// A command and a list of arguments.
    #[default]
    Separate,
    /// One list.
    Argv,
    /// `"command": {"path": …, "args": […]}`, as Zed had it.
    Nested,
}

impl Stdio {
    /// The whole line.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        std::iter::once(self.command.clone()).chain(self.args.iter().cloned()).collect()
    }
}

/// Keys under which clients write addresses.
const ADDRESSES: [&str; 6] = ["url", "serverUrl", "httpUrl", "uri", "endpoint", "sse_url"];

impl Document {
    /// Every server under the keys of a client, in the order of the file.
    pub fn entries(&self, client: &Client, keys: &[Vec<String>]) -> Result<Vec<Entry>, Fault> {
        let mut containers = Vec::new();
        for key in keys {
            self.collect(&self.root, key, &mut Vec::new(), &mut containers)?;
        }
        if containers.is_empty() && client.flat && looks_flat(&self.root) {
            containers.push((Vec::new(), &self.root));
        }
        let mut entries = Vec::new();
        for (container, node) in containers {
            self.no_key_twice(node)?;
            match (&node.value, client.container) {
                (Value::Map(members), Container::Map) => {
                    for member in members {
                        let trail = Trail {
                            container: container.clone(),
                            name: member.name.clone(),
                            index: None,
                        };
                        entries.push(self.entry(client, trail, &member.node)?);
                    }
                }
                (Value::List(nodes), _) => {
                    for (at, node) in nodes.iter().enumerate() {
                        let name = node.field("name").and_then(Node::as_text);
                        let name = name.map_or_else(|| format!("server {}", at + 1), str::to_owned);
                        // An entry is found again by its name: of two, the wrong one would be edited.
                        let is_same = |entry: &Entry| {
                            entry.trail.container == container && entry.name == name
                        };
                        if entries.iter().any(is_same) {
                            let message = format!("two servers are named {name}");
                            return Err(self.fault(node.span.start, message));
                        }
                        let trail = Trail { container: container.clone(), name, index: Some(at) };
                        entries.push(self.entry(client, trail, node)?);
                    }
                }
                (Value::Other(_), _) => {}
                _ => {
                    let what = container.last().map_or("the file", String::as_str);
                    return Err(self.fault(node.span.start, format!("{what} holds no servers")));
                }
            }
        }
        Ok(entries)
    }

    /// The maps and lists that a path of keys leads to.
    fn collect<'a>(
        &'a self,
        node: &'a Node,
        keys: &[String],
        trail: &mut Vec<String>,
        found: &mut Vec<(Vec<String>, &'a Node)>,
    ) -> Result<(), Fault> {
        let Some((key, rest)) = keys.split_first() else {
            found.push((trail.clone(), node));
            return Ok(());
        };
        for (at, member) in node.members().iter().enumerate() {
            if key != "*" && member.name != *key {
                continue;
            }
            if node.members()[..at].iter().any(|other| other.name == member.name) {
                return Err(self.twice(member));
            }
            trail.push(member.name.clone());
            self.collect(&member.node, rest, trail, found)?;
            trail.pop();
        }
        Ok(())
    }

    fn twice(&self, member: &Member) -> Fault {
        let message = format!(
            "the key {} is there twice, and clients differ on which one counts",
            member.name
        );
        self.fault(member.key.start, message)
    }

    fn no_key_twice(&self, node: &Node) -> Result<(), Fault> {
        node.twice().map_or(Ok(()), |member| Err(self.twice(member)))
    }

    fn entry(&self, client: &Client, trail: Trail, node: &Node) -> Result<Entry, Fault> {
        self.no_key_twice(node)?;
        let off = client.disabled.as_ref().and_then(|off| {
            let value = node.field(&off.name)?;
            Some(matches!(value.value, Value::Bool(value) if value == off.value))
        });
        let kind = match &node.value {
            Value::Map(_) => self.kind(client, node)?,
            _ => Kind::Odd { why: "is no map of settings" },
        };
        Ok(Entry {
            name: trail.name.clone(),
            trail,
            kind,
            is_off: off.unwrap_or(false),
            line: text::line_and_column(&self.text, node.span.start).0,
        })
    }

    fn kind(&self, client: &Client, node: &Node) -> Result<Kind, Fault> {
        let fields = &client.fields;
        let Some(command) = node.field(&fields.command) else {
            let address = ADDRESSES.iter().find_map(|key| node.field(key)?.as_text());
            return Ok(match address {
                Some(url) => Kind::Remote { url: url.to_owned() },
                None => Kind::NoCommand,
            });
        };
        let mut stdio = Stdio { shape: Shape::Separate, ..Stdio::default() };
        let mut within = node;
        match &command.value {
            Value::Text(text) => stdio.command.clone_from(text),
            Value::List(_) => {
                let Some(mut words) = words(command) else {
                    return Ok(Kind::Odd { why: "has a word that is no text" });
                };
                if words.is_empty() {
                    return Ok(Kind::Odd { why: "has an empty command" });
                }
                stdio.shape = Shape::Argv;
                stdio.command = words.remove(0);
                stdio.args = words;
            }
            Value::Map(_) => {
                self.no_key_twice(command)?;
                let Some(path) = command.field("path").and_then(Node::as_text) else {
                    return Ok(Kind::Odd { why: "has a command without a path" });
                };
                stdio.shape = Shape::Nested;
                path.clone_into(&mut stdio.command);
                within = command;
            }
            _ => return Ok(Kind::Odd { why: "has a command that is no text" }),
        }
        if stdio.command.trim().is_empty() {
            return Ok(Kind::Odd { why: "has an empty command" });
        }
        if let Some(args) = within.field(&fields.args).filter(|_| stdio.shape != Shape::Argv) {
            match words(args) {
                Some(words) => stdio.args = words,
                None => return Ok(Kind::Odd { why: "has arguments that are no list of words" }),
            }
        }
        if let Some(env) = within.field(&fields.env) {
            self.no_key_twice(env)?;
            let pair = |member: &Member| (member.name.clone(), member.node.as_word());
            stdio.env = env.members().iter().map(pair).collect();
        }
        let text = |key: &Option<String>| {
            key.as_ref().and_then(|key| node.field(key)?.as_text()).map(str::to_owned)
        };
        (stdio.cwd, stdio.env_file) = (text(&fields.cwd), text(&fields.env_file));
        let inherit = fields.inherit.as_ref().and_then(|key| node.field(key));
        stdio.inherit = inherit.map(inherited).unwrap_or_default();
        let sandbox = node.field("sandboxEnabled").map(|node| &node.value);
        stdio.has_client_sandbox = matches!(sandbox, Some(Value::Bool(true)));
        Ok(Kind::Stdio(Box::new(stdio)))
    }
}

/// Names, or maps with a name.
fn inherited(node: &Node) -> Vec<String> {
    let name =
        |node: &Node| node.as_text().or_else(|| node.field("name")?.as_text()).map(str::to_owned);
    node.elements().iter().filter_map(name).collect()
}

fn words(node: &Node) -> Option<Vec<String>> {
    match &node.value {
        Value::List(nodes) => nodes.iter().map(Node::as_word).collect(),
        _ => None,
    }
}

/// A file whose every value could be a server.
fn looks_flat(root: &Node) -> bool {
    let is_server = |member: &Member| {
        let keys = ["command"].iter().chain(&ADDRESSES);
        keys.into_iter().any(|key| member.node.field(key).is_some())
    };
    !root.members().is_empty() && root.members().iter().all(is_server)
}
