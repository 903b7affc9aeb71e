//! The base of an image: in a registry, or in a directory.

use std::path::{Path, PathBuf};

use mcp_package::Repository;
use mcp_package::image::{Base, Layout, Selected, select};
use mcp_package::registry::{Oci, Scheme};
use mcp_package::store::Descriptor;

use crate::failure::Failure;
use crate::packages::fetch;
use crate::render;

const LARGEST: u64 = 4 << 20;

/// A base, and where its layers are.
pub struct LocatedBase {
    pub base: Base,
    place: BaseSource,
}

enum BaseSource {
    Layout(Layout),
    Registry(Repository, Scheme),
}

impl LocatedBase {
    /// A file with a layer, fetched into `staging` where it is not on this machine.
    pub fn layer(&self, layer: &Descriptor, staging: &Path) -> Result<PathBuf, Failure> {
        match &self.place {
            BaseSource::Layout(layout) => Ok(layout.blob(&layer.digest)),
            BaseSource::Registry(from, scheme) => {
                let path = staging.join(layer.digest.hex());
                if !path.exists() {
                    let (http, kept) = (fetch::http(), fetch::kept());
                    let mut oci = Oci::new(&http, &kept, &from.host, &from.path, *scheme);
                    oci.blob(layer, &path, &mut |_, _| {})?;
                }
                Ok(path)
            }
        }
    }
}

pub fn find(text: &str, architecture: &str, plain_http: bool) -> Result<LocatedBase, Failure> {
    if let Some(layout) = Layout::open(Path::new(text)) {
        let base = layout.base(architecture)?;
        return Ok(LocatedBase { base, place: BaseSource::Layout(layout) });
    }
    if Path::new(text).is_dir() {
        return Err(Failure::Usage(format!(
            "--base {}: is a directory without oci-layout; `skopeo copy` and `podman push` write one (oci:DIR)",
            render::plain(text)
        )));
    }
    let from = repository(text)?;
    let scheme = fetch::scheme(plain_http);
    let (http, kept) = (fetch::http(), fetch::kept());
    let mut oci = Oci::new(&http, &kept, &from.host, &from.path, scheme);
    let which = match (&from.digest, &from.tag) {
        (Some(digest), _) => digest.to_string(),
        (None, Some(tag)) => tag.clone(),
        (None, None) => "latest".to_owned(),
    };
    let (mut bytes, mut digest) = oci.image_manifest(&which)?;
    if let Selected::Within(descriptor) = select(&bytes, architecture)? {
        (bytes, digest) = oci.image_manifest(&descriptor.digest.to_string())?;
    }
    let Selected::Image(manifest) = select(&bytes, architecture)? else {
        return Err(Failure::Refused(format!(
            "--base {}: an index that lists only indexes",
            render::plain(text)
        )));
    };
    let config = oci.small_blob(&manifest.config, LARGEST)?;
    let base = Base::new(digest, &manifest, config)?;
    Ok(LocatedBase { base, place: BaseSource::Registry(from, scheme) })
}

/// `HOST/NAME:TAG`, as other tools write it.
pub fn repository(text: &str) -> Result<Repository, Failure> {
    let first = text.split('/').next().unwrap_or("");
    if !text.contains('/') || !(first.contains(['.', ':']) || first == "localhost") {
        return Err(Failure::Usage(format!(
            "{0}: an image has a host: docker.io/library/{0}, or registry.example.com/{0}",
            render::plain(text)
        )));
    }
    super::reference(text)
}
