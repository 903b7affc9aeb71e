//! The host part of a network rule: a name, by label, or an address or network.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use crate::ValueError;

/// A host name in its one spelling: lower case, ASCII, no trailing dot.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostName(String);

/// Whether a name stands for itself or for everything below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Wildcard {
    /// The name alone.
    Exact,
    /// `*.name`: any number of labels more, but not the name itself.
    AnySubdomain,
}

/// What a rule is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Host {
    /// A name, or all names below it.
    Name {
        /// The name.
        name: HostName,
        /// Whether names below it are meant.
        wildcard: Wildcard,
    },
    /// One address.
    Address(IpAddr),
    /// All host bits of `ip` are zero, and `prefix` is shorter than an address.
    Network {
        /// Its first address.
        ip: IpAddr,
        /// How many bits all its addresses share.
        prefix: u8,
    },
    /// `public`: every address of the internet, and every name that leads to one. Which addresses these are, the
    /// enforcing side judges.
    Public,
}

/// Endings of names that mean something in the local network alone, or nothing anywhere (RFC 6761, 6762, 7686, 8375, 9476
/// and what routers hand out). Asking for one would tell the neighbours.
const LOCAL_ENDINGS: [&str; 14] = [
    "localhost",
    "local",
    "internal",
    "home.arpa",
    "localdomain",
    "lan",
    "home",
    "corp",
    "intranet",
    "private",
    "mail",
    "onion",
    "alt",
    "invalid",
];

impl HostName {
    /// The name, in lower case and without a dot at the end.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The parts between the dots.
    pub fn labels(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.split('.')
    }

    /// Whether a name server of the internet could know it: it has more than one label, and no ending of a local
    /// network's.
    pub fn is_of_the_internet(&self) -> bool {
        let has = |ending: &str| {
            self.0.strip_suffix(ending).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        self.0.contains('.') && !LOCAL_ENDINGS.iter().any(|ending| has(ending))
    }

    /// Whether this name is below `parent`, with at least one label more.
    fn is_below(&self, parent: &Self) -> bool {
        self.0.strip_suffix(parent.as_str()).is_some_and(|rest| rest.ends_with('.'))
    }
}

impl FromStr for HostName {
    type Err = ValueError;

    fn from_str(value: &str) -> Result<Self, ValueError> {
        let name = value.strip_suffix('.').unwrap_or(value);
        if name.is_empty() {
            return Err(ValueError::new(0..value.len(), "empty host name", NAME_HINT));
        }
        if let Some((at, c)) = value.char_indices().find(|(_, c)| !is_label_char(*c) && *c != '.') {
            return Err(bad_character(at, c));
        }
        if name.len() > 253 {
            let message = "host name is longer than 253 characters";
            return Err(ValueError::new(0..value.len(), message, NAME_HINT));
        }
        let mut at = 0;
        for label in name.split('.') {
            check_label(label).map_err(|error| error.shifted(at))?;
            at += label.len() + 1;
        }
        let name = name.to_ascii_lowercase();
        if looks_like_an_address(&name) {
            return Err(ValueError::new(
                0..value.len(),
                "this is neither a host name nor an address",
                "an IPv4 address has four numbers from 0 to 255, like 127.0.0.1",
            ));
        }
        Ok(Self(name))
    }
}

/// For those who look for a word that means every host.
pub(crate) const EVERY_HOST_HINT: &str = "write public for every public address and name (nothing private, and nothing of this machine's own networks), \
     *.example.com for all names below one, or open everything with --network host (network = \"host\")";

const NAME_HINT: &str = "write a name such as api.example.com";

fn is_label_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-' || c == '_'
}

fn bad_character(at: usize, c: char) -> ValueError {
    let span = at..at + c.len_utf8();
    let (message, hint) = match c {
        '*' => (
            "\"*\" can only stand for the first labels of a name".to_owned(),
            "write *.example.com for every name below example.com",
        ),
        '@' => (
            "user names are not part of a network rule".to_owned(),
            "write the host and port only, such as api.example.com:443",
        ),
        '/' => (
            "paths cannot be restricted, only hosts and ports".to_owned(),
            "write the host and port only, such as api.example.com:443",
        ),
        c if c.is_control() || c.is_whitespace() => {
            (format!("character {} cannot be in a host name", c.escape_unicode()), "remove it")
        }
        c if !c.is_ascii() => (
            "this character has more than one spelling in DNS".to_owned(),
            "write the xn-- form of the name",
        ),
        c => (format!("character {c:?} cannot be in a host name"), NAME_HINT),
    };
    ValueError::new(span, message, hint)
}

fn check_label(label: &str) -> Result<(), ValueError> {
    let message = if label.is_empty() {
        "empty label in host name"
    } else if label.len() > 63 {
        "a label of a host name has at most 63 characters"
    } else if label.starts_with('-') || label.ends_with('-') {
        "a label of a host name cannot begin or end with \"-\""
    } else {
        return Ok(());
    };
    Err(ValueError::new(0..label.len(), message, NAME_HINT))
}

/// Resolvers take `127.1`, `0x7f.1` and `2130706433` for addresses; a rule must mean the
/// same to everybody, so a name whose last label is a number is not a name.
fn looks_like_an_address(name: &str) -> bool {
    let last = name.rsplit('.').next().unwrap_or(name);
    last.bytes().all(|b| b.is_ascii_digit())
        || last.strip_prefix("0x").is_some_and(|hex| hex.bytes().all(|b| b.is_ascii_hexdigit()))
}

impl Host {
    /// Reads a name, `*.name`, an IPv4 address or an IPv4 network. IPv6 is in brackets and
    /// comes through [`Host::parse_ip`].
    pub(crate) fn parse(text: &str) -> Result<Self, ValueError> {
        if text == "*" {
            return Err(ValueError::new(
                0..1,
                "\"*\" alone would allow every host",
                EVERY_HOST_HINT,
            ));
        }
        if text.eq_ignore_ascii_case("public") {
            return Ok(Self::Public);
        }
        if let Some(name) = text.strip_prefix("*.") {
            let name = name.parse::<HostName>().map_err(|error: ValueError| error.shifted(2))?;
            return Ok(Self::Name { name, wildcard: Wildcard::AnySubdomain });
        }
        let address = text.split_once('/').map_or(text, |(address, _)| address);
        if address.parse::<IpAddr>().is_ok() {
            return Self::parse_ip(text);
        }
        Ok(Self::Name { name: HostName::from_str(text)?, wildcard: Wildcard::Exact })
    }

    /// Reads an address, or a network with its prefix length.
    pub(crate) fn parse_ip(text: &str) -> Result<Self, ValueError> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let ip: IpAddr = address.parse().map_err(|_| {
            ValueError::new(
                0..address.len(),
                "not an address",
                "write [2001:db8::1]:443 or 192.0.2.1:443",
            )
        })?;
        let Some(prefix) = prefix else {
            return Ok(Self::Address(ip.to_canonical()));
        };
        let width = if ip.is_ipv4() { 32 } else { 128 };
        let at = address.len() + 1;
        let is_number = !prefix.is_empty() && prefix.bytes().all(|b| b.is_ascii_digit());
        let prefix =
            prefix.parse::<u8>().ok().filter(|prefix| is_number && *prefix <= width).ok_or_else(
                || {
                    ValueError::new(
                        at..text.len(),
                        "not a prefix length",
                        format!("write a number from 0 to {width}"),
                    )
                },
            )?;
        let network = masked(ip, prefix);
        if network != ip {
            return Err(ValueError::new(
                0..text.len(),
                "this network has host bits set",
                format!("write {network}/{prefix}, or the address without a prefix"),
            ));
        }
        Ok(Self::network(ip, prefix))
    }

    /// One form for each set of addresses: IPv4 written as IPv6 becomes IPv4, and a network
    /// of one address that address.
    fn network(ip: IpAddr, prefix: u8) -> Self {
        match (ip, ip.to_canonical()) {
            (IpAddr::V6(_), mapped @ IpAddr::V4(_)) if prefix >= 96 => {
                Self::network(mapped, prefix - 96)
            }
            (IpAddr::V4(_), _) if prefix == 32 => Self::Address(ip),
            (IpAddr::V6(_), _) if prefix == 128 => Self::Address(ip),
            _ => Self::Network { ip, prefix },
        }
    }

    pub(crate) fn matches_name(&self, candidate: &HostName) -> bool {
        match self {
            Self::Name { name, wildcard: Wildcard::Exact } => candidate == name,
            Self::Name { name, wildcard: Wildcard::AnySubdomain } => candidate.is_below(name),
            Self::Public => candidate.is_of_the_internet(),
            Self::Address(_) | Self::Network { .. } => false,
        }
    }

    /// Whether this very address is meant. `public` means none by its number: which ones are public depends on the host.
    pub(crate) fn contains(&self, candidate: IpAddr) -> bool {
        let candidate = candidate.to_canonical();
        match self {
            Self::Name { .. } | Self::Public => false,
            Self::Address(ip) => *ip == candidate,
            Self::Network { ip, prefix } => {
                ip.is_ipv4() == candidate.is_ipv4() && masked(candidate, *prefix) == *ip
            }
        }
    }

    /// Whether everything `other` stands for is in this one too.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        match other {
            Self::Name { name, wildcard: Wildcard::Exact } => self.matches_name(name),
            Self::Name { name, wildcard: Wildcard::AnySubdomain } => {
                self == other
                    || (matches!(self, Self::Name { wildcard: Wildcard::AnySubdomain, .. })
                        && self.matches_name(name))
                    || (*self == Self::Public && name.is_of_the_internet())
            }
            Self::Public => *self == Self::Public,
            Self::Address(ip) => self.contains(*ip),
            Self::Network { ip, prefix } => {
                matches!(self, Self::Network { prefix: wider, .. } if wider <= prefix)
                    && self.contains(*ip)
            }
        }
    }
}

fn masked(ip: IpAddr, prefix: u8) -> IpAddr {
    match ip {
        IpAddr::V4(ip) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(prefix.min(32))).unwrap_or(0);
            IpAddr::V4((ip.to_bits() & mask).into())
        }
        IpAddr::V6(ip) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(prefix.min(128))).unwrap_or(0);
            IpAddr::V6((ip.to_bits() & mask).into())
        }
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// As in a rule: IPv6 in brackets.
impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name { name, wildcard: Wildcard::Exact } => write!(f, "{name}"),
            Self::Name { name, wildcard: Wildcard::AnySubdomain } => write!(f, "*.{name}"),
            Self::Address(ip @ IpAddr::V4(_)) => write!(f, "{ip}"),
            Self::Address(ip @ IpAddr::V6(_)) => write!(f, "[{ip}]"),
            Self::Network { ip: ip @ IpAddr::V4(_), prefix } => write!(f, "{ip}/{prefix}"),
            Self::Network { ip: ip @ IpAddr::V6(_), prefix } => write!(f, "[{ip}/{prefix}]"),
            Self::Public => f.write_str("public"),
        }
    }
}
