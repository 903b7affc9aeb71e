//! What npm, pip and uv were configured with, what they locked, and how what they installed is started.
//! Pure: running them, in a sandbox, is up to the caller.

mod index;
mod npm;
mod pypi;
mod uv;
mod uv_bundle;
mod versions;

pub use crate::public_hosts::{IsPublic, may_be_named};
pub use index::{Index, hosts_in_simple_page, rule};
pub use npm::{
    check_lock, npm_index, npm_install_scripts, npm_manifest, npm_programs, npm_tarball_host,
    npm_version_needs, split_scope,
};
pub use pypi::{Distributions, pypi_index, pypi_launchers, pypi_manifest, requirements};
pub use uv::{uv_index, uv_requirements};
pub use uv_bundle::{UvBundle, is_uv, uv_bundle};
pub use versions::{NewestVersion, is_newer, newest_in_simple_page};
