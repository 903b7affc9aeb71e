//! 2026-07-28: no sessions. Each request says its version, and its headers say what its body says.

use std::borrow::Cow;
use std::sync::Arc;

use base64::Engine;
use hyper::header::HeaderMap;
use hyper::{Response, StatusCode};
use mcp_protocol::{Id, Kind, Malformed, Message, SESSIONS, STATELESS, error};

use super::post::{malformed, refused};
use super::reply::{self, Body, First, Resume, Waiting};
use super::{Call, header, judge};
use crate::events::{Keep, Stream};

const LISTEN: &str = "subscriptions/listen";

pub async fn post(
    call: Call,
    headers: &HeaderMap,
    message: &Message<'_>,
    stated: Option<&str>,
) -> Response<Body> {
    let (id, method) = match message.kind() {
        Kind::Request { id, method } => (Some(id), method),
        Kind::Notification { method } => (None, method),
        _ => {
            return malformed(&Malformed::NotMessage(
                "2026-07-28 has requests and notifications only",
            ));
        }
    };
    match mismatch(headers, message, method, id.is_some(), stated) {
        Ok(None) => {}
        Ok(Some(why)) => {
            call.gateway.metrics.refused("header");
            return reply::failed(
                StatusCode::BAD_REQUEST,
                id,
                error::HEADER_MISMATCH,
                &format!("Header mismatch: {why}"),
            );
        }
        Err(wrong) => return malformed(&wrong),
    }
    let version = header(headers, "mcp-protocol-version").unwrap_or_default();
    if version != STATELESS {
        return unsupported(id, version);
    }
    if let Some(refusal) = judge::refusal(&call, message) {
        return refusal;
    }
    if id.is_none() {
        return notify(&call, message, method);
    }
    let Ok(sandbox) = call.gateway.shared(&call.current, &call.principal, &call.server).await
    else {
        call.gateway.metrics.refused("busy");
        return reply::busy();
    };
    let stream = Stream::new(0, 1, Keep::Nothing, method == LISTEN, sandbox.budget());
    let waiting = Waiting::new(&sandbox, &stream);
    if let Err(refusal) = sandbox.ask(message, &stream, call.span(message)) {
        return refused(message, &refusal);
    }
    match reply::first(waiting, 1).await {
        First::Answer(event) => reply::json(status(event.error), event.text),
        First::More(waiting) => {
            let attached = (method == LISTEN).then(|| sandbox.attach());
            reply::events(waiting, 0, Resume::Never, attached, call.gateway.draining.subscribe())
        }
    }
}

/// A notification starts no sandbox. A call is cancelled by the end of its response, so `cancelled` is not passed on:
/// its id would be another client's.
fn notify(call: &Call, message: &Message<'_>, method: &str) -> Response<Body> {
    let key = (Arc::clone(&call.principal.name), call.server.clone());
    if method != "notifications/cancelled"
        && let Some(sandbox) = call.gateway.pool.live(&key)
        && let Err(refusal) = sandbox.pass(message)
    {
        return refused(message, &refusal);
    }
    reply::empty(StatusCode::ACCEPTED)
}

fn status(error: Option<i64>) -> StatusCode {
    match error {
        Some(error::METHOD_NOT_FOUND) => StatusCode::NOT_FOUND,
        Some(error::UNSUPPORTED_VERSION | error::HEADER_MISMATCH | error::MISSING_CAPABILITY) => {
            StatusCode::BAD_REQUEST
        }
        _ => StatusCode::OK,
    }
}

pub fn unsupported(id: Option<&Id>, requested: &str) -> Response<Body> {
    let supported: Vec<&str> = SESSIONS.into_iter().chain([STATELESS]).collect();
    let data = serde_json::json!({ "supported": supported, "requested": requested }).to_string();
    let answer = error::answer_with(
        id,
        error::UNSUPPORTED_VERSION,
        "Unsupported protocol version",
        Some(&data),
    );
    reply::json(StatusCode::BAD_REQUEST, answer.into_bytes())
}

/// What a header says differently from the body; none where all agree.
fn mismatch(
    headers: &HeaderMap,
    message: &Message<'_>,
    method: &str,
    is_request: bool,
    stated: Option<&str>,
) -> Result<Option<String>, Malformed> {
    let version = once(headers, "mcp-protocol-version");
    match (version, stated) {
        (None, _) => return Ok(Some("MCP-Protocol-Version is missing".to_owned())),
        (Some(header), Some(body)) if header != body => {
            return Ok(Some(format!("MCP-Protocol-Version {header} is not the body's {body}")));
        }
        (Some(_), None) if is_request => {
            return Ok(Some(
                "the body's _meta has no io.modelcontextprotocol/protocolVersion".to_owned(),
            ));
        }
        _ => {}
    }
    match once(headers, "mcp-method") {
        None => return Ok(Some("Mcp-Method is missing".to_owned())),
        Some(header) if header != method => {
            return Ok(Some(format!("Mcp-Method {header} is not the body's {method}")));
        }
        Some(_) => {}
    }
    let key = match method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        _ => return Ok(None),
    };
    let named = message.param_text(&[key])?;
    let header = once(headers, "mcp-name").map(decoded);
    Ok(match (header, named) {
        (Some(Some(header)), Some(body)) if header == body => None,
        (None, None) => None,
        (None, Some(_)) => Some("Mcp-Name is missing".to_owned()),
        (Some(None), _) => Some("Mcp-Name cannot be decoded".to_owned()),
        (Some(Some(header)), body) => {
            Some(format!("Mcp-Name {header} is not the body's {}", body.unwrap_or_default()))
        }
    })
}

/// The value of a header that is there once; twice is as good as missing.
fn once<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    if values.next().is_some() { None } else { Some(value) }
}

/// What does not fit into a header travels as `=?base64?…?=`.
fn decoded(value: &str) -> Option<Cow<'_, str>> {
    let Some(inner) = value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?="))
    else {
        return Some(Cow::Borrowed(value));
    };
    let bytes = base64::engine::general_purpose::STANDARD.decode(inner).ok()?;
    String::from_utf8(bytes).ok().map(Cow::Owned)
}
