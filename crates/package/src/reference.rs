//! What `mcp run` is given: the one grammar for packages.
//!
//! ```text
//! reference = path | npm | pypi | name | oci
//! path      = "./…" | "../…" | "/…" | "~/…"                    a directory, or a bundle file
//! npm       = "npm:" [ "@" scope "/" ] name [ "@" ( version | range | tag ) ]
//! pypi      = "pypi:" name [ extras ] [ ( "==" | "@" ) version ] { "," requirement }
//! extras    = "[" name { "," name } "]"
//! requirement = name [ extras ] { operator version }           installed beside it, as `uvx --with` does
//! name      = namespace "/" name [ "@" ( version | digest ) ]  a dot in the namespace: the public MCP registry
//! oci       = "oci://" host [ ":" port ] "/" path [ ":" tag ] [ "@" digest ]
//! digest    = "sha256:" 64 hexadecimal digits
//! ```
//!
//! Nothing that parses starts with a dash or holds a control character, so that no part of it can
//! become an option of npm or pip, or a line of its own in a message.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::digest::Digest;
use crate::error::{Error, Result};

mod pypi;

pub use pypi::normal_pypi;

/// What `mcp run` and `mcp add` take as the name of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
    /// A directory or a bundle on this machine.
    Path(PathBuf),
    /// `npm:name`.
    Npm(Package),
    /// `pypi:name`.
    Pypi(Package),
    /// From the store, or from the registry that is configured.
    Named(Named),
    /// From the public MCP registry.
    Official(Named),
    /// `oci:host/path`, in an OCI registry.
    Oci(Repository),
}

/// A package of another ecosystem; `version` is exact, a word such as `latest`, or a range of npm's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Package {
    /// The name in its ecosystem.
    pub name: String,
    /// The version; none for the newest.
    pub version: Option<String>,
    /// Of PyPI: which of its extras.
    pub extras: Vec<String>,
    /// Of PyPI: requirements that are installed beside it.
    pub with: Vec<String>,
}

/// A name in the store or in the registry that is configured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// The name.
    pub name: String,
    /// The version or the digest.
    pub which: Which,
}

/// Which package of a name is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    /// `@latest`, or nothing said.
    Latest,
    /// This version.
    Version(String),
    /// The package with this digest.
    Digest(Digest),
}

/// A repository of an OCI registry, and what of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    /// With its port.
    pub host: String,
    /// The path of the repository.
    pub path: String,
    /// The tag.
    pub tag: Option<String>,
    /// The digest that the manifest must have.
    pub digest: Option<Digest>,
}

const FORMS: &str = "expected ./directory, ./file.mcpb, npm:NAME@VERSION, pypi:NAME@VERSION, \
                     NAMESPACE/NAME@VERSION or oci://HOST/NAME:TAG";

fn wrong<T>(text: &str, why: impl fmt::Display) -> Result<T> {
    let shown: String = mcp_policy::text::word(text).chars().take(200).collect();
    Err(Error::usage(format!("\"{shown}\": {why}"), ""))
}

impl FromStr for Reference {
    type Err = Error;

    fn from_str(text: &str) -> Result<Reference> {
        if text.is_empty() {
            return Err(Error::usage("nothing to run", FORMS));
        }
        if is_path(text) {
            return match text.contains('\0') {
                true => wrong(text, "a path has no NUL character"),
                false => Ok(Reference::Path(text.into())),
            };
        }
        if let Some(c) = text.chars().find(|c| mcp_policy::text::is_unseen(*c) || c.is_whitespace())
        {
            return wrong(text, format!("{c:?} cannot be part of a reference; {FORMS}"));
        }
        if let Some(rest) = text.strip_prefix("npm:") {
            return npm(text, rest).map(Reference::Npm);
        }
        if let Some(rest) = text.strip_prefix("pypi:") {
            return pypi::read(text, rest).map(Reference::Pypi);
        }
        if let Some(rest) = text.strip_prefix("oci://") {
            return oci(text, rest).map(Reference::Oci);
        }
        if let Some((scheme, _)) = text.split_once("://") {
            return wrong(text, format!("{scheme}:// is not known here; {FORMS}"));
        }
        named(text)
    }
}

/// Whether something on the command line names a place on disk.
#[must_use]
pub fn is_path(text: &str) -> bool {
    let rooted = ["./", "../", "/", "~/"].iter().any(|start| text.starts_with(start));
    let windows = [".\\", "..\\", "\\\\"].iter().any(|start| text.starts_with(start))
        || matches!(text.as_bytes(), [drive, b':', b'\\' | b'/', ..] if drive.is_ascii_alphabetic());
    rooted || [".", "..", "~"].contains(&text) || (cfg!(windows) && windows)
}

fn npm(text: &str, rest: &str) -> Result<Package> {
    // The scope's own @ is no separator.
    let at = rest.get(1..).and_then(|tail| tail.find('@')).map(|at| at + 1);
    let (name, version) = match at {
        Some(at) => (&rest[..at], Some(&rest[at + 1..])),
        None => (rest, None),
    };
    let parts: Vec<&str> = match name.strip_prefix('@') {
        Some(scoped) => match scoped.split_once('/') {
            Some((scope, name)) => vec![scope, name],
            None => return wrong(text, "expected a name after the scope: npm:@scope/name"),
        },
        None => vec![name],
    };
    let good = |part: &&str| {
        let c = |c: char| c.is_ascii_alphanumeric() || "-._~".contains(c);
        !part.is_empty()
            && !part.contains("..")
            && !part.starts_with(['.', '-', '_'])
            && part.chars().all(c)
    };
    if !parts.iter().all(good) || name.len() > 214 {
        return wrong(text, "expected a package name: npm:name or npm:@scope/name");
    }
    let version = version.map(|version| npm_version(text, version)).transpose()?;
    Ok(Package { name: name.to_owned(), version, ..Package::default() })
}

fn npm_version(text: &str, version: &str) -> Result<String> {
    let word = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    let is_tag = version.starts_with(|c: char| c.is_ascii_alphabetic())
        && version.len() <= 64
        && version.chars().all(word);
    // `20`, `^2.0.0`, `~1.2`, `1.x`: npm itself finds the version.
    let is_range = version.trim_start_matches(['^', '~']).starts_with(|c: char| c.is_ascii_digit())
        && version.len() <= 64
        && version.trim_start_matches(['^', '~']).chars().all(|c| word(c) || "+*".contains(c));
    match semver::Version::parse(version) {
        Ok(exact) => Ok(exact.to_string()),
        Err(_) if is_tag || is_range => Ok(version.to_owned()),
        Err(_) => wrong(
            text,
            "expected a version, a range or a tag: npm:name@1.2.3, npm:name@^2, npm:name@latest",
        ),
    }
}

impl Package {
    /// The name with what belongs to it, as pip takes it.
    #[must_use]
    pub fn with_extras(&self) -> String {
        self.name.clone() + &pypi::bracketed(&self.extras)
    }

    fn beside(&self) -> String {
        self.with.iter().map(|requirement| format!(",{requirement}")).collect()
    }
}

/// A part of a repository's name: lower-case letters and digits, separated by single `.`, `_`, `-`.
fn is_component(part: &str) -> bool {
    let edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let inner = |c: char| edge(c) || "._-".contains(c);
    part.starts_with(edge)
        && part.ends_with(edge)
        && part.chars().all(inner)
        && !part.contains("..")
}

/// What OCI takes for a tag.
#[must_use]
pub fn is_tag(tag: &str) -> bool {
    let first = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let inner = |c: char| first(c) || ".-".contains(c);
    tag.starts_with(first) && tag.chars().all(inner) && tag.len() <= 128
}

fn named(text: &str) -> Result<Reference> {
    let (name, which) = match text.split_once('@') {
        None => (text, Which::Latest),
        Some((name, "latest")) => (name, Which::Latest),
        Some((name, digest)) if digest.contains(':') => match digest.parse() {
            Ok(digest) => (name, Which::Digest(digest)),
            Err(error) => return wrong(text, error),
        },
        Some((name, version)) if is_tag(version) => (name, Which::Version(version.to_owned())),
        Some((_, version)) if version.contains('+') => {
            return wrong(text, "registries have no + in versions; leave out the build metadata");
        }
        Some(_) => return wrong(text, "expected a version after @, such as @1.0.0 or @latest"),
    };
    let Some((namespace, rest)) = name.split_once('/') else {
        return wrong(text, FORMS);
    };
    if namespace.contains(':') || namespace == "localhost" {
        return wrong(text, format!("hosts are written with oci://, as in oci://{name}"));
    }
    if let Some((name, version)) = name.rsplit_once(':') {
        return wrong(text, format!("the version goes after @: {name}@{version}"));
    }
    if namespace.contains('.') {
        let good = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        let edge = |part: &str| {
            let edge = |c: char| c.is_ascii_alphanumeric();
            part.starts_with(edge) && part.ends_with(edge) && part.chars().all(good)
        };
        if !edge(namespace) || !edge(rest) || name.len() > 200 {
            return wrong(
                text,
                "expected a name of the public MCP registry, such as io.github.user/server",
            );
        }
        return Ok(Reference::Official(Named { name: name.to_owned(), which }));
    }
    if !name.split('/').all(is_component) || name.len() > 255 {
        return wrong(
            text,
            "expected lower-case letters, digits and . _ - between slashes: acme/test@1.0.0",
        );
    }
    Ok(Reference::Named(Named { name: name.to_owned(), which }))
}

fn oci(text: &str, rest: &str) -> Result<Repository> {
    let (rest, digest) = match rest.split_once('@') {
        Some((rest, digest)) => match digest.parse() {
            Ok(digest) => (rest, Some(digest)),
            Err(error) => return wrong(text, error),
        },
        None => (rest, None),
    };
    let Some((host, path)) = rest.split_once('/') else {
        return wrong(text, "expected a name after the host: oci://HOST/NAME:TAG");
    };
    let (path, tag) = match path.split_once(':') {
        Some((path, tag)) if is_tag(tag) => (path, Some(tag.to_owned())),
        Some(_) => return wrong(text, "expected a tag after the name: oci://HOST/NAME:TAG"),
        None => (path, None),
    };
    if !is_host(host) {
        return wrong(
            text,
            "expected a host, with a port if need be: oci://registry.example.com:5000/…",
        );
    }
    if !path.split('/').all(is_component) || path.len() > 255 {
        return wrong(text, "expected a lower-case name after the host: oci://HOST/NAME:TAG");
    }
    Ok(Repository { host: host.to_ascii_lowercase(), path: path.to_owned(), tag, digest })
}

/// A name or an address, and perhaps a port. No user, no password: they would end up in logs.
pub fn is_host(host: &str) -> bool {
    let (name, port) = match host.strip_prefix('[') {
        Some(bracketed) => match bracketed.split_once(']') {
            Some((address, "")) => (address, None),
            Some((address, port)) => (address, Some(port.strip_prefix(':').unwrap_or(""))),
            None => return false,
        },
        None => match host.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (host, None),
        },
    };
    let is_name = match host.starts_with('[') {
        true => name.parse::<std::net::Ipv6Addr>().is_ok(),
        false => {
            let label = |label: &str| {
                let c = |c: char| c.is_ascii_alphanumeric() || c == '-';
                !label.is_empty() && !label.starts_with('-') && label.chars().all(c)
            };
            name.len() <= 253 && name.split('.').all(label)
        }
    };
    let is_port = |port: &str| {
        port.parse::<u16>().is_ok_and(|number| number != 0 && number.to_string() == port)
    };
    is_name && port.is_none_or(is_port)
}

impl Reference {
    /// The name without the version: what grants are remembered under.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Reference::Path(path) => path.display().to_string(),
            Reference::Npm(package) => format!("npm:{}", package.name),
            Reference::Pypi(package) => {
                format!("pypi:{}{}", package.with_extras(), package.beside())
            }
            Reference::Named(named) | Reference::Official(named) => named.name.clone(),
            Reference::Oci(repository) => format!("oci://{}/{}", repository.host, repository.path),
        }
    }
}

impl fmt::Display for Which {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Which::Latest => f.write_str("latest"),
            Which::Version(version) => f.write_str(version),
            Which::Digest(digest) => digest.fmt(f),
        }
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Reference::Pypi(package) = self {
            let version = package.version.iter().map(|version| format!("@{version}"));
            let version: String = version.collect();
            return write!(f, "pypi:{}{version}{}", package.with_extras(), package.beside());
        }
        f.write_str(&self.name())?;
        match self {
            Reference::Path(_) | Reference::Pypi(_) => Ok(()),
            Reference::Npm(Package { version, .. }) => match version {
                Some(version) => write!(f, "@{version}"),
                None => Ok(()),
            },
            Reference::Named(named) | Reference::Official(named) => write!(f, "@{}", named.which),
            Reference::Oci(repository) => {
                if let Some(tag) = &repository.tag {
                    write!(f, ":{tag}")?;
                }
                match &repository.digest {
                    Some(digest) => write!(f, "@{digest}"),
                    None => Ok(()),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
