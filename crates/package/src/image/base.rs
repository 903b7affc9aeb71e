//! The image that layers are added to.

use serde::Deserialize;

use super::{CONFIG, DOCKER_INDEX, DOCKER_LAYER, DOCKER_MANIFEST, INDEX};
use crate::digest::Digest;
use crate::error::{Error, Result};
use crate::store::{Descriptor, ImageManifest, MANIFEST, TAR_GZIP};

/// A base whose manifest and configuration are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base {
    /// The digest of its manifest.
    pub digest: Digest,
    /// Its layers, with the media types of OCI.
    pub layers: Vec<Descriptor>,
    /// Its configuration, as it is.
    pub config: Vec<u8>,
}

impl Base {
    /// From its manifest, as it is in a registry or a layout, and the configuration that it names.
    ///
    /// # Errors
    /// Where the configuration is not the one that the manifest names.
    pub fn new(digest: Digest, manifest: &ImageManifest, config: Vec<u8>) -> Result<Base> {
        let found = Digest::of(&config);
        if found != manifest.config.digest {
            return Err(Error::digest(
                "the configuration of the base",
                manifest.config.digest,
                found,
            ));
        }
        let layers = manifest.layers.iter().cloned().map(|mut layer| {
            // The same bytes under another name.
            if layer.media_type == DOCKER_LAYER {
                layer.media_type = TAR_GZIP.to_owned();
            }
            layer
        });
        Ok(Base { digest, layers: layers.collect(), config })
    }
}

/// What a manifest of a base turned out to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selected {
    /// The manifest of the image.
    Image(ImageManifest),
    /// A list of images for several platforms, and which of them is the one.
    Within(Descriptor),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ManifestOrIndex {
    media_type: Option<String>,
    manifests: Option<Vec<Listed>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    media_type: String,
    digest: Digest,
    size: u64,
    platform: Option<OciPlatform>,
}

#[derive(Deserialize)]
struct OciPlatform {
    os: String,
    architecture: String,
}

/// Reads a manifest, or chooses the image for Linux on this architecture (`amd64`, `arm64`) from a list.
///
/// # Errors
/// Where it is neither, or the list has no such image.
pub fn select(bytes: &[u8], architecture: &str) -> Result<Selected> {
    let broken =
        |e: serde_json::Error| Error::package(format!("the base's manifest is not valid: {e}"));
    let kind: ManifestOrIndex = serde_json::from_slice(bytes).map_err(broken)?;
    let media_type = kind.media_type.as_deref().unwrap_or("");
    let Some(manifests) = kind.manifests else {
        let manifest = ImageManifest::read(bytes)?;
        let is_image = [CONFIG, "application/vnd.docker.container.image.v1+json"]
            .contains(&manifest.config.media_type.as_str());
        if !is_image || !["", MANIFEST, DOCKER_MANIFEST].contains(&media_type) {
            return Err(Error::package("the base is no container image"));
        }
        return Ok(Selected::Image(manifest));
    };
    if !["", INDEX, DOCKER_INDEX].contains(&media_type) {
        return Err(Error::package("the base is no container image"));
    }
    let is_meant = |listed: &&Listed| match &listed.platform {
        Some(platform) => platform.os == "linux" && platform.architecture == architecture,
        None => manifests.len() == 1,
    };
    let found = manifests
        .iter()
        .find(is_meant)
        .ok_or_else(|| Error::package(format!("the base has no image for linux/{architecture}")))?;
    Ok(Selected::Within(Descriptor::new(&found.media_type, found.digest, found.size)))
}
