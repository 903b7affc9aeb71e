//! The calls that a person gives: `--call TOOL=JSON` and `--calls FILE`.

use std::path::Path;

use serde_json::Value;

use crate::failure::Failure;
use crate::render;

const LARGEST: u64 = 4 << 20;
const MOST: usize = 1_000;

/// One call of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    pub tool: String,
    pub arguments: Value,
}

/// Those of the flags first, then those of the file.
pub fn all(flags: &[String], file: Option<&Path>) -> Result<Vec<Call>, Failure> {
    let mut calls = Vec::new();
    for flag in flags {
        calls.push(
            parse(flag)
                .map_err(|why| Failure::Usage(format!("--call {}: {why}", render::plain(flag))))?,
        );
    }
    if let Some(path) = file {
        let text = mcp_files::read_text(path, LARGEST, mcp_files::Links::Follow)
            .map_err(|e| Failure::input(path, &e))?;
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let place = format!("{}:{number}", render::path(path));
            calls.push(parse(line).map_err(|why| Failure::Usage(format!("{place}: {why}")))?);
        }
    }
    if calls.len() > MOST {
        return Err(Failure::Usage(format!("{} calls are more than {MOST}", calls.len())));
    }
    Ok(calls)
}

/// `tool={"a":1}`, or `tool` alone for no arguments.
fn parse(text: &str) -> Result<Call, String> {
    let (tool, arguments) = text.split_once('=').unwrap_or((text, "{}"));
    let tool = tool.trim();
    if tool.is_empty() {
        return Err("expected TOOL={JSON}".to_owned());
    }
    let arguments: Value =
        serde_json::from_str(arguments).map_err(|e| format!("the arguments are no JSON: {e}"))?;
    if !arguments.is_object() {
        return Err("the arguments are no JSON object: TOOL={\"name\": \"value\"}".to_owned());
    }
    Ok(Call { tool: tool.to_owned(), arguments })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn calls_are_a_name_and_an_object() {
        let call = parse(r#"read_file={"path":"/a=b"}"#).unwrap();
        assert_eq!(
            call,
            Call { tool: "read_file".to_owned(), arguments: json!({ "path": "/a=b" }) }
        );
        assert_eq!(parse("list").unwrap().arguments, json!({}));
        for bad in ["", "={}", "x=[]", "x={", "x=1"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
