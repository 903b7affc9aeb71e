//! `mcp push`: a package → a registry, signed if asked for.

use std::path::PathBuf;

use mcp_package::bundle;
use mcp_package::registry::{Locked, Oci, is_locked, sign, signature_tag};
use mcp_package::store::{BUNDLE, Descriptor, EMPTY, ImageManifest, MANIFEST, MINISIG, Store};
use mcp_package::{Digest, Named, Reference, Repository, Which};
use serde_json::json;

use super::stored;
use crate::args::package::Push;
use crate::failure::Failure;
use crate::packages::{fetch, open_store};
use crate::render;
use crate::render::to_json;

/// What is sent: the manifest, and the blobs it names.
struct Outgoing {
    name: String,
    version: String,
    manifest: Vec<u8>,
    blobs: Vec<(Descriptor, PathBuf)>,
}

pub fn run(args: &Push) -> Result<u8, Failure> {
    let store = open_store()?;
    let staging = store.staging()?;
    let outgoing = outgoing(&store, args, staging.path())?;
    let to: Reference = match &args.to {
        Some(text) => text.parse()?,
        None => format!("{}@{}", outgoing.name, outgoing.version).parse().map_err(|_| {
            Failure::Usage(format!(
                "its name {:?} has no namespace; say where to push it: acme/test@1.0.0",
                outgoing.name
            ))
        })?,
    };
    // What people and signatures call it.
    let name = match &to {
        Reference::Named(Named { name, .. }) => name.clone(),
        Reference::Oci(Repository { path, .. }) => path.clone(),
        other => {
            return Err(Failure::Usage(format!(
                "{other}: packages are pushed to NAME@VERSION or oci://HOST/NAME:TAG"
            )));
        }
    };
    if let Reference::Named(Named { which: Which::Version(version), .. }) = &to
        && *version != outgoing.version
    {
        return Err(Failure::Usage(format!(
            "the package is version {}, not {version}",
            outgoing.version
        )));
    }
    let place = fetch::place(&to, args.registry.as_deref())?;
    let tag = match (&to, &place.tag) {
        (Reference::Named(Named { which: Which::Latest, .. }), _) => outgoing.version.clone(),
        (_, Some(tag)) => tag.clone(),
        (_, None) => outgoing.version.clone(),
    };
    // Before anything is sent: a password that is wrong must not leave a package unsigned.
    let digest = Digest::of(&outgoing.manifest);
    let signature = match &args.sign {
        Some(key) => {
            let password = password(key)?;
            Some(sign(key, &password, &outgoing.manifest, &name, &outgoing.version)?)
        }
        None => None,
    };
    let (http, kept) = (fetch::http(), fetch::kept());
    let mut oci = Oci::new(&http, &kept, &place.host, &place.path, fetch::scheme(args.plain_http));
    for (descriptor, path) in &outgoing.blobs {
        oci.push_blob(descriptor, path)?;
    }
    if let Some(text) = &signature {
        push_signature(&mut oci, &digest, &outgoing.manifest, text, staging.path())?;
    }
    // The tag last: whoever sees it finds all the rest.
    oci.push_manifest(&tag, &outgoing.manifest)?;
    if args.latest {
        oci.push_manifest("latest", &outgoing.manifest)?;
    }
    let shown = format!("oci://{}/{}:{tag}", place.host, place.path);
    let text = match args.json {
        true => {
            to_json(&json!({"reference": shown, "digest": digest, "signed": signature.is_some()}))
        }
        false => format!("{shown} {digest}"),
    };
    render::print(&(render::printable(&text) + "\n"));
    Ok(0)
}

/// Of a secret key: from the environment, or asked for.
pub fn password(key: &std::path::Path) -> Result<String, Failure> {
    if is_locked(key)? == Locked::No {
        return Ok(String::new());
    }
    match std::env::var("MCP_KEY_PASSWORD") {
        Ok(password) => Ok(password),
        Err(_) => super::login::hidden(&format!("password of {}: ", render::path(key))),
    }
}

fn outgoing(store: &Store, args: &Push, staging: &std::path::Path) -> Result<Outgoing, Failure> {
    let empty = staging.join("empty");
    std::fs::write(&empty, b"{}").map_err(|e| Failure::file(&empty, &e))?;
    let config = (Descriptor::of(EMPTY, b"{}"), empty);
    let reference: Reference = args.what.parse()?;
    if let Reference::Path(path) = &reference {
        let bundle_path = match path.is_dir() {
            true => {
                let packed = staging.join("packed.mcpb");
                let (made, _) = bundle::pack_to(path, &packed)?;
                if !made.left_out.is_empty() {
                    render::say(&render::plain(&format!("left out: {}", made.left_out.join(", "))));
                }
                packed
            }
            false => path.clone(),
        };
        let looked = bundle::look(&bundle_path)?;
        let layer = Descriptor::new(BUNDLE, looked.digest, looked.size);
        // What it is called elsewhere is what it is called in its manifest, as in the store.
        let manifest = ImageManifest::package(&looked.name, &looked.version, vec![layer.clone()]);
        return Ok(Outgoing {
            name: looked.name,
            version: looked.version,
            manifest: manifest.to_bytes()?,
            blobs: vec![config, (layer, bundle_path)],
        });
    }
    let found = stored::find(store, &args.what)?;
    store.verify(&found.digest)?;
    let manifest = store.manifest(&found.digest)?;
    let (name, version) = manifest.name_and_version();
    let blobs = manifest.layers.iter().map(|layer| (layer.clone(), store.blob_path(&layer.digest)));
    Ok(Outgoing {
        name: name.unwrap_or_default().to_owned(),
        version: version.unwrap_or_default().to_owned(),
        manifest: store.read_blob(&found.digest, 4 << 20)?,
        blobs: std::iter::once(config).chain(blobs).collect(),
    })
}

fn push_signature(
    oci: &mut Oci<'_>,
    digest: &Digest,
    manifest: &[u8],
    text: &str,
    staging: &std::path::Path,
) -> Result<(), Failure> {
    let path = staging.join("signature");
    std::fs::write(&path, text).map_err(|e| Failure::file(&path, &e))?;
    let layer = Descriptor::of(MINISIG, text.as_bytes());
    oci.push_blob(&layer, &path)?;
    let envelope = ImageManifest {
        schema_version: 2,
        media_type: Some(MANIFEST.to_owned()),
        artifact_type: Some(MINISIG.to_owned()),
        config: Descriptor::of(EMPTY, b"{}"),
        layers: vec![layer],
        subject: None,
        annotations: [("dev.mcp.signed".to_owned(), format!("{digest} {}", manifest.len()))].into(),
    };
    oci.push_manifest(&signature_tag(digest), &envelope.to_bytes()?)?;
    Ok(())
}
