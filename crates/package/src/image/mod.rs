//! A container image of a package: layers on top of a base, nothing executed. The same base, program and package give the
//! same digest, because no time, user or order of this machine is in them.
//!
//! Stops: a link in a package that leads out of it; a base for another processor; a blob that is not what its digest says.
//! Leaves open: what the base itself holds.

mod base;
mod config;
mod layer;
mod layout;
mod sbom;

pub use base::{Base, Selected, select};
pub use config::{Assembled, Purpose, assemble};
pub use layer::{Layer, package_layer, program_layer};
pub use layout::Layout;
pub use sbom::{SPDX, spdx};

/// The media type of an index of manifests.
pub const INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// The media type of an image's configuration.
pub const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const DOCKER_INDEX: &str = "application/vnd.docker.distribution.manifest.list.v2+json";
const DOCKER_MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
const DOCKER_LAYER: &str = "application/vnd.docker.image.rootfs.diff.tar.gzip";

/// Every kind of manifest that a base may have, as an Accept header.
pub const ACCEPTED: &str = concat!(
    "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json, ",
    "application/vnd.docker.distribution.manifest.v2+json, application/vnd.docker.distribution.manifest.list.v2+json"
);

/// Where the program is in an image.
pub const PROGRAM: &str = "/opt/mcp/bin/mcp";
/// Where the package's files are in an image.
pub const PACKAGE: &str = "/opt/mcp/package";

#[cfg(test)]
mod tests;
