//! What of a message is refused before a server reads it.

use hyper::{Response, StatusCode};
use mcp_protocol::{Kind, Malformed, Message, error, json};

use super::Call;
use super::post::malformed;
use super::reply::{self, Body};

/// What is routed or judged by, in a message and in its parameters.
const KEYS: [&str; 6] = ["jsonrpc", "id", "method", "params", "result", "error"];
const PARAMETERS: [&str; 3] = ["name", "uri", "_meta"];

/// One message of a request: why it is not passed on; none where it is.
pub fn refusal(call: &Call, message: &Message<'_>) -> Option<Response<Body>> {
    if let Err(wrong) = unambiguous(message) {
        return Some(malformed(&wrong));
    }
    forbidden_tool(call, message)
}

/// A server may read its keys in any case (Go's decoder does): then it would see another method or name than was judged.
fn unambiguous(message: &Message<'_>) -> Result<(), Malformed> {
    if matches!(message.kind(), Kind::Batch(_)) {
        return Err(Malformed::NotMessage("a batch in a batch"));
    }
    let text = message.text();
    let start = text.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    let objects = [(Some(start..text.len()), &KEYS[..]), (message.param(&[])?, &PARAMETERS[..])];
    for (object, known) in objects {
        let object = object.filter(|span| text.get(span.start) == Some(&b'{'));
        for (key, _) in object.into_iter().flat_map(|span| json::members(text, span)) {
            let Some(key) = json::string(text, key) else { continue };
            if known.iter().any(|it| *it != key && *it == folded(&key)) {
                return Err(Malformed::NotMessage("a key differs from a known one only in case"));
            }
        }
    }
    Ok(())
}

/// Lower case, with the two letters beyond ASCII that fold into it.
fn folded(key: &str) -> String {
    key.chars()
        .map(|c| match c {
            'ſ' => 's',
            '\u{212a}' => 'k',
            c => c.to_ascii_lowercase(),
        })
        .collect()
}

/// A scope may name the tools that it allows: why this call is not one of them; none where it is.
fn forbidden_tool(call: &Call, message: &Message<'_>) -> Option<Response<Body>> {
    // A server may run a call that wants no answer.
    let (id, method) = match message.kind() {
        Kind::Request { id, method } => (Some(id), method),
        Kind::Notification { method } => (None, method),
        _ => return None,
    };
    if method != "tools/call" {
        return None;
    }
    let tool = match message.param_text(&["name"]) {
        Ok(tool) => tool.unwrap_or_default(),
        Err(wrong) => return Some(malformed(&wrong)),
    };
    if call.principal.may.tool(&call.server, &tool) {
        return None;
    }
    call.gateway.metrics.refused("tool");
    let why = "this token may not call this tool";
    Some(reply::failed(StatusCode::FORBIDDEN, id, error::INVALID_REQUEST, why))
}
