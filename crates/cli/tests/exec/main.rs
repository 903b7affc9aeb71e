//! `mcp exec` as agents use it: the guard in front, the seed's test plan, real tools in small projects.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../support/mod.rs"]
mod support;

mod config;
mod guarded;
mod same_as_library;
mod seed_plan;
mod tools;
