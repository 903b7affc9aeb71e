//! One entry of a file put behind `mcp run`, a new one, and what is needed to take either back.

use serde::{Deserialize, Serialize};

use crate::client::{Client, Format};
use crate::document::{Document, Edited, Member, Node, Splice, Value, quoted};
use crate::entry::{Entry, Kind, Shape, Stdio, Trail};
use crate::rewrite::Proposal;

/// How one entry was before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Undo {
    /// Whose fields the entry has.
    pub client: String,
    /// Where the entry is in the file.
    pub trail: Trail,
    /// How the command and its arguments were written.
    #[serde(default)]
    pub shape: Shape,
    /// The command as it was written, and as it is now.
    pub command_raw: String,
    /// The command as it is now.
    pub command: String,
    /// The arguments as they were written, from the first to the last; none where the entry had no list.
    pub args_raw: Option<String>,
    /// Only those that were replaced.
    pub head_raw: String,
    /// What is in their place now.
    pub head: Vec<String>,
    /// What is left of them behind it: comments.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub left_over: String,
    /// How many of the last arguments stayed as they were.
    #[serde(default)]
    pub kept: usize,
    /// Variables that were added, and whether the map of them was.
    #[serde(default)]
    pub added_env: Vec<String>,
    /// Whether the map of variables was added.
    #[serde(default)]
    pub added_env_map: bool,
}

/// An entry that was not there before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Added {
    /// The id of the client.
    pub client: String,
    /// Where the entry is in the file.
    pub trail: Trail,
    /// The file itself.
    #[serde(default)]
    pub made_file: bool,
}

impl Added {
    /// An entry at `trail` of a client's file.
    #[must_use]
    pub fn new(client: &Client, trail: Trail, made_file: bool) -> Added {
        Added { client: client.id.clone(), trail, made_file }
    }
}

/// The fields of an entry that hold the words, by its shape.
pub(crate) struct Parts<'a> {
    pub map: &'a Node,
    pub command: &'a Member,
    pub args: Option<&'a Member>,
}

impl Document {
    pub(crate) fn parts<'a>(
        &'a self,
        client: &Client,
        node: &'a Node,
        shape: Shape,
    ) -> Option<Parts<'a>> {
        let fields = &client.fields;
        let command = node.member(&fields.command)?;
        Some(match shape {
            Shape::Argv => Parts { map: node, command, args: Some(command) },
            Shape::Separate => Parts { map: node, command, args: node.member(&fields.args) },
            Shape::Nested => {
                let map = &command.node;
                Parts { map, command: map.member("path")?, args: map.member(&fields.args) }
            }
        })
    }

    /// Puts one entry behind `mcp run`.
    pub fn wire(
        &self,
        client: &Client,
        entry: &Entry,
        proposal: &Proposal,
    ) -> Result<(Edited, Undo), &'static str> {
        let Kind::Stdio(stdio) = &entry.kind else {
            return Err("it starts no program");
        };
        let place = entry.trail.place(self).ok_or("the entry is gone")?;
        let node = self.get(&place).ok_or("the entry is gone")?;
        let parts = self.parts(client, node, stdio.shape).ok_or("the entry has no command")?;
        let head = proposal.replacement();
        let mut splices = Vec::new();
        if stdio.shape != Shape::Argv {
            let with = quoted(self.format, &proposal.mcp);
            splices.push(Splice::new(parts.command.node.span.clone(), with));
        }
        let list = parts.args.map(|args| &args.node);
        match list {
            Some(list) => splices.extend(self.replace_head(list, &head, proposal.keep)),
            None => splices.push(self.new_list(client, &parts, &head)),
        }
        let mut expected = self.root.clone();
        let target = expected.get_mut(&place).ok_or("the entry is gone")?;
        set_words(target, client, stdio, proposal, &head).ok_or("the entry cannot be followed")?;
        let mut added_env_map = false;
        if !proposal.add_env.is_empty() {
            let (splice, is_map) = self.add_env(client, node, &parts, proposal, target)?;
            added_env_map = is_map;
            splices.push(splice);
        }
        let undo = Undo {
            client: client.id.clone(),
            trail: entry.trail.clone(),
            shape: stdio.shape,
            command_raw: self.text[parts.command.node.span.clone()].to_owned(),
            command: proposal.mcp.clone(),
            args_raw: list.map(|list| self.raw(list.elements()).to_owned()),
            head_raw: list.map_or("", |list| self.raw(dropped(list, proposal.keep))).to_owned(),
            left_over: list
                .map_or(String::new(), |list| self.left_over(list, head.len(), proposal.keep)),
            head,
            kept: proposal.keep,
            added_env: proposal.add_env.iter().map(|(name, _)| name.clone()).collect(),
            added_env_map,
        };
        Ok((self.edited(splices, &expected)?, undo))
    }

    fn new_list(&self, client: &Client, parts: &Parts<'_>, head: &[String]) -> Splice {
        let words: Vec<String> = head.iter().map(|word| quoted(self.format, word)).collect();
        let raw = format!("[{}]", words.join(", "));
        self.insert_after(parts.map, parts.command, &client.fields.args, &raw)
    }

    /// From the first of some values to the last, with what is between them.
    pub(crate) fn raw(&self, nodes: &[Node]) -> &str {
        match (nodes.first(), nodes.last()) {
            (Some(first), Some(last)) => &self.text[first.span.start..last.span.end],
            _ => "",
        }
    }

    /// Variables that the client passes on only where the entry names them.
    fn add_env(
        &self,
        client: &Client,
        node: &Node,
        parts: &Parts<'_>,
        proposal: &Proposal,
        expected: &mut Node,
    ) -> Result<(Splice, bool), &'static str> {
        if !matches!(self.format, Format::Json | Format::Jsonc) || !std::ptr::eq(parts.map, node) {
            return Err("variables can be added to files of JSON only");
        }
        let member = |(name, value): &(String, String)| Member {
            name: name.clone(),
            key: 0..0,
            node: Node::of_text(value),
        };
        let pair = |(name, value): &(String, String)| {
            format!("{}: {}", quoted(self.format, name), quoted(self.format, value))
        };
        let new: Vec<Member> = proposal.add_env.iter().map(member).collect();
        let written: Vec<String> = proposal.add_env.iter().map(pair).collect();
        let written = written.join(", ");
        let name = &client.fields.env;
        let Value::Map(members) = &mut expected.value else {
            return Err("the entry cannot be followed");
        };
        let Some(env) = node.member(name) else {
            let after = parts.args.unwrap_or(parts.command);
            let map = Member {
                name: name.clone(),
                key: 0..0,
                node: Node { span: 0..0, value: Value::Map(new) },
            };
            let at = members.iter().position(|member| member.name == client.fields.args);
            members.insert(at.map_or(members.len(), |at| at + 1), map);
            return Ok((self.insert_after(node, after, name, &format!("{{{written}}}")), true));
        };
        let Some(Value::Map(inner)) = members
            .iter_mut()
            .find(|member| member.name == *name)
            .map(|member| &mut member.node.value)
        else {
            return Err("its variables are no map");
        };
        // Before the first, so that what is between the brace and it stays.
        let first = env.node.members().first().map(|member| member.key.start);
        let comma = if inner.is_empty() { "" } else { ", " };
        inner.splice(0..0, new);
        let at = first.unwrap_or(env.node.span.start + 1);
        Ok((Splice::insert(at, format!("{written}{comma}")), false))
    }
}

/// The words that are replaced.
fn dropped(list: &Node, keep: usize) -> &[Node] {
    let all = list.elements();
    &all[..all.len().saturating_sub(keep)]
}

/// The tree as it is meant to be.
fn set_words(
    node: &mut Node,
    client: &Client,
    stdio: &Stdio,
    proposal: &Proposal,
    head: &[String],
) -> Option<()> {
    let fields = &client.fields;
    let Value::Map(members) = &mut node.value else {
        return None;
    };
    if stdio.shape == Shape::Nested {
        let command = members.iter_mut().find(|member| member.name == fields.command)?;
        let inner = Stdio { shape: Shape::Separate, ..stdio.clone() };
        let mut named = client.clone();
        named.fields.command = "path".to_owned();
        return set_words(&mut command.node, &named, &inner, proposal, head);
    }
    let at = members.iter().position(|member| member.name == fields.command)?;
    let list_name = match stdio.shape {
        Shape::Argv => &fields.command,
        _ => {
            members[at].node = Node::of_text(&proposal.mcp);
            &fields.args
        }
    };
    match members.iter_mut().find(|member| member.name == *list_name) {
        Some(member) => {
            let Value::List(nodes) = &mut member.node.value else {
                return None;
            };
            let kept = nodes.len().checked_sub(proposal.keep)?;
            nodes.splice(..kept, head.iter().map(|word| Node::of_text(word)));
        }
        None => members.insert(
            at + 1,
            Member { name: list_name.clone(), key: 0..0, node: Node::of_words(head) },
        ),
    }
    Some(())
}
