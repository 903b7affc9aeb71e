//! `mcp image`: a package and this program as layers on a base → a registry, or a directory.

mod base;

use std::path::{Path, PathBuf};

use mcp_package::image::{self, Assembled, Layer, Layout, Purpose, SPDX};
use mcp_package::registry::{Oci, sign};
use mcp_package::store::{Descriptor, EMPTY, ImageManifest, MANIFEST, MINISIG};
use mcp_package::{Reference, Repository};
use serde_json::json;

use crate::args::image::Image;
use crate::commands::package::push::password;
use crate::failure::Failure;
use crate::packages::files::{self, PackageFiles};
use crate::packages::locate::{self, Located, Looking};
use crate::packages::{fetch, open_store};
use crate::render::{self, to_json};
use base::LocatedBase;

/// What refers to an image: its manifest, its kind, and the blob that it names.
struct Referrer {
    kind: &'static str,
    manifest: Vec<u8>,
    blob: (Descriptor, PathBuf),
}

pub fn run(args: &Image) -> Result<u8, Failure> {
    let to = args.push.as_deref().map(base::repository).transpose()?;
    let package = located(args)?;
    let (manifest, _) = files::read(&package)?;
    let purpose = Purpose {
        // A path of this machine is no name elsewhere, and would make another digest of the same files.
        reference: match Path::new(&package.identity.reference).is_absolute() {
            true => format!("{}@{}", manifest.name, manifest.version),
            false => package.identity.reference.clone(),
        },
        name: manifest.name.clone(),
        version: manifest.version.clone(),
        architecture: architecture().to_owned(),
    };
    let store = open_store()?;
    let staging = store.staging()?;
    let found = base::find(&args.base, &purpose.architecture, args.fetching.plain_http)?;
    let program = match &args.mcp {
        Some(path) => path.clone(),
        None => std::env::current_exe().map_err(|e| Failure::file(Path::new("mcp"), &e))?,
    };
    let layers = [
        image::program_layer(&program, &staging.path().join("program"))?,
        image::package_layer(&package.root, &staging.path().join("package"))?,
    ];
    // The files were compared with their bundle when they were located; nothing is started from them here.
    files::check(package.ready.as_ref())?;
    let made = image::assemble(&found.base, &layers, &purpose)?;
    let referrers = referrers(args, &made, &package, &purpose, &found, staging.path())?;
    if let Some(directory) = &args.output {
        write(directory, &made, &layers, &referrers, &found, staging.path(), &purpose.name)?;
    }
    let shown = match &to {
        Some(to) => {
            push(args, to, &made, &layers, &referrers, &found, staging.path())?;
            format!("{}/{}@{}", to.host, to.path, made.digest)
        }
        None => made.digest.to_string(),
    };
    let text = match args.json {
        true => to_json(&json!({
            "image": shown, "digest": made.digest, "base": found.base.digest, "package": purpose.reference,
        })),
        false => shown,
    };
    render::print(&(render::printable(&text) + "\n"));
    Ok(0)
}

/// As OCI spells it.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

fn located(args: &Image) -> Result<PackageFiles, Failure> {
    let mut looking = Looking { fetching: &args.fetching, explain: false, fetched: 0 };
    loop {
        match locate::locate(&args.reference, &looking)? {
            Located::Ready(package) => return Ok(*package),
            Located::Fetched => looking.fetched += 1,
        }
    }
}

fn referrers(
    args: &Image,
    made: &Assembled,
    package: &PackageFiles,
    purpose: &Purpose,
    found: &LocatedBase,
    staging: &Path,
) -> Result<Vec<Referrer>, Failure> {
    let subject = Descriptor::of(MANIFEST, &made.manifest);
    let mut all = Vec::new();
    let mut add = |kind: &'static str, name: &str, bytes: &[u8]| -> Result<(), Failure> {
        let path = staging.join(name);
        std::fs::write(&path, bytes).map_err(|e| Failure::file(&path, &e))?;
        let blob = Descriptor::of(kind, bytes);
        let manifest = ImageManifest::referrer(kind, blob.clone(), subject.clone()).to_bytes()?;
        all.push(Referrer { kind, manifest, blob: (blob, path) });
        Ok(())
    };
    if args.sbom {
        let version = env!("CARGO_PKG_VERSION");
        let document =
            image::spdx(&package.root, purpose, &made.digest, &found.base.digest, version);
        add(SPDX, "sbom", document.to_string().as_bytes())?;
    }
    if let Some(key) = &args.sign {
        let text = sign(key, &password(key)?, &made.manifest, &purpose.name, &purpose.version)?;
        add(MINISIG, "signature", text.as_bytes())?;
    }
    Ok(all)
}

fn write(
    directory: &Path,
    made: &Assembled,
    layers: &[Layer],
    referrers: &[Referrer],
    found: &LocatedBase,
    staging: &Path,
    name: &str,
) -> Result<(), Failure> {
    let layout = Layout::create(directory)?;
    for layer in &found.base.layers {
        layout.copy(layer, &found.layer(layer, staging)?)?;
    }
    for referrer in referrers {
        layout.copy(&referrer.blob.0, &referrer.blob.1)?;
        layout.put(b"{}")?;
    }
    let manifests: Vec<Vec<u8>> = referrers.iter().map(|it| it.manifest.clone()).collect();
    Ok(layout.finish(made, layers, &manifests, name)?)
}

fn push(
    args: &Image,
    to: &Repository,
    made: &Assembled,
    layers: &[Layer],
    referrers: &[Referrer],
    found: &LocatedBase,
    staging: &Path,
) -> Result<(), Failure> {
    let (http, kept) = (fetch::http(), fetch::kept());
    let scheme = fetch::scheme(args.fetching.plain_http);
    let mut oci = Oci::new(&http, &kept, &to.host, &to.path, scheme);
    for layer in &found.base.layers {
        if !oci.has_blob(&layer.digest)? {
            oci.push_blob(layer, &found.layer(layer, staging)?)?;
        }
    }
    let file = |name: &str, bytes: &[u8]| -> Result<PathBuf, Failure> {
        let path = staging.join(name);
        std::fs::write(&path, bytes).map_err(|e| Failure::file(&path, &e))?;
        Ok(path)
    };
    for layer in layers {
        oci.push_blob(&layer.descriptor, &layer.path)?;
    }
    oci.push_blob(&made.config_descriptor, &file("config", &made.config)?)?;
    // By its digest first, since what refers to it names that; the tag last: whoever sees it finds all the rest.
    oci.push_manifest(&made.digest.to_string(), &made.manifest)?;
    if !referrers.is_empty() {
        oci.push_blob(&Descriptor::of(EMPTY, b"{}"), &file("empty", b"{}")?)?;
    }
    for referrer in referrers {
        oci.push_blob(&referrer.blob.0, &referrer.blob.1)?;
        oci.push_referrer(&referrer.manifest, referrer.kind, &made.digest)?;
    }
    let tag = to.tag.as_deref().unwrap_or("latest");
    Ok(oci.push_manifest(tag, &made.manifest)?)
}

/// A reference of an image, as `podman pull` takes it.
fn reference(text: &str) -> Result<Repository, Failure> {
    let whole = format!("oci://{}", text.strip_prefix("oci://").unwrap_or(text));
    match whole.parse()? {
        Reference::Oci(repository) => Ok(repository),
        _ => Err(Failure::Usage(format!("{}: is no image", render::plain(text)))),
    }
}
