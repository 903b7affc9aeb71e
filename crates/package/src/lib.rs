//! Packages of MCP servers: what they are called, what they say of themselves, how they are packed,
//! kept and fetched. Nothing here runs one.

#![deny(missing_docs)]

pub mod archive;
mod asks;
pub mod bundle;
mod digest;
mod error;
pub mod install;
pub mod manifest;
mod pack;
mod public_hosts;
mod reference;
pub mod registry;
#[cfg(test)]
mod scratch;
pub mod store;

pub use asks::{Ask, asks};
pub use digest::{Digest, Hashing};
pub use error::{Error, Kind, Result};
pub use manifest::{Access, Launch, Manifest, Platform};
pub use pack::{Packed, Take, pack};
pub use reference::{Named, Package, Reference, Repository, Which, is_path, is_tag, normal_pypi};
pub use store::Store;
