//! What is written is read back by a parser of others.

use proptest::prelude::*;
use saphyr_parser::{Event, Parser, ScalarStyle};
use serde_json::{Map, Value, json};

use super::*;

/// All documents of a text, by the rules of YAML's core schema for what is not quoted.
pub(crate) fn read(text: &str) -> Vec<Value> {
    let mut documents = Vec::new();
    let mut open: Vec<(Value, Option<String>)> = Vec::new();
    let put = |open: &mut Vec<(Value, Option<String>)>,
               documents: &mut Vec<Value>,
               value: Value| match open.last_mut() {
        None => documents.push(value),
        Some((Value::Array(items), _)) => items.push(value),
        Some((Value::Object(map), pending @ None)) => {
            let Value::String(key) = value else { panic!("a key is no string: {value}") };
            assert!(!map.contains_key(&key), "{key} stands twice");
            *pending = Some(key);
        }
        Some((Value::Object(map), pending)) => {
            map.insert(pending.take().unwrap(), value);
        }
        Some(_) => unreachable!(),
    };
    for event in Parser::new_from_str(text) {
        let (event, _) = event.unwrap_or_else(|e| panic!("{e}\n{text}"));
        match event {
            Event::Scalar(text, style, ..) => {
                let value = match style {
                    ScalarStyle::Plain => plain(&text),
                    _ => Value::String(text.into_owned()),
                };
                put(&mut open, &mut documents, value);
            }
            Event::MappingStart(..) => open.push((Value::Object(Map::new()), None)),
            Event::SequenceStart(..) => open.push((Value::Array(Vec::new()), None)),
            Event::MappingEnd | Event::SequenceEnd => {
                let (value, _) = open.pop().unwrap();
                put(&mut open, &mut documents, value);
            }
            Event::Alias(_) => panic!("an alias in {text}"),
            _ => {}
        }
    }
    documents
}

fn plain(text: &str) -> Value {
    match text {
        "null" => Value::Null,
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        _ => match text.parse::<i64>() {
            Ok(number) => json!(number),
            Err(_) => Value::String(text.to_owned()),
        },
    }
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(|number| json!(number)),
        any::<String>().prop_map(Value::String),
        "[ -~\n]{0,40}".prop_map(Value::String),
        "([a-z#:\\-\\[\\]{}&*!|>'\"%@`]{1,9}\n){1,4}".prop_map(Value::String),
        prop_oneof![
            Just("no"),
            Just("~"),
            Just("1e3"),
            Just("0x10"),
            Just("---"),
            Just("- a"),
            Just("a: b"),
            Just("# c"),
            Just("\n---\nkind: Secret\n"),
            Just("{{ .Values }}"),
            Just("$(HOME)"),
            Just("\u{85}"),
            Just("\u{FEFF}"),
        ]
        .prop_map(|text| json!(text)),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
            prop::collection::btree_map(any::<String>(), inner.clone(), 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
            prop::collection::btree_map("[a-z]{1,5}", inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(value in values()) {
        let text = document(&value);
        prop_assert_eq!(read(&text), vec![value], "{}", text);
    }

    #[test]
    fn a_comment_is_one_line(text in any::<String>()) {
        let written = comments(&[text]);
        prop_assert_eq!(written.lines().count(), 1);
        prop_assert_eq!(read(&(written + "a: 1\n")), vec![json!({"a": 1})]);
    }
}

#[test]
fn lines_are_a_literal_block() {
    let text = document(&json!({"data": {"policy.toml": "[limits]\nmemory = \"64M\"\n\n# end\n"}}));
    assert_eq!(
        text,
        "data:\n  \"policy.toml\": |\n    [limits]\n    memory = \"64M\"\n\n    # end\n"
    );
}
