//! HTTP requests: who may, which server, and what the protocol says about headers.

mod guard;
mod judge;
mod post;
mod reply;
mod stateless;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, CONNECTION, HeaderMap, HeaderValue, TRANSFER_ENCODING};
use hyper::{Method, Request, Response, StatusCode};
use mcp_protocol::Message;

use crate::access_log::{Line, cut};
use crate::auth::Auth;
use crate::gateway::{Current, Gateway};
use crate::principal::{Denied, Principal};
use crate::trace::{Parent, Span};
pub use reply::Body;

/// What an answer and its line in the log are made of.
pub struct Call {
    pub gateway: Arc<Gateway>,
    pub current: Arc<Current>,
    pub principal: Principal,
    pub server: String,
    /// The span of the caller.
    pub parent: Option<Parent>,
}

impl Call {
    /// The span of a request; none where no collector is configured.
    pub fn span(&self, message: &Message<'_>) -> Option<Span> {
        let tracer = self.gateway.tracer.as_ref()?;
        tracer.begin(message, &self.server, &self.principal.name, self.parent.clone())
    }
}

pub fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

pub async fn handle(
    gateway: Arc<Gateway>,
    peer: SocketAddr,
    request: Request<Incoming>,
) -> Response<Body> {
    let began = Instant::now();
    let http = request.method().clone();
    let path = request.uri().path().to_owned();
    let origin = header(request.headers(), "origin").map(str::to_owned);
    let mut told = Told::default();
    let current = gateway.current();
    // RFC 9112, 6.1: hyper drops a Content-Length beside Transfer-Encoding, by which a proxy may have cut. What follows on this
    // connection could be part of this body for that proxy, so nothing follows.
    let is_chunked = request.headers().contains_key(TRANSFER_ENCODING);
    let mut response = route(&gateway, &current, request, &mut told).await;
    if is_chunked {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    if let Some(origin) = origin.filter(|origin| current.config.origins.contains(origin)) {
        guard::allow_origin(&mut response, &origin);
    }
    gateway.log.write(&Line {
        peer,
        http: http.as_str(),
        path: cut(&path),
        status: response.status().as_u16(),
        milliseconds: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        principal: told.principal.as_deref().map(cut),
        server: told.server.as_deref().map(cut),
        method: told.method.as_deref().map(cut),
    });
    response
}

/// What the log says beside the request line.
#[derive(Default)]
pub struct Told {
    pub principal: Option<Arc<str>>,
    pub server: Option<String>,
    pub method: Option<String>,
}

async fn route(
    gateway: &Arc<Gateway>,
    current: &Arc<Current>,
    request: Request<Incoming>,
    told: &mut Told,
) -> Response<Body> {
    let path = request.uri().path().to_owned();
    match &*path {
        "/healthz" => return reply::text(StatusCode::OK, "ok\n"),
        "/readyz" if *gateway.draining.borrow() => {
            return reply::text(StatusCode::SERVICE_UNAVAILABLE, "draining\n");
        }
        "/readyz" => return reply::text(StatusCode::OK, "ok\n"),
        _ => {}
    }
    if let Err(refused) = guard::check(&current.config, request.headers(), request.uri()) {
        gateway.metrics.refused(refused.word());
        return refused.response();
    }
    if request.method() == Method::OPTIONS {
        return reply::empty(StatusCode::NO_CONTENT);
    }
    if path == "/metrics" {
        return figures(gateway, current, request.headers()).await;
    }
    if let Some(rest) = path.strip_prefix("/.well-known/oauth-protected-resource") {
        return metadata(current, rest);
    }
    if matches!(&*path, "/sse" | "/message" | "/messages") {
        return reply::text(
            StatusCode::GONE,
            "HTTP+SSE of 2024-11-05 is not spoken here: use Streamable HTTP, by POST to /mcp/NAME\n",
        );
    }
    let Some(server) = server_of(current, &path) else {
        return reply::text(StatusCode::NOT_FOUND, "servers are at /mcp/NAME\n");
    };
    told.server = Some(server.clone());
    let principal = match current
        .auth
        .principal(header(request.headers(), AUTHORIZATION.as_str()), &server)
        .await
    {
        Ok(principal) => principal,
        Err(denied) => {
            gateway.metrics.refused("authentication");
            return unauthorized(current, &server, denied);
        }
    };
    told.principal = Some(Arc::clone(&principal.name));
    if !principal.may.server(&server) {
        gateway.metrics.refused("scope");
        return forbidden(current, &server);
    }
    // Whether a server exists is told only to those who may know it.
    if !current.config.servers.contains_key(&server) {
        return reply::text(StatusCode::NOT_FOUND, "there is no such server\n");
    }
    if *gateway.draining.borrow() {
        return reply::busy();
    }
    let call = Call {
        gateway: Arc::clone(gateway),
        current: Arc::clone(current),
        principal,
        server,
        parent: header(request.headers(), "traceparent").and_then(Parent::read),
    };
    match *request.method() {
        Method::POST => post::post(call, request, told).await,
        Method::GET => post::listen(&call, request.headers()),
        Method::DELETE => post::end(&call, request.headers()),
        _ => reply::empty(StatusCode::METHOD_NOT_ALLOWED),
    }
}

/// `/metrics`. A proxy in front makes everybody's address its own, so an address says nothing.
async fn figures(gateway: &Gateway, current: &Current, headers: &HeaderMap) -> Response<Body> {
    match current.auth.principal(header(headers, AUTHORIZATION.as_str()), "").await {
        Ok(_) => {
            gateway.usage.look().await;
            let (memory, held) = (gateway.usage.by_server(), gateway.budgets.used());
            reply::text(StatusCode::OK, &gateway.metrics.text(&memory, held))
        }
        Err(denied) => unauthorized(current, "", denied),
    }
}

/// `/mcp/NAME`, or `/mcp` where there is one server only.
fn server_of(current: &Current, path: &str) -> Option<String> {
    let rest = path.strip_prefix("/mcp")?.trim_end_matches('/');
    match rest.strip_prefix('/') {
        Some(name) => Some(name.to_owned()),
        None if rest.is_empty() && current.config.servers.len() == 1 => {
            current.config.servers.keys().next().cloned()
        }
        None => None,
    }
}

/// RFC 9728: where tokens for a server come from.
fn metadata(current: &Current, rest: &str) -> Response<Body> {
    let Auth::Asked { oauth: Some(oauth), .. } = &current.auth else {
        return reply::text(StatusCode::NOT_FOUND, "there is no authorization server\n");
    };
    let resource = match rest.trim_end_matches('/') {
        "" => oauth.config.resource.clone(),
        path => match server_of(current, path) {
            Some(server) => oauth.resource(&server),
            None => return reply::text(StatusCode::NOT_FOUND, "there is no such server\n"),
        },
    };
    let scopes: Vec<&String> = oauth.config.scopes.keys().collect();
    let document = serde_json::json!({
        "resource": resource,
        "authorization_servers": [oauth.config.issuer],
        "scopes_supported": scopes,
        "bearer_methods_supported": ["header"],
    });
    reply::json(StatusCode::OK, document.to_string().into_bytes())
}

fn challenge(current: &Current, server: &str, error: &str) -> String {
    let mut parts = vec!["Bearer realm=\"mcp\"".to_owned()];
    if !error.is_empty() {
        parts.push(format!("error=\"{error}\""));
    }
    if let Auth::Asked { oauth: Some(oauth), .. } = &current.auth {
        let resource = oauth.config.resource.trim_end_matches('/');
        let is_plain = server.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
        let path = if is_plain { format!("/mcp/{server}") } else { String::new() };
        parts.push(format!(
            "resource_metadata=\"{resource}/.well-known/oauth-protected-resource{path}\""
        ));
    }
    parts.join(", ")
}

fn unauthorized(current: &Current, server: &str, denied: Denied) -> Response<Body> {
    let error = if denied == Denied::Invalid { "invalid_token" } else { "" };
    reply::challenged(StatusCode::UNAUTHORIZED, &challenge(current, server, error))
}

fn forbidden(current: &Current, server: &str) -> Response<Body> {
    reply::challenged(StatusCode::FORBIDDEN, &challenge(current, server, "insufficient_scope"))
}
