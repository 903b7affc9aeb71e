//! POST, GET and DELETE of the revisions with sessions, and the choice between the eras.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::{Bytes, Incoming};
use hyper::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{Request, Response, StatusCode};
use mcp_protocol::{Kind, Malformed, Message, Refusal, SESSIONS, STATELESS, error, json};

use super::reply::{self, Body, First, Resume, Waiting};
use super::{Call, Told, header, judge, stateless};
use crate::events::{Keep, Stream};
use crate::memory::Held;
use crate::sandbox::Sandbox;
use crate::session::Session;

const BODY_TIME: Duration = Duration::from_secs(30);
const SESSION_ID: &str = "mcp-session-id";
/// It had no Streamable HTTP, but clients that say it are understood.
const FIRST_REVISION: &str = "2024-11-05";
/// From this revision on a stream begins with an event that only gives the client an id to come back with.
const PRIMED: &str = "2025-11-25";

pub async fn post(call: Call, request: Request<Incoming>, told: &mut Told) -> Response<Body> {
    let headers = request.headers().clone();
    if let Some(refused) = wrong_types(&headers) {
        return refused;
    }
    let mut held = Held::none(&call.gateway.budget(&call.principal));
    let body = match body(request, call.current.config.limits.max_message, &mut held).await {
        Ok(body) => body,
        Err(refused) => {
            call.gateway.metrics.refused("body");
            return refused;
        }
    };
    let message = match Message::read(&body) {
        Ok(message) => message,
        Err(wrong) => return malformed(&wrong),
    };
    if let Kind::Request { method, .. } | Kind::Notification { method } = message.kind() {
        told.method = Some(method.clone());
    }
    let stated = match message.stated_version() {
        Ok(stated) => stated,
        Err(wrong) => return malformed(&wrong),
    };
    let version = header(&headers, "mcp-protocol-version");
    if version == Some(STATELESS) || stated.is_some() {
        return stateless::post(call, &headers, &message, stated.as_deref()).await;
    }
    if let Some(version) = version.filter(|it| !SESSIONS.contains(it) && *it != FIRST_REVISION) {
        return stateless::unsupported(None, version);
    }
    match (header(&headers, SESSION_ID), message.kind()) {
        (None, Kind::Request { method, .. }) if method == "initialize" => {
            initialize(&call, &message).await
        }
        (None, _) => reply::failed(
            StatusCode::BAD_REQUEST,
            None,
            error::INVALID_REQUEST,
            "Mcp-Session-Id is missing: begin with initialize",
        ),
        (Some(id), _) => match call.gateway.sessions.find(id, &call.principal.name, &call.server) {
            Some(session) => in_session(&call, &session, &message).await,
            None => no_session(),
        },
    }
}

fn no_session() -> Response<Body> {
    reply::failed(StatusCode::NOT_FOUND, None, -32001, "Session not found")
}

pub fn malformed(wrong: &Malformed) -> Response<Body> {
    let code =
        if matches!(wrong, Malformed::NotJson(_)) { error::PARSE } else { error::INVALID_REQUEST };
    reply::failed(StatusCode::BAD_REQUEST, None, code, &wrong.to_string())
}

/// Why the kinds of content do not fit; none where they do.
fn wrong_types(headers: &HeaderMap) -> Option<Response<Body>> {
    let kind = header(headers, CONTENT_TYPE.as_str()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/json") {
        return Some(reply::text(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "Content-Type is to be application/json\n",
        ));
    }
    // Nothing is unpacked, so nothing small becomes large here.
    if header(headers, CONTENT_ENCODING.as_str()).is_some_and(|it| it != "identity") {
        return Some(reply::text(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "Content-Encoding is not understood: send the message as it is\n",
        ));
    }
    let accepts = |wanted: &str| {
        let values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
        let mut kinds = values
            .flat_map(|value| value.split(','))
            .map(|it| it.split(';').next().unwrap_or_default().trim());
        kinds.any(|kind| kind.eq_ignore_ascii_case(wanted) || kind == "*/*")
    };
    if accepts("application/json") && accepts("text/event-stream") {
        return None;
    }
    Some(reply::failed(
        StatusCode::NOT_ACCEPTABLE,
        None,
        error::INVALID_REQUEST,
        "Not Acceptable: Client must accept both application/json and text/event-stream",
    ))
}

/// The body, whose bytes are held as they come.
async fn body(
    request: Request<Incoming>,
    most: usize,
    held: &mut Held,
) -> Result<Bytes, Response<Body>> {
    let too_large = || {
        let message = format!("a message may have {most} bytes");
        reply::failed(StatusCode::PAYLOAD_TOO_LARGE, None, error::INVALID_REQUEST, &message)
    };
    let mut body = request.into_body();
    if hyper::body::Body::size_hint(&body).lower() > most as u64 {
        return Err(too_large());
    }
    let collect = async {
        let mut bytes = Vec::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| reply::empty(StatusCode::BAD_REQUEST))?;
            let Ok(data) = frame.into_data() else { continue };
            if bytes.len() + data.len() > most {
                return Err(too_large());
            }
            if !held.add(data.len()) {
                return Err(reply::busy());
            }
            bytes.extend_from_slice(&data);
        }
        Ok(bytes.into())
    };
    match tokio::time::timeout(BODY_TIME, collect).await {
        Ok(collected) => collected,
        Err(_) => Err(reply::empty(StatusCode::REQUEST_TIMEOUT)),
    }
}

async fn initialize(call: &Call, message: &Message<'_>) -> Response<Body> {
    if let Some(refusal) = judge::refusal(call, message) {
        return refusal;
    }
    let started = call.gateway.start_session(&call.current, &call.principal, &call.server).await;
    let Ok((sandbox, own)) = started else {
        call.gateway.metrics.refused("busy");
        return reply::busy();
    };
    let mut begun = Begun(Some(Arc::clone(&sandbox)));
    let stream = Stream::new(u64::MAX, 1, Keep::Nothing, false, sandbox.budget());
    let waiting = Waiting::new(&sandbox, &stream);
    if let Err(refusal) = sandbox.ask(message, &stream, call.span(message)) {
        return refused(message, &refusal);
    }
    // What the server says before is not part of a session yet.
    let mut at = 0;
    let answer = loop {
        match stream.after(at).await {
            Some((_, event)) if event.is_answer => break Some(event),
            Some((number, _)) => at = number,
            None => break None,
        }
    };
    drop(waiting);
    let (Some(answer), Some(id)) = (answer, call.gateway.new_session_id()) else {
        return reply::busy();
    };
    let version = chosen_version(&answer.text);
    let mut response = reply::json(StatusCode::OK, answer.text);
    let (Some(version), Ok(value)) = (version, HeaderValue::from_str(&id)) else {
        // An error: there is no session, and nothing to keep.
        return response;
    };
    let session = Session::new(id, Arc::clone(&call.principal.name), version, sandbox, own);
    call.gateway.sessions.add(Arc::new(session));
    // A reload ends the sessions that it finds; one that came before this session is seen here.
    let now = call.gateway.current();
    if now.config.servers.get(&call.server) != call.current.config.servers.get(&call.server) {
        return reply::busy();
    }
    begun.0 = None;
    response.headers_mut().insert(SESSION_ID, value);
    response
}

/// A sandbox that has no session yet: it ends with this, so also when its client leaves before the answer.
struct Begun(Option<Arc<Sandbox>>);

impl Drop for Begun {
    fn drop(&mut self) {
        self.0.iter().for_each(|sandbox| sandbox.end());
    }
}

fn chosen_version(answer: &[u8]) -> Option<String> {
    let message = Message::read(answer).ok()?;
    let span = message.result(&["protocolVersion"]).ok()??;
    json::string(answer, span).map(std::borrow::Cow::into_owned)
}

async fn in_session(call: &Call, session: &Arc<Session>, message: &Message<'_>) -> Response<Body> {
    let spans = match message.kind() {
        Kind::Batch(_) if session.version != SESSIONS[0] => {
            return malformed(&Malformed::NotMessage("batches are of 2025-03-26 only"));
        }
        Kind::Batch(spans) => spans.clone(),
        _ => std::iter::once(0..message.text().len()).collect(),
    };
    let text = message.text();
    let parts: Result<Vec<_>, _> =
        spans.into_iter().map(|span| Message::read(&text[span])).collect();
    let parts = match parts {
        Ok(parts) => parts,
        Err(wrong) => return malformed(&wrong),
    };
    if let Some(refusal) = parts.iter().find_map(|part| judge::refusal(call, part)) {
        return refusal;
    }
    let due = parts.iter().filter(|it| matches!(it.kind(), Kind::Request { .. })).count();
    let stream = session.stream(due);
    let waiting = Waiting::new(&session.sandbox, &stream);
    for part in &parts {
        let sent = match part.kind() {
            Kind::Request { .. } => session.sandbox.ask(part, &stream, call.span(part)),
            _ => session.sandbox.pass(part),
        };
        if let Err(refusal) = sent {
            return refused(part, &refusal);
        }
    }
    if due == 0 {
        session.forget(&stream);
        return reply::empty(StatusCode::ACCEPTED);
    }
    match reply::first(waiting, due).await {
        First::Answer(event) => {
            session.forget(&stream);
            reply::json(StatusCode::OK, event.text)
        }
        First::More(waiting) => {
            let resume = Resume::ById { primed: &*session.version >= PRIMED };
            reply::events(waiting, 0, resume, None, call.gateway.draining.subscribe())
        }
    }
}

pub fn refused(message: &Message<'_>, refusal: &Refusal) -> Response<Body> {
    let id = match message.kind() {
        Kind::Request { id, .. } => Some(id),
        _ => None,
    };
    match refusal {
        Refusal::Duplicate(_) => {
            reply::failed(StatusCode::BAD_REQUEST, id, error::INVALID_REQUEST, "this id is in use")
        }
        Refusal::Malformed(wrong) => malformed(wrong),
        _ => reply::busy(),
    }
}

/// GET: the session's own stream, or a stream that broke off.
pub fn listen(call: &Call, headers: &HeaderMap) -> Response<Body> {
    let Some(id) = header(headers, SESSION_ID) else {
        return reply::text(
            StatusCode::METHOD_NOT_ALLOWED,
            "GET is for sessions (Mcp-Session-Id); a server is asked by POST with initialize or server/discover\n",
        );
    };
    let Some(session) = call.gateway.sessions.find(id, &call.principal.name, &call.server) else {
        return no_session();
    };
    let (stream, at) = match header(headers, "last-event-id") {
        None => (Arc::clone(&session.own), 0),
        Some(event) => match session.resume(event) {
            Some(found) => found,
            None => {
                return reply::failed(
                    StatusCode::NOT_FOUND,
                    None,
                    error::INVALID_REQUEST,
                    "no such event",
                );
            }
        },
    };
    let waiting = Waiting::new(&session.sandbox, &stream);
    let attached = session.sandbox.attach();
    let resume = Resume::ById { primed: false };
    reply::events(waiting, at, resume, Some(attached), call.gateway.draining.subscribe())
}

/// DELETE: the end of a session.
pub fn end(call: &Call, headers: &HeaderMap) -> Response<Body> {
    let found = header(headers, SESSION_ID)
        .and_then(|id| call.gateway.sessions.find(id, &call.principal.name, &call.server));
    let Some(session) = found else { return no_session() };
    call.gateway.sessions.remove(&session.id);
    session.sandbox.end();
    reply::empty(StatusCode::NO_CONTENT)
}
