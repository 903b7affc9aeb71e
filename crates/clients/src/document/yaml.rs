//! YAML, by its events. Anchors, aliases and tags make one place mean several things: a file with them is
//! read and not edited.

use saphyr_parser::{Event, Parser, ScalarStyle, Span};

use super::{Fault, MOST_DEPTH, Member, Node, Value};

pub struct Parsed {
    pub root: Node,
    pub fixed: Option<&'static str>,
}

/// A collection that is not closed yet.
struct Open {
    start: usize,
    /// Where its last part ended: a block ends there, whatever blank lines and comments follow.
    end: usize,
    is_flow: bool,
    kind: NodeKind,
}

enum NodeKind {
    Map { members: Vec<Member>, key: Option<(String, std::ops::Range<usize>)> },
    List(Vec<Node>),
}

pub fn parse(text: &str) -> Result<Parsed, Fault> {
    let places: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    let byte = |index: usize| places.get(index).copied().unwrap_or(text.len());
    let mut open: Vec<Open> = Vec::new();
    let (mut root, mut fixed, mut documents) = (None, None, 0);
    for event in Parser::new_from_str(text) {
        let (event, span): (Event<'_>, Span) =
            event.map_err(|error| Fault::at(text, byte(error.marker().index()), error.info()))?;
        let (start, end) = (byte(span.start.index()), byte(span.end.index()));
        let closed = match event {
            Event::DocumentStart(_) => {
                documents += 1;
                if documents > 1 {
                    return Err(Fault::at(text, start, "has more than one document"));
                }
                continue;
            }
            Event::Alias(_) => {
                fixed = Some("it has anchors or aliases");
                Node { span: start..end, value: Value::Other("*".to_owned()) }
            }
            Event::Scalar(value, style, anchor, tag) => {
                if anchor > 0 || tag.is_some() {
                    fixed = Some("it has anchors or tags");
                }
                let end = start + written(&text[start..end.max(start)]);
                Node { span: start..end, value: scalar(&value, style) }
            }
            Event::SequenceStart(anchor, ref tag) | Event::MappingStart(anchor, ref tag) => {
                if anchor > 0 || tag.is_some() {
                    fixed = Some("it has anchors or tags");
                }
                if open.len() > MOST_DEPTH {
                    return Err(Fault::at(text, start, "is nested too deeply"));
                }
                let is_map = matches!(event, Event::MappingStart(..));
                let kind = match is_map {
                    true => NodeKind::Map { members: Vec::new(), key: None },
                    false => NodeKind::List(Vec::new()),
                };
                let is_flow = text[start..].starts_with(if is_map { '{' } else { '[' });
                open.push(Open { start, end: start, is_flow, kind });
                continue;
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                // The bracket alone: the parser counts what is behind it as well.
                Some(collection) if text[start..].starts_with([']', '}']) => {
                    finished(collection, start + 1)
                }
                Some(collection) => finished(collection, end),
                None => continue,
            },
            _ => continue,
        };
        match open.last_mut() {
            Some(collection) => take(collection, closed, text, &mut fixed)?,
            None => root = Some(closed),
        }
    }
    let empty = || Node { span: text.len()..text.len(), value: Value::Map(Vec::new()) };
    let root = match root {
        // A file of comments is one without servers.
        Some(node) if !matches!(&node.value, Value::Other(text) if text.is_empty()) => node,
        _ => empty(),
    };
    Ok(Parsed { root, fixed })
}

fn finished(collection: Open, end: usize) -> Node {
    let end = if collection.is_flow { end } else { collection.end };
    let value = match collection.kind {
        NodeKind::Map { members, .. } => Value::Map(members),
        NodeKind::List(nodes) => Value::List(nodes),
    };
    Node { span: collection.start..end, value }
}

fn take(
    collection: &mut Open,
    node: Node,
    text: &str,
    fixed: &mut Option<&'static str>,
) -> Result<(), Fault> {
    collection.end = collection.end.max(node.span.end);
    match &mut collection.kind {
        NodeKind::List(nodes) => nodes.push(node),
        NodeKind::Map { members, key } => match key.take() {
            Some((name, at)) => members.push(Member { name, key: at, node }),
            None => {
                let name = node.as_word();
                let name =
                    name.ok_or_else(|| Fault::at(text, node.span.start, "the key is no word"))?;
                if name == "<<" {
                    *fixed = Some("it has merge keys");
                }
                *key = Some((name, node.span));
            }
        },
    }
    Ok(())
}

/// How much of the text is the scalar itself: the parser counts the blanks and comments behind it as well.
fn written(text: &str) -> usize {
    let mut rest = text.char_indices();
    match rest.next() {
        Some((_, '"')) => {
            while let Some((at, c)) = rest.next() {
                match c {
                    '\\' => drop(rest.next()),
                    '"' => return at + 1,
                    _ => {}
                }
            }
        }
        Some((_, '\'')) => {
            while let Some((at, c)) = rest.next() {
                let is_doubled = text[at + c.len_utf8()..].starts_with('\'');
                match c {
                    '\'' if is_doubled => drop(rest.next()),
                    '\'' => return at + 1,
                    _ => {}
                }
            }
        }
        _ => {}
    }
    text.trim_end().len()
}

fn scalar(value: &str, style: ScalarStyle) -> Value {
    if style != ScalarStyle::Plain {
        return Value::Text(value.to_owned());
    }
    let is_number = value.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c))
        && value.parse::<f64>().is_ok();
    match value {
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        "" | "~" | "null" | "Null" | "NULL" => Value::Other(value.to_owned()),
        number if is_number => Value::Other(number.to_owned()),
        text => Value::Text(text.to_owned()),
    }
}
