//! One request at a time: retries, waits as told, redirects that do not carry credentials away.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::time::Duration;

use ureq::http::Uri;
use ureq::http::header::{HeaderMap, LOCATION, RETRY_AFTER};
use ureq::tls::TlsConfig;
use ureq::unversioned::transport::DefaultConnector;
use ureq::{Agent, Body};

use super::names::{BoundedResolver, Lookup};
use super::root_certificates;
use crate::digest::{Digest, Hashing};
use crate::error::{Error, Kind, Result};
use crate::public_hosts::{IsPublic, may_be_named};

/// How often, and how long after one another.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Retry {
    /// How often a request is made, at most.
    pub attempts: u32,
    /// Doubled from time to time.
    pub first: Duration,
    /// A server that wants more patience than this is not waited for.
    pub longest: Duration,
}

impl Retry {
    /// What `mcp` does.
    pub const DEFAULT: Retry =
        Retry { attempts: 5, first: Duration::from_millis(300), longest: Duration::from_secs(60) };

    pub(super) fn pause(&self, attempt: u32, asked: Option<Duration>) {
        let own = self.first.saturating_mul(1 << attempt.min(8));
        std::thread::sleep(asked.unwrap_or(own).min(self.longest));
    }
}

const MOST_REDIRECTS: usize = 5;

/// HTTP for registries: https, bounded, and without surprises by redirects.
#[derive(Clone)]
#[non_exhaustive]
pub struct Http {
    agent: Agent,
    /// For addresses that metadata names.
    only: Option<IsPublic>,
    /// How a failed request is repeated.
    pub retry: Retry,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Get,
    Head,
    Post,
    Put,
}

pub(super) enum Payload<'a> {
    Nothing,
    Bytes(std::borrow::Cow<'a, [u8]>),
    File(&'a Path, u64),
}

pub(super) struct Request<'a> {
    pub method: Method,
    pub url: String,
    pub headers: Vec<(&'static str, String)>,
    pub authorization: Option<String>,
    pub payload: Payload<'a>,
    pub redirects: Redirects,
}

/// Where an answer may come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Redirects {
    /// From anywhere; credentials stay behind. For blobs, which a digest vouches for.
    Anywhere,
    /// From the origin that was asked: another one's answer is refused.
    SameOrigin,
}

impl Request<'_> {
    pub fn get(url: impl Into<String>) -> Request<'static> {
        Request {
            method: Method::Get,
            url: url.into(),
            headers: Vec::new(),
            authorization: None,
            payload: Payload::Nothing,
            redirects: Redirects::Anywhere,
        }
    }
}

pub(super) struct Response {
    pub status: u16,
    pub headers: HeaderMap,
    /// Who answered in the end: not always who was asked.
    pub url: String,
    /// Whether every redirect on the way stayed at the origin that was asked.
    pub has_stayed: bool,
    body: Body,
}

impl Response {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    pub fn bytes(self, most: u64) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut reader = self.body.into_reader().take(most + 1);
        reader
            .read_to_end(&mut bytes)
            .map_err(|e| Error::network(format!("the answer broke off: {e}")))?;
        if bytes.len() as u64 > most {
            return Err(Error::network(format!("the answer is larger than {most} bytes")));
        }
        Ok(bytes)
    }

    pub fn reader(self) -> impl Read {
        self.body.into_reader()
    }

    pub fn length(&self) -> Option<u64> {
        self.header("content-length")?.parse().ok()
    }
}

impl Http {
    /// A client that resolves names with `lookup`.
    pub fn new(lookup: Lookup) -> Http {
        Http::reaching(lookup, None)
    }

    /// For addresses that metadata names: only what is public is connected to, by any way that leads there.
    pub fn public_only(lookup: Lookup, is_public: IsPublic) -> Http {
        Http::reaching(lookup, Some(is_public))
    }

    fn reaching(lookup: Lookup, only: Option<IsPublic>) -> Http {
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .tls_config(TlsConfig::builder().root_certs(root_certificates::system()).build())
            .user_agent(concat!("mcp/", env!("CARGO_PKG_VERSION")))
            .timeout_connect(Some(Duration::from_secs(15)))
            .timeout_recv_response(Some(Duration::from_secs(60)))
            .timeout_per_read(Some(Duration::from_secs(60)))
            .build();
        let agent = Agent::with_parts(
            config,
            DefaultConnector::default(),
            BoundedResolver { lookup, only },
        );
        Http { agent, only, retry: Retry::DEFAULT }
    }

    /// The answer, whatever its status; 429 and 5xx only after the last attempt.
    pub(super) fn send(&self, request: &Request<'_>) -> Result<Response> {
        let mut attempt = 0;
        loop {
            let outcome = self.follow(request);
            attempt += 1;
            let asked = match &outcome {
                Ok(response) if [429, 500, 502, 503, 504].contains(&response.status) => {
                    retry_after(&response.headers)
                }
                Err(error) if error.kind() == Kind::Network => None,
                _ => return outcome,
            };
            // A request that changes something is repeated only when it was refused as such.
            let is_safe = request.method != Method::Post || outcome.is_ok();
            if attempt >= self.retry.attempts
                || !is_safe
                || asked.is_some_and(|asked| asked > self.retry.longest)
            {
                return outcome;
            }
            self.retry.pause(attempt - 1, asked);
        }
    }

    /// A file from anywhere, by its digest: that is what is trusted, not the place.
    pub fn download(
        &self,
        url: &str,
        sha256: &Digest,
        most: u64,
        to: &Path,
        meter: super::Meter<'_>,
    ) -> Result<()> {
        let response = self.send(&Request::get(url))?;
        if response.status != 200 {
            return Err(Error::network(format!(
                "{} answers {}",
                without_query(url),
                response.status
            )));
        }
        let total = response.length().unwrap_or(0);
        let failed = |e: std::io::Error| Error::io("write", to, &e);
        let mut file = Hashing::new(File::create(to).map_err(failed)?);
        let mut reader = response.reader().take(most + 1);
        let mut buffer = vec![0; 64 << 10];
        let mut done = 0;
        loop {
            let read = reader
                .read(&mut buffer)
                .map_err(|e| Error::network(format!("the download broke off: {e}")))?;
            if read == 0 {
                break;
            }
            done += read as u64;
            if done > most {
                return Err(Error::package(format!(
                    "{} is larger than {most} bytes",
                    without_query(url)
                )));
            }
            file.write_all(&buffer[..read]).map_err(failed)?;
            meter(done, total);
        }
        let found = file.finish().1;
        if found == *sha256 {
            Ok(())
        } else {
            Err(Error::digest(without_query(url), sha256, found))
        }
    }

    /// A page of an index, with its token; nothing where it is not there.
    pub fn page(
        &self,
        url: &str,
        authorization: Option<String>,
        most: u64,
    ) -> Result<Option<Vec<u8>>> {
        let mut request = Request::get(url);
        request.authorization = authorization;
        let response = self.send(&request)?;
        match response.status {
            200 => response.bytes(most).map(Some),
            404 => Ok(None),
            status => Err(Error::network(format!("{} answers {status}", shown(url)))),
        }
    }

    fn follow(&self, request: &Request<'_>) -> Result<Response> {
        let mut url = request.url.clone();
        let mut authorization = request.authorization.as_deref();
        let mut has_stayed = true;
        for _ in 0..=MOST_REDIRECTS {
            let response = Response { has_stayed, ..self.once(request, &url, authorization)? };
            let is_redirect = [301, 302, 303, 307, 308].contains(&response.status);
            let may_follow = matches!(request.method, Method::Get | Method::Head);
            if !is_redirect || !may_follow {
                return Ok(response);
            }
            let to =
                response.headers.get(LOCATION).and_then(|to| to.to_str().ok()).ok_or_else(
                    || Error::network(format!("{} redirects to nowhere", shown(&url))),
                )?;
            (url, authorization) = hop(&url, to, authorization)?;
            has_stayed = has_stayed && is_same_origin(&request.url, &url);
            if !has_stayed && request.redirects == Redirects::SameOrigin {
                return Err(Error::network(format!(
                    "{} redirects to another server, {}, which is not asked",
                    shown(&request.url),
                    shown(&url)
                )));
            }
        }
        Err(Error::network(format!("{} redirects without end", shown(&request.url))))
    }

    fn once(
        &self,
        request: &Request<'_>,
        url: &str,
        authorization: Option<&str>,
    ) -> Result<Response> {
        let host = || parsed(url).and_then(|uri| uri.host().map(str::to_owned)).unwrap_or_default();
        if self.only.is_some_and(|is_public| !may_be_named(&host(), is_public)) {
            return Err(Error::package(format!("{} is not a public address", shown(url))));
        }
        let failed = |e: ureq::Error| {
            let error = Error::network(format!("{}: {e}", shown(url)));
            match e {
                ureq::Error::Tls(_) | ureq::Error::Rustls(_) => {
                    error.hinted("is its certificate known here? SSL_CERT_FILE names further roots")
                }
                _ => error,
            }
        };
        let mut headers: Vec<(&str, &str)> =
            request.headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        headers.extend(authorization.map(|value| ("authorization", value)));
        let sent = match (request.method, &request.payload) {
            (Method::Get | Method::Head, _) => {
                let mut builder = if request.method == Method::Get {
                    self.agent.get(url)
                } else {
                    self.agent.head(url)
                };
                for (name, value) in headers {
                    builder = builder.header(name, value);
                }
                builder.call()
            }
            (method, payload) => {
                let mut builder =
                    if method == Method::Post { self.agent.post(url) } else { self.agent.put(url) };
                for (name, value) in headers {
                    builder = builder.header(name, value);
                }
                match payload {
                    Payload::Nothing => builder.send_empty(),
                    Payload::Bytes(bytes) => builder.send(bytes.as_ref()),
                    Payload::File(path, length) => {
                        let file = mcp_files::open(path, mcp_files::Links::Follow)
                            .map_err(|e| Error::io("read", path, &e))?;
                        builder.header("content-length", length.to_string()).send(file)
                    }
                }
            }
        };
        let (parts, body) = sent.map_err(failed)?.into_parts();
        let (status, url) = (parts.status.as_u16(), url.to_owned());
        Ok(Response { status, headers: parts.headers, url, has_stayed: true, body })
    }
}

/// Where a redirect leads, and what may be shown there.
pub(super) fn hop<'a>(
    from: &str,
    to: &str,
    authorization: Option<&'a str>,
) -> Result<(String, Option<&'a str>)> {
    let next = join(from, to)?;
    if scheme(from) == "https" && scheme(&next) != "https" {
        return Err(Error::network(format!("{} redirects away from https", shown(from))));
    }
    let is_same = is_same_origin(from, &next);
    Ok((next, authorization.filter(|_| is_same)))
}

/// In seconds; a date is taken for "later".
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?;
    Some(Duration::from_secs(text.trim().parse().unwrap_or(5)))
}

fn parsed(url: &str) -> Option<Uri> {
    url.parse().ok()
}

pub(super) fn scheme(url: &str) -> String {
    parsed(url).and_then(|uri| uri.scheme_str().map(str::to_owned)).unwrap_or_default()
}

/// Scheme, host and port: what credentials belong to.
pub(super) fn origin(url: &str) -> Option<(String, String, u16)> {
    let uri = parsed(url)?;
    let scheme = uri.scheme_str()?.to_ascii_lowercase();
    let port = uri.port_u16().unwrap_or(if scheme == "https" { 443 } else { 80 });
    Some((scheme, uri.host()?.to_ascii_lowercase(), port))
}

/// Two addresses that are no addresses have no origin, and so not the same.
pub(super) fn is_same_origin(a: &str, b: &str) -> bool {
    origin(a).is_some_and(|origin_of_a| origin(b) == Some(origin_of_a))
}

/// A user or password before the host. One that a server puts into an address is not ours to send.
pub(super) fn has_userinfo(url: &str) -> bool {
    parsed(url).and_then(|uri| uri.authority().map(|host| host.as_str().contains('@')))
        == Some(true)
}

/// Where a Location leads: absolute, or from the root of the same server.
pub(super) fn join(base: &str, to: &str) -> Result<String> {
    let wrong = || Error::network(format!("{} answers with an invalid address", shown(base)));
    let checked = |url: String| match origin(&url) {
        Some(_) if !has_userinfo(&url) => Ok(url),
        _ => Err(wrong()),
    };
    if to.starts_with("http://") || to.starts_with("https://") {
        return checked(to.to_owned());
    }
    let uri = parsed(base).ok_or_else(wrong)?;
    let (scheme, authority) =
        (uri.scheme_str().ok_or_else(wrong)?, uri.authority().ok_or_else(wrong)?);
    if to.starts_with("//") {
        return checked(format!("{scheme}:{to}"));
    }
    match to.starts_with('/') {
        true => Ok(format!("{scheme}://{authority}{to}")),
        false => Err(wrong()),
    }
}

/// Without what may be a secret: user and password before the host, and the query.
pub(crate) fn shown(url: &str) -> String {
    let url = without_query(url);
    match (url.split_once("://"), url.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, rest))) => format!("{scheme}://{rest}"),
        _ => url.to_owned(),
    }
}

/// A query may hold a signature or token: it is not for messages.
pub(super) fn without_query(url: &str) -> &str {
    url.split(['?', '#']).next().unwrap_or(url)
}
