//! A reference → a package in the store, from wherever it is.

use std::io::IsTerminal;
use std::net::{IpAddr, UdpSocket};
use std::time::{Duration, Instant};

use mcp_net::address;
use mcp_package::manifest::{Origin, ServerJson};
use mcp_package::registry::{Http, Kept, Oci, PUBLIC, Public, PublicKey, Scheme, signature_tag};
use mcp_package::store::{Addition, ImageManifest, MINISIG, Source, Staging, Stored, Under};
use mcp_package::{Digest, Named, Reference, Repository, Store, Which};

use super::install;
use crate::args::package::Fetching;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::{paths, progress, render};

const LARGEST_BUNDLE: u64 = 2 << 30;
pub const LARGEST_SIGNATURE: u64 = 64 << 10;
/// A wait whose end is worth a line.
const LONG: Duration = Duration::from_secs(3);

pub fn fetch(store: &Store, reference: &Reference, how: &Fetching) -> Result<Digest, Failure> {
    let begun = Instant::now();
    let digest = get(store, reference, how)?;
    // Where there is no terminal, this is all that is seen of a long wait.
    if begun.elapsed() >= LONG && !std::io::stderr().is_terminal() {
        let seconds = begun.elapsed().as_secs();
        progress::note(&format!(
            "{reference} is installed, after {seconds} s; the next start needs no network"
        ));
    }
    Ok(digest)
}

fn get(store: &Store, reference: &Reference, how: &Fetching) -> Result<Digest, Failure> {
    match reference {
        Reference::Path(path) => {
            Err(Failure::Usage(format!("{}: is not to be fetched", render::path(path))))
        }
        Reference::Named(_) | Reference::Oci(_) => from_registry(store, reference, how),
        Reference::Official(named) => from_public(store, reference, named, how),
        Reference::Npm(package) => install::npm(store, reference, package, None, how),
        Reference::Pypi(package) => install::pypi(store, reference, package, None, how),
    }
}

/// Who is asked for a reference, where that is said: by the reference itself, or by the registry that is set.
pub fn source(reference: &Reference, how: &Fetching) -> Result<Option<Source>, Failure> {
    Ok(match reference {
        Reference::Oci(repository) => Some(Source::oci(repository)),
        Reference::Named(_) if how.registry.is_some() => {
            Some(Source::oci(&place(reference, how.registry.as_deref())?))
        }
        Reference::Official(_) => Some(Source::Public(public_registry())),
        _ => None,
    })
}

fn public_registry() -> String {
    let base = std::env::var("MCP_PUBLIC_REGISTRY").unwrap_or_else(|_| PUBLIC.to_owned());
    base.trim_end_matches('/').to_owned()
}

/// An entry of the public registry, for what it says to install.
#[derive(Clone, Copy)]
pub struct RegistryEntry<'a> {
    pub server_json: &'a str,
    pub source: &'a Source,
}

pub fn http() -> Http {
    Http::new(mcp_net::lookup::addresses)
}

/// Whether anybody could reach it, and not only who is on this machine or beside it.
pub fn is_public(ip: IpAddr) -> bool {
    // What can be bound to is an address of this machine's own, whether an interface has it or a route.
    let is_own = || UdpSocket::bind((ip, 0)).is_ok();
    is_far(ip, mcp_sandbox::platform::own_networks().ok().as_ref()) && !is_own()
}

/// Whether it is public, and in no network of this machine's interfaces. While these cannot be listed, none is.
fn is_far(ip: IpAddr, near: Option<&address::Networks>) -> bool {
    address::judge(ip, near) == address::Judgement::Public
}

/// For an address that an entry of a registry names. On the registry's own host a person configured it.
fn http_for(url: &str, base: &str) -> Http {
    let host = |url: &str| {
        let rest = url.split_once("://").map(|(_, rest)| rest)?;
        rest.split(['/', '?', '#']).next().map(str::to_ascii_lowercase)
    };
    match host(url) == host(base) {
        true => http(),
        false => Http::public_only(mcp_net::lookup::addresses, is_public),
    }
}

pub fn kept() -> Kept {
    Kept::usual(paths::credentials(), paths::home().as_deref())
}

pub fn scheme(plain_http: bool) -> Scheme {
    if plain_http { Scheme::Plain } else { Scheme::Https }
}

/// Where in which registry a reference is.
pub fn place(reference: &Reference, registry: Option<&str>) -> Result<Repository, Failure> {
    match reference {
        Reference::Oci(repository) => Ok(repository.clone()),
        Reference::Named(Named { name, which }) => {
            let registry = registry.ok_or_else(|| {
                Failure::Refused(format!(
                    "{reference} is not in the store, and no registry is set: give --registry HOST, or set MCP_REGISTRY"
                ))
            })?;
            let (tag, digest) = match which {
                Which::Latest => ("latest".to_owned(), None),
                Which::Version(version) => (version.clone(), None),
                Which::Digest(digest) => (String::new(), Some(*digest)),
            };
            let text = match tag.as_str() {
                "" => format!("oci://{registry}/{name}"),
                tag => format!("oci://{registry}/{name}:{tag}"),
            };
            match text.parse()? {
                Reference::Oci(repository) => Ok(Repository { digest, ..repository }),
                _ => Err(Failure::Usage(format!("{registry}: is no registry"))),
            }
        }
        _ => Err(Failure::Usage(format!("{reference} is not in an OCI registry"))),
    }
}

pub fn tags(reference: &Reference, how: &Fetching) -> Result<Vec<String>, Failure> {
    let place = place(reference, how.registry.as_deref())?;
    let (http, kept) = (self::http(), kept());
    let mut oci = Oci::new(&http, &kept, &place.host, &place.path, scheme(how.plain_http));
    let is_package = |tag: &String| !tag.ends_with(".minisig");
    Ok(oci.tags()?.into_iter().filter(is_package).collect())
}

fn from_registry(store: &Store, reference: &Reference, how: &Fetching) -> Result<Digest, Failure> {
    let place = place(reference, how.registry.as_deref())?;
    let (http, kept) = (self::http(), kept());
    let mut oci = Oci::new(&http, &kept, &place.host, &place.path, scheme(how.plain_http));
    let tag = place.tag.clone().unwrap_or_else(|| "latest".to_owned());
    let (bytes, digest) = match &place.digest {
        Some(digest) => oci.manifest(&digest.to_string())?,
        None => oci.manifest(&tag)?,
    };
    if let (Some(_), Some(asked)) = (&place.tag, &place.digest) {
        // Both were named, so both have to be true.
        let (_, tagged) = oci.manifest(&tag)?;
        if tagged != *asked {
            return Err(
                mcp_package::Error::digest(format_args!("the tag {tag}"), asked, tagged).into()
            );
        }
    }
    let source = Source::oci(&place);
    let names = names(reference, &digest);
    let under = Under::Names { names: &names, source: &source };
    store.check_free(&under, Some(&digest))?;
    refuse_moved_tag(store, reference, &source, &digest)?;
    let manifest = ImageManifest::read(&bytes)?;
    check_version(reference, &manifest)?;
    let signature = signature(&mut oci, &digest)?;
    if let Some(key) = &how.require_signature {
        let text = signature.as_deref().ok_or_else(|| {
            Failure::Refused(format!(
                "{reference} is not signed, and --require-signature was given"
            ))
        })?;
        check(&PublicKey::read(key)?, text, &bytes, reference)?;
    }
    manifest.bundle()?;
    let staging = store.staging()?;
    let mut blobs = Vec::new();
    for layer in &manifest.layers {
        let path = staging.path().join(layer.digest.hex());
        if !store.has_blob(&layer.digest) {
            let mut progress = Progress::new(&format!("fetching {reference}"));
            oci.blob(layer, &path, &mut |done, total| progress.at(done, Some(total)))?;
            blobs.push((layer.digest, path));
        }
    }
    let addition = Addition {
        under,
        manifest: &bytes,
        blobs: &blobs,
        signature: signature.as_deref(),
        tree: None,
    };
    Ok(store.add(&addition)?)
}

/// What the store calls it. A digest needs a name as well, to be listed and removed by.
fn names(reference: &Reference, digest: &Digest) -> Vec<String> {
    let mut plain = reference.clone();
    if let Reference::Oci(repository) = &mut plain {
        if repository.tag.is_some() {
            repository.digest = None;
        } else if repository.digest.is_none() {
            repository.digest = Some(*digest);
            return vec![reference.to_string(), plain.to_string()];
        }
    }
    vec![plain.to_string()]
}

/// A version is said once. What moves is `latest`.
fn refuse_moved_tag(
    store: &Store,
    reference: &Reference,
    source: &Source,
    digest: &Digest,
) -> Result<(), Failure> {
    let is_version = match reference {
        Reference::Named(Named { which: Which::Version(_), .. }) => true,
        Reference::Oci(repository) => repository.tag.as_deref().is_some_and(|tag| tag != "latest"),
        _ => false,
    };
    match store.find(reference, Some(source))? {
        Some(stored) if is_version && stored.digest != *digest => Err(mcp_package::Error::digest(
            format_args!("{reference} in the registry"),
            stored.digest,
            digest,
        )
        .hinted(format!("the tag was moved; mcp remove {reference} first, if that is right"))
        .into()),
        _ => Ok(()),
    }
}

/// A package under another version's tag is a mistake or worse.
fn check_version(reference: &Reference, manifest: &ImageManifest) -> Result<(), Failure> {
    let Reference::Named(Named { which: Which::Version(asked), .. }) = reference else {
        return Ok(());
    };
    match manifest.name_and_version().1 {
        Some(version) if version != asked => Err(Failure::Refused(format!(
            "{reference}: the package says that it is version {}",
            render::plain(version)
        ))),
        _ => Ok(()),
    }
}

fn signature(oci: &mut Oci<'_>, digest: &Digest) -> Result<Option<String>, Failure> {
    let bytes = match oci.manifest(&signature_tag(digest)) {
        Ok((bytes, _)) => bytes,
        Err(error) if error.kind() == mcp_package::Kind::NotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let manifest = ImageManifest::read(&bytes)?;
    let Some(layer) = manifest.layer(MINISIG) else {
        return Ok(None);
    };
    let text = oci.small_blob(layer, LARGEST_SIGNATURE)?;
    Ok(String::from_utf8(text).ok())
}

fn check(
    key: &PublicKey,
    signature: &str,
    manifest: &[u8],
    reference: &Reference,
) -> Result<(), Failure> {
    let (path, version) = match reference {
        Reference::Named(Named { name, which: Which::Version(version) }) => {
            (name, Some(version.as_str()))
        }
        Reference::Named(Named { name, .. }) => (name, None),
        Reference::Oci(repository) => {
            (&repository.path, repository.tag.as_deref().filter(|tag| *tag != "latest"))
        }
        _ => {
            return Err(Failure::Refused(format!(
                "{reference} has no signature of ours, and --require-signature was given"
            )));
        }
    };
    // A registry may keep it below a prefix of its own.
    let is_name = |name: &str| path == name || path.ends_with(&format!("/{name}"));
    Ok(key.check(signature, manifest, is_name, version)?)
}

/// The same check on what is in the store.
pub fn check_signature(
    store: &Store,
    stored: &Stored,
    reference: &Reference,
    key: &str,
) -> Result<(), Failure> {
    let key = PublicKey::read(key)?;
    let signature = stored.signature.ok_or_else(|| {
        Failure::Refused(format!("{reference} is not signed, and --require-signature was given"))
    })?;
    let text = store.read_blob(&signature, LARGEST_SIGNATURE)?;
    let text = String::from_utf8(text)
        .map_err(|_| Failure::Refused("the signature is not text".to_owned()))?;
    let manifest = store.read_blob(&stored.digest, 4 << 20)?;
    check(&key, &text, &manifest, reference)
}

fn from_public(
    store: &Store,
    reference: &Reference,
    named: &Named,
    how: &Fetching,
) -> Result<Digest, Failure> {
    if how.require_signature.is_some() {
        return Err(Failure::Refused(format!(
            "{reference} has no signature of ours, and --require-signature was given"
        )));
    }
    let http = self::http();
    let base = public_registry();
    let source = Source::Public(base.clone());
    let text = Public::new(&http, &base)?.server(&named.name, &named.which)?;
    let server = ServerJson::read(&text)?;
    let listed = RegistryEntry { server_json: &text, source: &source };
    match &server.origin {
        Origin::Npm(package) => install::npm(store, reference, package, Some(listed), how),
        Origin::Pypi(package) => install::pypi(store, reference, package, Some(listed), how),
        Origin::Mcpb { url, sha256 } => {
            let staging: Staging = store.staging()?;
            let path = staging.path().join("download");
            let mut progress = Progress::new(&format!("fetching {reference}"));
            http_for(url, &base).download(
                url,
                sha256,
                LARGEST_BUNDLE,
                &path,
                &mut |done, total| {
                    progress.at(done, Some(total).filter(|total| *total > 0));
                },
            )?;
            drop(progress);
            let names = [reference.to_string(), format!("{}@{}", named.name, server.version)];
            let under = Under::Names { names: &names, source: &source };
            Ok(store.add_bundle(&path, under, Some(&text))?)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A neighbour on this machine's network is not for a stranger's metadata to name, whatever its address.
    #[test]
    fn neighbours_are_not_public() {
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        let mut near = address::Networks::default();
        near.add(ip("20.0.9.2"), 24);
        near.add(ip("2001:470:aa:1::2"), 128);
        for (address, expected) in [
            ("20.0.9.2", false),
            ("20.0.9.99", false),
            ("2001:470:aa:1::99", false),
            ("127.0.0.9", false),
            ("20.0.10.99", true),
            ("2001:470:aa:2::99", true),
        ] {
            assert_eq!(is_far(ip(address), Some(&near)), expected, "{address}");
        }
        assert!(!is_far(ip("20.0.10.99"), None), "no interface is known");
    }

    /// The list is this machine's own.
    #[test]
    fn the_networks_of_this_machine_are_known() {
        assert!(mcp_sandbox::platform::own_networks().is_ok());
        assert!(!is_public([127, 0, 0, 1].into()));
    }
}
