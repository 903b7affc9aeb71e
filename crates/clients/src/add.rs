//! A new entry in a client's file.

use serde_json::Value as Json;

use crate::client::{Client, Container, Format};
use crate::document::{Document, Edited, Member, Node, Splice, Value, key, list, quoted};
use crate::entry::Trail;
use crate::text;

/// A server that is to be added.
#[derive(Debug, Clone)]
pub struct NewServer {
    /// The name that the client shows.
    pub name: String,
    /// The program that the client starts.
    pub command: String,
    /// Its arguments, in order.
    pub args: Vec<String>,
    /// Variables that the client sets for it: name and value.
    pub env: Vec<(String, String)>,
}

impl NewServer {
    /// A server with this name, command, arguments and variables.
    #[must_use]
    pub fn new(
        name: String,
        command: String,
        args: Vec<String>,
        env: Vec<(String, String)>,
    ) -> NewServer {
        NewServer { name, command, args, env }
    }

    /// Its fields, in the order that people write them.
    fn fields(&self, client: &Client) -> Vec<(String, Json)> {
        let names = &client.fields;
        let words = |words: &[String]| Json::from(words.to_vec());
        let mut fields: Vec<(String, Json)> = Vec::new();
        if client.container == Container::List {
            fields.push(("name".to_owned(), self.name.clone().into()));
        }
        fields.extend(client.new_entry.iter().map(|(name, value)| (name.clone(), value.clone())));
        match names.argv {
            true => {
                let all: Vec<String> = std::iter::once(self.command.clone())
                    .chain(self.args.iter().cloned())
                    .collect();
                fields.push((names.command.clone(), words(&all)));
            }
            false => {
                fields.push((names.command.clone(), self.command.clone().into()));
                fields.push((names.args.clone(), words(&self.args)));
            }
        }
        if !self.env.is_empty() {
            let pairs = self.env.iter().map(|(name, value)| (name.clone(), value.clone().into()));
            fields.push((names.env.clone(), Json::Object(pairs.collect())));
        }
        fields
    }
}

/// The entry as it would be written in a file of its own, for people to paste.
#[must_use]
pub fn printed(client: &Client, server: &NewServer) -> String {
    let fields = server.fields(client);
    let keys = client.servers.first().cloned().unwrap_or_default();
    match client.format {
        Format::Toml => toml_table(client, &keys, server),
        Format::Yaml => {
            let mut out = String::new();
            for (depth, name) in keys.iter().enumerate() {
                out.push_str(&format!("{}{name}:\n", "  ".repeat(depth)));
            }
            let indent = "  ".repeat(keys.len());
            let (first, rest) = match client.container {
                Container::List => (format!("{indent}- "), format!("{indent}  ")),
                Container::Map => {
                    out.push_str(&format!("{indent}{}:\n", key(Format::Yaml, &server.name)));
                    (format!("{indent}  "), format!("{indent}  "))
                }
            };
            for (at, (name, value)) in fields.iter().enumerate() {
                let lead = if at == 0 { &first } else { &rest };
                out.push_str(&format!("{lead}{name}: {value}\n"));
            }
            out
        }
        _ => {
            let entry: serde_json::Map<String, Json> = fields.into_iter().collect();
            let whole = serde_json::json!({ server.name.clone(): entry });
            serde_json::to_string_pretty(&whole).unwrap_or_default() + "\n"
        }
    }
}

fn toml_table(client: &Client, keys: &[String], server: &NewServer) -> String {
    let path: Vec<String> = keys.iter().map(|name| key(Format::Toml, name)).collect();
    let path = path.join(".");
    let head = match client.container {
        Container::Map => format!("[{path}.{}]\n", key(Format::Toml, &server.name)),
        Container::List => format!("[[{path}]]\n"),
    };
    let value = |value: &Json| match value {
        Json::String(text) => quoted(Format::Toml, text),
        Json::Array(words) => {
            let words: Vec<String> =
                words.iter().filter_map(Json::as_str).map(str::to_owned).collect();
            list(Format::Toml, &words)
        }
        Json::Object(map) => {
            let pairs = map.iter().map(|(name, value)| {
                let value = value.as_str().unwrap_or_default();
                format!("{} = {}", key(Format::Toml, name), quoted(Format::Toml, value))
            });
            format!("{{ {} }}", pairs.collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    };
    let lines = server
        .fields(client)
        .into_iter()
        .map(|(name, json)| format!("{} = {}\n", key(Format::Toml, &name), value(&json)));
    head + &lines.collect::<String>()
}

impl Document {
    /// Adds a server under the first keys of the client. Fails where it is there already.
    pub fn add(
        &self,
        client: &Client,
        keys: &[String],
        server: &NewServer,
    ) -> Result<(Edited, Trail), &'static str> {
        let trail = Trail { container: keys.to_vec(), name: server.name.clone(), index: None };
        if trail.place(self).is_some_and(|place| self.get(&place).is_some()) {
            return Err("a server of that name is there already; give another with --name");
        }
        let edited = match self.format {
            Format::Toml => self.append_toml(client, keys, server)?,
            Format::Json | Format::Jsonc => self.insert_json(client, keys, server)?,
            _ => return Err("a new entry has to be put into this file by hand"),
        };
        Ok((edited, trail))
    }

    fn append_toml(
        &self,
        client: &Client,
        keys: &[String],
        server: &NewServer,
    ) -> Result<Edited, &'static str> {
        let newline = text::newline(&self.text);
        let mut gap = String::new();
        if !self.text.is_empty() {
            gap.push_str(if self.text.ends_with('\n') { newline } else { "" });
            if !self.text.ends_with('\n') {
                gap.push_str(&newline.repeat(2));
            }
        }
        let table = toml_table(client, keys, server).replace('\n', newline);
        let whole = format!("{}{gap}{table}", self.text);
        let after = Document::parse(self.format, &whole)
            .map_err(|_| "the servers are written in a way that takes no other; add it by hand")?;
        // All that was there is there as before.
        let mut rest = after.root.clone();
        let is_new = match rest.get_mut(keys).map(|node| &mut node.value) {
            Some(Value::Map(members)) => {
                let count = members.len();
                members.retain(|member| member.name != server.name);
                members.len() + 1 == count
            }
            Some(Value::List(nodes)) => nodes.pop().is_some(),
            _ => false,
        };
        // Containers that came with the entry.
        for depth in (1..=keys.len()).rev().filter(|depth| self.get(&keys[..*depth]).is_none()) {
            if let Some(Value::Map(members)) =
                rest.get_mut(&keys[..depth - 1]).map(|node| &mut node.value)
            {
                members.retain(|member| member.name != keys[depth - 1] || !is_empty(&member.node));
            }
        }
        match is_new && rest.is_same(&self.root) {
            true => Ok(Edited { text: whole, document: after }),
            false => Err("the entry cannot be added without changing others; add it by hand"),
        }
    }

    fn insert_json(
        &self,
        client: &Client,
        keys: &[String],
        server: &NewServer,
    ) -> Result<Edited, &'static str> {
        let newline = text::newline(&self.text);
        let unit = self.indent_unit();
        let entry: Vec<(String, Json)> = server.fields(client);
        // The deepest map that is there; what lacks is made with the entry.
        let known = (0..=keys.len()).rev().find(|depth| {
            self.get(&keys[..*depth]).is_some_and(|node| matches!(node.value, Value::Map(_)))
        });
        let depth = known.ok_or("the file holds no map")?;
        if self.get(&keys[..(depth + 1).min(keys.len())]).is_some() && depth < keys.len() {
            return Err("what holds the servers is no map");
        }
        let map = self.get(&keys[..depth]).ok_or("the file holds no map")?;
        let mut expected = self.root.clone();
        let mut names: Vec<&String> = keys[depth..].iter().collect();
        names.push(&server.name);
        let (first, inner) = names.split_first().ok_or("the server has no name")?;
        let mut meant = node_of(&entry);
        for name in inner.iter().rev() {
            meant = map_of(name, meant);
        }
        if let Some(Value::Map(members)) =
            expected.get_mut(&keys[..depth]).map(|node| &mut node.value)
        {
            members.push(Member { name: (*first).clone(), key: 0..0, node: meant });
        }
        let outer = self.outer_indent(map, &unit);
        let write = |indent: &str| {
            let raw = json_text(inner, &entry, indent, &unit, newline);
            format!("{}: {raw}", quoted(self.format, first))
        };
        let splices = self.appended(map, &outer, &unit, newline, &write);
        self.edited(splices, &expected)
    }

    /// Where one more member of a map goes: after the last, on a line of its own where the last has one.
    fn appended(
        &self,
        map: &Node,
        outer: &str,
        unit: &str,
        newline: &str,
        write: &dyn Fn(&str) -> String,
    ) -> Vec<Splice> {
        let own = format!("{outer}{unit}");
        let Some(last) = map.members().last() else {
            if map.span.is_empty() {
                let whole = format!("{{{newline}{unit}{}{newline}}}{newline}", write(unit));
                return vec![Splice::insert(map.span.start, whole)];
            }
            let inside = &self.text[map.span.start + 1..map.span.end - 1];
            let with = format!("{newline}{own}{}{newline}{outer}", write(&own));
            return match inside.trim().is_empty() {
                true => vec![Splice::new(map.span.start + 1..map.span.end - 1, with)],
                false => vec![Splice::insert(map.span.start + 1, with)],
            };
        };
        let end = last.node.span.end;
        let indent = text::indent(&self.text, last.key.start).to_owned();
        let line_start = self.text[..last.key.start].rfind('\n').map_or(0, |at| at + 1);
        let is_own_line = self.text[line_start..last.key.start].trim().is_empty();
        let comma = self.comma(end, map.span.end);
        let line_end = self.text[end..map.span.end].find('\n').map(|at| end + at);
        let (Some(line_end), true) = (line_end, is_own_line) else {
            return vec![Splice::insert(end, format!(", {}", write(&indent)))];
        };
        let line_end = if self.text[..line_end].ends_with('\r') { line_end - 1 } else { line_end };
        let line_end = line_end.max(comma.map_or(0, |at| at + 1));
        let mut splices = Vec::new();
        if comma.is_none() {
            splices.push(Splice::insert(end, ","));
        }
        let tail = if comma.is_some() { "," } else { "" };
        splices
            .push(Splice::insert(line_end, format!("{newline}{indent}{}{tail}", write(&indent))));
        splices
    }

    fn outer_indent(&self, map: &Node, _unit: &str) -> String {
        if map.span.is_empty() {
            String::new()
        } else {
            text::indent(&self.text, map.span.start).to_owned()
        }
    }

    /// What one step of indentation is here.
    fn indent_unit(&self) -> String {
        let first = self.root.members().first();
        let own = first.map(|member| text::indent(&self.text, member.key.start).to_owned());
        own.filter(|own| !own.is_empty()).unwrap_or_else(|| "  ".to_owned())
    }

    /// An entry less, its line with it.
    pub(crate) fn remove_server(&self, container: &Node, name: &str) -> Option<Vec<Splice>> {
        if self.format == Format::Toml && !self.is_flow(container) {
            let member = container.member(name)?;
            return self.remove_table(&member.node, member);
        }
        self.remove_member(container, name)
    }

    /// A table of TOML with its header, up to the next header.
    fn remove_table(&self, node: &Node, member: &Member) -> Option<Vec<Splice>> {
        let start = self.text[..member.key.start].rfind('\n').map_or(0, |at| at + 1);
        if !self.text[start..].trim_start().starts_with('[') {
            return None;
        }
        let last = deepest(node);
        let end = self.text[last..].find('\n').map_or(self.text.len(), |at| last + at + 1);
        // The blank line before it came with it.
        let newline = text::newline(&self.text);
        let gap = newline.repeat(2);
        let start = if self.text[..start].ends_with(&gap) { start - newline.len() } else { start };
        Some(vec![Splice::new(start..end, "")])
    }
}

fn is_empty(node: &Node) -> bool {
    match &node.value {
        Value::Map(members) => members.is_empty(),
        Value::List(nodes) => nodes.is_empty(),
        _ => false,
    }
}

fn deepest(node: &Node) -> usize {
    let ends = node.members().iter().map(|member| deepest(&member.node));
    ends.chain([node.span.end]).max().unwrap_or(node.span.end)
}

fn map_of(name: &str, node: Node) -> Node {
    let member = Member { name: name.to_owned(), key: 0..0, node };
    Node { span: 0..0, value: Value::Map(vec![member]) }
}

fn node_of(fields: &[(String, Json)]) -> Node {
    let member = |(name, value): &(String, Json)| Member {
        name: name.clone(),
        key: 0..0,
        node: node_of_json(value),
    };
    Node { span: 0..0, value: Value::Map(fields.iter().map(member).collect()) }
}

fn node_of_json(value: &Json) -> Node {
    let value = match value {
        Json::String(text) => Value::Text(text.clone()),
        Json::Bool(value) => Value::Bool(*value),
        Json::Array(values) => Value::List(values.iter().map(node_of_json).collect()),
        Json::Object(map) => {
            let pairs: Vec<(String, Json)> =
                map.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
            return node_of(&pairs);
        }
        other => Value::Other(other.to_string()),
    };
    Node { span: 0..0, value }
}

/// The entry inside of the maps that lead to it, as people indent it.
fn json_text(
    inner: &[&String],
    fields: &[(String, Json)],
    indent: &str,
    unit: &str,
    newline: &str,
) -> String {
    let deeper = format!("{indent}{unit}");
    let lines: Vec<String> = match inner.split_first() {
        Some((name, rest)) => {
            let raw = json_text(rest, fields, &deeper, unit, newline);
            vec![format!("{}: {raw}", quoted(Format::Json, name))]
        }
        None => fields
            .iter()
            .map(|(name, value)| format!("{}: {value}", quoted(Format::Json, name)))
            .collect(),
    };
    let lines: Vec<String> = lines.iter().map(|line| format!("{deeper}{line}")).collect();
    format!("{{{newline}{}{newline}{indent}}}", lines.join(&format!(",{newline}")))
}
