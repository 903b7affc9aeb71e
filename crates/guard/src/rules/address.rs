//! Addresses of other machines in a command's words: URLs, `git+https://…`, `git@host:path`.

use super::matching::Words;
use super::{Rules, loopback};
use crate::value::{Field, Piece};
use crate::wildcard::matches;

/// Stands for an unknown part; no host holds it.
const UNKNOWN: char = '\u{f8ff}';

/// The parts of an address that tell whose it is.
#[derive(Debug, PartialEq, Eq)]
pub struct Address {
    pub scheme: String,
    pub host: String,
    /// A password or token stands before the host.
    pub password: bool,
}

impl Words<'_> {
    /// An address of a machine that is neither this one nor one of the well-known hosts, or one that is reached
    /// without encryption.
    pub(super) fn foreign_address(&self, rules: &Rules) -> bool {
        self.addresses().any(|address| is_foreign(&address, rules))
    }

    pub(super) fn password_in_address(&self) -> bool {
        self.addresses().any(|address| address.password)
    }

    fn addresses(&self) -> impl Iterator<Item = Address> {
        let modules = self.name() == "go";
        self.arguments().iter().filter_map(move |field| {
            let text = text_of(field);
            let plain = if modules { module(&text) } else { None };
            of(&text).or(plain)
        })
    }
}

/// Whether packages or programs from there are a stranger's.
pub fn is_foreign(address: &Address, rules: &Rules) -> bool {
    if address.scheme == "file" || loopback::is_loopback(&address.host) {
        return false;
    }
    let known = rules.class("@known-host").unwrap_or_default();
    let plain = matches!(address.scheme.as_str(), "http" | "ftp" | "git");
    plain || !known.iter().any(|entry| matches(&entry.text, &address.host))
}

fn text_of(field: &Field) -> String {
    let piece = |piece: &Piece| match piece {
        Piece::Text(text) | Piece::Glob(text) => text.clone(),
        Piece::Home => "~".to_owned(),
        _ => UNKNOWN.to_string(),
    };
    field.value.pieces.iter().map(piece).collect()
}

/// The first address in a word. None where its host is not known from the text.
pub fn of(text: &str) -> Option<Address> {
    let (scheme, rest) = match text.split_once("://") {
        Some((before, rest)) => {
            let scheme = before.rsplit(|c: char| !c.is_ascii_alphanumeric()).next()?;
            (scheme.to_ascii_lowercase(), rest)
        }
        None => (String::new(), text),
    };
    let (user, host) = if scheme.is_empty() {
        // `git@host:path`, as git and scp write it.
        let (authority, _) = rest.split_once(':')?;
        let (user, host) = authority.rsplit_once('@')?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        let plain = !user.is_empty() && user.chars().all(is_name) && host.chars().all(is_name);
        (Some(user).filter(|_| plain)?, host)
    } else {
        let end = rest.find(['/', '?', '#', '"', '\'', ' ', ',', ';', '}']).unwrap_or(rest.len());
        match rest[..end].rsplit_once('@') {
            Some((user, host)) => (user, host),
            None => ("", &rest[..end]),
        }
    };
    let host = match host.strip_prefix('[') {
        Some(inner) => inner.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    if host.is_empty() || host.contains(UNKNOWN) || host.contains(['{', '$', '<']) {
        return None;
    }
    let password = user.split_once(':').is_some_and(|(_, secret)| !secret.is_empty())
        || user.len() >= 20
        || scheme.starts_with("http") && user.contains(UNKNOWN);
    Some(Address { scheme, host, password })
}

/// `host.example/path@version`, as go names modules.
fn module(text: &str) -> Option<Address> {
    let (host, _) = text.split_once('/')?;
    let is_name = |c: char| c.is_ascii_alphanumeric() || ".-".contains(c);
    let is_host = host.contains('.')
        && !host.starts_with('.')
        && !host.starts_with('-')
        && host.chars().all(is_name);
    is_host.then(|| Address { scheme: "https".to_owned(), host: host.to_owned(), password: false })
}

#[cfg(test)]
mod tests {
    use super::{Address, of};

    #[test]
    fn hosts_and_passwords_of_addresses() {
        let address = |scheme: &str, host: &str, password| {
            Some(Address { scheme: scheme.into(), host: host.into(), password })
        };
        for (text, wanted) in [
            ("https://example.net/a", address("https", "example.net", false)),
            ("git+https://Example.net:8443/a", address("https", "example.net", false)),
            ("--index-url=http://203.0.113.1:80/x", address("http", "203.0.113.1", false)),
            ("pkg @ git+ssh://git@host.example/x", address("ssh", "host.example", false)),
            ("git@host.example:a/b.git", address("", "host.example", false)),
            ("https://u:secret@host.example/x", address("https", "host.example", true)),
            ("https://[2001:db8::1]:80/x", address("https", "2001:db8::1", false)),
            ("git::https://host.example/m", address("https", "host.example", false)),
            ("a:b", None),
            ("src/main.rs:10", None),
            ("https://", None),
            ("@scope/name", None),
            ("user@1.2.3", None),
        ] {
            assert_eq!(of(text), wanted, "{text}");
        }
    }
}
