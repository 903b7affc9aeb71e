//! The first request on a connection that is not encrypted: which host it says it wants.
//!
//! A help, not a boundary: only the first request is looked at, and a server may take the
//! second one on the same connection for another host. HTTP/2 without TLS is not read at all.

use super::endpoint::{self, Target};
use super::head::{Collected, Collector, LONE_CR, Lines, is_token};

const MAX_METHOD: usize = 32;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HttpProgress {
    NeedMore,
    NotHttp,
    Head(Head),
    /// It begins as HTTP and cannot be judged: to be closed, with this reason.
    Broken(&'static str),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    pub method: String,
    pub target: String,
    /// From the target when it names one, else from the Host field; when both do they agree.
    pub host: Option<Target>,
    pub port: Option<u16>,
}

/// Reads a request's head, of at most 64 KiB. Does not keep the bytes for the server: the
/// caller does.
#[derive(Debug, Default)]
pub struct HttpReader {
    head: Collector,
    first_line: FirstLine,
    end: Option<HttpProgress>,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum FirstLine {
    #[default]
    Unread,
    IsRequest,
}

impl HttpReader {
    /// Takes the next bytes of the stream. After an answer other than `NeedMore` it stays.
    pub fn feed(&mut self, bytes: &[u8]) -> HttpProgress {
        if self.end.is_none() {
            self.end = self.advance(bytes);
            if self.end.is_some() {
                self.head = Collector::default();
            }
        }
        self.end.clone().unwrap_or(HttpProgress::NeedMore)
    }

    /// Whether a whole first line was seen and is a request's.
    pub fn is_request(&self) -> bool {
        self.first_line == FirstLine::IsRequest
    }

    fn advance(&mut self, bytes: &[u8]) -> Option<HttpProgress> {
        let collected = self.head.feed(bytes);
        if collected == Collected::LoneCr {
            return Some(HttpProgress::Broken(LONE_CR));
        }
        if self.first_line == FirstLine::Unread {
            // Decided as early as can be: other languages wait for an answer to a line.
            match self.head.first_line() {
                None if may_be_request(self.head.bytes()) => {}
                Some(line) if is_request(line) => self.first_line = FirstLine::IsRequest,
                _ => return Some(HttpProgress::NotHttp),
            }
        }
        match collected {
            Collected::NeedMore => None,
            Collected::TooLong => Some(HttpProgress::Broken("an HTTP head that is too long")),
            Collected::LoneCr => Some(HttpProgress::Broken(LONE_CR)),
            Collected::Whole { .. } => Some(match Lines::read(self.head.bytes()) {
                Ok(lines) => read_head(&lines),
                Err(reason) => HttpProgress::Broken(reason),
            }),
        }
    }
}

/// Whether these bytes begin with a method, or could when more come.
fn may_be_request(bytes: &[u8]) -> bool {
    let word = bytes.get(..=MAX_METHOD).unwrap_or(bytes);
    match word.iter().position(|byte| !is_token(*byte)) {
        Some(end) => end > 0 && word.get(end) == Some(&b' '),
        None => word.len() <= MAX_METHOD,
    }
}

/// Whether a first line ends as a request's does. What is wrong before that end is for
/// [`Lines::read`] to say.
fn is_request(line: &[u8]) -> bool {
    may_be_request(line) && (line.ends_with(b" HTTP/1.1") || line.ends_with(b" HTTP/1.0"))
}

fn read_head(lines: &Lines<'_>) -> HttpProgress {
    let Some((method, target)) = request_line(lines.first) else {
        return HttpProgress::Broken("a malformed HTTP request line");
    };
    match host_of(method, target, lines) {
        Ok((host, port)) => HttpProgress::Head(Head {
            method: method.to_owned(),
            target: target.to_owned(),
            host,
            port,
        }),
        Err(reason) => HttpProgress::Broken(reason),
    }
}

/// The method and the target of a request of HTTP/1.0 or 1.1.
pub(super) fn request_line(line: &str) -> Option<(&str, &str)> {
    let mut words = line.split(' ');
    let (method, target, version) = (words.next()?, words.next()?, words.next()?);
    let is_method = (1..=MAX_METHOD).contains(&method.len()) && method.bytes().all(is_token);
    let is_version = matches!(version, "HTTP/1.1" | "HTTP/1.0");
    let is_whole = words.next().is_none() && is_method && !target.is_empty() && is_version;
    is_whole.then_some((method, target))
}

type Place = (Option<Target>, Option<u16>);

fn host_of(method: &str, target: &str, lines: &Lines<'_>) -> Result<Place, &'static str> {
    let in_field = host_field(lines)?;
    let in_target = if method == "CONNECT" {
        Some(endpoint::authority(target).ok_or("a CONNECT to what is not a host")?)
    } else {
        match absolute_form(target) {
            Some((authority, _)) => {
                Some(endpoint::authority(authority).ok_or("a request target without a host")?)
            }
            None => None,
        }
    };
    match (in_target, in_field) {
        (Some((target, _)), Some((field, _))) if target != field => {
            Err("a Host field that names another host than the request target")
        }
        (Some((host, port)), _) | (None, Some((host, port))) => Ok((Some(host), port)),
        (None, None) => Ok((None, None)),
    }
}

/// `None` when there is no Host field or an empty one, which is allowed.
pub(super) fn host_field(lines: &Lines<'_>) -> Result<Option<(Target, Option<u16>)>, &'static str> {
    match lines.only("host")? {
        None | Some([]) => Ok(None),
        Some(value) => str::from_utf8(value)
            .ok()
            .and_then(endpoint::authority)
            .map(Some)
            .ok_or("a Host field that is not a host"),
    }
}

/// Splits `http://authority/path` into the authority and the rest. User names stay in the
/// authority, where no program accepts them.
pub(super) fn absolute_form(target: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = target.split_once("://")?;
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b));
    let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
    is_scheme.then(|| rest.split_at(end))
}

#[cfg(test)]
mod tests;
