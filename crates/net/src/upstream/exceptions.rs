//! `NO_PROXY`: a list, by commas or spaces, of what goes direct. There is no standard; this
//! is what curl and Go agree on, by label.

use std::net::IpAddr;

use mcp_policy::{HostName, NetRule};

use super::{Endpoint, Target, authority};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Exceptions(Vec<Exception>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Exception {
    what: What,
    /// `None`: every port.
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum What {
    Everything,
    /// The name and what is below it; `.name` and `*.name` are below it only in Go, and the
    /// same as `name` in curl: taken as curl does.
    Name(HostName),
    Addresses(NetRule),
}

impl Exceptions {
    /// Entries that cannot be read are skipped, as everybody does.
    pub fn read(text: &str) -> Self {
        let words = text.split(|c: char| c == ',' || c.is_ascii_whitespace());
        Self(words.filter(|word| !word.is_empty()).filter_map(exception).collect())
    }

    pub fn cover(&self, to: &Endpoint) -> bool {
        self.0.iter().any(|exception| {
            exception.port.is_none_or(|port| port == to.port)
                && match (&exception.what, &to.target) {
                    (What::Everything, _) => true,
                    (What::Name(parent), Target::Name(name)) => is_at_or_below(name, parent),
                    (What::Addresses(rule), Target::Ip(ip)) => rule.matches_ip(*ip),
                    _ => false,
                }
        })
    }
}

fn is_at_or_below(name: &HostName, parent: &HostName) -> bool {
    let mut mine = name.labels().rev();
    parent.labels().rev().all(|label| mine.next() == Some(label))
}

fn exception(word: &str) -> Option<Exception> {
    if word == "*" {
        return Some(Exception { what: What::Everything, port: None });
    }
    let addresses = |text: &str| {
        let is_v6 = text.contains(':');
        // The rule grammar knows networks; its ports do not matter here.
        let rule = if is_v6 { format!("[{text}]") } else { text.to_owned() };
        rule.parse::<NetRule>().ok().map(What::Addresses)
    };
    let bare = word.strip_prefix('[').and_then(|inside| inside.strip_suffix(']')).unwrap_or(word);
    let ip = bare.split('/').next().unwrap_or(bare);
    if ip.parse::<IpAddr>().is_ok() {
        return Some(Exception { what: addresses(bare)?, port: None });
    }
    let word = word.strip_prefix("*.").or_else(|| word.strip_prefix('.')).unwrap_or(word);
    let (target, port) = authority(word)?;
    let what = match target {
        Target::Name(name) => What::Name(name),
        Target::Ip(ip) => addresses(&ip.to_string())?,
    };
    Some(Exception { what, port })
}
