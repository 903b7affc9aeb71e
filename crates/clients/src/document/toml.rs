//! TOML, by the parser that reads our own policy files.

use toml::de::{DeTable, DeValue};

use super::{Fault, MOST_DEPTH, Member, Node, Value};

pub fn parse(text: &str) -> Result<Node, Fault> {
    let table = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        Fault::at(text, at, error.message().trim().replace('\n', ", "))
    })?;
    let value = map(text, table.into_inner(), 0)?;
    Ok(Node { span: 0..text.len(), value })
}

fn map(text: &str, table: DeTable<'_>, depth: usize) -> Result<Value, Fault> {
    let mut members = Vec::with_capacity(table.len());
    for (key, value) in table {
        let (span, at) = (value.span(), key.span());
        let node = node(text, value.into_inner(), span, depth + 1)?;
        members.push(Member { name: key.into_inner().into_owned(), key: at, node });
    }
    members.sort_by_key(|member| member.key.start);
    Ok(Value::Map(members))
}

fn node(
    text: &str,
    value: DeValue<'_>,
    span: std::ops::Range<usize>,
    depth: usize,
) -> Result<Node, Fault> {
    if depth > MOST_DEPTH {
        return Err(Fault::at(text, span.start, "is nested too deeply"));
    }
    let value = match value {
        DeValue::String(string) => Value::Text(string.into_owned()),
        DeValue::Boolean(boolean) => Value::Bool(boolean),
        DeValue::Integer(_) | DeValue::Float(_) | DeValue::Datetime(_) => {
            Value::Other(text.get(span.clone()).unwrap_or_default().to_owned())
        }
        DeValue::Array(array) => {
            let mut nodes = Vec::with_capacity(array.len());
            for element in array {
                let span = element.span();
                nodes.push(node(text, element.into_inner(), span, depth + 1)?);
            }
            Value::List(nodes)
        }
        DeValue::Table(table) => map(text, table, depth)?,
    };
    Ok(Node { span, value })
}
