//! The user's own proxy: which connections go through it.
//!
//! `HTTPS_PROXY` for port 443, `HTTP_PROXY` for port 80, `ALL_PROXY` for what these do not
//! cover, `NO_PROXY` for what goes direct. Both cases of each name are read, the lower one
//! first. Where `REQUEST_METHOD` is set we run under a web server, whose visitors can set
//! `HTTP_PROXY` by a `Proxy:` field: there it is not believed, as in Go. A proxy resolves names
//! itself, so what a name leads to cannot be checked then.

use std::fmt;

use super::connect::Credentials;
use super::endpoint::{Endpoint, Target, authority};
use super::socks::Auth;

mod exceptions;

use self::exceptions::Exceptions;

/// How to get to a server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Route<'a> {
    /// Connect to the server.
    Direct,
    /// Ask this proxy.
    Proxy(&'a Proxy),
}

/// The user's own proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Proxy {
    /// By CONNECT.
    Http {
        /// Its host and port.
        at: Endpoint,
        /// The name and password for it.
        credentials: Option<Credentials>,
    },
    /// By SOCKS 5.
    Socks5 {
        /// Its host and port.
        at: Endpoint,
        /// The name and password for it.
        auth: Option<Auth>,
        /// Who resolves names.
        resolved_by: ResolvedBy,
    },
}

impl Proxy {
    /// Its host and port.
    #[must_use]
    pub fn at(&self) -> &Endpoint {
        match self {
            Self::Http { at, .. } | Self::Socks5 { at, .. } => at,
        }
    }
}

/// Who resolves: `socks5h` leaves it to the proxy, `socks5` does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResolvedBy {
    /// The proxy resolves names.
    Proxy,
    /// The broker resolves names.
    Broker,
}

/// What the environment says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Upstream {
    https: Option<Proxy>,
    http: Option<Proxy>,
    all: Option<Proxy>,
    exceptions: Exceptions,
}

/// A variable that cannot be followed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BadProxy {
    /// The name of the variable.
    pub variable: &'static str,
    /// What is wrong with its value.
    pub reason: &'static str,
}

impl fmt::Display for BadProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The value may hold a password, so it is not shown.
        write!(f, "{}: {}", self.variable, self.reason)
    }
}

impl Upstream {
    /// Reads the variables through `get`, which gives the value of one.
    pub fn read(get: impl Fn(&str) -> Option<String>) -> Result<Self, BadProxy> {
        let first = |names: &[&'static str]| {
            names.iter().find_map(|name| {
                let value = get(name).filter(|value| !value.trim().is_empty())?;
                Some((*name, value))
            })
        };
        let proxy = |names: &[&'static str]| {
            let Some((variable, value)) = first(names) else { return Ok(None) };
            read_proxy(value.trim()).map(Some).map_err(|reason| BadProxy { variable, reason })
        };
        Ok(Self {
            https: proxy(&["https_proxy", "HTTPS_PROXY"])?,
            http: match get("REQUEST_METHOD") {
                Some(_) => proxy(&["http_proxy"])?,
                None => proxy(&["http_proxy", "HTTP_PROXY"])?,
            },
            all: proxy(&["all_proxy", "ALL_PROXY"])?,
            exceptions: first(&["no_proxy", "NO_PROXY"])
                .map(|(_, value)| Exceptions::read(&value))
                .unwrap_or_default(),
        })
    }

    /// Whether no proxy is set.
    #[must_use]
    pub fn is_direct(&self) -> bool {
        self.https.is_none() && self.http.is_none() && self.all.is_none()
    }

    /// Ports other than 80 and 443 go by `ALL_PROXY` or, without it, by `HTTPS_PROXY`, whose
    /// proxy does CONNECT: on such a network there is mostly no other way out.
    pub fn route(&self, to: &Endpoint) -> Route<'_> {
        if is_here(to) || self.exceptions.cover(to) {
            return Route::Direct;
        }
        let proxy = match to.port {
            80 => self.http.as_ref().or(self.all.as_ref()),
            443 => self.https.as_ref().or(self.all.as_ref()),
            _ => self.all.as_ref().or(self.https.as_ref()),
        };
        proxy.map_or(Route::Direct, Route::Proxy)
    }
}

/// The host's own loopback is never asked of a proxy: there it would be the proxy's own.
fn is_here(to: &Endpoint) -> bool {
    match &to.target {
        Target::Ip(ip) => ip.is_loopback(),
        Target::Name(name) => name.labels().next_back() == Some("localhost"),
    }
}

fn read_proxy(value: &str) -> Result<Proxy, &'static str> {
    let (scheme, rest) = value.split_once("://").unwrap_or(("http", value));
    let rest = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    let (login, place) = match rest.rsplit_once('@') {
        Some((login, place)) => (Some(login), place),
        None => (None, rest),
    };
    let (target, port) = authority(place).ok_or("the proxy's host and port cannot be read")?;
    let at = |default| Endpoint { target: target.clone(), port: port.unwrap_or(default) };
    let login = login.map(read_login).transpose()?;
    match scheme.to_ascii_lowercase().as_str() {
        "http" => Ok(Proxy::Http {
            at: at(80),
            credentials: login.map(|(user, password)| Credentials::basic(&user, &password)),
        }),
        scheme @ ("socks5" | "socks5h" | "socks") => {
            let auth = match login {
                None => None,
                Some((user, password)) => Some(
                    Auth::new(&user, &password)
                        .ok_or("a SOCKS proxy's user name and password have 1 to 255 bytes each")?,
                ),
            };
            let resolved_by =
                if scheme == "socks5" { ResolvedBy::Broker } else { ResolvedBy::Proxy };
            Ok(Proxy::Socks5 { at: at(1080), auth, resolved_by })
        }
        "https" => Err("proxies that are spoken to over TLS are not supported; \
                        an http:// proxy carries https connections just as well"),
        "socks4" | "socks4a" => Err("SOCKS 4 proxies are not supported; most speak socks5h:// too"),
        _ => Err("the proxy's URL must begin with http://, socks5:// or socks5h://"),
    }
}

type UserAndPassword = (Vec<u8>, Vec<u8>);

fn read_login(text: &str) -> Result<UserAndPassword, &'static str> {
    let (user, password) = text.split_once(':').unwrap_or((text, ""));
    let decode = |text| percent_decoded(text).ok_or("the proxy's user name cannot be read");
    let (user, password) = (decode(user)?, decode(password)?);
    // In a header field they would be the end of it, and a colon the end of the user name.
    if user.contains(&b':') || user.iter().chain(&password).any(u8::is_ascii_control) {
        return Err("the proxy's user name or password has a character that cannot be sent");
    }
    Ok((user, password))
}

fn percent_decoded(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|d| u8::try_from(d).ok());
        let (high, low) = (digit(rest.next()?)?, digit(rest.next()?)?);
        bytes.push(high << 4 | low);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests;
