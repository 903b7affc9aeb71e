//! Packages of MCP servers: what they are called, what they say of themselves, how they are packed,
//! kept and fetched. Nothing here runs one.

#![cfg_attr(not(feature = "fuzzing"), deny(missing_docs))]

mod archive;
mod asks;
pub mod bundle;
mod digest;
mod error;
pub mod image;
pub mod install;
pub mod manifest;
mod pack;
mod public_hosts;
pub mod recipes;
mod reference;
pub mod registry;
#[cfg(test)]
mod scratch;
pub mod store;

pub use archive::Effort;
pub use asks::{Ask, asks};
pub use digest::{Digest, Hashing};
pub use error::{Error, Kind, Result};
pub use manifest::{Access, Launch, Manifest, Platform};
pub use pack::{Packed, Take, pack};
pub use reference::{Named, Package, Reference, Repository, Which, is_path, is_tag, normal_pypi};
pub use store::Store;

/// Writing zip archives that are the same bytes for the same input: bundles, and what `cargo xtask dist` makes.
pub mod zip {
    pub use crate::archive::{Effort, EntryPath, ZipContent, ZipWriter};
}

/// The readers of archives, public for the fuzz target alone.
#[cfg(feature = "fuzzing")]
pub mod fuzzing {
    pub use crate::archive::{ArchiveLimits, Content, Entry, Format, Sink, read};
}
