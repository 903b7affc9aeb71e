//! HTTP proxies: the requests programs make of ours, and the answers of the user's own.
//!
//! `CONNECT host:port` becomes a tunnel. A plain `GET http://host/…` is sent on to that host
//! with its head rewritten and `Connection: close`, so that one connection has one host.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::endpoint::{Endpoint, authority};
use super::head::{Collected, Collector, LONE_CR, Lines};
use super::http::{absolute_form, host_field, request_line};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConnectProgress<T> {
    NeedMore,
    /// `used` of the bytes just fed were the head's; what follows is the peer's next word.
    Done {
        value: T,
        used: usize,
    },
    /// To be answered with `400` and closed, with this reason.
    Broken(&'static str),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConnectRequest {
    /// Without the name and password that this proxy wants: answer [`Reply::Stranger`].
    Stranger,
    Tunnel(Endpoint),
    /// `head` is what the server gets instead of the request's own.
    Forward {
        endpoint: Endpoint,
        head: Vec<u8>,
    },
}

/// Reads one request of at most 64 KiB of head.
#[derive(Debug, Default)]
pub struct RequestReader {
    head: Collector,
    /// What a client must show.
    credentials: Option<Credentials>,
}

/// Reads the answer of a proxy to our CONNECT.
#[derive(Debug, Default)]
pub struct ResponseReader(Collector);

/// What the user's proxy said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectAnswer {
    Connected,
    /// 407: it wants a name and password, or others.
    NeedsLogin,
    Refused {
        status: u16,
    },
}

impl RequestReader {
    /// For a proxy that only some may use.
    pub fn for_holders_of(credentials: Credentials) -> Self {
        Self { head: Collector::default(), credentials: Some(credentials) }
    }

    pub fn feed(&mut self, bytes: &[u8]) -> ConnectProgress<ConnectRequest> {
        let Self { head, credentials } = self;
        collect(head, bytes, |lines| match credentials {
            Some(Credentials(wanted)) => match lines.only("proxy-authorization")? {
                Some(shown) if shown == wanted.as_bytes() => read_request(lines),
                _ => Ok(ConnectRequest::Stranger),
            },
            None => read_request(lines),
        })
    }
}

impl ResponseReader {
    pub fn feed(&mut self, bytes: &[u8]) -> ConnectProgress<ConnectAnswer> {
        collect(&mut self.0, bytes, read_response)
    }
}

fn collect<T>(
    head: &mut Collector,
    bytes: &[u8],
    read: impl FnOnce(&Lines<'_>) -> Result<T, &'static str>,
) -> ConnectProgress<T> {
    match head.feed(bytes) {
        Collected::NeedMore => ConnectProgress::NeedMore,
        Collected::TooLong => ConnectProgress::Broken("an HTTP head that is too long"),
        Collected::LoneCr => ConnectProgress::Broken(LONE_CR),
        Collected::Whole { used } => match Lines::read(head.bytes()).and_then(|lines| read(&lines))
        {
            Ok(value) => ConnectProgress::Done { value, used },
            Err(reason) => ConnectProgress::Broken(reason),
        },
    }
}

fn read_request(lines: &Lines<'_>) -> Result<ConnectRequest, &'static str> {
    let (method, target) = request_line(lines.first).ok_or("not an HTTP/1 request")?;
    if method == "CONNECT" {
        let endpoint = Endpoint::parse(target).ok_or("a CONNECT without a host and port")?;
        return Ok(ConnectRequest::Tunnel(endpoint));
    }
    let (place, rest) =
        absolute_form(target).ok_or("a request to the proxy itself, which serves nothing")?;
    let is_http = target.get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case("http://"));
    if !is_http {
        return Err("a request for something else than http; use CONNECT");
    }
    let (host, port) = authority(place).ok_or("a request target without a host")?;
    if host_field(lines)?.is_some_and(|(field, _)| field != host) {
        return Err("a Host field that names another host than the request target");
    }
    let endpoint = Endpoint { target: host, port: port.unwrap_or(80) };
    let head = forwarded_head(method, rest, port, &endpoint, lines);
    Ok(ConnectRequest::Forward { endpoint, head })
}

fn forwarded_head(
    method: &str,
    rest: &str,
    port: Option<u16>,
    endpoint: &Endpoint,
    lines: &Lines<'_>,
) -> Vec<u8> {
    let slash = if rest.starts_with('/') { "" } else { "/" };
    let port = port.map(|port| format!(":{port}")).unwrap_or_default();
    let mut head = format!(
        "{method} {slash}{rest} HTTP/1.1\r\nHost: {}{port}\r\nConnection: close\r\n",
        endpoint.target
    )
    .into_bytes();
    for field in &lines.fields {
        let is_ours =
            ["host", "connection", "proxy-connection", "proxy-authorization", "keep-alive"]
                .iter()
                .any(|name| field.is(name));
        if !is_ours {
            head.extend_from_slice(field.name.as_bytes());
            head.extend_from_slice(b": ");
            head.extend_from_slice(field.value);
            head.extend_from_slice(b"\r\n");
        }
    }
    head.extend_from_slice(b"\r\n");
    head
}

fn read_response(lines: &Lines<'_>) -> Result<ConnectAnswer, &'static str> {
    const NOT_HTTP: &str = "the proxy does not speak HTTP";
    let mut words = lines.first.splitn(3, ' ');
    let (version, status) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
    if !matches!(version, "HTTP/1.1" | "HTTP/1.0") || status.len() != 3 {
        return Err(NOT_HTTP);
    }
    match status.parse::<u16>().map_err(|_| NOT_HTTP)? {
        200..300 => Ok(ConnectAnswer::Connected),
        407 => Ok(ConnectAnswer::NeedsLogin),
        status @ 300..600 => Ok(ConnectAnswer::Refused { status }),
        _ => Err(NOT_HTTP),
    }
}

/// What a program that used our proxy is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply<'a> {
    /// The tunnel is open: bytes follow.
    Connected,
    /// 400, with the reason.
    Bad(&'a str),
    /// 407: it wants a name and password.
    Stranger,
    /// 403: the allowlist says no.
    Blocked(&'a str),
    /// 502: allowed, but it could not be reached.
    Unreachable(&'a str),
}

impl Reply<'_> {
    pub fn bytes(self) -> Vec<u8> {
        let (status, reason) = match self {
            Self::Connected => return b"HTTP/1.1 200 Connection established\r\n\r\n".to_vec(),
            Self::Bad(reason) => ("400 Bad Request", reason),
            Self::Stranger => (
                "407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"mcp\"",
                "this proxy is for one command only",
            ),
            Self::Blocked(reason) => ("403 Forbidden", reason),
            Self::Unreachable(reason) => ("502 Bad Gateway", reason),
        };
        let body = format!("mcp: {reason}\n");
        format!(
            "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        )
        .into_bytes()
    }
}

/// The value of a Proxy-Authorization field.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials(String);

impl Credentials {
    pub fn basic(user: &[u8], password: &[u8]) -> Self {
        Self(format!("Basic {}", STANDARD.encode([user, b":", password].concat())))
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials(..)")
    }
}

/// What we ask of the user's proxy. By name when there is one: the proxy resolves it.
pub fn connect_request(endpoint: &Endpoint, credentials: Option<&Credentials>) -> Vec<u8> {
    let login = match credentials {
        Some(Credentials(value)) => format!("Proxy-Authorization: {value}\r\n"),
        None => String::new(),
    };
    format!("CONNECT {endpoint} HTTP/1.1\r\nHost: {endpoint}\r\n{login}\r\n").into_bytes()
}

#[cfg(test)]
mod tests;
