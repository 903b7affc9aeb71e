//! The configuration and the manifest of an image: those of its base, with what was added.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::base::Base;
use super::layer::Layer;
use super::{CONFIG, PACKAGE, PROGRAM};
use crate::digest::Digest;
use crate::error::{Error, Result};
use crate::store::{Descriptor, ImageManifest, MANIFEST};

/// An ordinary user, that of `mcp export`.
const USER: &str = "10001:10001";

/// What an image is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Purpose {
    /// The package's reference.
    pub reference: String,
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// The architecture of the program: `amd64`, `arm64`.
    pub architecture: String,
}

/// An image: what is pushed beside the layers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assembled {
    /// The configuration.
    pub config: Vec<u8>,
    /// Its descriptor.
    pub config_descriptor: Descriptor,
    /// The manifest.
    pub manifest: Vec<u8>,
    /// The digest of the manifest: that of the image.
    pub digest: Digest,
}

/// Adds layers to a base.
///
/// # Errors
/// Where the base is for another system, or its configuration makes no sense.
pub fn assemble(base: &Base, added: &[Layer], purpose: &Purpose) -> Result<Assembled> {
    let wrong = |why: &str| Error::package(format!("the configuration of the base: {why}"));
    let mut config: Value =
        serde_json::from_slice(&base.config).map_err(|e| wrong(&e.to_string()))?;
    let of = |key: &str| config.get(key).and_then(Value::as_str).unwrap_or("").to_owned();
    if of("os") != "linux" || of("architecture") != purpose.architecture {
        return Err(Error::package(format!(
            "the base is for {}/{}, and this mcp for linux/{}",
            of("os"),
            of("architecture"),
            purpose.architecture
        )));
    }
    let created = config.get("created").cloned().unwrap_or_else(|| json!("1970-01-01T00:00:00Z"));
    let diff_ids = config
        .pointer_mut("/rootfs/diff_ids")
        .and_then(Value::as_array_mut)
        .ok_or_else(|| wrong("has no rootfs.diff_ids"))?;
    if diff_ids.len() != base.layers.len() {
        return Err(wrong("names another number of layers than its manifest"));
    }
    diff_ids.extend(added.iter().map(|layer| json!(layer.diff_id.to_string())));
    let object = config.as_object_mut().ok_or_else(|| wrong("is no object"))?;
    if let Some(history) = object.entry("history").or_insert_with(|| json!([])).as_array_mut() {
        history.extend(added.iter().map(
            |layer| json!({"created": created, "created_by": format!("mcp image: {}", layer.what)}),
        ));
    }
    let run = object.entry("config").or_insert_with(|| Value::Object(Map::new()));
    let run = run.as_object_mut().ok_or_else(|| wrong("config is no object"))?;
    run.insert("Entrypoint".to_owned(), json!([PROGRAM]));
    run.insert("Cmd".to_owned(), json!(["run", PACKAGE]));
    run.insert("User".to_owned(), json!(USER));
    run.insert("WorkingDir".to_owned(), json!("/"));
    let labels = run.entry("Labels").or_insert_with(|| json!({}));
    if !labels.is_object() {
        *labels = json!({});
    }
    if let Some(labels) = labels.as_object_mut() {
        labels.insert("dev.mcp.package".to_owned(), json!(purpose.reference));
    }
    let config = serde_json::to_vec(&config).map_err(|e| wrong(&e.to_string()))?;
    let config_descriptor = Descriptor::of(CONFIG, &config);
    let layers = base.layers.iter().cloned();
    let manifest = ImageManifest {
        schema_version: 2,
        media_type: Some(MANIFEST.to_owned()),
        artifact_type: None,
        config: config_descriptor.clone(),
        layers: layers.chain(added.iter().map(|layer| layer.descriptor.clone())).collect(),
        subject: None,
        annotations: annotations(base, purpose),
    };
    let manifest = manifest.to_bytes()?;
    let digest = Digest::of(&manifest);
    Ok(Assembled { config, config_descriptor, manifest, digest })
}

fn annotations(base: &Base, purpose: &Purpose) -> BTreeMap<String, String> {
    [
        ("org.opencontainers.image.title", purpose.name.clone()),
        ("org.opencontainers.image.version", purpose.version.clone()),
        ("org.opencontainers.image.base.digest", base.digest.to_string()),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into()
}
