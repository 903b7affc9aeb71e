//! A package index: where it is, and who we are to it.

use ureq::http::Uri;

use crate::error::{Error, Result};

/// An index as a person configured it.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Index {
    /// With a slash at the end; credentials in it are part of it, so it is never shown.
    pub url: String,
    /// A token that is sent to it alone.
    pub token: Option<String>,
}

impl std::fmt::Debug for Index {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("<index>")
    }
}

impl Index {
    /// Reads the address of an index: http or https, with a host.
    pub fn new(url: &str) -> Result<Index> {
        let url = format!("{}/", url.trim().trim_end_matches('/'));
        let wrong = || {
            Error::machine(
                "the configured index is not an http address",
                "look into npm's or pip's configuration",
            )
        };
        let uri: Uri = url.parse().map_err(|_| wrong())?;
        match (uri.scheme_str(), uri.host()) {
            (Some("https" | "http"), Some(_)) => Ok(Index { url, token: None }),
            _ => Err(wrong()),
        }
    }

    fn uri(&self) -> Option<Uri> {
        self.url.parse().ok()
    }

    /// The host in the address.
    #[must_use]
    pub fn host(&self) -> String {
        self.uri().and_then(|uri| uri.host().map(str::to_owned)).unwrap_or_default()
    }

    /// The port in the address, or the scheme's own.
    pub fn port(&self) -> u16 {
        let uri = self.uri();
        let is_https = uri.as_ref().and_then(Uri::scheme_str) == Some("https");
        uri.and_then(|uri| uri.port_u16()).unwrap_or(if is_https { 443 } else { 80 })
    }

    /// Where it is, for people and for the store: without what may be a secret.
    #[must_use]
    pub fn place(&self) -> String {
        crate::registry::shown(&self.url)
    }

    /// `//host/path/`: what npm calls its credentials by.
    #[must_use]
    pub fn npm_key(&self) -> String {
        self.url.split_once(':').map_or("", |(_, rest)| rest).to_owned()
    }

    /// Whether the address or a token has credentials.
    #[must_use]
    pub fn has_credentials(&self) -> bool {
        self.token.is_some()
            || self
                .uri()
                .and_then(|uri| uri.authority().map(|a| a.as_str().contains('@')))
                .unwrap_or(false)
    }
}

/// The network rule for a host and port.
#[must_use]
pub fn rule(host: &str, port: u16) -> String {
    match host.contains(':') && !host.starts_with('[') {
        true => format!("[{host}]:{port}"),
        false => format!("{host}:{port}"),
    }
}

/// The hosts that files of a page of the simple index are on, with their ports; both its forms.
#[must_use]
pub fn hosts_in_simple_page(page: &str) -> Vec<(String, u16)> {
    let mut hosts = Vec::new();
    for (at, _) in page.match_indices("https://") {
        let rest = &page[at..];
        let end = rest.find(['"', '\'', '<', '>', '#', ' ', '\n']).unwrap_or(rest.len());
        let Ok(uri) = rest[..end].parse::<Uri>() else {
            continue;
        };
        let path = uri.path();
        // Files only: a page may link to anything else as well.
        if ![".whl", ".tar.gz", ".zip"].iter().any(|kind| path.ends_with(kind)) {
            continue;
        }
        if let Some(host) = uri.host() {
            let found = (host.to_owned(), uri.port_u16().unwrap_or(443));
            if !hosts.contains(&found) {
                hosts.push(found);
            }
        }
    }
    hosts.truncate(8);
    hosts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_is_taken_apart_and_never_shown() {
        let index = Index::new("https://user:hunter2@pypi.example:8443/simple").unwrap();
        assert_eq!((index.host().as_str(), index.port()), ("pypi.example", 8443));
        assert!(index.has_credentials());
        assert!(!format!("{index:?}").contains("hunter2"));
        assert_eq!(index.place(), "https://pypi.example:8443/simple/");
        assert_eq!(Index::new("https://r.example/npm").unwrap().npm_key(), "//r.example/npm/");
        assert!(Index::new("ftp://x/").is_err() && Index::new("nonsense").is_err());
    }

    #[test]
    fn file_hosts_are_those_of_files() {
        let page = r#"<a href="https://files.example/a/b-1.0-py3-none-any.whl#sha256=1">x</a>
            {"url": "https://other.example:444/c-1.0.tar.gz"} <a href="https://evil.example/page.html">y</a>"#;
        assert_eq!(
            hosts_in_simple_page(page),
            [("files.example".to_owned(), 443), ("other.example".to_owned(), 444)]
        );
    }
}
