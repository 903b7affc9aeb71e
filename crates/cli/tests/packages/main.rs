//! Packages from the outside: packed, kept, granted, fetched from a real registry, run.
//!
//! `MCP_REQUIRE=registry` turns the skips for want of `docker-registry` into failures.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../support/mod.rs"]
mod support;

mod browser;
mod grants;
mod image;
mod index;
mod install;
mod interrupt;
mod json_only;
mod kept;
mod log;
mod pipes;
mod places;
mod pypi;
mod registry;
mod repairs;
mod shows;
mod sources;
mod start;
mod traps;
mod user;
