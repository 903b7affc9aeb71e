//! JSON with comments and trailing commas, which most clients take, declared or not.

use jsonc_parser::ast::{ObjectPropName, Value as Ast};
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

use super::{Fault, MOST_DEPTH, Member, Node, Value};

/// What no client takes for JSON is an error here too.
const OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_loose_object_property_names: false,
    allow_trailing_commas: true,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

pub fn parse(text: &str) -> Result<Node, Fault> {
    let parsed = parse_to_ast(text, &CollectOptions::default(), &OPTIONS)
        .map_err(|error| Fault::at(text, error.range().start, error.kind().to_string()))?;
    match parsed.value {
        Some(value) => node(text, value, 0),
        // An empty file is one without servers.
        None => Ok(Node { span: text.len()..text.len(), value: Value::Map(Vec::new()) }),
    }
}

fn node(text: &str, value: Ast<'_>, depth: usize) -> Result<Node, Fault> {
    let range = value.range();
    let span = range.start..range.end;
    if depth > MOST_DEPTH {
        return Err(Fault::at(text, span.start, "is nested too deeply"));
    }
    let value = match value {
        Ast::StringLit(string) => Value::Text(string.value.into_owned()),
        Ast::BooleanLit(boolean) => Value::Bool(boolean.value),
        Ast::NumberLit(number) => Value::Other(number.value.to_owned()),
        Ast::NullKeyword(_) => Value::Other("null".to_owned()),
        Ast::Array(array) => {
            let nodes = array.elements.into_iter().map(|element| node(text, element, depth + 1));
            Value::List(nodes.collect::<Result<_, _>>()?)
        }
        Ast::Object(object) => {
            let mut members = Vec::with_capacity(object.properties.len());
            for property in object.properties {
                let key = property.name.range();
                let name = match property.name {
                    ObjectPropName::String(string) => string.value.into_owned(),
                    ObjectPropName::Word(word) => word.value.to_owned(),
                };
                let node = node(text, property.value, depth + 1)?;
                members.push(Member { name, key: key.start..key.end, node });
            }
            Value::Map(members)
        }
    };
    Ok(Node { span, value })
}
