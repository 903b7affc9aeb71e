//! The JSON of OCI: descriptors, manifests, the index.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::error::{Error, Result};

/// The media type of an OCI manifest.
pub const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// The media type of OCI's empty configuration.
pub const EMPTY: &str = "application/vnd.oci.empty.v1+json";
/// What an artifact of ours is.
pub const PACKAGE: &str = "application/vnd.mcp.package.v1";
/// The media type of a bundle.
pub const BUNDLE: &str = "application/vnd.mcp.bundle.v1+zip";
/// The media type of a `server.json`.
pub const SERVER: &str = "application/vnd.mcp.server.v1+json";
/// The media type of a minisign signature.
pub const MINISIG: &str = "application/vnd.mcp.signature.v1.minisig";
/// The media type of a tar layer with gzip.
pub const TAR_GZIP: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
/// The media type of a tar layer with zstd.
pub const TAR_ZSTD: &str = "application/vnd.oci.image.layer.v1.tar+zstd";

pub const LARGEST_MANIFEST: u64 = 4 << 20;

const TITLE: &str = "org.opencontainers.image.title";
const VERSION: &str = "org.opencontainers.image.version";

/// An OCI descriptor: the type, digest and size of a blob.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    /// The media type.
    pub media_type: String,
    /// The digest.
    pub digest: Digest,
    /// The size in bytes.
    pub size: u64,
    /// Annotations, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

impl Descriptor {
    /// A descriptor without annotations.
    #[must_use]
    pub fn new(media_type: &str, digest: Digest, size: u64) -> Descriptor {
        Descriptor { media_type: media_type.to_owned(), digest, size, annotations: BTreeMap::new() }
    }

    /// The descriptor of some bytes.
    #[must_use]
    pub fn of(media_type: &str, bytes: &[u8]) -> Descriptor {
        Descriptor::new(media_type, Digest::of(bytes), bytes.len() as u64)
    }
}

/// An OCI image manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageManifest {
    /// Always 2.
    pub schema_version: u32,
    /// The media type of the manifest itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// What the artifact is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
    /// The configuration blob.
    pub config: Descriptor,
    /// The layers.
    pub layers: Vec<Descriptor>,
    /// What this is about, where it refers to another manifest: an image's signature or list of parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Descriptor>,
    /// Annotations, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

impl ImageManifest {
    /// Of a package with this name and version. No time in it: the same package, the same digest.
    #[must_use]
    pub fn package(name: &str, version: &str, layers: Vec<Descriptor>) -> ImageManifest {
        ImageManifest {
            schema_version: 2,
            media_type: Some(MANIFEST.to_owned()),
            artifact_type: Some(PACKAGE.to_owned()),
            config: Descriptor::of(EMPTY, b"{}"),
            layers,
            subject: None,
            annotations: [(TITLE, name), (VERSION, version)]
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .into(),
        }
    }

    /// Of one blob that is about another manifest: OCI calls it a referrer.
    #[must_use]
    pub fn referrer(kind: &str, blob: Descriptor, subject: Descriptor) -> ImageManifest {
        ImageManifest {
            schema_version: 2,
            media_type: Some(MANIFEST.to_owned()),
            artifact_type: Some(kind.to_owned()),
            config: Descriptor::of(EMPTY, b"{}"),
            layers: vec![blob],
            subject: Some(subject),
            annotations: BTreeMap::new(),
        }
    }

    /// Reads a manifest, and refuses what is not one.
    pub fn read(bytes: &[u8]) -> Result<ImageManifest> {
        let manifest: ImageManifest = serde_json::from_slice(bytes)
            .map_err(|e| Error::package(format!("the OCI manifest is not valid: {e}")))?;
        if manifest.schema_version != 2 {
            return Err(Error::package("the OCI manifest is not of schema version 2"));
        }
        Ok(manifest)
    }

    /// The manifest as JSON.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        serde_json::to_vec(self).map_err(|e| Error::package(e.to_string()))
    }

    /// The first layer of a media type.
    #[must_use]
    pub fn layer(&self, media_type: &str) -> Option<&Descriptor> {
        self.layers.iter().find(|layer| layer.media_type == media_type)
    }

    /// The one layer that holds the files.
    pub fn bundle(&self) -> Result<&Descriptor> {
        let bundles: Vec<&Descriptor> = self
            .layers
            .iter()
            .filter(|layer| [BUNDLE, TAR_GZIP, TAR_ZSTD].contains(&layer.media_type.as_str()))
            .collect();
        match bundles[..] {
            [bundle] => Ok(bundle),
            [] => {
                Err(Error::package("the OCI manifest has no bundle, so this is no package for mcp"))
            }
            _ => Err(Error::package(
                "the OCI manifest has several layers: this is a container image",
            )
            .hinted("run it with podman or docker")),
        }
    }

    /// What the package's author calls it.
    #[must_use]
    pub fn name_and_version(&self) -> (Option<&str>, Option<&str>) {
        let get = |key: &str| self.annotations.get(key).map(String::as_str);
        (get(TITLE), get(VERSION))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageIndex {
    pub schema_version: u32,
    pub manifests: Vec<Descriptor>,
}

impl Default for ImageIndex {
    fn default() -> ImageIndex {
        ImageIndex { schema_version: 2, manifests: Vec::new() }
    }
}
