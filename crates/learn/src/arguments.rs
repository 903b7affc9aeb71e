//! Arguments for a tool that has none on the command line, made from its schema: for `--explore`.
//!
//! Bounded in depth and size, whatever the schema says; a reference (`$ref`) is not followed.

use serde_json::{Map, Value};

const DEEPEST: usize = 6;
const MOST_PROPERTIES: usize = 32;

/// Whether a tool can be tried.
#[derive(Debug, Clone, PartialEq)]
pub enum Explored {
    /// With these arguments.
    With(Value),
    /// It is not tried; why.
    Left(&'static str),
}

/// Arguments for a tool of `tools/list`. A tool is tried only where nothing says that it destroys something.
#[must_use]
pub fn arguments(tool: &Value) -> Explored {
    let hint = |name: &str| tool.pointer(&format!("/annotations/{name}")).and_then(Value::as_bool);
    if hint("destructiveHint") == Some(true) {
        return Explored::Left("it is annotated as destructive");
    }
    // The specification's default for a tool that changes something is that it may destroy.
    if hint("readOnlyHint") == Some(false) && hint("destructiveHint").is_none() {
        return Explored::Left("it changes something, and does not say that it destroys nothing");
    }
    let schema = tool.get("inputSchema").unwrap_or(&Value::Null);
    Explored::With(object(schema, 0))
}

fn object(schema: &Value, depth: usize) -> Value {
    let mut made = Map::new();
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(Value::as_str).take(MOST_PROPERTIES).collect())
        .unwrap_or_default();
    for name in required {
        let property = schema.get("properties").and_then(|properties| properties.get(name));
        made.insert(name.to_owned(), value(property.unwrap_or(&Value::Null), depth + 1));
    }
    Value::Object(made)
}

fn value(schema: &Value, depth: usize) -> Value {
    if depth > DEEPEST {
        return Value::Null;
    }
    for ready in ["const", "default"] {
        if let Some(value) = schema.get(ready) {
            return value.clone();
        }
    }
    for list in ["examples", "enum"] {
        if let Some(first) = schema.get(list).and_then(Value::as_array).and_then(|all| all.first())
        {
            return first.clone();
        }
    }
    for choice in ["anyOf", "oneOf", "allOf"] {
        if let Some(first) =
            schema.get(choice).and_then(Value::as_array).and_then(|all| all.first())
        {
            return value(first, depth + 1);
        }
    }
    let kind = match schema.get("type") {
        Some(Value::String(kind)) => kind.as_str(),
        Some(Value::Array(kinds)) => kinds.first().and_then(Value::as_str).unwrap_or_default(),
        _ if schema.get("properties").is_some() => "object",
        _ => "string",
    };
    match kind {
        "object" => object(schema, depth),
        "array" => {
            let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0).min(4);
            let item = schema.get("items").unwrap_or(&Value::Null);
            Value::Array((0..least).map(|_| value(item, depth + 1)).collect())
        }
        "integer" => {
            number(schema, 1.0).as_f64().map_or(Value::Null, |n| Value::from(n.ceil() as i64))
        }
        "number" => number(schema, 1.0),
        "boolean" => Value::Bool(false),
        "null" => Value::Null,
        _ => Value::String(text(schema)),
    }
}

fn number(schema: &Value, usual: f64) -> Value {
    let bound = |name: &str| schema.get(name).and_then(Value::as_f64);
    let least = bound("minimum").or_else(|| bound("exclusiveMinimum").map(|least| least + 1.0));
    let most = bound("maximum").or_else(|| bound("exclusiveMaximum").map(|most| most - 1.0));
    let mut chosen = usual;
    if let Some(least) = least {
        chosen = chosen.max(least);
    }
    if let Some(most) = most {
        chosen = chosen.min(most);
    }
    Value::from(chosen)
}

fn text(schema: &Value) -> String {
    let least = schema.get("minLength").and_then(Value::as_u64).unwrap_or(0).min(64) as usize;
    let usual = match schema.get("format").and_then(Value::as_str) {
        Some("uri" | "url") => "https://example.com/",
        Some("email") => "user@example.com",
        Some("date") => "2026-01-01",
        Some("date-time") => "2026-01-01T00:00:00Z",
        _ => "test",
    };
    let mut text = usual.to_owned();
    while text.len() < least {
        text.push('x');
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_follow_the_schema() {
        let tool = json!({
            "name": "add",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "a": { "type": "integer", "minimum": 3 },
                    "b": { "type": "number", "maximum": 0.5 },
                    "c": { "enum": ["x", "y"] },
                    "d": { "type": "array", "minItems": 2, "items": { "type": "boolean" } },
                    "e": { "type": "object", "required": ["f"], "properties": { "f": { "type": "string" } } },
                    "optional": { "type": "string" },
                },
                "required": ["a", "b", "c", "d", "e"],
            },
        });
        let made = json!({ "a": 3, "b": 0.5, "c": "x", "d": [false, false], "e": { "f": "test" } });
        assert_eq!(arguments(&tool), Explored::With(made));
    }

    #[test]
    fn destructive_tools_are_left_alone() {
        for annotations in [
            json!({ "destructiveHint": true }),
            json!({ "destructiveHint": true, "readOnlyHint": true }),
            json!({ "readOnlyHint": false }),
        ] {
            let tool = json!({ "name": "rm", "annotations": annotations });
            assert!(matches!(arguments(&tool), Explored::Left(_)), "{annotations}");
        }
        let harmless = json!({ "name": "ls", "annotations": { "readOnlyHint": true } });
        assert!(matches!(arguments(&harmless), Explored::With(_)));
    }

    #[test]
    fn a_schema_without_end_ends() {
        let mut schema = json!({ "type": "string" });
        for _ in 0..100 {
            schema = json!({ "type": "object", "required": ["x"], "properties": { "x": schema } });
        }
        let text = match arguments(&json!({ "name": "deep", "inputSchema": schema })) {
            Explored::With(made) => made.to_string(),
            Explored::Left(why) => panic!("{why}"),
        };
        assert!(text.len() < 200, "{text}");
    }
}
